/* limit: never a byte above, refunds, the ladder, and no request failed by another one's failure. */
#include <pthread.h>
#include <unistd.h>

#include "tests/allocation/bench.h"
#include "tests/decorators/decorators.h"

/* ThreadSanitizer follows 64 locks of a thread at most, and a report of out-of-memory takes those of all stacks. */
enum { THREADS = 64, STREAMS = 32, ROUNDS = 40 };
#define MILLISECOND (1000ull * 1000)

TEST(limit, serves_to_the_byte_and_refunds) {
    strata_block_t none = {.ref = 3};
    DECORATED(rig, "[{limit: {bytes: 10MiB}}, system]", 0);
    strata_stack_t *stack = rig_stack(&rig, NULL);
    /* RMM's limiting resource: 4 + 4, free one, 6 fits to the byte; 4 + 4 + 3 fails and counts nothing; limit + 1 fails. */
    strata_block_t a = rig_allocate(&rig, NULL, 4 * MIB), b = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 3 * MIB, &none));
    EXPECT_EQ(decorated_figure(stack, "limit", "used_bytes"), 8 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    a = rig_allocate(&rig, NULL, 6 * MIB);
    EXPECT_EQ(decorated_figure(stack, "limit", "used_bytes"), 10 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 1, &none));
    RIG_FREE(&rig, a, b);
    uint64_t calls = rig_calls(&rig, STRATA_CALL_malloc);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 10 * MIB + 1, &none));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), calls);
    EXPECT_EQ(none.ref, 3);
    EXPECT_EQ(decorated_figure(stack, "limit", "used_bytes"), 0);
    EXPECT_EQ(decorated_figure(stack, "limit", "peak_bytes"), 10 * MIB);
    /* Three requests, each once more for a smaller growth. */
    EXPECT_EQ(decorated_figure(stack, "limit", "refused"), 6);
}

/* RMM: an inner limit of 2 under an outer one of 5: 4 fails, and the outer has its bytes back. */
TEST(limit, what_fails_below_is_refunded) {
    strata_block_t none;
    DECORATED(rig, "[{limit: {bytes: 5MiB}}, {limit: {bytes: 2MiB}}, system]", 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 4 * MIB, &none));
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "limit", "used_bytes"), 0);
    strata_block_t b = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Paddle's PY::memory_limit: a limit of 10 MiB; 5 works, 20 fails. As there, the limit is on what the caches ask. */
TEST(limit, paddle_py_memory_limit) {
    strata_block_t none;
    DECORATED(rig, "[retry, stream_safe, {auto_growth: {chunk_size: 10MiB}}, {limit: {bytes: 10MiB}}, system]", 0);
    strata_block_t five = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 20 * MIB, &none));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 10 * MIB);
    EXPECT_OK(strata_free(rig.s, five.ref));
}

TEST(limit, hitting_it_climbs_the_ladder_without_a_device_call) {
    DECORATED(rig, "[retry, stream_safe, {auto_growth: {reclaim: ladder}}, {limit: {bytes: 64MiB}}, system]", 0);
    strata_stream_t a = rig_stream(&rig), b = rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, a, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, block.ref));
    block = rig_allocate(&rig, b, 40 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 2);
    EXPECT_EQ(rig_figures(&rig).recoveries, 1);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, block.ref));
}

typedef struct hoard {
    rig_t *rig;
    strata_block_t block;
    uint32_t asked;
} hoard_t;

static uint64_t give_up(strata_place_t place, size_t size, void *context) {
    hoard_t *hoard = context;
    (void)place, (void)size;
    hoard->asked++;
    if (hoard->block.ref == 0) return 0;
    EXPECT_OK(strata_free(hoard->rig->s, hoard->block.ref));
    hoard->block.ref = 0;
    return hoard->block.size;
}

