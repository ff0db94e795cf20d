/* Every kind of hazard, beside the lawful program that is almost the same. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

TEST_WATCHED(verdicts, a_use_after_free) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, USE_AFTER_FREE, 0);
    work_at(w, 0, A(w), false);
    EXPECT_HAZARDS(w, USE_AFTER_FREE, 1);
    work_at(w, 0, B(w), false);
    EXPECT_HAZARDS(w, USE_AFTER_FREE, 1); /* each life of a block is reported once */
}

TEST_WATCHED(verdicts, a_free_under_work_that_nobody_borrowed_for) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, B(w), true);
    EXPECT_HAZARDS(w, FREE, 0); /* a use of a live block on any stream is no fault by itself */
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, FREE, 1);
    serve(w, 2, 0, A(w));
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, FREE, 1); /* what follows from it is not told again */
}

/* Each way in which the free is lawful: borrowed for before or after the use, ordered, seen by the host, freed there. */
static void lawful_free(int way) {
    OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
    serve(&w, 1, 0, A(&w));
    if (way == 0) strata_checker_borrowed(w.checker, 1, B(&w));
    work_at(&w, 0, B(&w), true);
    if (way == 1) strata_checker_borrowed(w.checker, 1, B(&w));
    if (way == 2) order(&w, A(&w), B(&w));
    if (way == 3) EXPECT_OK(strata_device_stream_synchronise(w.device, B(&w)));
    if (way == 5) {
        order(&w, C(&w), B(&w));
        strata_checker_borrowed(w.checker, 1, C(&w));
    }
    if (way == 4) strata_checker_freed_on(w.checker, 1, B(&w));
    else strata_checker_freed(w.checker, 1);
    EXPECT_HAZARDS(&w, FREE, 0);
}

TEST(verdicts, frees_that_are_lawful) {
    for (int way = 0; way < 6; way++) lawful_free(way);
}

TEST_WATCHED(verdicts, a_borrow_taken_back_covers_no_more) {
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    work_at(w, 0, B(w), true);
    strata_checker_erased(w->checker, 1, B(w));
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, FREE, 1);
}

/* A block of no owner has its borrowers and no more: the first one's erased borrow covers nothing, nor does a stream that none
 * is. Each way but the first says by what the free is lawful: the borrow stays, the host waits, the free says where. */
static void free_of_pinned(int way, bool planned) {
    OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
    strata_address_t address = 0;
    EXPECT_OK(strata_device_host_alloc(w.device, STRATA_MEMORY_PINNED, MIB, 256, 0, &address));
    strata_checker_block_t block = {
        .name = 1, .device = w.device, .stream = A(&w), .address = address, .size = MIB, .ownerless = true, .planned = planned};
    strata_access_t access = {address, MIB, true};
    strata_checker_allocated(w.checker, &block);
    EXPECT_OK(strata_device_work(w.device, A(&w), 100 * US, &access, 1));
    if (way != 1) strata_checker_erased(w.checker, 1, A(&w));
    if (way == 2) EXPECT_OK(strata_device_stream_synchronise(w.device, A(&w)));
    if (way == 3) strata_checker_freed_on(w.checker, 1, A(&w));
    else strata_checker_freed(w.checker, 1);
    EXPECT_HAZARDS(&w, FREE, way == 0 ? 1 : 0);
    if (way == 0) EXPECT_CONTAINS(strata_checker_report(w.checker, 0), "freed on thread 1  <- here");
    EXPECT_OK(strata_device_synchronise(w.device));
    EXPECT_OK(strata_device_host_free(w.device, STRATA_MEMORY_PINNED, address));
}

TEST(verdicts, a_first_borrow_taken_back_covers_no_more) {
    for (int way = 0; way < 4; way++) free_of_pinned(way, false);
    free_of_pinned(0, true);
}

