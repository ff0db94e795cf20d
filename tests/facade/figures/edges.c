/* Bounds at their edges, and figures in the rare case: what differs by one, by the second time, or by who is asked. */
#include <stdio.h>

#include "allocation/cache/policies/caching/caching_state.h"
#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "tests/facade/support/fixture.h"

/* ---- fallback ---- */

static const strata_device_operations_t *real;

static strata_status_t without_managed(strata_device_t *device, strata_memory_t memory, uint64_t size, strata_address_t *address) {
    if (memory == STRATA_MEMORY_MANAGED) return strata_fail(STRATA_E_UNSUPPORTED, 0, "no managed memory");
    return real->malloc(device, memory, size, address);
}

/* A kind of memory that the device does not have is one more that has none left, whatever stands after it. */
TEST_STACK(facade_edges, fallback_passes_by_memory_that_the_device_does_not_have, 64 * MIB,
           "fallback: {stacks: [[system], [system: {memory: managed}], [system: {memory: pinned}]]}") {
    (void)rig_allocate(rig, NULL, 50 * MIB);
    real = rig->devices[0]->operations;
    strata_device_operations_t table = *real;
    table.malloc = without_managed;
    rig->devices[0]->operations = &table;
    (void)rig_allocate(rig, NULL, 40 * MIB);
    rig->devices[0]->operations = real;
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_host_alloc), 1);
}

/* ---- auto_growth ---- */

/* A request as large as its chunk has no smaller one: the device is not asked for the same once more. */
TEST(facade_edges, a_growth_that_cannot_be_smaller_is_not_asked_for_again) {
    uint64_t calls[2];
    for (int smaller = 0; smaller < 2; smaller++) {
        RIG_STACK(rig,
                  smaller ? "retry: {timeout: 0s}, auto_growth: {chunk_size: 20MiB, smaller_growth: true}, system"
                          : "retry: {timeout: 0s}, auto_growth: {chunk_size: 20MiB, smaller_growth: false}, system",
                  64 * MIB);
        (void)rig_allocate(&rig, NULL, 50 * MIB);
        uint64_t before = rig_calls(&rig, STRATA_CALL_malloc);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 20 * MIB));
        calls[smaller] = rig_calls(&rig, STRATA_CALL_malloc) - before;
    }
    EXPECT_EQ(calls[0], calls[1]);
}

/* best_fit_vmm begins with room for less than a hundred handles. */
TEST_STACK(facade_edges, a_preallocated_chunk_may_have_hundreds_of_handles, 0,
           "auto_growth: {preallocate: 1GiB}, best_fit_vmm: {handle: 2MiB}, vmm") {
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 1024 * MIB);
    (void)rig_allocate(rig, NULL, 1024 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 1024 * MIB);
}

/* The younger chunks of one size serve again. */
TEST_STACK(facade_edges, of_equal_idle_chunks_the_oldest_goes, 0, "auto_growth: {chunk_size: 20MiB}, system") {
    strata_block_t blocks[3];
    for (int n = 0; n < 3; n++) blocks[n] = rig_allocate(rig, NULL, 20 * MIB);
    for (int n = 2; n >= 0; n--) EXPECT_OK(strata_free(rig->s, blocks[n].ref));
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 20 * MIB, NULL));
    EXPECT_EQ(rig_allocate(rig, NULL, 20 * MIB).ptr, blocks[2].ptr);
}

/* The highest that was reserved at once, however often there was less in between. */
TEST_STACK(facade_edges, the_peak_of_a_cache_is_no_sum, 0, "auto_growth: {chunk_size: 1MiB}, system", "buffered, system",
           "caching, system", "bfc: {allow_growth: true}, system") {
    uint64_t most = 0;
    for (uint64_t mib = 20; mib <= 60; mib += 20) {
        strata_block_t block = rig_allocate(rig, NULL, mib * MIB);
        if (rig_figures(rig).reserved_bytes > most) most = rig_figures(rig).reserved_bytes;
        EXPECT_OK(strata_free(rig->s, block.ref));
        EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    }
    strata_statistics_t of_no_pool = {.struct_size = sizeof of_no_pool};
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, &of_no_pool));
    EXPECT_EQ(of_no_pool.peak_reserved_bytes, most);
    EXPECT_EQ(rig_figures(rig).peak_reserved_bytes, most);
}

/* A block that no slot is left for stays out of use, and is not idle, until its chunk goes. */
TEST_STACK(facade_edges, a_block_without_a_slot_is_not_idle, 0, "auto_growth: {chunk_size: 20MiB}, system") {
    strata_block_t first = rig_allocate(rig, NULL, 5 * MIB), second = rig_allocate(rig, NULL, 5 * MIB);
    strata_stack_t *stack = rig_stack(rig, NULL);
    strata_record_t *record = strata_slab_record(&stack->slab, strata_ref_slot(first.ref));
    strata_mem_info_t info = {.struct_size = sizeof info};
    uint32_t capacity = stack->slab.capacity;
    stack->slab.capacity = stack->slab.used;
    record->generation = STRATA_GENERATION_LAST - 1;
    EXPECT_OK(strata_free(rig->s, strata_ref_of(record)));
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    EXPECT_EQ(info.cached, 10 * MIB);
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 5 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    stack->slab.capacity = capacity;
    EXPECT_OK(strata_free(rig->s, second.ref));
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    EXPECT_EQ(info.cached, 15 * MIB);
}

