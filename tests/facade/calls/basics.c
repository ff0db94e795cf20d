/* Open, allocate, free, close: what every program does. */
#include <pthread.h>

#include "tests/facade/support/fixture.h"

TEST_RIG(facade, serves_and_takes_back, 0, "strata-malloc") {
    strata_block_t a = rig_allocate(rig, NULL, 1000), b = rig_allocate(rig, NULL, 64 * 1024);
    EXPECT_EQ(a.size, 1024);
    EXPECT_EQ((uintptr_t)a.ptr % 256, 0);
    EXPECT_NE(a.ptr, b.ptr);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), 1);
    strata_statistics_t f = rig_figures(rig);
    EXPECT_EQ(f.requested_bytes, 1000 + 64 * 1024);
    EXPECT_EQ(f.allocated_bytes, 1024 + 64 * 1024);
    EXPECT_EQ(f.reserved_bytes, 20 * MIB);
    EXPECT_EQ(f.live_allocations, 2);
    RIG_FREE(rig, a, b);
    f = rig_figures(rig);
    EXPECT_EQ(f.requested_bytes, 0);
    EXPECT_EQ(f.allocated_bytes, 0);
    EXPECT_EQ(f.reserved_bytes, 20 * MIB);
    EXPECT_EQ(rig_release(rig), 20 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

TEST_RIG(facade, nothing_is_served_without_the_device, 0, "strata") {
    strata_block_t a = rig_allocate(rig, NULL, 0), b = rig_allocate(rig, NULL, 0);
    EXPECT_EQ(a.ptr, NULL);
    EXPECT_EQ(a.size, 0);
    EXPECT_NE(a.ref, b.ref);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), 0);
    EXPECT_OK(strata_record_stream(rig->s, a.ref, (void *)2));
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, a.ref));
}

TEST_RIG(facade, frees_by_pointer, 0, "strata", "paddle", "system") {
    strata_block_t before = rig_allocate(rig, NULL, 5000), found;
    EXPECT_OK(strata_free_pointer(rig->s, before.ptr));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, before.ptr));
    strata_block_t blocks[100];
    for (int k = 0; k < 100; k++) blocks[k] = rig_allocate(rig, NULL, 300 * (size_t)(k + 1));
    EXPECT_OK(strata_block_of(rig->s, blocks[7].ptr, &found));
    EXPECT_EQ(found.ref, blocks[7].ref);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, (char *)blocks[7].ptr + 256));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, rig));
    for (int k = 0; k < 100; k++) EXPECT_OK(strata_free_pointer(rig->s, blocks[k].ptr));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, blocks[3].ref));
    EXPECT_OK(strata_free_pointer(rig->s, NULL));
}

static void count_leak(const strata_leak_t *leak, void *context) {
    EXPECT_EQ(leak->requested, 1000);
    EXPECT_EQ(leak->block.size, 1024);
    (*(int *)context)++;
}

TEST_WITH(facade, closes_with_a_leak_report, rig_t, rig, rig_close_by_force, rig_open(rig, "strata", NULL, 0, 0, 1)) {
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    int leaks = 0;
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_WAIT, count_leak, &leaks));
    EXPECT_EQ(leaks, 1);
    EXPECT_OK(strata_free(rig->s, a.ref));
    (void)rig_allocate(rig, NULL, 1000);
}

TEST_RIG(facade, every_place_has_its_memory, 0, "strata") {
    static const strata_place_kind_t kinds[] = {STRATA_PLACE_MANAGED, STRATA_PLACE_PINNED, STRATA_PLACE_HOST};
    for (int i = 0; i < 3; i++) {
        strata_block_t block;
        EXPECT_OK(strata_allocate(rig->s, strata_place(kinds[i], 0), NULL, 10000, &block));
        EXPECT_EQ((uintptr_t)block.ptr % (kinds[i] == STRATA_PLACE_HOST ? 64 : 256), 0);
        if (kinds[i] != STRATA_PLACE_MANAGED) memset(block.ptr, 1, block.size);
        EXPECT_OK(strata_free_pointer(rig->s, block.ptr));
    }
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig->s, strata_gpu(1), NULL, 8, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig->s, 77u << 16, NULL, 8, &none));
}

static strata_status_t open_preset(const char *preset, strata_t *s) {
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = preset, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_open(&options, s);
}

static void *open_and_close(void *argument) {
    strata_t s = 0;
    EXPECT_OK(open_preset(argument, &s));
    EXPECT_EQ(strata_last_error()->status, STRATA_OK);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(strata_last_error()->status, STRATA_OK);
    return NULL;
}

/* A thread that has met no failure yet is told none. */
TEST(facade, an_open_that_succeeds_leaves_no_failure_after) {
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++) {
        in_another_thread(open_and_close, (void *)(uintptr_t)name);
        if (strata_test_has_failed()) FAIL_TEST("so far with %s", name);
    }
}

TEST(facade, the_most_facades_of_a_process_are_told) {
    static strata_t all[STRATA_FACADES];
    strata_t more = 5;
    for (int i = 0; i < STRATA_FACADES; i++) {
        strata_status_t status = open_preset("system", &all[i]);
        if (status == STRATA_E_HOST_MEMORY) {
            for (int k = 0; k < i; k++) EXPECT_OK(strata_close(all[k], STRATA_CLOSE_WAIT, NULL, NULL));
            TEST_SKIP("the host has no addresses for so many facades");
        }
        ASSERT_OK(status);
    }
    EXPECT_SAYS(STRATA_E_LIMIT, open_preset("system", &more), "the process has 256 facades, the maximum");
    EXPECT_EQ(more, 5);
    for (int i = 0; i < STRATA_FACADES; i++) EXPECT_OK(strata_close(all[i], STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_OK(open_preset("system", &more));
    EXPECT_OK(strata_close(more, STRATA_CLOSE_WAIT, NULL, NULL));
}
