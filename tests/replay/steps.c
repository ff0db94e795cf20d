/* pointer_changes: of programs that repeat themselves, the allocations whose address moves from step to step. */
#include "lab/replay/run/figures.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

static uint64_t changes_with(const char *columns, const char *rows, const char *strategy_text) {
    char text[8192];
    snprintf(text, sizeof text, "%s%s", columns, rows);
    return replay_text(text, strategy_text, (strata_run_options_t){.timeline = {.lag_ns = LAG}}).figures.pointer_changes;
}

static uint64_t changes_of(const char *rows, const char *strategy_text) { return changes_with(COLUMNS, rows, strategy_text); }

#define SOURCE "stack: [system]\n"
#define CACHE  "stack: [auto_growth: {chunk_size: 1MiB}, system]\n"
#define STEP   "step,,,0,0\n"

/* A step that gets and frees two blocks. */
#define TWO(a, b) "alloc," a ",1024,0,0\nalloc," b ",2048,0,0\nfree," a ",,0,0\nfree," b ",,0,0\n" STEP
/* The same, with the second freed in the next step alone. */
#define KEEPS(a, b, last) "alloc," a ",1024,0,0\nalloc," b ",2048,0,0\nfree," last ",,0,0\nfree," a ",,0,0\n" STEP

TEST(steps, what_stays_where_it_was_is_no_change) {
    EXPECT_EQ(changes_of(TWO("1", "2") TWO("3", "4") TWO("5", "6") TWO("7", "8"), CACHE), 0);
}

/* A block that lives until its successor is there cannot have its address; the other one can. */
TEST(steps, an_allocation_that_moves_is_one) {
    const char *rows = "alloc,1,1024,0,0\nalloc,2,2048,0,0\nfree,1,,0,0\n" STEP KEEPS("3", "4", "2") KEEPS("5", "6", "4")
        KEEPS("7", "8", "6");
    EXPECT_EQ(changes_of(rows, CACHE), 2);
}

/* Steps 1 and 2 may differ: a cache settles. */
TEST(steps, the_second_step_is_not_counted) {
    const char *moved = "alloc,1,1024,0,0\nfree,1,,0,0\n" STEP "alloc,2,512,0,0\nalloc,3,1024,0,0\nfree,3,,0,0\n" STEP;
    EXPECT_EQ(changes_of(moved, CACHE), STRATA_FIGURE_NULL);
}

TEST(steps, only_steps_that_ask_for_the_same_are_compared) {
    EXPECT_EQ(changes_of(TWO("1", "2") TWO("3", "4") "alloc,5,1024,0,0\nfree,5,,0,0\n" STEP, CACHE), STRATA_FIGURE_NULL);
    EXPECT_EQ(changes_of(TWO("1", "2") TWO("3", "4") "alloc,5,2048,0,0\nalloc,6,1024,0,0\nfree,5,,0,0\nfree,6,,0,0\n" STEP, CACHE),
              STRATA_FIGURE_NULL);
    EXPECT_EQ(changes_of(TWO("1", "2") TWO("3", "4") TWO("5", "6") "alloc,7,1024,0,0\nfree,7,,0,0\n" STEP, CACHE), 0);
}

/* The third step requests the same size as the second, but on another stream, in another place or in another pool. */
TEST(steps, the_same_is_of_one_stream_place_and_pool) {
    static const char columns[] = "op,id,size,stream,time_us,place,pool\n";
#define ONE(id, stream, place, pool)                                                                                               \
    "alloc," id ",1024," stream ",0," place "," pool "\nfree," id ",," stream ",0," place ",\nstep,,,0,0,,\n"
    EXPECT_EQ(changes_with(columns, ONE("1", "0", "gpu", "") ONE("2", "0", "gpu", "") ONE("3", "0", "gpu", ""), CACHE), 0);
    EXPECT_EQ(changes_with(columns, ONE("1", "0", "gpu", "") ONE("2", "0", "gpu", "") ONE("3", "1", "gpu", ""), CACHE),
              STRATA_FIGURE_NULL);
    EXPECT_EQ(changes_with(columns, ONE("1", "0", "gpu", "") ONE("2", "0", "gpu", "") ONE("3", "0", "managed", ""), CACHE),
              STRATA_FIGURE_NULL);
    EXPECT_EQ(changes_with(columns, ONE("1", "0", "gpu", "") ONE("2", "0", "gpu", "") ONE("3", "0", "gpu", "7"), CACHE),
              STRATA_FIGURE_NULL);
#undef ONE
}

TEST(steps, without_steps_there_is_no_figure) {
    EXPECT_EQ(changes_of("alloc,1,1024,0,0\nfree,1,,0,0\n", CACHE), STRATA_FIGURE_NULL);
    EXPECT_EQ(changes_of(STEP STEP STEP STEP, CACHE), STRATA_FIGURE_NULL);
}
