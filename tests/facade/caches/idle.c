/* `idle:` beside a stack: what lies idle goes back when the program is idle, without a stall, and comes back in few calls. */
#include <pthread.h>
#include <stdlib.h>

#include "allocation/reclaim/idle.h"
#include "facade/open/idle.h"
#include "tests/facade/support/fixture.h"

#define SECOND UINT64_C(1000000000)
#define IDLE   "\nidle: {after: 1s, keep: 10%}\n"
#define VMM    "stack: [stream_safe, auto_growth_vmm, vmm]" IDLE
#define CHUNKS "stack: [stream_safe, auto_growth: {chunk_size: 20MiB}, system]" IDLE

/* Every cache that cuts blocks from what goes back to a device, and lets go of what is idle around a live one. */
#define CUTTING                                                                                                                    \
    VMM, CHUNKS, "stack: [stream_safe, caching, system]" IDLE, "stack: [stream_safe, caching_vmm, vmm]" IDLE,                      \
        "stack: [best_fit_vmm, vmm]" IDLE

/* Time passes while the program does nothing: whoever lets it pass looks, as a replay does. */
static void let_pass(rig_t *rig, uint64_t ns) {
    uint64_t until = strata_sim_now(rig->world) + ns, due;
    while ((due = strata_facade_check_idle(rig->s)) <= until) strata_sim_advance_to(rig->world, due);
    strata_sim_advance_to(rig->world, until);
}

static uint64_t reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

static uint64_t stalled(rig_t *rig) {
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    return figures.stall_ns;
}

/* ---- bursts ---- */

enum { BLOCKS = 64, REQUESTS = 1000 };

/* Sizes of a server's requests, from 256 KiB to 24 MiB, by a seed; the burst is its own, whatever came before. */
static size_t draw_size(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (size_t)((256 * 1024) << ((*seed >> 24) % 6)) + (*seed >> 12 & 0xfff) * 1024;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Requests with up to BLOCKS live ones; nothing is left. Returns the 99th percentile of what a request takes by the clock. */
static uint64_t burst(rig_t *rig, strata_stream_t stream) {
    static uint64_t took[REQUESTS];
    strata_block_t live[BLOCKS] = {{0}};
    uint32_t seed = 7;
    for (int i = 0; i < REQUESTS; i++) {
        strata_block_t *block = &live[i % BLOCKS];
        if (block->ref) EXPECT_OK(strata_free(rig->s, block->ref));
        uint64_t before = strata_sim_now(rig->world);
        EXPECT_OK(strata_allocate(rig->s, rig->gpu, stream, draw_size(&seed), block));
        took[i] = strata_sim_now(rig->world) - before;
        rig_work(rig, stream, 1000, block->ref);
        rig_advance(rig, 20000);
    }
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_free(rig->s, live[i].ref));
    qsort(took, REQUESTS, sizeof *took, by_value);
    return took[REQUESTS * 99 / 100 - 1];
}

/* ---- what goes, and when ---- */

/* A second after the last request at most 1.1 times the live bytes are held; as long as it may still come, nothing goes. */
TEST_RIG(idle, a_second_after_the_last_request_what_lies_idle_is_gone, 0, CUTTING, "stack: [buffered, system]" IDLE) {
    strata_block_t live = rig_allocate(rig, NULL, 400 * MIB);
    (void)burst(rig, NULL);
    uint64_t held = reserved(rig), wait = stalled(rig);
    EXPECT_GT(held, 600 * MIB);
    let_pass(rig, SECOND * 8 / 10);
    EXPECT_EQ(reserved(rig), held);
    let_pass(rig, SECOND * 2 / 10);
    EXPECT_LE(reserved(rig), 440 * MIB);
    EXPECT_EQ(stalled(rig), wait);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, live);
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 0);
}

/* A region of bfc goes as a whole. */
TEST_RIG(idle, a_cache_of_one_chunk_gives_it_back_once_nothing_lives_there, 0, "stack: [bfc: {reclaim: ladder}, system]" IDLE) {
    (void)burst(rig, NULL);
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 0);
}

TEST_RIG(idle, a_share_stays_and_so_many_bytes, 0, "stack: [auto_growth_vmm, vmm]\nidle: {after: 1s, keep: 50%}\n",
         "stack: [auto_growth_vmm, vmm]\nidle: {after: 1s, keep: 0, keep_least: 200MiB}\n") {
    strata_block_t live = rig_allocate(rig, NULL, 400 * MIB);
    (void)burst(rig, NULL);
    let_pass(rig, SECOND);
    EXPECT_LE(reserved(rig), 600 * MIB);
    EXPECT_GE(reserved(rig), 540 * MIB);
    RIG_FREE(rig, live);
}

