/* Tests memory that is freed while work on it runs, and that the pool reuses before that work completes: its bytes count once. */
#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "tests/async/async.h"
#include "tests/facade/support/deferral.h"
#include "tests/facade/support/interleaving.h"

enum { LONG = 5 * 1000 * 1000 };

static void expect_bytes(rig_t *rig, uint64_t allocated, uint64_t deferred) {
    strata_statistics_t f = rig_figures(rig);
    EXPECT_EQ(f.allocated_bytes, allocated);
    EXPECT_EQ(f.deferred_bytes, deferred);
    EXPECT_EQ(f.reserved_bytes, allocated + deferred);
    EXPECT_OK(strata_validate(rig->s));
}

static void add_pending(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "pending_bytes") == 0) *(uint64_t *)context += figure->value;
}

static uint64_t pending_bytes(rig_t *rig) {
    uint64_t bytes = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, add_pending, &bytes));
    return bytes;
}

/* The pool cannot grow, so it makes the other stream wait for the free of the first block and reuses parts of it. */
TEST(async_pending, reused_memory_counts_once) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 50 * MIB, false));
    strata_stream_t owner = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t first = rig_free_deferred(&rig, owner, rig_stream(&rig), 48 * MIB, LONG);
    expect_bytes(&rig, 0, 48 * MIB);
    strata_block_t second = rig_allocate(&rig, other, 40 * MIB);
    EXPECT_EQ(second.ptr, first.ptr);
    expect_bytes(&rig, 40 * MIB, 8 * MIB);
    strata_block_t third = rig_allocate(&rig, other, 5 * MIB);
    expect_bytes(&rig, 45 * MIB, 3 * MIB);
    EXPECT_EQ(pending_bytes(&rig), 3 * MIB);
    EXPECT_EQ(rig_figures(&rig).deferred_frees, 1);
    EXPECT_EQ(rig_figures(&rig).peak_reserved_bytes, 48 * MIB);
    EXPECT_EQ(async_peak_used(&rig), 48 * MIB);
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    EXPECT_EQ(rig_release(&rig), 0);
    expect_bytes(&rig, 45 * MIB, 0);
    RIG_FREE(&rig, second, third);
    expect_bytes(&rig, 0, 0);
    EXPECT_EQ(rig_release(&rig), 48 * MIB);
}

/* Reused memory may be freed behind work again before the first free completes. */
TEST(async_pending, memory_that_is_pending_twice_counts_once) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 64 * MIB, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    deferral_t deferral = {.base = {.add = deferral_add, .cut = deferral_cut}};
    rig_domain(&rig)->deferral = &deferral.base;
    for (int i = 0; i < 4; i++) {
        (void)rig_free_deferred(&rig, owner, borrower, 48 * MIB, LONG);
        expect_bytes(&rig, 0, 48 * MIB);
    }
    EXPECT_EQ(rig_figures(&rig).peak_reserved_bytes, 48 * MIB);
    EXPECT_EQ(rig_figures(&rig).deferred_frees, 4);
    EXPECT_EQ(deferral.peak, 48 * MIB);
    rig_domain(&rig)->deferral = NULL;
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    EXPECT_EQ(rig_release(&rig), 48 * MIB);
    expect_bytes(&rig, 0, 0);
}

/* A pool of the strategy has its own instance over the same driver pool. */
TEST(async_pending, memory_reused_by_another_instance_counts_once) {
    static const char text[] = "stack: [cuda_malloc_async]\npools: {apart: {stack: [cuda_malloc_async]}}\n";
    RIG(rig, text, 64 * MIB);
    uint64_t apart;
    ASSERT_OK(strata_pool(rig.s, "apart", &apart));
    strata_stream_t owner = rig_stream(&rig);
    (void)rig_free_deferred(&rig, owner, rig_stream(&rig), 48 * MIB, LONG);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 30 * MIB, .pool = apart};
    strata_block_t served = rig_allocate_with(&rig, owner, &options);
    expect_bytes(&rig, 30 * MIB, 18 * MIB);
    EXPECT_EQ(rig_figures(&rig).peak_reserved_bytes, 48 * MIB);
    EXPECT_OK(strata_free(rig.s, served.ref));
}

/* Closing subtracts exactly the remaining pending bytes, so nothing stays reserved. */
TEST(async_pending, closing_subtracts_what_is_left) {
    OPENED(rig_t, rig, rig_end, async_open(&rig, NULL, 0, 64 * MIB, false));
    strata_stream_t owner = rig_stream(&rig);
    (void)rig_free_deferred(&rig, owner, rig_stream(&rig), 48 * MIB, LONG);
    strata_block_t second = rig_allocate(&rig, owner, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, second.ref));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(async_used(&rig), 0);
}

/* What another thread does once the pool has a block back whose free is not noted yet: it is served a part of that, and leaves it
 * waiting behind work of its own. */
typedef struct quicker {
    rig_t *rig;
    strata_stream_t owner, borrower;
    size_t size;
    uint64_t pool;
    strata_block_t served;
} quicker_t;

