/* Handles of a cache that are mapped and unmapped while others ask, or without room in its tables: what is undone leaves nothing. */
#include <pthread.h>
#include <unistd.h>

#include "tests/caching/caching.h"

#define EXPANDING "caching_vmm, vmm"
#define BEST_FIT  "best_fit_vmm: {handle: 20MiB}, vmm"

/* Returns the cache, whose state begins with its chunks. The builder may have added a stream_safe above it. */
static strata_chunks_t *chunks_of(rig_t *rig) {
    const strata_stack_t *stack = rig_stack(rig, NULL);
    for (uint32_t n = 1; n <= stack->group->plan->count; n++)
        if (stack->layers[n]->type->role == STRATA_CACHE) return (strata_chunks_t *)stack->layers[n];
    return NULL;
}

/* ---- a request beside a release ---- */

/* The release stands at the device until the other thread's request waits for the addresses. */
static struct {
    strata_device_operations_t table;
    const strata_device_operations_t *real;
    rig_t *rig;
    pthread_t other;
    bool started;
    _Atomic bool is_over;
    strata_block_t block;
} meeting;

static void *ask_beside(void *argument) {
    (void)argument;
    EXPECT_OK(strata_allocate(meeting.rig->s, meeting.rig->gpu, NULL, 50 * MIB, &meeting.block));
    atomic_store(&meeting.is_over, true);
    return NULL;
}

static bool somebody_waits(void) {
    strata_chunks_t *chunks = chunks_of(meeting.rig);
    strata_stack_t *stack = chunks->base.stack;
    strata_lock(&stack->lock);
    bool waits = chunks->waiting > 0;
    strata_unlock(&stack->lock);
    return waits;
}

static strata_status_t unmap_slowly(strata_device_t *device, strata_address_t address, uint64_t size) {
    if (!meeting.started) meeting.started = pthread_create(&meeting.other, NULL, ask_beside, NULL) == 0;
    while (meeting.started && !atomic_load(&meeting.is_over) && !somebody_waits()) usleep(50);
    return meeting.real->unmap(device, address, size);
}

/* The process would stand still if nobody woke the request. */
TEST_STACK(caching_unmapping, a_request_goes_on_when_another_thread_has_unmapped, 0, EXPANDING, BEST_FIT) {
    strata_block_t block = rig_allocate(rig, NULL, 30 * MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
    memset(&meeting, 0, sizeof meeting);
    meeting.rig = rig;
    meeting.real = rig->devices[0]->operations;
    meeting.table = *meeting.real;
    meeting.table.unmap = unmap_slowly;
    rig->devices[0]->operations = &meeting.table;
    EXPECT_EQ(rig_release(rig), 40 * MIB);
    EXPECT_TRUE(meeting.started);
    pthread_join(meeting.other, NULL);
    rig->devices[0]->operations = meeting.real;
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_free(rig->s, meeting.block.ref));
}

/* ---- undone growth ---- */

/* Nobody has used what the growth mapped, so it goes at once: as something idle it would be waited for. */
TEST_STACK(caching_unmapping, what_a_failed_growth_mapped_goes_without_a_wait, 0, EXPANDING, BEST_FIT) {
    strata_block_t block = rig_allocate(rig, NULL, 5 * MIB);
    for (uint64_t k = 1; k <= 3; k++) {
        EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_map, k, false, STRATA_E_DEVICE));
        EXPECT_EQ(rig_try(rig, NULL, 70 * MIB), STRATA_E_DEVICE);
        strata_sim_clear_faults(rig->devices[0]);
        EXPECT_EQ(rig_figures(rig).reserved_bytes, 20 * MIB);
        EXPECT_EQ(rig_calls(rig, STRATA_CALL_release), k * (k + 1) / 2);
    }
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_stream_synchronise), 0);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

/* A second stream needs a range of its own, for which there is no node. */
TEST_STACK(caching_unmapping, a_range_without_a_node_leaves_no_addresses, 0, EXPANDING) {
    strata_sim_held_t before, after;
    caching_t *self = (caching_t *)chunks_of(rig);
    strata_stream_t stream = rig_stream(rig);
    (void)rig_allocate(rig, NULL, 5 * MIB);
    uint32_t capacity = self->ranges.capacity;
    self->ranges.capacity = self->ranges.used;
    strata_sim_held(rig->devices[0], &before);
    EXPECT_EQ(rig_try(rig, stream, 5 * MIB), STRATA_E_LIMIT);
    strata_sim_held(rig->devices[0], &after);
    EXPECT_EQ(after.address_bytes, before.address_bytes);
    self->ranges.capacity = capacity;
    EXPECT_OK(rig_try(rig, stream, 5 * MIB));
}

/* A range without room is followed by another one at higher addresses. The lowest free place serves, whatever its range. */
TEST_STACK(caching_unmapping, a_second_range_follows_a_full_one, 0, EXPANDING) {
    caching_t *self = (caching_t *)chunks_of(rig);
    strata_block_t blocks[4];
    self->range_bytes = 40 * MIB;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        blocks[i] = rig_allocate(rig, NULL, 40 * MIB);
        EXPECT_EQ(rig_calls(rig, STRATA_CALL_reserve), i + 1);
        if (i > 0) EXPECT_GE((char *)blocks[i].ptr, (char *)blocks[i - 1].ptr + 40 * MIB);
    }
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, blocks[3], blocks[1]);
    strata_block_t again = rig_allocate(rig, NULL, 30 * MIB);
    EXPECT_EQ(again.ptr, blocks[1].ptr);
    RIG_FREE(rig, again, blocks[0], blocks[2]);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_EQ(rig_release(rig), 160 * MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_unreserve), 4);
}