/* One request in a while, a hit, is enough. */
TEST_RIG(idle, a_program_that_asks_now_and_then_is_not_idle, 0, VMM, CHUNKS) {
    (void)burst(rig, NULL);
    uint64_t held = reserved(rig);
    for (int i = 0; i < 8; i++) {
        let_pass(rig, SECOND * 8 / 10);
        EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, MIB).ref));
    }
    EXPECT_EQ(reserved(rig), held);
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 0);
}

/* What another thread does while the first event is asked whether it has passed. */
static struct {
    rig_t *rig;
    strata_stream_t stream;
    const strata_device_operations_t *operations;
    bool done;
} meanwhile;

static void *use_and_work(void *context) {
    rig_t *rig = meanwhile.rig;
    strata_block_t block = rig_allocate(rig, meanwhile.stream, 90 * MIB);
    rig_work(rig, meanwhile.stream, SECOND / 2, block.ref);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return context;
}

static strata_status_t query_meanwhile(strata_device_t *device, strata_handle_t event) {
    pthread_t thread;
    if (!meanwhile.done) {
        meanwhile.done = true;
        EXPECT_EQ(pthread_create(&thread, NULL, use_and_work, NULL), 0);
        pthread_join(thread, NULL);
    }
    return meanwhile.operations->event_query(device, event);
}

/* The marks are older than that request, so they say nothing of its work: nothing goes, and the device is not waited for. */
TEST_RIG(idle, a_request_while_the_marks_are_asked_is_a_request, 0, VMM, CHUNKS) {
    strata_stream_t streams[2] = {rig_stream(rig), rig_stream(rig)};
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, streams[i], 100 * MIB).ref));
    uint64_t held = reserved(rig), wait = stalled(rig);
    let_pass(rig, SECOND * 85 / 100);
    EXPECT_EQ(reserved(rig), held);
    strata_device_t *device = rig->devices[0];
    strata_device_operations_t bent = *device->operations;
    meanwhile.rig = rig;
    meanwhile.stream = streams[1];
    meanwhile.operations = device->operations;
    meanwhile.done = false;
    bent.event_query = query_meanwhile;
    device->operations = &bent;
    let_pass(rig, SECOND * 20 / 100);
    device->operations = meanwhile.operations;
    EXPECT_TRUE(meanwhile.done);
    EXPECT_EQ(reserved(rig), held);
    EXPECT_EQ(stalled(rig), wait);
    let_pass(rig, 2 * SECOND);
    EXPECT_EQ(reserved(rig), 0);
}

TEST_RIG(idle, without_the_key_nobody_looks, 0, "strata", "stack: [auto_growth, system]\n") {
    (void)burst(rig, NULL);
    uint64_t held = reserved(rig);
    EXPECT_EQ(strata_facade_check_idle(rig->s), STRATA_NEVER);
    let_pass(rig, 10 * SECOND);
    EXPECT_EQ(reserved(rig), held);
    EXPECT_FALSE(strata_facade_of(rig->s)->idle.runs);
}

/* A pool that keeps its own, by its own word. */
TEST_RIG(idle, a_pool_that_keeps_its_chunks_keeps_them, 0, "stack: [auto_growth, system]" IDLE "pools: {p: {keep: true}}\n") {
    uint64_t pool;
    EXPECT_OK(strata_pool(rig->s, "p", &pool));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 100 * MIB, .pool = pool};
    RIG_FREE(rig, rig_allocate_with(rig, NULL, &options), rig_allocate(rig, NULL, 50 * MIB));
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 100 * MIB);
}

/* ---- without a stall ---- */

/* cudaFree would wait for the kernel: so nothing goes before it is over. It may be another stream's, and of another place. */
TEST_RIG(idle, what_the_device_would_wait_for_is_waited_for_by_nobody, 0,
         "stack: [stream_safe, auto_growth, system]" IDLE "places: {managed: [auto_growth, system: {memory: managed}]}\n") {
    strata_stream_t other = rig_stream(rig), third = rig_stream(rig);
    strata_block_t working = rig_allocate(rig, other, MIB), managed = rig_allocate_in(rig, strata_managed(0), third, MIB);
    (void)burst(rig, NULL);
    uint64_t held = reserved(rig), wait = stalled(rig);
    rig_work(rig, other, 5 * SECOND, working.ref);
    rig_work(rig, third, 7 * SECOND, managed.ref);
    let_pass(rig, 6 * SECOND);
    EXPECT_EQ(reserved(rig), held);
    let_pass(rig, SECOND + SECOND / 8);
    EXPECT_LE(reserved(rig), 24 * MIB);
    EXPECT_EQ(stalled(rig), wait);
    RIG_FREE(rig, working, managed);
}

