/* The calls that are made millions of times: what they may not do. And what a process can hold. */
#include <pthread.h>
#include <sys/mman.h>

#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "facade/open/life.h"
#include "facade/serve/slow_path.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/interleaving.h"
#include "tests/facade/support/program.h"

TEST_RIG(facade_hot, a_warm_pair_takes_no_host_memory_and_asks_the_device_nothing, 0, "strata") {
    strata_block_t blocks[200];
    for (int round = 0; round < 50; round++) {
        uint64_t host = strata_host_allocations(), device = strata_sim_calls(rig->devices[0]);
        for (size_t i = 0; i < 200; i++) blocks[i] = rig_allocate(rig, NULL, 256 * (1 + i * 7919 % 300));
        for (size_t i = 0; i < 200; i++) EXPECT_OK(strata_free(rig->s, blocks[(i * 77 + 13) % 200].ref));
        if (round < 2) continue;
        EXPECT_EQ(strata_host_allocations() - host, 0);
        EXPECT_EQ(strata_sim_calls(rig->devices[0]) - device, 0);
    }
}

TEST_RIG(facade_hot, a_borrowed_pair_takes_no_host_memory_once_its_events_are_made, 0, "strata") {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    for (int round = 0; round < 200; round++) {
        uint64_t host = strata_host_allocations(), made = rig_calls(rig, STRATA_CALL_event_create);
        strata_block_t b = rig_allocate(rig, owner, 4096);
        EXPECT_OK(strata_record_stream(rig->s, b.ref, borrower));
        EXPECT_OK(strata_free(rig->s, b.ref));
        rig_advance(rig, 50000);
        if (round < 48) continue; /* blocks that wait have an event each */
        EXPECT_EQ(strata_host_allocations() - host, 0);
        EXPECT_EQ(rig_calls(rig, STRATA_CALL_event_create), made);
    }
}

/* A thread may have read the way of a cache just before the number of its stack got another life, in the same facade and over another
 * cache. Then it must not go that way. */
TEST_RIG(facade_hot, a_way_serves_no_stack_of_another_cache, 0, "strata-malloc", "pytorch") {
    strata_block_t block = rig_allocate(rig, NULL, 65536), again;
    strata_stack_t *home = strata_stack_of(strata_ref_home(block.ref));
    EXPECT_OK(strata_auto_growth_direct_low.free_of(rig->s, block.ref, home, strata_free_slow));
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_auto_growth_direct_low.free_of(rig->s, block.ref, home, strata_free_slow));
    EXPECT_OK(strata_validate(rig->s));
    again = rig_allocate(rig, NULL, 65536);
    EXPECT_EQ(again.ptr, block.ptr);
    EXPECT_NE(again.ref, block.ref);
    EXPECT_OK(strata_validate(rig->s));
}

/* The block that stood apart when blocks began to be noted is noted when it is served, also if more is asked for than ever. */
TEST_RIG(facade_hot, a_hit_that_raises_a_peak_is_found_by_pointer, 0, "strata", "strata-malloc") {
    strata_stream_t stream = rig_stream(rig), other = rig_stream(rig);
    strata_block_t first = rig_allocate(rig, stream, 65536 - 100);
    EXPECT_OK(strata_free(rig->s, first.ref));
    EXPECT_OK(strata_free_pointer(rig->s, rig_allocate(rig, other, 512).ptr));
    strata_block_t higher = rig_allocate(rig, stream, 65536);
    EXPECT_EQ(higher.ptr, first.ptr);
    EXPECT_EQ(rig_stack(rig, stream)->figures.requested_bytes, 65536);
    EXPECT_OK(strata_free_pointer(rig->s, higher.ptr));
}

static void nothing(void *context) { (void)context; }

/* A hit takes the lock once; the long way, more often. */
TEST(facade_hot, an_operator_of_one_facade_keeps_no_hits_of_another_away) {
    RIG(annotated, "strata", 0);
    RIG(rig, "strata", 0);
    before_lock_t before;
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 65536).ref));
    EXPECT_OK(strata_annotate(annotated.s, "conv"));
    before_lock_begin(&before, &rig_stack(&rig, NULL)->lock, 2, nothing, NULL);
    strata_block_t block = rig_allocate(&rig, NULL, 65536);
    EXPECT_FALSE(before_lock_end(&before));
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_OK(strata_annotate(annotated.s, NULL));
}

/* Also where the thread knows the stack. */
TEST_RIG(facade_hot, what_no_place_has_is_refused_on_every_way, 0, "strata", "pytorch") {
    strata_allocator_t allocator;
    EXPECT_OK(strata_allocator_get(rig->s, rig->gpu, NULL, 0, &allocator));
    for (int warm = 0; warm < 2; warm++) {
        static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, (1ull << 48) + 1};
        strata_block_t block;
        for (size_t i = 0; i < COUNT(sizes); i++) {
            EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig->s, rig->gpu, NULL, sizes[i], &block));
            EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_allocate(allocator, sizes[i], &block));
        }
        EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 65536).ref));
    }
}

static void find_figure(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->layer, "fault") == 0 && strcmp(figure->name, "requests") == 0) *(uint64_t *)context = figure->value;
}