/* ---- caching ---- */

/* What the layer below grants beyond a segment's size counts until the segment goes. */
TEST_STACK(facade_edges, caching_counts_its_segments_as_they_were_granted, 1024 * MIB,
           "caching: {memory_fraction: 0.5}, bfc: {allow_growth: true}, system") {
    caching_t *self = (caching_t *)rig_domain(rig)->ordinary.shared[1];
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 30 * MIB).ref));
    strata_call_t call = {.stack = self->base.stack};
    bool entered = strata_call_enter(&call, &self->base);
    EXPECT_GE(self->base.type->release(&self->base, &call), 30 * MIB);
    strata_call_exit(&call, &self->base, entered);
    EXPECT_EQ(self->chunks.held, 0);
    /* What bfc keeps is less than twice a segment, and goes whole. */
    strata_block_t block = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_GE(self->chunks.bytes, 30 * MIB);
    EXPECT_EQ(self->chunks.held, self->chunks.bytes);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(self->chunks.held, 0);
}

/* While a capture is under way a request that finds no memory waits for nobody: the host's wait would be in the capture's way. */
TEST_STACK(facade_edges, caching_waits_for_no_use_in_a_capture, 64 * MIB, "caching, system") {
    caching_t *self = (caching_t *)rig_domain(rig)->ordinary.shared[1];
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    (void)rig_free_deferred(rig, owner, borrower, 40 * MIB, 1000 * 1000);
    self->uses.captures = 1;
    uint64_t waits = rig_calls(rig, STRATA_CALL_event_synchronise), all = rig_calls(rig, STRATA_CALL_synchronise);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, owner, 48 * MIB));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_event_synchronise), waits);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_synchronise), all);
    EXPECT_EQ(self->retries, 0);
    self->uses.captures = 0;
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 48 * MIB).ref));
    EXPECT_GT(rig_calls(rig, STRATA_CALL_event_synchronise), waits);
}

/* ---- scrub ---- */

static uint64_t zeroed(rig_t *rig) { return rig_calls(rig, STRATA_CALL_fill); }

/* A request of a private pool, as a capture's is; what it got is free again after it. Whether it was zeroed. */
static bool is_zeroed_for(rig_t *rig, uint64_t pool) {
    strata_stack_t *stack = rig_stack(rig, NULL);
    strata_request_t serve = {.size = MIB, .alignment = 256, .stream = stack->stream, .pool = pool};
    strata_record_t *record = NULL;
    uint64_t before = zeroed(rig);
    EXPECT_OK(strata_stack_serve(stack, &serve, &record));
    if (record) EXPECT_OK(strata_free(rig->s, strata_ref_of(record)));
    return zeroed(rig) > before;
}

/* Pools whose numbers differ in any of their bytes are different owners. */
TEST_STACK(facade_edges, scrub_tells_pools_apart_by_every_byte_of_their_number, 0,
           "scrub, auto_growth: {chunk_size: 1MiB}, system") {
    EXPECT_TRUE(is_zeroed_for(rig, 7));
    EXPECT_FALSE(is_zeroed_for(rig, 7));
    for (int byte = 0; byte < 8; byte++) {
        uint64_t pool = 7 ^ 1ull << (8 * byte);
        EXPECT_TRUE(is_zeroed_for(rig, pool));
        EXPECT_FALSE(is_zeroed_for(rig, pool));
        EXPECT_TRUE(is_zeroed_for(rig, 7));
    }
}

/* ---- a free that is no quick one ---- */

/* Layers whose caches decline the short way of a free: what it had booked is undone to the byte before the long way books it. */
TEST(facade_edges, a_free_that_takes_the_long_way_is_counted_once) {
    static const char *const stacks[] = {"auto_growth: {free_idle_chunk: true}, system",
                                         "naive_best_fit: {initial: 4MiB, reallocate: 4MiB}, system",
                                         "thread_local: {initial: 4MiB, reallocate: 4MiB}, system"};
    static const size_t sizes[] = {1000, 5 * MIB + 1, 300 * 1024 + 7};
    for (int i = 0; i < 3; i++) {
        RIG_STACK(rig, stacks[i], 0);
        for (uint64_t n = 0; n < 3; n++) {
            strata_block_t block = rig_allocate(&rig, NULL, sizes[n]);
            EXPECT_EQ(rig_figures(&rig).requested_bytes, sizes[n]);
            EXPECT_OK(strata_free(rig.s, block.ref));
            EXPECT_EQ(rig_figures(&rig).allocations, n + 1);
            EXPECT_EQ(rig_figures(&rig).frees, n + 1);
            EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
            EXPECT_EQ(rig_figures(&rig).requested_bytes, 0);
            EXPECT_EQ(rig_figures(&rig).allocated_bytes, 0);
        }
    }
}