/* Virtual memory waits for the work of its own stacks alone: another place's goes on. */
TEST_RIG(idle, virtual_memory_goes_while_other_places_work, 0,
         VMM "places: {managed: [auto_growth, system: {memory: managed}]}\n") {
    strata_stream_t third = rig_stream(rig);
    strata_block_t managed = rig_allocate_in(rig, strata_managed(0), third, MIB);
    (void)burst(rig, NULL);
    uint64_t wait = stalled(rig);
    rig_work(rig, third, 7 * SECOND, managed.ref);
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 0);
    EXPECT_EQ(stalled(rig), wait);
    RIG_FREE(rig, managed);
}

/* What another stream still uses goes once that is over, without a further request. */
TEST_RIG(idle, what_is_deferred_goes_when_its_borrower_is_done, 0, VMM, CHUNKS) {
    strata_stream_t user = rig_stream(rig);
    (void)rig_free_deferred(rig, NULL, user, 100 * MIB, 3 * SECOND);
    let_pass(rig, 2 * SECOND);
    EXPECT_EQ(reserved(rig), 100 * MIB);
    let_pass(rig, SECOND + SECOND / 8);
    EXPECT_EQ(reserved(rig), 0);
}

/* An event would become a part of the program's graph. */
TEST_RIG(idle, nothing_goes_while_a_stream_is_captured, 0, VMM, CHUNKS) {
    strata_stream_t stream = rig_stream(rig);
    (void)burst(rig, stream);
    uint64_t held = reserved(rig);
    rig_begin_capture(rig, stream);
    let_pass(rig, 3 * SECOND);
    EXPECT_EQ(reserved(rig), held);
    rig_end_capture(rig, stream);
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 0);
}

/* ---- the next burst ---- */

/* At most one request in a hundred calls the device, and at most a third more is held than before, however often. */
TEST_RIG(idle, the_next_burst_is_as_quick_as_a_warm_one, 0, CUTTING) {
    strata_stream_t stream = rig_stream(rig);
    (void)burst(rig, stream);
    uint64_t warm = burst(rig, stream), held = reserved(rig);
    for (int i = 0; i < 4; i++) {
        let_pass(rig, SECOND);
        EXPECT_EQ(reserved(rig), 0);
        EXPECT_LE(burst(rig, stream), 2 * warm);
        EXPECT_LE(reserved(rig), held + held / 3);
    }
}

/* A burst that needs less than the last one brings back at most twice what it needs, or an eighth of the last one. */
TEST_RIG(idle, a_smaller_burst_brings_back_less, 0, VMM, CHUNKS) {
    strata_block_t large = rig_allocate(rig, NULL, 4 * GIB);
    RIG_FREE(rig, large);
    let_pass(rig, SECOND);
    RIG_FREE(rig, rig_allocate(rig, NULL, MIB));
    EXPECT_GE(reserved(rig), 4 * GIB / 8);
    EXPECT_LE(reserved(rig), 4 * GIB / 8 + 64 * MIB);
    /* What did not come back is half forgotten. */
    let_pass(rig, SECOND);
    RIG_FREE(rig, rig_allocate(rig, NULL, MIB));
    EXPECT_GE(reserved(rig), 4 * GIB * 9 / 16 / 8 - 64 * MIB);
    EXPECT_LE(reserved(rig), 4 * GIB * 9 / 16 / 8 + 64 * MIB);
}

/* What a limit or the device refuses is no failure of the request. */
TEST_RIG(idle, what_cannot_come_back_fails_no_request, 0, VMM, CHUNKS) {
    RIG_FREE(rig, rig_allocate(rig, NULL, 4 * GIB));
    let_pass(rig, SECOND);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 100 * MIB));
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_LE(reserved(rig), 100 * MIB);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, UINT64_MAX));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_DEVICE_CALLS, 4, true, STRATA_E_NO_MEMORY));
    strata_block_t next = rig_allocate(rig, NULL, 100 * 1024);
    strata_sim_clear_faults(rig->devices[0]);
    RIG_FREE(rig, block, next);
    EXPECT_OK(strata_validate(rig->s));
}

