/* Tests of Paddle's second virtual-memory best fit, rewritten from their descriptions. H is one handle, 2 MiB. */
#include <stdio.h>

#include "allocation/cache/chunks.h"
#include "tests/facade/support/interleaving.h"

#define H (2 * MIB)

static void open_remapping(rig_t *rig, uint64_t capacity) {
    rig_open(rig, "version: 1\nstack: [{best_fit_vmm: {handle: 2MiB, remap_on_oom: true}}, vmm]\n", NULL, 0, capacity, 1);
}

static uint64_t reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

static uint64_t offset(const strata_block_t *from, const strata_block_t *to) {
    return (uint64_t)((const char *)to->ptr - (const char *)from->ptr);
}

/* H freed; 2H are asked: the free end is the beginning, and only H is grown. */
TEST(peers_paddle_vmm, FreeBlockTooSmallFallsBackToGrow) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t a = rig_allocate(&rig, NULL, H);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate(&rig, NULL, 2 * H);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(reserved(&rig), 2 * H);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 2);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* 1 and 3 freed, then 2: three blocks become one of 3H. */
TEST(peers_paddle_vmm, ThreeWayMerge) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t a = rig_allocate(&rig, NULL, H), b = rig_allocate(&rig, NULL, H), c = rig_allocate(&rig, NULL, H);
    RIG_FREE(&rig, a, c, b);
    strata_block_t all = rig_allocate(&rig, NULL, 3 * H);
    EXPECT_EQ(all.ptr, a.ptr);
    EXPECT_EQ(reserved(&rig), 3 * H);
    EXPECT_OK(strata_free(rig.s, all.ref));
}

/* The middle one of three goes back and leaves a hole that is used again; the end has not moved. */
TEST(peers_paddle_vmm, ReleaseMiddle) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t a = rig_allocate(&rig, NULL, H), b = rig_allocate(&rig, NULL, H), c = rig_allocate(&rig, NULL, H);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_release(&rig), H);
    strata_block_t again = rig_allocate(&rig, NULL, H), next = rig_allocate(&rig, NULL, H);
    EXPECT_EQ(again.ptr, b.ptr);
    EXPECT_EQ(offset(&a, &next), 3 * H);
    RIG_FREE(&rig, a, c, again, next);
}

TEST(peers_paddle_vmm, ReleaseTail) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t a = rig_allocate(&rig, NULL, H), b = rig_allocate(&rig, NULL, H);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_release(&rig), H);
    EXPECT_EQ(rig_release(&rig), 0);
    strata_block_t wide = rig_allocate(&rig, NULL, 2 * H);
    EXPECT_EQ(offset(&a, &wide), H);
    RIG_FREE(&rig, a, wide);
}

TEST(peers_paddle_vmm, ReleaseNoIdle) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t a = rig_allocate(&rig, NULL, 256), b = rig_allocate(&rig, NULL, H);
    EXPECT_EQ(rig_release(&rig), 0);
    RIG_FREE(&rig, a, b);
}

/* H, 2H, H; 2H freed and released; 256 bytes come at its address from one handle, of which the rest is free. */
TEST(peers_paddle_vmm, ReuseUnmappedFreeBlock) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t a = rig_allocate(&rig, NULL, H), b = rig_allocate(&rig, NULL, 2 * H), c = rig_allocate(&rig, NULL, H);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_release(&rig), 2 * H);
    strata_block_t small = rig_allocate(&rig, NULL, 256), rest = rig_allocate(&rig, NULL, H - 256);
    EXPECT_EQ(small.ptr, b.ptr);
    EXPECT_EQ(offset(&small, &rest), 256);
    EXPECT_EQ(reserved(&rig), 3 * H);
    RIG_FREE(&rig, a, c, small, rest);
}

/* The smallest gap that is large enough for the request alone, not the lowest. */
TEST(peers_paddle_vmm, a_request_takes_the_smallest_gap) {
    RIG_BY(rig, open_remapping(&rig, 0));
    strata_block_t b[5];
    static const size_t sizes[] = {3, 1, 2, 1, 1};
    for (int i = 0; i < 5; i++) b[i] = rig_allocate(&rig, NULL, sizes[i] * H);
    RIG_FREE(&rig, b[0], b[2]);
    EXPECT_EQ(rig_release(&rig), 5 * H);
    strata_block_t two = rig_allocate(&rig, NULL, 2 * H), three = rig_allocate(&rig, NULL, 2 * H + 1);
    EXPECT_EQ(two.ptr, b[2].ptr);
    EXPECT_EQ(three.ptr, b[0].ptr);
    RIG_FREE(&rig, b[1], b[3], b[4], two, three);
}