/* Wherever `retry` stands in its stack. */
TEST(limit, hitting_it_climbs_the_ladder_above_a_retry_too) {
    static const char *const stacks[] = {"[{limit: {bytes: 1MiB}}, system]", "[{limit: {bytes: 1MiB}}, retry, system]",
                                         "[{fault: {at: 2}}, retry, system]"};
    for (int i = 0; i < 3; i++) {
        rig_t rig;
        hoard_t hoard = {.rig = &rig};
        decorated_open(&rig, stacks[i], NULL, &(strata_sim_options_t){0});
        EXPECT_OK(strata_add_free_memory_callback(rig.s, give_up, &hoard, NULL));
        hoard.block = rig_allocate(&rig, NULL, MIB);
        strata_block_t block = rig_allocate(&rig, NULL, MIB);
        EXPECT_EQ(hoard.asked, 1);
        EXPECT_EQ(rig_figures(&rig).recoveries, 1);
        EXPECT_OK(strata_free(rig.s, block.ref));
        rig_close(&rig);
    }
}

typedef struct deferring {
    hoard_t hoard;
    strata_block_t deferred;
    strata_stream_t borrower;
    uint32_t later;
} deferring_t;

/* The device's free waits for all work: what shall be pending after it begins only then. */
static uint64_t give_up_and_defer(strata_place_t place, size_t size, void *context) {
    deferring_t *d = context;
    uint64_t freed = give_up(place, size, &d->hoard);
    if (freed == 0) return 0;
    rig_borrow(d->hoard.rig, d->deferred.ref, d->borrower, 1000 * MILLISECOND);
    EXPECT_OK(strata_free(d->hoard.rig->s, d->deferred.ref));
    return freed;
}

/* Past the limit, once the ladder has made room in it, what is full is the device: the same ladder waits for that. */
TEST(limit, one_ladder_makes_room_in_it_and_waits_for_what_is_below) {
#define BESIDE_DEFERRED(timeout)                                                                                                   \
    "[{binning: {routes: [{up_to: 24MiB, stack: [stream_safe, system]}, "                                                          \
    "{stack: [{limit: {bytes: 48MiB}}, {retry: {timeout: " timeout "}}, system]}]}}]"
#define BESIDE_DEFERRED_OR_ELSEWHERE(timeout)                                                                                      \
    "[{binning: {routes: [{up_to: 24MiB, stack: [stream_safe, system]}, {stack: [{fallback: {stacks: ["                            \
    "[{limit: {bytes: 48MiB}}, {retry: {timeout: " timeout "}}, system], "                                                         \
    "[{limit: {bytes: 4KiB}}, {system: {memory: managed}}]]}}]}]}}]"
    static const char *const stacks[] = {BESIDE_DEFERRED("5ms"), BESIDE_DEFERRED("10s"), BESIDE_DEFERRED_OR_ELSEWHERE("5ms"),
                                         BESIDE_DEFERRED_OR_ELSEWHERE("10s")};
    for (int n = 0; n < 4; n++) {
        strata_block_t block = {.ref = 0};
        int i = n % 2;
        DECORATED(rig, stacks[n], 64 * MIB);
        deferring_t d = {.hoard.rig = &rig, .borrower = rig_stream(&rig)};
        EXPECT_OK(strata_add_free_memory_callback(rig.s, give_up_and_defer, &d, NULL));
        d.deferred = rig_allocate(&rig, NULL, 24 * MIB);
        d.hoard.block = rig_allocate(&rig, NULL, 25 * MIB);
        uint64_t began = strata_sim_now(rig.world);
        EXPECT_STATUS(i ? STRATA_OK : STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 44 * MIB, &block));
        EXPECT_GE(strata_sim_now(rig.world) - began, (i ? 1000 : 5) * MILLISECOND);
        EXPECT_LT(strata_sim_now(rig.world) - began, (i ? 1010 : 8) * MILLISECOND);
        EXPECT_EQ(d.hoard.asked, 1);
        EXPECT_EQ(rig_figures(&rig).recoveries, 1);
        if (i) EXPECT_OK(strata_free(rig.s, block.ref));
        rig_advance(&rig, 1000 * MILLISECOND);
    }
}

