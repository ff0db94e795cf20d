/* Trims and releases of more handles than a cache takes at a time: 256 (auto_growth_vmm) or 1024 (best_fit_vmm, caching_vmm). */
#include "tests/facade/support/fixture.h"

enum { MOST = 2200 };

typedef struct row {
    const char *name, *layers;
    size_t handle; /* the bytes of each, and of each block */
    size_t batch; /* handles that the cache takes at a time */
} row_t;

static const row_t rows[] = {
    {"auto_growth_vmm", "auto_growth_vmm: {slack: 0, slack_least: 0}, vmm", 2 * MIB, 256},
    {"best_fit_vmm", "best_fit_vmm: {handle: 2MiB}, vmm", 2 * MIB, 1024},
    {"caching_vmm", "caching_vmm, vmm", 20 * MIB, 1024},
};

static void leave_idle(rig_t *rig, const row_t *row, size_t count) {
    static strata_block_t blocks[MOST];
    ASSERT_LE(count, COUNT(blocks));
    for (size_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, NULL, row->handle);
    rig_free(rig, blocks, count);
}

/* Of so many bytes that are to go the last handle goes as a whole. */
static void expect_trim(const row_t *row, size_t count, uint64_t bytes) {
    RIG_STACK(rig, row->layers, 0);
    leave_idle(&rig, row, count);
    uint64_t idle = count * row->handle, goes = (bytes + row->handle - 1) / row->handle * row->handle;
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, idle);
    EXPECT_EQ(rig_trim(&rig, idle - bytes), goes);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, idle - goes);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_release), goes / row->handle);
    EXPECT_OK(strata_validate(rig.s));
    leave_idle(&rig, row, count);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, idle);
    EXPECT_EQ(rig_release(&rig), idle);
    if (strata_test_has_failed()) FAIL_TEST("%zu handles, %llu bytes go", count, (unsigned long long)bytes);
}

TEST_EACH(many_handles, a_trim_gives_back_as_many_as_it_must, row_t, rows) {
    size_t batch = row->batch, most = 2 * batch + 3;
    const uint64_t handles[] = {1, batch - 1, batch, batch + 1, batch + 44, 2 * batch, 2 * batch + 1, most};
    for (size_t i = 0; i < COUNT(handles) && !strata_test_has_failed(); i++) {
        expect_trim(row, most, handles[i] * row->handle);
        expect_trim(row, most, handles[i] * row->handle - 1);
        if (handles[i] < most) expect_trim(row, most, handles[i] * row->handle + 1);
    }
}
