/* Requests of larger alignments than the place's: who serves them, and what is said where nobody does. */
#include "tests/facade/pools/pooled.h"

static strata_status_t ask(rig_t *rig, strata_place_t place, size_t size, size_t alignment, strata_block_t *block) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .alignment = alignment};
    return strata_allocate_with(rig->s, place, NULL, &options, block);
}

/* A stack serves every power of two up to `most`, and no larger one; 0: any. */
static void serves_up_to(const char *stack, strata_place_t place, size_t most) {
    char text[512];
    snprintf(text, sizeof text, "strategy: s\nstack: %s\nplaces: {host: %s, pinned: %s}\n", stack, stack, stack);
    RIG(rig, text, 0);
    for (size_t alignment = 1; alignment <= 16 * MIB; alignment *= 2) {
        strata_block_t small, block = {.ref = 9};
        EXPECT_OK(strata_allocate(rig.s, place, NULL, 300, &small));
        strata_status_t status = ask(&rig, place, 1000, alignment, &block);
        bool served = most == 0 || alignment <= most;
        if (status != (served ? STRATA_OK : STRATA_E_UNSUPPORTED))
            FAIL_TEST("%s, %zu: %s", stack, alignment, strata_last_error()->text);
        if (served) {
            EXPECT_EQ((uintptr_t)block.ptr % alignment, 0);
            EXPECT_OK(strata_free(rig.s, block.ref));
        } else {
            EXPECT_EQ(block.ref, 9);
        }
        EXPECT_OK(strata_free(rig.s, small.ref));
    }
}

TEST(facade_alignment, aligned_serves_any) {
    static const char *const stacks[] = {"[retry, stream_safe, aligned: {alignment: 256}, auto_growth: {chunk_size: 2MiB}, system]",
                                         "[aligned, system]", "[guard, aligned, buffered, system]", "[buffered, aligned, system]",
                                         "[fallback: {stacks: [[aligned, buffered, system], [aligned, system]]}]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        serves_up_to(stacks[i], strata_gpu(0), 0);
        serves_up_to(stacks[i], strata_pinned(), 0);
        serves_up_to(stacks[i], strata_host(), 0);
    }
}

TEST(facade_alignment, a_layer_whose_blocks_lie_so_serves_its_own) {
    serves_up_to("[retry, stream_safe, auto_growth: {alignment: 4KiB}, aligned, system]", strata_gpu(0), 4096);
    serves_up_to("[bfc, system]", strata_gpu(0), 0);
    serves_up_to("[system]", strata_host(), 0);
}

TEST(facade_alignment, others_serve_the_places) {
    static const char *const stacks[] = {
        "[retry, stream_safe, auto_growth, system]",
        "[caching, system]",
        "[naive_best_fit, system]",
        "[system]",
        "[auto_growth, aligned, system]",
        "[binning: {routes: [{up_to: 64, stack: [aligned, system]}, {stack: [auto_growth, system]}]}]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) serves_up_to(stacks[i], strata_gpu(0), 256);
}

TEST_RIG(facade_alignment, a_refusal_says_which_layer_to_add, 0, POOLED) {
    strata_block_t block;
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, ask(rig, rig->gpu, 100, 4096, &block));
    EXPECT_STREQ(strata_last_error()->text,
                 "an alignment of 4KiB: the stack of the place gpu serves up to 256; put aligned above its caches, "
                 "as in \"- aligned: {alignment: 256}\", which does not change other requests");
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, pool_of(rig, "weights")));
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, ask(rig, rig->gpu, 100, 4096, &block),
                "the stack of the place gpu in weights serves up to 256");
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
}