TEST_WATCHED(verdicts, an_owner_of_pinned_memory_is_a_borrower) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_host_alloc(w->device, STRATA_MEMORY_PINNED, MIB, 256, 0, &address));
    strata_checker_block_t block = {
        .name = 1, .device = w->device, .stream = A(w), .address = address, .size = MIB, .ownerless = true};
    strata_access_t access = {address, MIB, true};
    strata_checker_allocated(w->checker, &block);
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, FREE, 0);
    /* Served to A again at once: there it is in order; the host is not. */
    block.name = 2;
    strata_checker_allocated(w->checker, &block);
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
    EXPECT_HAZARDS(w, RACE, 0);
    strata_checker_host_access(w->checker, address, 64, false);
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_RACE), 1);
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_NEW_OWNER), 1);
    EXPECT_OK(strata_device_synchronise(w->device));
    strata_checker_host_access(w->checker, address, 64, true);
    strata_checker_freed(w->checker, 2);
    EXPECT_OK(strata_device_host_free(w->device, STRATA_MEMORY_PINNED, address));
    EXPECT_EQ(strata_checker_hazards(w->checker), 2);
}

TEST(verdicts, memory_goes_back_under_running_work) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free_waits = false;
    const strata_sim_options_t options = {.profile = &profile};
    for (int waits = 0; waits < 2; waits++) {
        OPENED(watched_t, w, watched_close, watched_open_on(&w, STRATA_CHECKER_ALL, &options));
        strata_address_t address = get(w.device, MIB);
        strata_access_t access = {address, MIB, true};
        EXPECT_OK(strata_device_work(w.device, A(&w), 100 * US, &access, 1));
        if (waits) EXPECT_OK(strata_device_stream_synchronise(w.device, A(&w)));
        put(w.device, address);
        EXPECT_HAZARDS(&w, UNDER_WORK, waits ? 0 : 1);
    }
}

TEST_WATCHED(verdicts, a_device_free_waits_where_the_profile_says_so) {
    work_at(w, 0, A(w), true);
    put(w->device, w->chunk);
    EXPECT_HAZARDS(w, UNDER_WORK, 0);
}

static void unmap_under_work(bool seen_by_host, uint64_t wanted) {
    OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
    mapped_t m = map_new(w.device, 2 * MIB);
    strata_access_t access = {m.address + 100, 8, true};
    EXPECT_OK(strata_device_work(w.device, A(&w), 100 * US, &access, 1));
    order(&w, B(&w), A(&w)); /* mapping is not stream-ordered: this helps nothing */
    if (seen_by_host) EXPECT_OK(strata_device_stream_synchronise(w.device, B(&w)));
    EXPECT_OK(strata_device_unmap(w.device, m.address, 2 * MIB));
    EXPECT_HAZARDS(&w, UNDER_WORK, wanted);
}

TEST(verdicts, an_unmap_wants_a_completion_that_the_host_has_seen) {
    unmap_under_work(false, 1);
    unmap_under_work(true, 0);
}

TEST_WATCHED_WAYS(verdicts, a_pool_takes_back_after_all_work, ordered, 2) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &address));
    order(w, B(w), A(w));
    strata_access_t access = {address, MIB, true};
    EXPECT_OK(strata_device_work(w->device, B(w), 100 * US, &access, 1));
    if (ordered) order(w, A(w), B(w));
    EXPECT_OK(strata_device_free_async(w->device, address, A(w)));
    EXPECT_HAZARDS(w, UNDER_WORK, ordered ? 0 : 1);
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(w->device, A(w), 100 * US, &access, 1));
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_USE_AFTER_FREE), 1);
}

/* Where lifetimes alone are checked, fresh memory of a pool is valid at once; what another stream has freed is not. */
TEST_WITH(verdicts, pool_memory_in_a_replay, watched_t, w, watched_close, watched_open(w, STRATA_CHECKER_LIFETIMES)) {
    strata_address_t first = 0, second = 0;
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &first));
    strata_access_t access = {first, MIB, false};
    EXPECT_OK(strata_device_work(w->device, B(w), 100 * US, &access, 1));
    EXPECT_HAZARDS(w, OUTSIDE, 0);
    order(w, A(w), B(w));
    EXPECT_OK(strata_device_free_async(w->device, first, A(w)));
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &second));
    ASSERT_EQ(first, second);
    EXPECT_OK(strata_device_work(w->device, C(w), 100 * US, &access, 1));
    EXPECT_HAZARDS(w, OUTSIDE, 1);
}

