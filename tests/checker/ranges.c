/* What lies where: memory that is cut, joined and filled in part keeps its past, byte by byte. */
#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

/* A block at `mib` that B uses too, freed lawfully. */
static void lent_and_freed(watched_t *w, uint64_t name, uint64_t mib) {
    strata_checker_borrowed(w->checker, name, B(w));
    work_at(w, mib, B(w), true);
    strata_checker_freed(w->checker, name);
}

static void serve_range(watched_t *w, uint64_t name, uint64_t mib, uint64_t count, strata_handle_t stream) {
    strata_checker_block_t block = {
        .name = name, .device = w->device, .stream = stream, .address = w->chunk + mib * MIB, .size = count * MIB};
    strata_checker_allocated(w->checker, &block);
}

/* Of several uses by one stream the latest counts, whichever part it was of. */
TEST(checker_ranges, a_block_over_two_is_after_the_later_use_of_either) {
    for (uint64_t first = 0; first < 2; first++) {
        for (int after_both = 0; after_both < 2; after_both++) {
            OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
            serve(&w, 1, 0, A(&w));
            serve(&w, 2, 1, A(&w));
            lent_and_freed(&w, 1 + first, first);
            if (!after_both) order(&w, A(&w), B(&w));
            lent_and_freed(&w, 2 - first, 1 - first);
            if (after_both) order(&w, A(&w), B(&w));
            serve_range(&w, 3, 0, 2, A(&w));
            strata_access_t access = {w.chunk, 2 * MIB, true};
            EXPECT_OK(strata_device_work(w.device, A(&w), 100 * US, &access, 1));
            EXPECT_HAZARDS(&w, NEW_OWNER, after_both ? 0 : 1);
        }
    }
}

/* A block cut out of the middle leaves both sides what they were. */
TEST(checker_ranges, memory_beside_a_block_stays_watched) {
    for (uint64_t side = 0; side < 3; side++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        work_at(&w, side, A(&w), true);
        serve(&w, 1, 1, A(&w));
        if (side == 1) order(&w, B(&w), A(&w));
        work_at(&w, side, B(&w), true);
        EXPECT_HAZARDS(&w, RACE, side == 1 ? 0 : 1);
        strata_checker_borrowed(w.checker, 1, B(&w));
        strata_checker_freed(w.checker, 1);
    }
}

/* What ends where a block begins, and what begins where memory ends, touches neither. */
TEST_WATCHED(checker_ranges, accesses_beside_memory_do_not_touch_it) {
    serve(w, 1, 0, A(w));
    serve(w, 2, 15, A(w));
    strata_checker_freed(w->checker, 1);
    strata_checker_freed(w->checker, 2);
    strata_checker_host_access(w->checker, w->chunk - 64, 64, true);
    strata_checker_host_access(w->checker, w->chunk + 16 * MIB, 64, true);
    EXPECT_EQ(strata_checker_hazards(w->checker), 0);
    strata_checker_host_access(w->checker, w->chunk - 64, 65, true);
    EXPECT_HAZARDS(w, USE_AFTER_FREE, 1);
    strata_checker_host_access(w->checker, w->chunk + 16 * MIB - 1, 64, true);
    EXPECT_HAZARDS(w, USE_AFTER_FREE, 2);
}

/* ---- fills of what is nobody's ---- */

static void fill_at(watched_t *w, uint64_t offset, uint64_t size, strata_handle_t stream) {
    EXPECT_OK(strata_device_fill(w->device, w->chunk + offset, 0, size, stream));
}

/* A fill of a part must be after what that part saw: the last owner's use, or what was before an owner that never used it. */
TEST(checker_ranges, a_fill_of_a_part_is_after_all_that_was_there) {
    for (int way = 0; way < 3; way++) {
        for (int ordered = 0; ordered < 2; ordered++) {
            OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
            serve(&w, 1, 0, A(&w));
            lent_and_freed(&w, 1, 0);
            if (way == 1) {
                serve(&w, 2, 0, A(&w));
                strata_checker_freed(w.checker, 2);
            }
            if (way == 2) fill_at(&w, MIB / 2, 4096, B(&w)); /* in order, beside the part */
            if (ordered) order(&w, A(&w), B(&w));
            fill_at(&w, 4096, 4096, A(&w));
            EXPECT_HAZARDS(&w, NEW_OWNER, ordered ? 0 : 1);
        }
    }
}

/* The next owner is after the fill where there was one, and after the last use where there was none. */
TEST_WATCHED_WAYS(checker_ranges, an_owner_is_after_fills_and_uses_of_every_part, way, 3) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    strata_checker_freed(w->checker, 1);
    order(w, B(w), A(w));
    if (way == 0) order(w, C(w), A(w));
    fill_at(w, 4096, 4096, B(w));
    if (way == 1) order(w, C(w), B(w));
    serve(w, 2, 0, C(w));
    if (way == 2) EXPECT_OK(strata_device_synchronise(w->device));
    work_at(w, 0, C(w), true);
    EXPECT_HAZARDS(w, NEW_OWNER, way == 0 ? 1 : 0);
}

/* Raw memory that is filled in part stays raw memory: what is not ordered races there, what it was races too. */
TEST(checker_ranges, a_fill_of_raw_memory_is_an_access_of_that_part) {
    for (int other = 0; other < 2; other++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        work_at(&w, 0, A(&w), true);
        fill_at(&w, 4096, 4096, A(&w));
        strata_access_t access = {w.chunk + (other ? 0 : 5000), 100, false};
        EXPECT_OK(strata_device_work(w.device, B(&w), 100 * US, &access, 1));
        EXPECT_HAZARDS(&w, RACE, 1);
        serve(&w, 1, 0, A(&w));
        EXPECT_EQ(strata_checker_hazards_of(w.checker, STRATA_HAZARD_OVERLAP), 0);
    }
    OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
    work_at(&w, 0, A(&w), true);
    fill_at(&w, 4096, 4096, B(&w));
    EXPECT_HAZARDS(&w, RACE, 1);
    put(w.device, w.chunk);
}

/* A part of a pool's memory is as valid as the whole. */
TEST_WATCHED_WAYS(checker_ranges, a_filled_part_of_pool_memory_is_valid_after_the_allocation, ordered, 2) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &address));
    EXPECT_OK(strata_device_fill(w->device, address, 0, 4096, A(w)));
    if (ordered) order(w, B(w), A(w));
    strata_checker_block_t block = {.name = 1, .device = w->device, .stream = B(w), .address = address, .size = 4096};
    strata_checker_allocated(w->checker, &block);
    strata_access_t access = {address, 4096, true};
    EXPECT_OK(strata_device_work(w->device, B(w), 100 * US, &access, 1));
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_OUTSIDE), ordered ? 0 : 1);
}

/* It concerns its own bytes alone: a block beside it in the same memory is after nothing of it. */
TEST(checker_ranges, a_fill_of_raw_memory_holds_up_nobody_beside_it) {
    for (uint64_t mib = 0; mib < 2; mib++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        fill_at(&w, 4096, 4096, B(&w));
        serve(&w, 1, mib, A(&w));
        work_at(&w, mib, A(&w), true);
        EXPECT_HAZARDS(&w, NEW_OWNER, mib == 0 ? 1 : 0);
    }
}