/* The layers that cost nothing by docs/architecture.md: hits go straight to the cache, past the layers above and below it. */
TEST_RIG(facade_hot, layers_with_nothing_to_do_are_left_out_of_hits, 0,
         "version: 1\nstrategy: idle\ndevices: sim\nstack: [retry, stream_safe, stat, trace: {path: none}, auto_growth, "
         "fault, limit: {bytes: 1GiB}, system]\n") {
    strata_stack_t *stack = rig_stack(rig, NULL);
    EXPECT_NE(stack->hit, NULL);
    EXPECT_EQ(stack->attention_allocate | stack->attention_free, 0);
    for (int i = 0; i < 1000; i++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 65536).ref));
    uint64_t requests = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, find_figure, &requests));
    EXPECT_EQ(requests, 1);
    strata_block_t b = rig_allocate(rig, NULL, 65536);
    expect_route(rig, b, "retry > stream_safe > stat > trace > auto_growth | fault > limit > system");
}

TEST_RIG(facade_hot, wrong_arguments_are_refused, 0, "strata") {
    strata_block_t b = {.ref = 4};
    strata_allocate_options_t o = {.struct_size = sizeof o, .size = 8};
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig->s, rig->gpu, NULL, SIZE_MAX, &b));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig->s, rig->gpu, NULL, (1ull << 48) + 1, &b));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, NULL, 1ull << 48, &b));
    o.alignment = 48;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate_with(rig->s, rig->gpu, NULL, &o, &b));
    o.alignment = 4096;
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_allocate_with(rig->s, rig->gpu, NULL, &o, &b));
    o.alignment = (size_t)1 << 49;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate_with(rig->s, rig->gpu, NULL, &o, &b));
    o.alignment = 64;
    o.pool = 3;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate_with(rig->s, rig->gpu, NULL, &o, &b));
    EXPECT_EQ(b.ref, 4);
    EXPECT_EQ(rig_figures(rig).allocations, 0);
}

/* As under a limit of the process: then fewer stacks find room, by no fault of the library's. */
static bool host_is_out_of_addresses(void) {
    size_t size = (size_t)1 << 34;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) munmap(memory, size);
    return memory == MAP_FAILED;
}

static uint32_t stacks_open(void) {
    uint32_t count = 0;
    for (uint16_t n = 1; n < STRATA_STACKS; n++) {
        const strata_stack_t *stack = atomic_load(&strata_stacks[n]);
        count += stack && stack->open;
    }
    return count;
}

TEST(facade_hot, the_most_stacks_of_a_process_are_told) {
    if (STRIDE > 1) TEST_SKIP("4,095 stacks reserve terabytes of addresses: too much for a sanitizer");
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_block_t b;
    strata_status_t status = STRATA_OK;
    uint32_t made = 0;
    while (status == STRATA_OK && made < STRATA_STACKS) {
        status = strata_allocate(rig.s, rig.gpu, rig_stream(&rig), 0, &b);
        if (status != STRATA_OK) break;
        EXPECT_OK(strata_free(rig.s, b.ref));
        made++;
    }
    if (status == STRATA_E_HOST_MEMORY) {
        EXPECT_TRUE(host_is_out_of_addresses());
        EXPECT_GT(made, 1000);
    } else {
        EXPECT_SAYS(STRATA_E_LIMIT, status, "the process has 4095 stacks, the maximum");
        strata_t other = 0;
        status = strata_facade_open_on(rig.strategy, rig.devices, 1, 0, &other); /* asks for one that streams share */
        EXPECT_SAYS(STRATA_E_LIMIT, status, "the process has 4095 stacks, the maximum");
        EXPECT_EQ(other, 0);
        EXPECT_GT(stacks_open(), STRATA_STACKS - 100); /* other tests of the process use numbers up */
    }
    /* The others go on. */
    b = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    b = rig_allocate(&rig, rig_stream(&rig), 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

/* ---- streams that end while other threads free their blocks ---- */

typedef struct heir {
    rig_t *rig;
    strata_block_t blocks[40];
    pthread_barrier_t *barrier;
} heir_t;

static void *free_inherited(void *argument) {
    heir_t *h = argument;
    pthread_barrier_wait(h->barrier);
    for (int i = 0; i < 40; i++) EXPECT_OK(strata_free(h->rig->s, h->blocks[i].ref));
    return NULL;
}

static void *release_all_the_time(void *argument) {
    heir_t *h = argument;
    pthread_barrier_wait(h->barrier);
    for (int i = 0; i < 60; i++) EXPECT_OK(strata_release(h->rig->s, h->rig->gpu, NULL));
    return NULL;
}

TEST(facade_hot, a_forgotten_streams_stack_ends_under_the_last_free) {
    static const char *const presets[] = {"strata", "paddle", "system"};
    for (int round = 0; round < 30; round++) {
        pthread_barrier_t barrier;
        RIG(rig, presets[round % 3], 0);
        pthread_barrier_init(&barrier, NULL, 3);
        heir_t heirs[3];
        strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
        for (int i = 0; i < 3; i++) {
            heirs[i] = (heir_t){.rig = &rig, .barrier = &barrier};
            for (int k = 0; k < 40 && i < 2; k++) heirs[i].blocks[k] = rig_allocate(&rig, streams[i], 1000 * (size_t)(k + 1));
        }
        for (int i = 0; i < 2; i++) EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, streams[i]));
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            ASSERT_EQ(pthread_create(&threads[i], NULL, i < 2 ? free_inherited : release_all_the_time, &heirs[i]), 0);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&barrier);
        rig_expect_empty(&rig);
        EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    }
}
