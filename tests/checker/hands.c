/* What passes from thread to thread and from stream to stream: by a record, a wait, a submission, and by nothing else. */
#include <pthread.h>

#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

typedef void (*part_t)(watched_t *w);

typedef struct by {
    watched_t *w;
    part_t part;
} by_t;

static void *run(void *context) {
    const by_t *by = context;
    by->part(by->w);
    return NULL;
}

/* Another thread does this, of which the calling one learns nothing. */
static void elsewhere(watched_t *w, part_t part) {
    by_t by = {w, part};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, run, &by), 0);
    pthread_join(thread, NULL);
}

static strata_handle_t event;

static void use_and_see(watched_t *w) {
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
}

static void see_and_record(watched_t *w) {
    use_and_see(w);
    EXPECT_OK(strata_device_event_record(w->device, event, B(w)));
}

static void see_and_wait(watched_t *w) {
    use_and_see(w);
    EXPECT_OK(strata_device_stream_wait(w->device, C(w), event));
}

static void see_and_work(watched_t *w) {
    use_and_see(w);
    work_at(w, 1, C(w), true);
}

static void see_alone(watched_t *w) { use_and_see(w); }

/* What a thread has seen goes into whatever it submits: a record, a wait, work. This thread, which has seen nothing, finds it
 * there. */
TEST(checker_hands, what_a_thread_has_seen_goes_into_what_it_submits) {
    static const part_t parts[] = {see_and_record, see_and_wait, see_and_work, see_alone};
    for (int way = 0; way < 4; way++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        event = event_new(w.device);
        EXPECT_OK(strata_device_event_record(w.device, event, B(&w)));
        elsewhere(&w, parts[way]);
        if (way == 0) EXPECT_OK(strata_device_stream_wait(w.device, C(&w), event));
        work_at(&w, 0, C(&w), true);
        EXPECT_HAZARDS(&w, RACE, way == 3 ? 1 : 0);
    }
}

static void see_b_and_work(watched_t *w) {
    work_at(w, 1, B(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, B(w)));
    work_at(w, 1, C(w), true);
}

/* Two threads that have learned as often know different things. */
TEST_WATCHED(checker_hands, a_stream_learns_from_each_thread_that_submits) {
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    work_at(w, 0, C(w), true);
    elsewhere(w, see_b_and_work);
    EXPECT_HAZARDS(w, RACE, 0);
}

/* A stream that does not block is after the legacy stream by nothing. */
TEST_WATCHED_WAYS(checker_hands, legacy_work_orders_nothing_of_a_stream_that_does_not_block, blocking, 2) {
    strata_handle_t stream = stream_new(w->device, blocking ? STRATA_STREAM_BLOCKING : STRATA_STREAM_NON_BLOCKING);
    work_at(w, 0, NULL, true);
    work_at(w, 0, stream, true);
    EXPECT_HAZARDS(w, RACE, blocking ? 0 : 1);
}

/* What a host and a legacy stream do next is news, though they have learned nothing since they were last asked. */
TEST_WATCHED(checker_hands, a_stream_hears_of_what_was_done_since_it_last_asked) {
    strata_handle_t blocking = stream_new(w->device, STRATA_STREAM_BLOCKING);
    event = event_new(w->device);
    EXPECT_OK(strata_device_event_record(w->device, event, A(w)));
    strata_checker_host_access(w->checker, w->chunk, 64, true);
    work_at(w, 0, A(w), true);
    work_at(w, 1, NULL, true);
    EXPECT_OK(strata_device_event_record(w->device, event, blocking));
    work_at(w, 2, NULL, true);
    work_at(w, 2, blocking, true);
    EXPECT_HAZARDS(w, RACE, 0);
}

/* The free of planned memory whose owner's stream is gone is the freeing thread's. */
TEST_WATCHED(checker_hands, planned_memory_of_a_stream_that_is_gone_is_freed_by_the_host) {
    strata_handle_t brief = stream_new(w->device, STRATA_STREAM_NON_BLOCKING);
    strata_checker_block_t block = {
        .name = 1, .device = w->device, .stream = brief, .address = w->chunk, .size = MIB, .planned = true};
    strata_checker_allocated(w->checker, &block);
    EXPECT_OK(strata_device_stream_destroy(w->device, brief));
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 0, C(w));
    work_at(w, 0, C(w), true);
    EXPECT_HAZARDS(w, NEW_OWNER, 0);
}

