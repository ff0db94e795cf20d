/* What bfc does while a graph is captured, told by its own operations: no facade begins a capture yet. */
#include "tests/bfc/bfc.h"

static void capture(bfc_t *self, bool begins) {
    strata_call_t call = {.stack = self->base.stack};
    strata_lock(&self->base.stack->lock);
    call.held[1] = self->base.stack;
    strata_notice_t notice = {
        .struct_size = sizeof notice, .kind = begins ? STRATA_NOTICE_CAPTURE_BEGIN : STRATA_NOTICE_CAPTURE_END, .pool = 7};
    strata_layer_notify(&self->base, &notice, &call);
    (void)strata_call_unlock(&call);
}

/* The regions of one pool make the first one of the next no larger; those of the same pool do. */
TEST(bfc_capture, each_pool_begins_with_small_regions) {
    RIG_BY(rig, bfc_open(&rig, "allow_growth: true", 0));
    bfc_t *self = bfc_of(&rig);
    uint64_t first = self->next_region;
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    uint64_t later = self->next_region;
    EXPECT_GT(later, first);
    capture(self, true);
    EXPECT_EQ(self->next_region, later);
    capture(self, false);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(self->next_region, later);
    capture(self, true);
    EXPECT_EQ(self->next_region, first);
    capture(self, false);
}

TEST(bfc_capture, nothing_is_given_back_until_the_last_one_ends) {
    uint64_t released = 7;
    RIG_BY(rig, bfc_open(&rig, "allow_growth: true", 0));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 3 * MIB).ref));
    uint64_t reserved = rig_figures(&rig).reserved_bytes;
    EXPECT_GE(reserved, 3 * MIB);
    for (int i = 0; i < 2; i++) capture(bfc_of(&rig), true);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
        EXPECT_EQ(released, 0);
        EXPECT_OK(strata_trim(rig.s, rig.gpu, 0, &released));
        EXPECT_EQ(released, 0);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, reserved);
        capture(bfc_of(&rig), false);
    }
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, reserved);
}