/* ---- naive_best_fit ---- */

/* The first block of a chunk moves to another slot when its own is used up: the chunk goes on from there. */
TEST(facade_edges, the_first_block_of_a_chunk_may_move_to_another_slot) {
    static const char *const stacks[] = {"naive_best_fit, system", "auto_growth, system", "bfc: {allow_growth: true}, system",
                                         "caching, system"};
    for (int i = 0; i < 4; i++)
        for (int neighbour = 0; neighbour < 2; neighbour++) {
            strata_block_t blocks[8];
            RIG_STACK(rig, stacks[i], 0);
            for (int n = 0; n < 8; n++) blocks[n] = rig_allocate(&rig, NULL, MIB);
            for (int n = 0; n < 8; n++) {
                strata_slab_t *slab = &strata_stack_of(strata_ref_home(blocks[n].ref))->slab;
                strata_record_t *record = strata_slab_record(slab, strata_ref_slot(blocks[n].ref));
                record->generation = STRATA_GENERATION_LAST - 1;
                blocks[n].ref = strata_ref_of(record);
            }
            /* Beside a live block, or beside a free one. */
            for (int n = 0; n < 8; n++) EXPECT_OK(strata_free(rig.s, blocks[neighbour ? 7 - n : n].ref));
            EXPECT_OK(strata_validate(rig.s));
            strata_block_t again = rig_allocate(&rig, NULL, MIB);
            EXPECT_OK(strata_validate(rig.s));
            EXPECT_OK(strata_free(rig.s, again.ref));
            rig_expect_empty(&rig);
            if (strata_test_has_failed()) FAIL_TEST("%s, %d", stacks[i], neighbour);
        }
}

/* ---- cuda_malloc_async ---- */

/* Where nothing of the pool can go the host does not wait for the device. */
TEST_STACK(facade_edges, a_release_of_a_pool_that_is_all_in_use_waits_for_nobody, 0, "cuda_malloc_async") {
    strata_block_t block = rig_allocate(rig, NULL, 64 * MIB);
    uint64_t waits = rig_calls(rig, STRATA_CALL_synchronise);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_OK(strata_trim(rig->s, rig->gpu, MIB, NULL));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_synchronise), waits);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_GT(rig_calls(rig, STRATA_CALL_synchronise), waits);
}

/* What the device does not take back is quarantined, and lives no more. */
TEST_RIG_WAYS(facade_edges, a_block_that_a_pool_refuses_is_quarantined_and_not_live, borrowed, 2, 0,
              "stack: [cuda_malloc_async]\n") {
    const async_layer_t *self = (const async_layer_t *)rig_domain(rig)->ordinary.shared[1];
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, 3 * MIB);
    EXPECT_EQ(self->live_bytes, 3 * MIB);
    if (borrowed) EXPECT_OK(strata_record_stream(rig->s, block.ref, borrower));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_free_async, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig->s, block.ref));
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 3 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 3 * MIB);
    EXPECT_EQ(self->live_bytes, 0);
}

/* A request that comes to the bound to the byte waits for no pending free; one more does. */
TEST(facade_edges, a_pool_is_throttled_above_its_share_alone) {
    for (uint64_t more = 0; more < 2; more++) {
        RIG_STACK(rig, "cuda_malloc_async", 0);
        async_layer_t *self = (async_layer_t *)rig_domain(&rig)->ordinary.shared[1];
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        (void)rig_free_deferred(&rig, owner, borrower, 3 * MIB, 1000 * 1000);
        self->limit = (3 + 5) * MIB;
        (void)rig_allocate(&rig, owner, 5 * MIB + more);
        EXPECT_EQ(self->throttled, more);
    }
}

/* A segment that came and found no slot went back: it is not of the fraction any more. */
TEST_STACK(facade_edges, a_segment_without_a_slot_counts_for_nothing, 0, "caching: {memory_fraction: 0.5}, system") {
    caching_t *self = (caching_t *)rig_domain(rig)->ordinary.shared[1];
    (void)rig_allocate(rig, NULL, 30 * MIB);
    strata_slab_t *slab = &self->base.stack->slab;
    uint32_t capacity = slab->capacity;
    /* One is left, for the record of the source. */
    slab->capacity = slab->used + 1 - slab->unused;
    EXPECT_STATUS(STRATA_E_LIMIT, rig_try(rig, NULL, 30 * MIB));
    EXPECT_EQ(self->chunks.held, 30 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 30 * MIB);
    slab->capacity = capacity;
}
