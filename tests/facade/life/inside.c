/* What a callback may not do: end the facade that calls it. */
#include "tests/facade/support/fixture.h"

typedef struct ending {
    strata_t facade, other;
    uint32_t calls;
    strata_status_t closed, changed, nested, other_closed;
} ending_t;

/* Tries every way of ending the facade from where it calls, and ends another one. */
static void try_to_end(ending_t *e) {
    strata_t other;
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "system", .devices = "sim"};
    if (e->calls++ > 0) return;
    for (int mode = STRATA_CLOSE_BUSY; mode <= STRATA_CLOSE_FORCE; mode++) {
        strata_status_t status = strata_close(e->facade, (strata_close_mode_t)mode, NULL, NULL);
        if (mode == STRATA_CLOSE_BUSY || e->closed == STRATA_E_BUSY) e->closed = status;
    }
    EXPECT_CONTAINS(strata_last_error()->text, "inside a callback");
    e->changed = strata_change_strategy(e->facade, &options);
    EXPECT_CONTAINS(strata_last_error()->text, "inside a callback");
    EXPECT_OK(strata_open(&options, &other));
    e->other_closed = strata_close(other, STRATA_CLOSE_WAIT, NULL, NULL);
}

static void expect_refused(const ending_t *e) {
    EXPECT_GT(e->calls, 0);
    EXPECT_EQ(e->closed, STRATA_E_BUSY);
    EXPECT_EQ(e->changed, STRATA_E_BUSY);
    EXPECT_OK(e->other_closed);
}

static uint64_t free_memory(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    try_to_end(context);
    return 0;
}

static void observe(const strata_out_of_memory_t *event, void *context) {
    (void)event;
    try_to_end(context);
}

static void leaked(const strata_leak_t *leak, void *context) {
    (void)leak;
    try_to_end(context);
}

static void figure(const strata_layer_figure_t *it, void *context) {
    (void)it;
    try_to_end(context);
}

static void row(const strata_snapshot_row_t *it, void *context) {
    (void)it;
    try_to_end(context);
}

TEST_RIG(facade_inside, a_callback_that_ends_its_facade_is_told_busy, 1 * GIB, "strata") {
    ending_t asked = {0}, told = {0}, figures = {0}, rows = {0}, leaks = {0};
    asked.facade = told.facade = figures.facade = rows.facade = leaks.facade = rig->s;
    (void)rig_allocate(rig, NULL, MIB);
    uint32_t a, b;
    EXPECT_OK(strata_add_free_memory_callback(rig->s, free_memory, &asked, &a));
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, observe, &told, &b));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, GIB));
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, figure, &figures));
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, row, &rows));
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_BUSY, leaked, &leaks));
    expect_refused(&asked);
    expect_refused(&told);
    expect_refused(&figures);
    expect_refused(&rows);
    expect_refused(&leaks);
}

/* Callbacks of one facade in a callback of another. */
static void end_the_outer(const strata_snapshot_row_t *it, void *context) {
    ending_t *e = context;
    (void)it;
    e->nested = strata_close(e->facade, STRATA_CLOSE_FORCE, NULL, NULL);
}

static void look_at_the_other(const strata_snapshot_row_t *it, void *context) {
    ending_t *e = context;
    (void)it;
    EXPECT_OK(strata_snapshot(e->other, strata_gpu(0), end_the_outer, e));
    e->closed = strata_close(e->facade, STRATA_CLOSE_FORCE, NULL, NULL);
    e->other_closed = strata_close(e->other, STRATA_CLOSE_FORCE, NULL, NULL);
}

TEST(facade_inside, a_facade_further_out_counts_and_one_that_was_left_does_not) {
    rig_t outer, inner;
    rig_open(&outer, "system", NULL, 0, 0, 1);
    rig_open(&inner, "system", NULL, 0, 0, 1);
    ending_t e = {.facade = outer.s, .other = inner.s};
    strata_block_t block = rig_allocate(&outer, NULL, MIB);
    (void)rig_allocate(&inner, NULL, MIB);
    EXPECT_OK(strata_snapshot(outer.s, outer.gpu, look_at_the_other, &e));
    EXPECT_EQ(e.nested, STRATA_E_BUSY);
    EXPECT_EQ(e.closed, STRATA_E_BUSY);
    EXPECT_OK(e.other_closed);
    EXPECT_OK(strata_free(outer.s, block.ref));
    rig_close(&outer);
    rig_end(&inner);
}