/* Not for the first who asks. */
static uint64_t give_up_and_defer_later(strata_place_t place, size_t size, void *context) {
    deferring_t *d = context;
    return d->later++ == 0 ? 0 : give_up_and_defer(place, size, context);
}

/* Of two ways each of which says how it is climbed for, the first is when nothing is on its way, and the second once its ladder has
 * made room in its limit. */
TEST(limit, each_way_is_climbed_for_once) {
    strata_block_t none = {.ref = 0};
    DECORATED(rig,
              "[{binning: {routes: [{up_to: 24MiB, stack: [stream_safe, system]}, {stack: [{fallback: {stacks: ["
              "[{fault: {at: 1}}, {retry: {timeout: 5ms}}, system], "
              "[{limit: {bytes: 48MiB}}, {retry: {timeout: 5ms}}, system]]}}]}]}}]",
              64 * MIB);
    deferring_t d = {.hoard.rig = &rig, .borrower = rig_stream(&rig)};
    d.deferred = rig_allocate(&rig, NULL, 24 * MIB);
    d.hoard.block = rig_allocate(&rig, NULL, 25 * MIB);
    EXPECT_OK(strata_add_free_memory_callback(rig.s, give_up_and_defer_later, &d, NULL));
    uint64_t began = strata_sim_now(rig.world), recoveries = rig_figures(&rig).recoveries;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 44 * MIB, &none));
    EXPECT_GE(strata_sim_now(rig.world) - began, 5 * MILLISECOND);
    EXPECT_LT(strata_sim_now(rig.world) - began, 8 * MILLISECOND);
    EXPECT_EQ(d.later, 2);
    EXPECT_EQ(rig_figures(&rig).recoveries, recoveries + 2);
    rig_advance(&rig, 1000 * MILLISECOND);
}

/* What failed below was climbed for there, and nowhere else. */
TEST(limit, what_fails_below_is_climbed_for_once) {
    rig_t rig;
    hoard_t hoard = {.rig = &rig};
    strata_block_t none;
    decorated_open(&rig, "[{limit: {bytes: 1GiB}}, {retry: {timeout: 0}}, system]", NULL,
                   &(strata_sim_options_t){.capacity = 64 * MIB});
    EXPECT_OK(strata_add_free_memory_callback(rig.s, give_up, &hoard, NULL));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 65 * MIB, &none));
    EXPECT_EQ(hoard.asked, 1);
    EXPECT_EQ(rig_figures(&rig).recoveries, 1);
    rig_close(&rig);
}

/* Each of a router's ways is refused for a reason of its own: that one was climbed for says nothing of the other. */
TEST(limit, hitting_it_climbs_beside_a_way_that_was_climbed_for) {
    rig_t rig;
    hoard_t hoard = {.rig = &rig};
    decorated_open(&rig,
                   "[{fallback: {stacks: [[{limit: {bytes: 1MiB}}, retry, system], "
                   "[{retry: {timeout: 0}}, {limit: {bytes: 4KiB}}, {system: {memory: managed}}]]}}]",
                   NULL, &(strata_sim_options_t){0});
    EXPECT_OK(strata_add_free_memory_callback(rig.s, give_up, &hoard, NULL));
    hoard.block = rig_allocate(&rig, NULL, MIB);
    strata_block_t block = rig_allocate(&rig, NULL, MIB);
    EXPECT_OK(strata_free(rig.s, block.ref));
    rig_close(&rig);
}

/* Two ways that wait each in its turn are not waited for again by the core. */
TEST(limit, ways_that_all_climb_are_climbed_for_once_each) {
    strata_block_t none;
    DECORATED(rig,
              "[{fallback: {stacks: [[{retry: {timeout: 0}}, {limit: {bytes: 4KiB}}, system], "
              "[{retry: {timeout: 0}}, {limit: {bytes: 4KiB}}, {system: {memory: managed}}]]}}]",
              0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, MIB, &none));
    EXPECT_EQ(rig_figures(&rig).recoveries, 2);
}

