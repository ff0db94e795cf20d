/* A program that asks for another allocator's variables: strata_open() reads them then, and else never. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"

static strata_status_t open_as(const char *preset, uint32_t flags, strata_t *s) {
    strata_open_options_t options = {.struct_size = sizeof options, .preset = preset, .devices = "sim", .flags = flags};
    return strata_open(&options, s);
}

static bool explains(strata_t s, const char *part) {
    static char text[16384];
    EXPECT_OK(strata_explain(s, text, sizeof text, NULL));
    return strstr(text, part) != NULL;
}

static void expect_served(strata_t s) {
    strata_block_t block;
    ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 3 << 20, &block));
    EXPECT_OK(strata_free(s, block.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

TEST(facade_imported, variables_count_when_they_are_asked_for) {
    strata_t s = 0;
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:48", 1);
    ASSERT_OK(open_as("import:pytorch", STRATA_OPEN_IGNORE_ENVIRONMENT, &s));
    EXPECT_TRUE(explains(s, "48MiB        PYTORCH_CUDA_ALLOC_CONF:1:1"));
    expect_served(s);
    setenv("STRATA_STRATEGY", "import:pytorch@2.9", 1);
    ASSERT_OK(open_as(NULL, 0, &s));
    EXPECT_TRUE(explains(s, "strategy imported-pytorch"));
    expect_served(s);
    unsetenv("STRATA_STRATEGY");
    ASSERT_OK(open_as(NULL, 0, &s));
    EXPECT_FALSE(explains(s, "PYTORCH"));
    expect_served(s);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:48,expandable:True", 1);
    EXPECT_STATUS(STRATA_E_STRATEGY, open_as("import:pytorch", 0, &s));
    EXPECT_EQ(strata_last_error()->column, 22);
    EXPECT_CONTAINS(strata_last_error()->text, "PYTORCH_CUDA_ALLOC_CONF:1:22: pytorch has no memory setting \"expandable\"");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
}

/* The variables of AlphaFold: preallocates managed memory of four times the device, and not a byte more. */
TEST(facade_imported, unified_memory_may_be_more_than_the_device) {
    strata_t s = 0;
    strata_block_t most, more;
    uint64_t gib = UINT64_C(1) << 30;
    setenv("TF_FORCE_UNIFIED_MEMORY", "1", 1);
    setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "4.0", 1);
    ASSERT_OK(open_as("import:tensorflow", STRATA_OPEN_IGNORE_ENVIRONMENT, &s));
    ASSERT_OK(strata_allocate(s, strata_gpu(0), NULL, 4 * 80 * gib, &most));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(s, strata_gpu(0), NULL, 1, &more));
    EXPECT_OK(strata_free(s, most.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    unsetenv("TF_FORCE_UNIFIED_MEMORY");
    unsetenv("XLA_PYTHON_CLIENT_MEM_FRACTION");
}