/* ---- memory that goes back ---- */

/* An owner that never used its block leaves what was before it to be waited for. */
TEST_WATCHED_WAYS(checker_hands, memory_goes_back_after_earlier_owners_too, waits, 2) {
    mapped_t m = map_new(w->device, 2 * MIB);
    strata_access_t access = {m.address, 8, true};
    strata_checker_block_t block = {.name = 1, .device = w->device, .stream = A(w), .address = m.address, .size = 2 * MIB};
    strata_checker_allocated(w->checker, &block);
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    strata_checker_freed(w->checker, 1);
    block.name = 2;
    strata_checker_allocated(w->checker, &block);
    strata_checker_freed(w->checker, 2);
    if (waits) EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    else
        strata_sim_advance_to(w->sim.world, strata_sim_device_end(w->device)); /* the work is done, and no thread has observed it */
    EXPECT_OK(strata_device_unmap(w->device, m.address, 2 * MIB));
    EXPECT_HAZARDS(w, UNDER_WORK, waits ? 0 : 1);
}

/* What goes back in a stream's order is rule 6's matter, what the host takes back is rule 7's. */
TEST(checker_hands, each_way_back_is_asked_by_its_own_rule) {
    for (int left_out = 5; left_out < 8; left_out++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(left_out)));
        strata_address_t address = 0;
        EXPECT_OK(strata_device_malloc_async(w.device, NULL, MIB, A(&w), &address));
        order(&w, B(&w), A(&w));
        strata_access_t access = {address, MIB, true};
        EXPECT_OK(strata_device_work(w.device, B(&w), 100 * US, &access, 1));
        EXPECT_OK(strata_device_free_async(w.device, address, A(&w)));
        EXPECT_HAZARDS(&w, UNDER_WORK, left_out == 6 ? 0 : 1);
        mapped_t m = map_new(w.device, 2 * MIB);
        access.address = m.address;
        EXPECT_OK(strata_device_work(w.device, B(&w), 100 * US, &access, 1));
        strata_sim_advance_to(w.sim.world, strata_sim_device_end(w.device));
        uint64_t before = strata_checker_hazards(w.checker);
        EXPECT_OK(strata_device_unmap(w.device, m.address, 2 * MIB));
        EXPECT_EQ(strata_checker_hazards(w.checker) - before, left_out == 7 ? 0 : 1);
    }
}

/* ---- pools ---- */

static strata_access_t of_pool;

static void use_of_pool(watched_t *w) { EXPECT_OK(strata_device_work(w->device, C(w), 100 * US, &of_pool, 1)); }

/* Where lifetimes alone are checked, memory whose last free the allocating thread has seen is anybody's. */
TEST(checker_hands, pool_memory_whose_free_was_seen_is_valid_for_every_thread) {
    for (int way = 0; way < 4; way++) {
        bool seen = way & 1, told = way & 2;
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_LIFETIMES));
        strata_address_t first = 0, second = 0;
        EXPECT_OK(strata_device_pool_set(w.device, NULL, STRATA_POOL_RELEASE_THRESHOLD, UINT64_MAX));
        EXPECT_OK(strata_device_malloc_async(w.device, NULL, MIB, A(&w), &first));
        EXPECT_OK(strata_device_free_async(w.device, first, A(&w)));
        if (seen) EXPECT_OK(strata_device_stream_synchronise(w.device, A(&w)));
        EXPECT_OK(strata_device_malloc_async(w.device, NULL, MIB, A(&w), &second));
        ASSERT_EQ(first, second);
        strata_checker_block_t block = {.name = 1, .device = w.device, .stream = C(&w), .address = second, .size = MIB};
        if (told) strata_checker_allocated(w.checker, &block);
        of_pool = (strata_access_t){second, MIB, false};
        elsewhere(&w, use_of_pool);
        EXPECT_EQ(strata_checker_hazards_of(w.checker, STRATA_HAZARD_OUTSIDE), seen ? 0 : 1);
    }
}