TEST_WATCHED(verdicts, memory_taken_from_a_live_block) {
    serve(w, 1, 3, A(w));
    put(w->device, w->chunk);
    EXPECT_HAZARDS(w, TAKEN_AWAY, 1);
    strata_checker_freed(w->checker, 1);
    EXPECT_HAZARDS(w, TAKEN_AWAY, 1);
}

TEST_WATCHED(verdicts, work_for_a_block_that_another_owner_has) {
    const uint64_t old = 1, fresh = 2;
    serve(w, old, 0, A(w));
    strata_checker_freed(w->checker, old);
    serve(w, fresh, 0, A(w));
    strata_checker_expect(w->checker, &fresh, 1);
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, FOREIGN, 0);
    strata_checker_expect(w->checker, &old, 1);
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, FOREIGN, 1);
    work_at(w, 0, A(w), true); /* names no block, so it uses the present owner of the address */
    EXPECT_HAZARDS(w, FOREIGN, 1);
}

TEST_WATCHED(verdicts, a_block_served_twice) {
    serve(w, 1, 0, A(w));
    serve(w, 2, 1, A(w));
    EXPECT_HAZARDS(w, OVERLAP, 0);
    strata_checker_block_t block = {.name = 3, .device = w->device, .stream = B(w), .address = w->chunk + MIB / 2, .size = 64};
    strata_checker_allocated(w->checker, &block);
    EXPECT_HAZARDS(w, OVERLAP, 1);
}

/* A large block takes over from several owners, and gives to several: each use of each counts. */
TEST(verdicts, blocks_that_merge_and_are_cut) {
    for (uint64_t last = 0; last < 3; last++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        for (uint64_t i = 0; i < 3; i++) {
            serve(&w, 1 + i, i, A(&w));
            work_at(&w, i, i == last ? B(&w) : A(&w), true);
            strata_checker_borrowed(w.checker, 1 + i, B(&w));
            strata_checker_freed(w.checker, 1 + i);
        }
        strata_checker_block_t block = {.name = 9, .device = w.device, .stream = A(&w), .address = w.chunk, .size = 3 * MIB};
        strata_checker_allocated(w.checker, &block);
        strata_checker_freed(w.checker, 9); /* never used: what was before it is before the next */
        serve(&w, 10, last, A(&w));
        serve(&w, 11, (last + 1) % 3, A(&w));
        work_at(&w, last, A(&w), true);
        EXPECT_HAZARDS(&w, NEW_OWNER, 1);
    }
}

/* What an allocator fills of free memory is no use after free; it must be ordered like a new owner's use. */
TEST_WATCHED_WAYS(verdicts, allocators_fill_free_memory, other, 2) {
    serve(w, 1, 0, A(w));
    work_at(w, 0, A(w), true);
    strata_checker_freed(w->checker, 1);
    strata_handle_t filler = other ? B(w) : A(w);
    EXPECT_OK(strata_device_fill(w->device, w->chunk + 4096, 0, 4096, filler));
    EXPECT_HAZARDS(w, NEW_OWNER, (uint64_t)other);
    serve(w, 2, 0, filler);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    work_at(w, 0, filler, true);
    EXPECT_HAZARDS(w, NEW_OWNER, (uint64_t)other);
}

/* ---- orders ---- */

TEST_WATCHED(verdicts, races_need_a_write_and_common_bytes) {
    work_at(w, 0, A(w), false);
    work_at(w, 0, B(w), false);
    work_at(w, 1, A(w), true);
    work_at(w, 2, B(w), true);
    EXPECT_HAZARDS(w, RACE, 0);
    order(w, C(w), A(w));
    order(w, C(w), B(w));
    work_at(w, 0, C(w), true);
    EXPECT_HAZARDS(w, RACE, 0);
    work_at(w, 0, A(w), false);
    EXPECT_HAZARDS(w, RACE, 1);
}