/* On a device of so many handles: each live, every second one freed, and two asked for. */
static void fragment_by(rig_t *rig, strata_stream_t stream, strata_block_t blocks[8], bool busy) {
    for (int i = 0; i < 8; i++) blocks[i] = rig_allocate(rig, stream, H);
    if (busy) rig_work(rig, stream, 1000 * 1000, blocks[0].ref);
    for (int i = 0; i < 8; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

static void fragment(rig_t *rig, strata_stream_t stream, strata_block_t blocks[8]) { fragment_by(rig, stream, blocks, false); }

static void fragment_under_work(rig_t *rig, strata_stream_t stream, strata_block_t blocks[8]) {
    fragment_by(rig, stream, blocks, true);
}

static void drop_rest(rig_t *rig, const strata_block_t blocks[8]) {
    for (int i = 1; i < 8; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* Two free handles from the low end become one block after the last; nothing is created. */
TEST(peers_paddle_vmm, CompactRemapsWholeFreeHandleToTail) {
    RIG_BY(rig, open_remapping(&rig, 8 * H));
    strata_block_t blocks[8];
    fragment(&rig, NULL, blocks);
    strata_block_t two = rig_allocate(&rig, NULL, 2 * H);
    EXPECT_EQ(offset(&blocks[0], &two), 8 * H);
    EXPECT_EQ(reserved(&rig), 8 * H);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 8 + 1); /* one was refused */
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_map), 8 + 2);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 2);
    strata_block_t left = rig_allocate(&rig, NULL, H);
    EXPECT_EQ(left.ptr, blocks[4].ptr);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, two, left);
    drop_rest(&rig, blocks);
}

/* What is free is in no handle as a whole: nothing moves, and the request fails. */
TEST(peers_paddle_vmm, CompactSkipsPartialFreeHandle) {
    RIG_BY(rig, open_remapping(&rig, 2 * H));
    strata_block_t a = rig_allocate(&rig, NULL, H - 256), b = rig_allocate(&rig, NULL, H), none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, H, &none));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 0);
    RIG_FREE(&rig, a, b);
}

/* While the stream is busy nothing is moved. (The request is served all the same: the ladder gives the handles back and makes new
 * ones.) Once it is done they move. */
TEST(peers_paddle_vmm, CompactSkipsPending) {
    for (int busy = 0; busy < 2; busy++) {
        RIG_BY(rig, open_remapping(&rig, 8 * H));
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t blocks[8];
        fragment_under_work(&rig, stream, blocks);
        if (!busy) EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, stream));
        strata_block_t two = rig_allocate(&rig, stream, 2 * H);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_release) > 0, busy);
        EXPECT_OK(strata_free(rig.s, two.ref));
        drop_rest(&rig, blocks);
    }
}

/* Without an event nothing shows that the work on the free handles is done, so none of them moves. */
TEST(peers_paddle_vmm, nothing_moves_without_an_event) {
    RIG_BY(rig, open_remapping(&rig, 8 * H));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t blocks[8];
    fragment_under_work(&rig, stream, blocks);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_create, 1, true, STRATA_E_DEVICE));
    (void)rig_try(&rig, stream, 2 * H);
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_map) + 1, rig_calls(&rig, STRATA_CALL_create)); /* one creation was refused */
    drop_rest(&rig, blocks);
}

/* 3H are asked, the driver still has 2H, and one handle is movable: it moves after those two. */
TEST(peers_paddle_vmm, BoundedCompactUsesDriverTopUp) {
    RIG_BY(rig, open_remapping(&rig, 5 * H));
    strata_block_t a = rig_allocate(&rig, NULL, H), b = rig_allocate(&rig, NULL, H), c = rig_allocate(&rig, NULL, H);
    EXPECT_OK(strata_free(rig.s, b.ref));
    strata_block_t three = rig_allocate(&rig, NULL, 3 * H);
    EXPECT_EQ(offset(&a, &three), 3 * H);
    EXPECT_EQ(reserved(&rig), 5 * H);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 1);
    RIG_FREE(&rig, a, c, three);
}

/* 2H + 1 are asked, 2H are free at the end: one handle moves there. */
TEST(peers_paddle_vmm, BoundedCompactCountsTailFree) {
    RIG_BY(rig, open_remapping(&rig, 5 * H));
    strata_block_t a = rig_allocate(&rig, NULL, H), b = rig_allocate(&rig, NULL, H), c = rig_allocate(&rig, NULL, H);
    strata_block_t d = rig_allocate(&rig, NULL, 2 * H);
    RIG_FREE(&rig, b, d);
    strata_block_t more = rig_allocate(&rig, NULL, 2 * H + 1);
    EXPECT_EQ(offset(&a, &more), 3 * H);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 1);
    RIG_FREE(&rig, a, c, more);
}