static void serve_and_leave(void *context) {
    quicker_t *quicker = context;
    rig_t *rig = quicker->rig;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = quicker->size, .pool = quicker->pool};
    quicker->served = rig_allocate_with(rig, quicker->owner, &options);
    rig_borrow(rig, quicker->served.ref, quicker->borrower, LONG);
    EXPECT_OK(strata_free(rig->s, quicker->served.ref));
}

typedef struct late {
    const char *name;
    size_t size;
    bool apart; /* from another instance over the same pool of the driver */
} late_t;

static const late_t lates[] = {{"after_a_part", 40 * MIB, false},
                               {"after_the_whole", 48 * MIB, false},
                               {"after_a_part_of_another_instance", 40 * MIB, true},
                               {"after_the_whole_of_another_instance", 48 * MIB, true}};

/* Each byte waits once, whichever of the two frees is noted first. */
TEST_EACH(async_pending, a_free_that_is_noted_late_counts_each_byte_once, late_t, lates) {
    static const char text[] = "stack: [cuda_malloc_async]\npools: {apart: {stack: [cuda_malloc_async]}}\n";
    between_t between;
    RIG(rig, text, 64 * MIB);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, owner, 48 * MIB);
    rig_borrow(&rig, block.ref, borrower, LONG);
    quicker_t quicker = {.rig = &rig, .owner = rig_stream(&rig), .borrower = rig_stream(&rig), .size = row->size};
    if (row->apart) ASSERT_OK(strata_pool(rig.s, "apart", &quicker.pool));
    between_begin(&between, &rig, STRATA_CALL_free_async, serve_and_leave, &quicker);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_TRUE(between_end(&between));
    EXPECT_EQ(quicker.served.ptr, block.ptr);
    expect_bytes(&rig, 0, 48 * MIB);
    EXPECT_EQ(pending_bytes(&rig), 48 * MIB);
    /* What is served there next takes its bytes from the one span that there is. */
    strata_block_t third = rig_allocate(&rig, owner, 30 * MIB);
    EXPECT_EQ(third.ptr, block.ptr);
    expect_bytes(&rig, 30 * MIB, 18 * MIB);
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    EXPECT_EQ(rig_release(&rig), 0); /* the pool has one piece of 48 MiB */
    expect_bytes(&rig, 30 * MIB, 0);
    RIG_FREE(&rig, third);
    expect_bytes(&rig, 0, 0);
}

/* ---- while the note of a free makes its event ---- */

enum { IDLE_EVENTS = 256 };

typedef struct noting {
    quicker_t quicker; /* first: serve() gets this struct */
    between_t between;
    strata_handle_t events[IDLE_EVENTS];
    uint32_t event_count;
} noting_t;

static void serve(void *context) {
    quicker_t *quicker = context;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = quicker->size, .pool = quicker->pool};
    quicker->served = rig_allocate_with(quicker->rig, quicker->owner, &options);
}

/* The pool has the block back, and its free is not noted yet. Without idle events the note makes one, with its lock open. */
static void take_events(void *context) {
    noting_t *noting = context;
    strata_events_t *events = &rig_domain(noting->quicker.rig)->events;
    strata_handle_t event;
    while (noting->event_count < IDLE_EVENTS && (event = strata_events_acquire(events)) != NULL)
        noting->events[noting->event_count++] = event;
    noting->between.call = STRATA_CALL_event_create;
    noting->between.act = serve;
    noting->between.acted = false;
}

/* What is served in that moment no longer waits, so the note must not subtract it a second time when the wait is over. */
TEST_EACH(async_pending, a_free_counts_what_is_left_once_its_event_is_made, late_t, lates) {
    static const char text[] = "stack: [cuda_malloc_async]\npools: {apart: {stack: [cuda_malloc_async]}}\n";
    noting_t noting;
    RIG(rig, text, 64 * MIB);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, owner, 48 * MIB);
    rig_borrow(&rig, block.ref, borrower, LONG);
    noting = (noting_t){.quicker = {.rig = &rig, .owner = rig_stream(&rig), .size = row->size}};
    if (row->apart) ASSERT_OK(strata_pool(rig.s, "apart", &noting.quicker.pool));
    between_begin(&noting.between, &rig, STRATA_CALL_free_async, take_events, &noting);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_TRUE(between_end(&noting.between));
    for (uint32_t i = 0; i < noting.event_count; i++) strata_events_release(&rig_domain(&rig)->events, noting.events[i]);
    EXPECT_EQ(noting.quicker.served.ptr, block.ptr);
    expect_bytes(&rig, row->size, 48 * MIB - row->size);
    EXPECT_EQ(pending_bytes(&rig), 48 * MIB - row->size);
    EXPECT_OK(strata_device_synchronise(rig.devices[0]));
    EXPECT_EQ(rig_release(&rig), 0);
    expect_bytes(&rig, row->size, 0);
    EXPECT_EQ(pending_bytes(&rig), 0);
    RIG_FREE(&rig, noting.quicker.served);
    expect_bytes(&rig, 0, 0);
}