TEST(limit, a_part_of_the_device) {
    strata_block_t none;
    DECORATED(rig, "[{limit: {bytes: 1GiB, fraction: 0.25}}, system]", GIB);
    uint64_t limit = decorated_figure(rig_stack(&rig, NULL), "limit", "limit_bytes");
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig.s, rig.gpu, &info));
    EXPECT_EQ(limit, info.total / 4);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, limit + 1, &none));
    strata_block_t b = rig_allocate(&rig, NULL, limit);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* The smaller of both holds, whichever it is. */
TEST(limit, bytes_below_a_part_of_the_device_hold) {
    DECORATED(rig, "[{limit: {bytes: 100MiB, fraction: 0.25}}, system]", GIB);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "limit", "limit_bytes"), 100 * MIB);
}

/* ---- threads ---- */

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    rig_t *rig;
    strata_stream_t stream;
    uint64_t random;
    uint64_t size; /* 0: random ones */
    uint32_t rounds;
    uint32_t served, refused, failed;
} worker_t;

static void *work(void *context) {
    worker_t *w = context;
    strata_block_t held[4] = {{0}};
    (void)pthread_barrier_wait(w->start);
    for (uint32_t i = 0; i < w->rounds; i++) {
        /* Once all hold what they can get. */
        if (i == w->rounds / 2) (void)pthread_barrier_wait(w->start);
        strata_block_t *b = &held[i % 4];
        if (b->ref && strata_free(w->rig->s, b->ref) != STRATA_OK) w->failed++;
        *b = (strata_block_t){0};
        w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
        size_t size = w->size ? w->size : 1 + (w->random >> 40) % (3 * MIB);
        strata_status_t status = strata_allocate(w->rig->s, w->rig->gpu, w->stream, size, b);
        w->served += status == STRATA_OK;
        w->refused += status == STRATA_E_NO_MEMORY;
        w->failed += status != STRATA_OK && status != STRATA_E_NO_MEMORY;
    }
    for (int i = 0; i < 4; i++)
        if (held[i].ref && strata_free(w->rig->s, held[i].ref) != STRATA_OK) w->failed++;
    return NULL;
}

static void run(worker_t *workers, uint32_t count) {
    pthread_barrier_t start;
    ASSERT_EQ(pthread_barrier_init(&start, NULL, count), 0);
    for (uint32_t i = 0; i < count; i++) {
        workers[i].start = &start;
        ASSERT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) ASSERT_EQ(pthread_join(workers[i].thread, NULL), 0);
    ASSERT_EQ(pthread_barrier_destroy(&start), 0);
}

/* The domain counts what sources got from the device, on its own: its peak is no figure of the limit's. */
static void sixty_four_threads(const char *stack) {
    static worker_t workers[THREADS];
    uint32_t served = 0, refused = 0;
    DECORATED(rig, stack, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        strata_stream_t stream = i < STREAMS ? rig_stream(&rig) : workers[i % STREAMS].stream;
        workers[i] = (worker_t){.rig = &rig, .stream = stream, .random = i, .rounds = ROUNDS};
    }
    run(workers, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        EXPECT_EQ(workers[i].failed, 0);
        served += workers[i].served;
        refused += workers[i].refused;
    }
    EXPECT_EQ(served + refused, THREADS * ROUNDS);
    EXPECT_GT(served, THREADS);
    EXPECT_GT(decorated_figure(rig_stack(&rig, NULL), "limit", "refused"), 0);
    EXPECT_LE(rig_figures(&rig).peak_reserved_bytes, 64 * MIB);
    EXPECT_GT(rig_figures(&rig).peak_reserved_bytes, 56 * MIB);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "limit", "used_bytes"), 0);
}

TEST(limit, sixty_four_threads_at_the_limit_never_exceed_it) {
    sixty_four_threads("[{limit: {bytes: 64MiB}}, system]");
    sixty_four_threads("[{retry: {timeout: 0}}, stream_safe, auto_growth, {limit: {bytes: 64MiB}}, system]");
}