TEST_WATCHED(verdicts, blocking_streams_order_with_the_legacy_stream_both_ways) {
    strata_handle_t one = stream_new(w->device, STRATA_STREAM_BLOCKING), two = stream_new(w->device, STRATA_STREAM_BLOCKING);
    work_at(w, 0, one, true);
    work_at(w, 0, NULL, true);
    work_at(w, 0, two, true);
    EXPECT_HAZARDS(w, RACE, 0);
    work_at(w, 0, one, true);
    EXPECT_HAZARDS(w, RACE, 1);
}

TEST_WATCHED_WAYS(verdicts, a_query_that_succeeds_is_an_order_and_one_that_does_not_is_none, passes, 2) {
    strata_handle_t event = event_new(w->device);
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_event_record(w->device, event, A(w)));
    if (passes) strata_sim_advance_to(w->sim.world, strata_sim_now(w->sim.world) + 1000 * US);
    EXPECT_STATUS(passes ? STRATA_OK : STRATA_E_NOT_READY, strata_device_event_query(w->device, event));
    work_at(w, 0, B(w), true);
    EXPECT_HAZARDS(w, RACE, passes ? 0 : 1);
}

typedef struct other_thread {
    watched_t *w;
    bool tells;
} other_thread_t;

enum { KEY_START = 7, KEY_END = 8 };

static void *use_and_wait(void *context) {
    other_thread_t *other = context;
    if (other->tells) strata_checker_observe(other->w->checker, KEY_START);
    work_at(other->w, 0, B(other->w), true);
    EXPECT_OK(strata_device_stream_synchronise(other->w->device, B(other->w)));
    if (other->tells) strata_checker_publish(other->w->checker, KEY_END);
    return NULL;
}

/* The start and the join of a thread are orders where the program tells them. */
TEST_WATCHED_WAYS(verdicts, threads_order_by_what_they_tell, tells, 2) {
    other_thread_t other = {w, tells != 0};
    pthread_t thread;
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    if (tells) strata_checker_publish(w->checker, KEY_START);
    ASSERT_EQ(pthread_create(&thread, NULL, use_and_wait, &other), 0);
    pthread_join(thread, NULL);
    if (tells) strata_checker_observe(w->checker, KEY_END);
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, RACE, tells ? 0 : 1);
}

/* Rule 8 of a block without an owner: the free is the freeing thread's, and who takes over must be after what that did. */
TEST_WATCHED_WAYS(verdicts, planned_memory_without_an_owner_is_freed_by_the_host, tells, 2) {
    other_thread_t other = {w, tells != 0};
    pthread_t thread;
    strata_checker_block_t block = {
        .name = 1, .device = w->device, .address = w->chunk, .size = MIB, .ownerless = true, .planned = true};
    strata_checker_allocated(w->checker, &block);
    strata_checker_freed(w->checker, 1);
    if (tells) strata_checker_publish(w->checker, KEY_START);
    block.name = 2;
    strata_checker_allocated(w->checker, &block);
    ASSERT_EQ(pthread_create(&thread, NULL, use_and_wait, &other), 0);
    pthread_join(thread, NULL);
    EXPECT_HAZARDS(w, NEW_OWNER, tells ? 0 : 1);
}

static void *take_the_lock(void *context) {
    void *const *both = context;
    watched_t *w = both[0];
    strata_lock_t *lock = both[1];
    strata_lock(lock);
    strata_unlock(lock);
    work_at(w, 0, B(w), true);
    return NULL;
}

TEST_WATCHED(verdicts, a_common_lock_is_an_order) {
    strata_lock_t lock;
    strata_lock_init(&lock, STRATA_RANK_STACK, w->device->lock_observer);
    pthread_t thread;
    work_at(w, 0, A(w), true);
    EXPECT_OK(strata_device_stream_synchronise(w->device, A(w)));
    strata_lock(&lock);
    strata_unlock(&lock);
    void *both[] = {w, &lock};
    ASSERT_EQ(pthread_create(&thread, NULL, take_the_lock, both), 0);
    pthread_join(thread, NULL);
    EXPECT_HAZARDS(w, RACE, 0);
    strata_lock_destroy(&lock);
}