/* The figures are those of the program's requests. */
TEST_RIG(idle, what_comes_back_is_no_request, 0, VMM, CHUNKS) {
    (void)burst(rig, NULL);
    let_pass(rig, SECOND);
    strata_statistics_t before = rig_figures(rig);
    (void)burst(rig, NULL);
    strata_statistics_t after = rig_figures(rig);
    EXPECT_EQ(after.allocations - before.allocations, REQUESTS);
    EXPECT_EQ(after.frees - before.frees, REQUESTS);
    EXPECT_EQ(after.live_allocations, 0);
    EXPECT_LE(after.cache_hits - before.cache_hits, REQUESTS);
    EXPECT_GE(after.cache_hits - before.cache_hits, REQUESTS - REQUESTS / 100);
}

/* A piece that finds room in what stayed asks the device for nothing, and no request for anything. */
TEST_RIG(idle, what_lies_there_already_is_no_hit, 0,
         "stack: [auto_growth, system]\nidle: {after: 1s, keep: 0, keep_least: 300MiB}\n") {
    RIG_FREE(rig, rig_allocate(rig, NULL, 300 * MIB), rig_allocate(rig, NULL, 4 * GIB));
    let_pass(rig, SECOND);
    EXPECT_EQ(reserved(rig), 300 * MIB);
    uint64_t hits = rig_figures(rig).cache_hits;
    RIG_FREE(rig, rig_allocate(rig, NULL, 310 * MIB));
    EXPECT_EQ(rig_figures(rig).cache_hits, hits);
    EXPECT_EQ(reserved(rig), 610 * MIB);
}

/* ---- failures ---- */

/* Each device call of what goes and of what comes back fails in turn. */
TEST(idle, each_call_may_fail) {
    static const char *const stacks[] = {VMM, CHUNKS};
    for (size_t s = 0; s < COUNT(stacks); s++)
        for (uint64_t k = 1, calls = 1; k <= calls; k += STRIDE) {
            RIG(rig, stacks[s], 0);
            strata_block_t live = rig_allocate(&rig, NULL, 40 * MIB);
            RIG_FREE(&rig, rig_allocate(&rig, NULL, 800 * MIB), rig_allocate(&rig, NULL, 300 * MIB));
            uint64_t before = strata_sim_calls(rig.devices[0]);
            EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_DEVICE_CALLS, k, false, STRATA_E_DEVICE));
            let_pass(&rig, 2 * SECOND);
            EXPECT_OK(strata_validate(rig.s));
            strata_block_t block = {0};
            strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 600 * MIB, &block);
            if (status == STRATA_OK) RIG_FREE(&rig, block);
            calls = strata_sim_calls(rig.devices[0]) - before;
            strata_sim_clear_faults(rig.devices[0]);
            RIG_FREE(&rig, live);
            EXPECT_OK(strata_validate(rig.s));
            let_pass(&rig, 2 * SECOND);
            (void)rig_release(&rig); /* what the device refused once is offered again, or quarantined */
            EXPECT_EQ(reserved(&rig), rig_figures(&rig).quarantined_bytes);
        }
}

/* ---- threads ---- */

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream;
    _Atomic bool *over;
} worker_t;

static void *work(void *context) {
    const worker_t *worker = context;
    rig_t *rig = worker->rig;
    uint32_t seed = 3;
    for (int i = 0; i < 3000; i++) {
        strata_block_t a, b;
        EXPECT_OK(strata_allocate(rig->s, rig->gpu, worker->stream, draw_size(&seed), &a));
        EXPECT_OK(strata_allocate(rig->s, rig->gpu, worker->stream, draw_size(&seed), &b));
        EXPECT_OK(strata_free(rig->s, a.ref));
        EXPECT_OK(strata_free(rig->s, b.ref));
        if (i % 100 == 0) rig_advance(rig, SECOND);
    }
    return NULL;
}

static void *look(void *context) {
    const worker_t *worker = context;
    while (!atomic_load(worker->over)) {
        (void)strata_facade_check_idle(worker->rig->s);
        rig_advance(worker->rig, SECOND / 10);
    }
    return NULL;
}

/* One looks while others ask, whatever the moment. */
TEST_RIG(idle, requests_come_while_memory_goes, 0, VMM, CHUNKS, "stack: [caching: {streams: ignored}, system]" IDLE) {
    _Atomic bool over = false;
    worker_t looker = {rig, NULL, &over}, workers[] = {{rig, NULL, &over}, {rig, rig_stream(rig), &over}};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, look, &looker), 0);
    in_threads(work, workers, sizeof *workers, COUNT(workers));
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    EXPECT_OK(strata_validate(rig->s));
    let_pass(rig, 2 * SECOND);
    EXPECT_EQ(reserved(rig), 0);
}
