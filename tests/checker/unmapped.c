/* A growth of several handles fails, and those that came go back. A layer below the cache may have left work on them. */
#include "lab/conform/rig/rig.h"
#include "platform/sim/checker/checker.h"
#include "tests/harness/test.h"

TEST(checker_unmapped, a_handle_that_was_filled_is_not_unmapped_under_the_fill) {
    static const char *const stacks[] = {"stack: [best_fit_vmm, fill, vmm]", "stack: [caching_vmm, fill, vmm]",
                                         "stack: [auto_growth_vmm, fill, vmm]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        rig_t rig;
        strata_checker_t *checker;
        strata_block_t block;
        rig_open(&rig, stacks[i], NULL, 0, 0, 1);
        ASSERT_OK(strata_checker_begin(rig.world, STRATA_CHECKER_LIFETIMES, &checker));
        strata_stream_t stream = rig_stream(&rig);
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_create, 3, true, STRATA_E_DEVICE));
        if (strata_allocate(rig.s, rig.gpu, stream, 100 * MIB, &block) == STRATA_OK) EXPECT_OK(strata_free(rig.s, block.ref));
        EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, stream));
        EXPECT_EQ(strata_checker_hazards(checker), 0);
        if (strata_checker_hazards(checker)) FAIL_TEST("%s: %s", stacks[i], strata_checker_report(checker, 0));
        strata_checker_end(checker);
        rig_close(&rig);
    }
}