/* A stream that is destroyed leaves its work to the device, and to nobody else. */
TEST_WATCHED_WAYS(verdicts, work_outlives_its_stream, waits, 2) {
    strata_handle_t brief = stream_new(w->device, STRATA_STREAM_NON_BLOCKING);
    work_at(w, 0, brief, true);
    EXPECT_OK(strata_device_stream_destroy(w->device, brief));
    if (waits) EXPECT_OK(strata_device_synchronise(w->device));
    strata_handle_t recycled = stream_new(w->device, STRATA_STREAM_NON_BLOCKING);
    EXPECT_EQ(recycled, brief);
    work_at(w, 0, recycled, true);
    EXPECT_HAZARDS(w, RACE, waits ? 0 : 1);
}

typedef enum between { NOTHING, LEGACY_WORK, LEGACY_WAIT, LEGACY_WAIT_ELSEWHERE } between_t;

static void *wait_for_legacy(void *context) {
    watched_t *w = context;
    EXPECT_OK(strata_device_stream_synchronise(w->device, NULL));
    return NULL;
}

static void between_the_streams(watched_t *w, between_t between) {
    pthread_t thread;
    if (between == LEGACY_WORK) work_at(w, 1, NULL, true);
    if (between == LEGACY_WAIT) (void)wait_for_legacy(w);
    if (between != LEGACY_WAIT_ELSEWHERE) return;
    ASSERT_EQ(pthread_create(&thread, NULL, wait_for_legacy, w), 0);
    pthread_join(thread, NULL);
}

/* Of two blocking streams the second is after the first by what the legacy stream was given between them, or by what its own
 * thread has seen. That the first is destroyed, or that another thread waited for the legacy stream, orders nothing. */
TEST(verdicts, blocking_streams_are_ordered_by_legacy_work_alone) {
    for (int destroyed = 0; destroyed < 2; destroyed++)
        for (between_t between = NOTHING; between <= LEGACY_WAIT_ELSEWHERE; between++) {
            OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
            strata_handle_t one = stream_new(w.device, STRATA_STREAM_BLOCKING), two = stream_new(w.device, STRATA_STREAM_BLOCKING);
            work_at(&w, 0, one, true);
            if (destroyed) EXPECT_OK(strata_device_stream_destroy(w.device, one));
            between_the_streams(&w, between);
            work_at(&w, 0, two, true);
            EXPECT_HAZARDS(&w, RACE, between == LEGACY_WORK || between == LEGACY_WAIT ? 0 : 1);
        }
}

TEST_WATCHED(verdicts, legacy_work_is_after_blocking_streams_that_are_gone) {
    strata_handle_t blocking = stream_new(w->device, STRATA_STREAM_BLOCKING);
    strata_handle_t other = stream_new(w->device, STRATA_STREAM_NON_BLOCKING);
    work_at(w, 0, blocking, true);
    work_at(w, 1, other, true);
    EXPECT_OK(strata_device_stream_destroy(w->device, blocking));
    EXPECT_OK(strata_device_stream_destroy(w->device, other));
    work_at(w, 0, NULL, true);
    EXPECT_HAZARDS(w, RACE, 0);
    work_at(w, 1, NULL, true);
    EXPECT_HAZARDS(w, RACE, 1);
}

/* A wait for one device says nothing of another's work: a device free is an order for its own streams alone. */
TEST(verdicts, a_device_free_waits_for_its_own_device) {
    for (int waits = 0; waits < 2; waits++) {
        const strata_sim_options_t options = {.devices = 2};
        OPENED(watched_t, w, watched_close, watched_open_on(&w, STRATA_CHECKER_ALL, &options));
        strata_handle_t abroad = stream_new(w.sim.other, STRATA_STREAM_NON_BLOCKING);
        EXPECT_OK(strata_device_enable_peer(w.sim.other, 0));
        strata_access_t access = {w.chunk, MIB, true};
        EXPECT_OK(strata_device_work(w.sim.other, abroad, 100 * US, &access, 1));
        if (waits) EXPECT_OK(strata_device_synchronise(w.sim.other));
        put(w.device, w.chunk);
        EXPECT_HAZARDS(&w, UNDER_WORK, waits ? 0 : 1);
    }
}

