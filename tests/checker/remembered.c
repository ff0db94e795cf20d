/* Rule 1 remembers so many accesses of a block and no more: the latest. */
#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])

enum { KEPT = 256, TILE = 1024 };

/* A kernel that touches one tile of the block. */
static void work_on_tile(watched_t *w, uint64_t tile, strata_handle_t stream, bool write) {
    strata_access_t access = {w->chunk + tile * TILE, TILE, write};
    EXPECT_OK(strata_device_work(w->device, stream, US, &access, 1));
}

static void write_tiles(watched_t *w, uint64_t from, uint64_t to) {
    for (uint64_t tile = from; tile < to; tile++) work_on_tile(w, tile, A(w), true);
}

TEST(remembered, the_latest_accesses_are_kept_and_the_oldest_go) {
    enum { TILES = 300 };
    static const uint64_t kept[] = {TILES - KEPT + 1, 280, TILES - 1};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        serve(&w, 1, 0, A(&w));
        write_tiles(&w, 0, TILES);
        work_on_tile(&w, TILES - KEPT - 1, B(&w), false); /* too long ago; and itself takes the place of the oldest */
        EXPECT_HAZARDS(&w, RACE, 0);
        work_on_tile(&w, kept[i], B(&w), false);
        EXPECT_HAZARDS(&w, RACE, 1);
        strata_checker_borrowed(w.checker, 1, B(&w));
        strata_checker_freed(w.checker, 1);
    }
}

/* What a later access stands for leaves no disorder behind: the next oldest goes, not the newest. */
TEST(remembered, an_access_that_another_stands_for_leaves_the_others_in_order) {
    for (uint64_t tile = 1; tile < KEPT; tile += KEPT - 2) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        serve(&w, 1, 0, A(&w));
        write_tiles(&w, 0, KEPT);
        work_on_tile(&w, 0, A(&w), true);
        work_on_tile(&w, KEPT, A(&w), true);
        work_on_tile(&w, tile, B(&w), false);
        EXPECT_HAZARDS(&w, RACE, tile == 1 ? 0 : 1);
        strata_checker_borrowed(w.checker, 1, B(&w));
        strata_checker_freed(w.checker, 1);
    }
}

/* A report says of the other side what is remembered of it; of what is too long ago nothing stands in its place. */
TEST_WATCHED_WAYS(remembered, an_access_too_long_ago_is_told_without_its_moment, long_ago, 2) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    serve(w, 2, 1, A(w));
    for (int i = 0; i < (long_ago ? 1 << 17 : 1); i++) {
        strata_checker_borrowed(w->checker, 2, B(w));
        strata_checker_erased(w->checker, 2, B(w));
    }
    work_at(w, 0, B(w), true);
    EXPECT_HAZARDS(w, RACE, 1);
    const char *report = strata_checker_report(w->checker, 0);
    EXPECT_CONTAINS(report, "  <- here\n");
    EXPECT_CONTAINS(report, "the other side, on ");
    EXPECT_EQ(strstr(report, "  <- this\n") == NULL, long_ago);
    strata_checker_borrowed(w->checker, 1, B(w));
    strata_checker_freed(w->checker, 1);
    strata_checker_freed(w->checker, 2);
}

/* An access that stands for the last takes no more room than it: what is older is not forgotten for it. */
TEST_WATCHED_WAYS(remembered, an_access_again_and_again_is_one, write, 2) {
    serve(w, 1, 0, A(w));
    work_on_tile(w, 1, A(w), true);
    for (int i = 0; i < KEPT; i++) work_on_tile(w, 0, A(w), write != 0);
    work_on_tile(w, 1, B(w), false);
    EXPECT_HAZARDS(w, RACE, 1);
    strata_checker_borrowed(w->checker, 1, B(w));
    strata_checker_freed(w->checker, 1);
}