/* A refused map leaves the handle where it was; nothing is lost. */
TEST(peers_paddle_vmm, a_refused_move_loses_nothing) {
    static const strata_device_call_t calls[] = {STRATA_CALL_map, STRATA_CALL_set_access};
    for (size_t i = 0; i < 2; i++) {
        RIG_BY(rig, open_remapping(&rig, 8 * H));
        strata_block_t blocks[8], two = {0};
        fragment(&rig, NULL, blocks);
        EXPECT_OK(strata_sim_fail(rig.devices[0], calls[i], 2, false, STRATA_E_DEVICE));
        if (strata_allocate(rig.s, rig.gpu, NULL, 2 * H, &two) == STRATA_OK) EXPECT_OK(strata_free(rig.s, two.ref));
        EXPECT_LE(reserved(&rig), 8 * H);
        EXPECT_OK(strata_validate(rig.s));
        drop_rest(&rig, blocks);
    }
}

/* ---- another thread of the stream beside a growth or a move ---- */

/* When the device first refuses, or where a test says, another thread has work done on a block, its own or a new one, and frees it. */
static struct {
    rig_t *rig;
    strata_stream_t stream;
    strata_block_t block;
    uint32_t refusals;
} beside;

static void *use_and_free(void *argument) {
    (void)argument;
    if (!beside.block.ref) beside.block = rig_allocate(beside.rig, beside.stream, H);
    rig_work(beside.rig, beside.stream, 1000 * 1000, beside.block.ref);
    EXPECT_OK(strata_free(beside.rig->s, beside.block.ref));
    return NULL;
}

static strata_status_t allocate_beside(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_E_NO_MEMORY || beside.refusals++ > 0) return status;
    strata_error_t reason = *strata_last_error();
    strata_unlocked_t opened = strata_call_unlock(request->call);
    in_another_thread(use_and_free, NULL);
    strata_call_lock(request->call, opened);
    return strata_fail_again(&reason);
}

static const strata_layer_type_t beside_type = DECORATOR("test_beside", STRATA_SCOPE_DEVICE, allocate_beside,
                                                         strata_layer_free_below);

static void open_beside(rig_t *rig, bool remaps) {
    char text[200];
    register_layer(&beside_type);
    snprintf(text, sizeof text, "version: 1\nstack: [{best_fit_vmm: {handle: 2MiB, remap_on_oom: %s}}, test_beside, vmm]\n",
             remaps ? "true" : "false");
    rig_open(rig, text, NULL, 0, 4 * H, 1);
    beside = (__typeof__(beside)){.rig = rig, .stream = rig_stream(rig)};
}

/* Two of three handles came, and one served another thread before the third was refused: its work still runs when they go back. */
TEST(peers_paddle_vmm, a_growth_that_fails_leaves_work_beside_it_its_memory) {
    RIG_BY(rig, open_beside(&rig, false));
    strata_block_t two = rig_allocate(&rig, beside.stream, 2 * H), none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, beside.stream, 3 * H, &none));
    EXPECT_GT(beside.refusals, 0);
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, beside.stream));
    EXPECT_OK(strata_free(rig.s, two.ref));
}

static void use_and_free_between(void *context) { (void)use_and_free(context); }

/* The stream was seen to be done, and then the block beside the first that moves was used and freed: it does not move under its work. In
 * front of the n-th taking of the lock; false: the request takes it less often. */
static bool moves_nothing_in_use(uint32_t n) {
    before_lock_t before;
    RIG_BY(rig, open_remapping(&rig, 8 * H));
    strata_block_t blocks[8];
    beside = (__typeof__(beside)){.rig = &rig, .stream = rig_stream(&rig)};
    fragment(&rig, beside.stream, blocks);
    beside.block = blocks[1];
    before_lock_begin(&before, &rig_stack(&rig, beside.stream)->lock, n, use_and_free_between, NULL);
    strata_block_t two = rig_allocate(&rig, beside.stream, 2 * H);
    bool came = before_lock_end(&before);
    if (!came) EXPECT_OK(strata_free(rig.s, blocks[1].ref));
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, beside.stream));
    RIG_FREE(&rig, two, blocks[3], blocks[5], blocks[7]);
    if (strata_test_has_failed()) FAIL_TEST("in front of taking %u", n);
    return came;
}

TEST(peers_paddle_vmm, what_another_thread_frees_meanwhile_moves_under_no_work) {
    uint32_t n = 1;
    while (n < 60 && !strata_test_has_failed() && moves_nothing_in_use(n)) n++;
    EXPECT_GT(n, 4);
    EXPECT_LT(n, 60);
}

/* ---- the two pools ---- */

/* Below 2 MiB after rounding to 256 bytes: the small pool's handles of 2 MiB, else the large one's of 16. */
TEST(peers_paddle_vmm, RouteSmallAndLarge) {
    static const struct {
        size_t size;
        uint64_t handle;
    } rows[] = {{256, 2 * MIB}, {2 * MIB - 256, 2 * MIB}, {2 * MIB - 1, 16 * MIB}, {2 * MIB, 16 * MIB}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RIG(rig, "paddle-vmm", 0);
        strata_block_t b = rig_allocate(&rig, NULL, rows[i].size);
        EXPECT_EQ(reserved(&rig), rows[i].handle);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}