/* ---- graphs ---- */

/* Two branches that join: ordered inside or not, and after the launch. */
static uint64_t graph_hazards(bool ordered_inside) {
    watched_t w;
    watched_open(&w, STRATA_CHECKER_ALL);
    strata_handle_t graph = NULL;
    EXPECT_OK(strata_device_capture_begin(w.device, A(&w), STRATA_CAPTURE_RELAXED));
    if (ordered_inside) work_at(&w, 0, A(&w), true);
    order(&w, B(&w), A(&w));
    if (!ordered_inside) work_at(&w, 0, A(&w), true);
    work_at(&w, 0, B(&w), true);
    order(&w, A(&w), B(&w));
    EXPECT_OK(strata_device_capture_end(w.device, A(&w), &graph));
    EXPECT_HAZARDS(&w, RACE, 0); /* nothing has run yet */
    EXPECT_OK(strata_device_graph_launch(w.device, graph, C(&w)));
    EXPECT_OK(strata_device_graph_launch(w.device, graph, C(&w)));
    work_at(&w, 0, C(&w), true);
    uint64_t hazards = strata_checker_hazards(w.checker);
    EXPECT_EQ(hazards, strata_checker_hazards_of(w.checker, STRATA_HAZARD_RACE));
    EXPECT_OK(strata_device_graph_destroy(w.device, graph));
    watched_close(&w);
    return hazards;
}

TEST(verdicts, captured_edges_order_inside_a_graph) {
    EXPECT_EQ(graph_hazards(true), 0);
    EXPECT_EQ(graph_hazards(false), 1);
}

/* ---- reports ---- */

TEST_WATCHED(verdicts, a_report_tells_both_sides) {
    strata_checker_name(w->checker, w->device, A(w), "copies");
    strata_checker_name(w->checker, w->device, B(w), "kernels");
    strata_checker_line(w->checker, 11);
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    strata_checker_line(w->checker, 12);
    work_at(w, 0, B(w), true);
    strata_checker_freed(w->checker, 1);
    strata_checker_line(w->checker, 13);
    order(w, C(w), B(w));
    serve(w, 2, 0, A(w));
    work_at(w, 0, A(w), true);
    EXPECT_HAZARDS(w, NEW_OWNER, 1);
    const char *report = strata_checker_report(w->checker, 0);
    ASSERT_TRUE(report);
    /* clang-format off */
    static const char *const parts[] = {
        "a new owner uses memory", "(rule 7)", "1048576 bytes", "line 13", "served to copies", "used by work on copies",
        "<- here", "the other side", "borrowed by kernels", "line 12", "used by work on kernels", "<- this",
        "freed on copies (thread 1)", "event 1 recorded on kernels (thread 1)",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) EXPECT_CONTAINS(report, parts[i]);
    EXPECT_EQ(strata_checker_report(w->checker, 1), NULL);
}

TEST_WATCHED(verdicts, many_hazards_are_counted_and_the_first_kept) {
    for (uint64_t i = 1; i <= 40; i++) {
        serve(w, i, 0, A(w));
        work_at(w, 0, B(w), true);
        strata_checker_freed(w->checker, i);
    }
    EXPECT_HAZARDS(w, FREE, 40);
    size_t kept = 0;
    while (strata_checker_report(w->checker, kept)) kept++;
    EXPECT_EQ(kept, 16);
}

TEST(verdicts, a_world_is_checked_once) {
    watched_t w;
    watched_open(&w, STRATA_CHECKER_ALL);
    strata_checker_t *second = NULL;
    EXPECT_STATUS(STRATA_E_INVALID, strata_checker_begin(w.sim.world, STRATA_CHECKER_ALL, &second));
    strata_checker_end(w.checker);
    w.checker = NULL;
    EXPECT_STATUS(STRATA_E_INVALID, strata_checker_begin(w.sim.world, STRATA_CHECKER_ALL, &second));
    EXPECT_STATUS(STRATA_E_INVALID, strata_checker_begin(w.sim.world, 1u << 11, &second));
    work_at(&w, 0, A(&w), true); /* goes on unwatched */
    fixture_close(&w.sim);
}