/* The large ones fit the limit alone, and the device refuses them; or they never fit. Small ones always fit meanwhile. */
static void small_beside_large(uint64_t large, uint64_t capacity) {
    static worker_t workers[8];
    DECORATED(rig, "[{limit: {bytes: 64MiB}}, system]", capacity);
    for (uint32_t i = 0; i < 8; i++)
        workers[i] = (worker_t){.rig = &rig, .stream = rig_stream(&rig), .rounds = 300, .size = i < 6 ? large : MIB};
    run(workers, 8);
    for (uint32_t i = 0; i < 8; i++) {
        EXPECT_EQ(workers[i].failed, 0);
        EXPECT_EQ(workers[i].served, i < 6 ? 0 : 300);
    }
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "limit", "used_bytes"), 0);
}

TEST(limit, a_failing_large_request_fails_no_small_one) {
    small_beside_large(62 * MIB, 32 * MIB);
    small_beside_large(65 * MIB, 256 * MIB);
}

/* ---- a request that is under way below ---- */

static _Atomic bool gate_open, gate_reached;

/* Keeps large requests until the gate opens, and fails them then. */
static strata_status_t gate_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    if (request->size < 32 * MIB) return strata_below_allocate(self, request, record);
    gate_reached = true;
    while (!gate_open) (void)usleep(100);
    return strata_fail(STRATA_E_NO_MEMORY, 0, "the gate fails large requests");
}

static void gate_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    strata_below_free(record, call);
}

static strata_status_t gate_create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void gate_destroy(strata_layer_t *self) { (void)self; }

static const strata_layer_type_t gate_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "gate",
    .doc = "keeps large requests",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_DEVICE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = gate_create,
    .destroy = gate_destroy,
    .allocate = gate_allocate,
    .free = gate_free,
};

typedef struct asker {
    bench_t *bench;
    size_t size;
    strata_status_t status;
    strata_record_t *record;
} asker_t;

static void *ask(void *context) {
    asker_t *asker = context;
    asker->status = bench_try(asker->bench, asker->size, &asker->record);
    return NULL;
}

/* The large one has reserved nearly all of the limit when the small one comes, and fails after it. */
TEST(limit, a_small_request_waits_for_what_is_under_way_and_is_served) {
    pthread_t large, small;
    OPENED(bench_t, bench, bench_close, bench_begin(&bench));
    const strata_layer_type_t *types[] = {strata_layer_find("limit"), &gate_type, &test_source_type, NULL};
    bench_straight(&bench, types, (const char *const[]){"bytes=64MiB", NULL});
    bench_open(&bench, 0);
    asker_t of_large = {.bench = &bench, .size = 62 * MIB}, of_small = {.bench = &bench, .size = 5 * MIB};
    gate_open = gate_reached = false;
    ASSERT_EQ(pthread_create(&large, NULL, ask, &of_large), 0);
    while (!gate_reached) (void)usleep(100);
    ASSERT_EQ(pthread_create(&small, NULL, ask, &of_small), 0);
    (void)usleep(20 * 1000);
    gate_open = true;
    ASSERT_EQ(pthread_join(large, NULL), 0);
    ASSERT_EQ(pthread_join(small, NULL), 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, of_large.status);
    ASSERT_OK(of_small.status);
    EXPECT_EQ(decorated_figure(bench.stack, "limit", "used_bytes"), 5 * MIB);
    bench_free(&bench, of_small.record);
}

TEST(limit, validate_finds_refunds_of_what_was_never_reserved) {
    DECORATED(rig, "[{limit: {bytes: 10MiB}}, system]", 0);
    strata_block_t a = rig_allocate(&rig, NULL, MIB);
    decorated_expect_corrupt(&rig, "limit", "used_bytes", UINT64_MAX, "limit: more was refunded than reserved");
    EXPECT_OK(strata_free(rig.s, a.ref));
}
