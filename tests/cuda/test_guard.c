/* The layer guard over a GPU, whose memory the host does not see: it looks at copies. */
#include <string.h>

#include "facade/registry/facade.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

enum { SIZE = 5000, LARGE = (5 << 20) + 256 };

static void close_facade(const strata_t *s) {
    if (*s) EXPECT_OK(strata_close(*s, STRATA_CLOSE_FORCE, NULL, NULL));
    fake_reset();
}

/* `contents`: memory of the fake holds bytes, where the program's pointers are. */
static strata_t open_guarded(bool contents) {
    strata_t s = 0;
    fake_reset();
    fake_options.contents = contents;
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .text = "strategy: g\nstack: [{guard: {quarantine: 1, report: false}}, system]\n",
                                     .devices = "gpu:0",
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_open(&options, &s));
    return s;
}

static void write_and_free(strata_t s, size_t size, int64_t at, bool freed) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, size, &block));
    unsigned char *bytes = block.ptr;
    memset(bytes, 1, size);
    if (freed) EXPECT_OK(strata_free(s, block.ref));
    bytes[at] ^= 0x55;
    if (!freed) EXPECT_OK(strata_free(s, block.ref));
    EXPECT_OK(strata_release(s, strata_gpu(0), NULL));
}

TEST(cuda_guard, finds_what_was_written_beside_a_block) {
    static const int64_t at[] = {-256, -1, SIZE, SIZE + 255};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        strata_t s CLOSED_BY(close_facade) = open_guarded(true);
        for (int sound = 0; sound < 3; sound++) write_and_free(s, SIZE, sound, false);
        EXPECT_OK(strata_validate(s));
        write_and_free(s, SIZE, at[i], false);
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(s));
    }
}

TEST(cuda_guard, finds_what_was_written_after_the_free_wherever_it_lies) {
    static const int64_t at[] = {0, 1 << 20, LARGE - 1};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        strata_t s CLOSED_BY(close_facade) = open_guarded(true);
        write_and_free(s, LARGE, at[i], false);
        EXPECT_OK(strata_validate(s));
        write_and_free(s, LARGE, at[i], true);
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(s));
    }
}

/* Where there is no copy to be had nothing is found, and a free is a free. */
TEST(cuda_guard, a_free_that_cannot_look_succeeds) {
    static const char *const calls[] = {"MemHostAlloc", "MemcpyDtoHAsync"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        strata_t s CLOSED_BY(close_facade) = open_guarded(true);
        fake_fail(calls[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
        write_and_free(s, SIZE, SIZE, false);
        EXPECT_TRUE(fake_failed());
        EXPECT_OK(strata_validate(s));
    }
}
