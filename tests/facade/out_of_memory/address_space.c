/* A process that may map little: a facade begins small, and is told when it may not grow. */
#include <stdio.h>

#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/address_space.h"

/* A small program: what it answers first that is not OK. */
static strata_status_t small_program(const char *preset, int streams) {
    strata_t s;
    strata_open_options_t options = {.struct_size = sizeof options, .preset = preset, .devices = "sim"};
    strata_status_t status = strata_open(&options, &s);
    if (status != STRATA_OK) return status;
    for (int i = 0; i < streams && status == STRATA_OK; i++) {
        strata_stream_t stream = NULL;
        strata_block_t block;
        if (i > 0) status = strata_stream_create(s, strata_gpu(0), 0, &stream);
        if (status == STRATA_OK) status = strata_allocate(s, strata_gpu(0), stream, 1 << 20, &block);
        if (status == STRATA_OK) status = strata_free(s, block.ref);
    }
    strata_status_t closed = strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL);
    return status == STRATA_OK ? closed : status;
}

/* Whether address space comes in steps, and can be bounded: under some sanitizers neither. */
static bool grows(void) {
    strata_growing_t range;
    struct rlimit before;
    EXPECT_OK(strata_growing_reserve(&range, 4096, (size_t)1 << 30));
    bool steps = strata_growing_usable(&range) < (size_t)1 << 30;
    strata_growing_release(&range);
    if (!steps || !bound_address_space((uint64_t)1 << 30, &before)) return false;
    unbound_address_space(&before);
    return true;
}

TEST(facade_address_space, a_gibibyte_serves_a_small_program_under_every_preset) {
    struct rlimit before;
    if (!grows()) TEST_SKIP("address space comes in one piece here, or cannot be bounded");
    for (size_t i = 0; strata_strategy_name(i); i++) {
        for (int streams = 1; streams <= 8; streams += 7) {
            ASSERT_TRUE(bound_address_space((uint64_t)1 << 30, &before));
            strata_status_t status = small_program(strata_strategy_name(i), streams);
            unbound_address_space(&before);
            if (status != STRATA_OK) FAIL_TEST("%s, %d streams: %s", strata_strategy_name(i), streams, strata_last_error()->text);
        }
    }
}

TEST(facade_address_space, a_refusal_names_the_limit) {
    struct rlimit before;
    if (!address_space_is_ours() || !grows()) TEST_SKIP("address space comes in one piece here, or cannot be bounded");
    ASSERT_TRUE(bound_address_space(1 << 20, &before));
    strata_status_t status = small_program("strata", 1);
    const strata_error_t error = *strata_last_error();
    unbound_address_space(&before);
    EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    EXPECT_CONTAINS(error.text, "RLIMIT_AS");
    EXPECT_CONTAINS(error.text, "refused");
    EXPECT_OK(small_program("strata", 1));
}

enum { BLOCKS = 200000 };
static strata_ref_t refs[BLOCKS];

/* Serves until it is refused; how many. */
static int serve_all(rig_t *rig, int from, strata_status_t *status) {
    strata_block_t block;
    int count = from;
    for (*status = STRATA_OK; count < BLOCKS; count++) {
        *status = strata_allocate(rig->s, rig->gpu, NULL, 512, &block);
        if (*status != STRATA_OK) break;
        refs[count] = block.ref;
    }
    return count;
}

/* Of the table of records and those of layers: what is served stays valid, and there is more when the host has more. */
static void goes_on(const char *layers) {
    char text[160];
    strata_status_t status, again;
    struct rlimit before;
    snprintf(text, sizeof text, "strategy: bounded\nstack: [%s]\n", layers);
    RIG(rig, text, 0);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 512).ref));
    ASSERT_TRUE(bound_address_space(2 << 20, &before));
    int count = serve_all(&rig, 0, &status);
    const strata_error_t error = *strata_last_error();
    unbound_address_space(&before);
    EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    EXPECT_CONTAINS(error.text, "RLIMIT_AS");
    EXPECT_GT(count, 2000);
    EXPECT_EQ(rig_figures(&rig).live_allocations, (uint64_t)count);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(serve_all(&rig, count, &again), BLOCKS);
    EXPECT_OK(again);
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < BLOCKS; i++) ASSERT_OK(strata_free(rig.s, refs[i]));
    if (strata_test_has_failed()) FAIL_TEST("%s: %s", layers, error.text);
}

TEST(facade_address_space, what_cannot_grow_goes_on_when_it_can) {
    if (!address_space_is_ours() || !grows()) TEST_SKIP("address space comes in one piece here, or cannot be bounded");
    goes_on("stream_safe, auto_growth: {chunk_size: 512MiB}, system");
    goes_on("caching, system");
    goes_on("bfc, system");
    goes_on("naive_best_fit, system");
}

/* Each refused in turn, while tables grow. */
TEST(facade_address_space, every_step_may_be_refused) {
    if (!grows()) TEST_SKIP("address space comes in one piece here, or cannot be bounded");
    for (uint64_t k = 1; k <= 12; k++) {
        strata_block_t block;
        int count = 0;
        RIG(rig, "strategy: refused\nstack: [stream_safe, auto_growth, system]\n", 0);
        EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 512).ref));
        strata_host_fail_at(k, 0);
        for (; count < 20000; count++) {
            if (strata_allocate(rig.s, rig.gpu, NULL, 512, &block) == STRATA_E_HOST_MEMORY)
                EXPECT_OK(strata_allocate(rig.s, rig.gpu, NULL, 512, &block));
            refs[count] = block.ref;
        }
        strata_host_fail_at(0, 0);
        EXPECT_OK(strata_validate(rig.s));
        while (count > 0) ASSERT_OK(strata_free(rig.s, refs[--count]));
    }
}

/* The table of addresses is as long as what is reserved: made at the first free by pointer alone. */
TEST_RIG(facade_address_space, a_free_by_pointer_does_without_the_table_that_cannot_be_had, 0,
         "strategy: large\nstack: [auto_growth: {chunk_size: 20GiB}, system]\n") {
    strata_block_t block = rig_allocate(rig, NULL, 1000), other = rig_allocate(rig, NULL, 1000), found;
    strata_block_t apart = rig_allocate(rig, rig_stream(rig), 1000);
    bool bounded = grows();
    if (bounded) strata_host_fail_at(1, 1);
    EXPECT_OK(strata_block_of(rig->s, other.ptr, &found));
    EXPECT_OK(strata_free_pointer(rig->s, apart.ptr));
    EXPECT_OK(strata_free_pointer(rig->s, other.ptr));
    strata_status_t twice = strata_free_pointer(rig->s, other.ptr), inside = strata_free_pointer(rig->s, (char *)block.ptr + 256);
    strata_host_fail_at(0, 0);
    EXPECT_EQ(found.ref, other.ref);
    EXPECT_EQ(twice, STRATA_E_UNKNOWN_POINTER);
    EXPECT_EQ(inside, STRATA_E_UNKNOWN_POINTER);
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_free_pointer(rig->s, block.ptr));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, block.ptr));
}
