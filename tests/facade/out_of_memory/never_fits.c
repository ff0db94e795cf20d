/* Requests that are larger than their device, as on a machine whose device memory is the host's: they are refused at once, and
 * nothing is taken, released or called back for them. */
#include "tests/facade/support/fixture.h"

static uint64_t called_back;

static uint64_t count_call(strata_place_t place, size_t size, void *context) {
    (void)place, (void)size, (void)context;
    called_back++;
    return 0;
}

/* pytorch#174358: 40 GiB of 120 work, and 400 are asked for while they are live, or idle. */
TEST(facade_never_fits, what_the_device_cannot_hold_is_refused_at_once) {
    for (int idle = 0; idle < 2; idle++) {
        RIG(rig, "strata", 120 * GIB);
        strata_block_t block = rig_allocate(&rig, NULL, 40 * GIB);
        if (idle) RIG_FREE(&rig, block);
        EXPECT_OK(strata_add_free_memory_callback(rig.s, count_call, NULL, NULL));
        called_back = 0;
        uint64_t creations = rig_calls(&rig, STRATA_CALL_create), releases = rig_calls(&rig, STRATA_CALL_release);
        for (int again = 0; again < 2; again++) {
            uint64_t queries = rig_calls(&rig, STRATA_CALL_mem_info), began = strata_sim_now(rig.world);
            EXPECT_EQ(rig_try(&rig, NULL, 400 * GIB), STRATA_E_NO_MEMORY);
            EXPECT_LT(strata_sim_now(rig.world) - began, 1000 * 1000);
            /* The report asks too. */
            EXPECT_EQ(rig_calls(&rig, STRATA_CALL_mem_info) - queries, 1);
            EXPECT_CONTAINS(strata_last_error()->text,
                            "requested 400GiB; the device has 120.48GiB, of which a program gets at most 120GiB");
            EXPECT_CONTAINS(strata_last_error()->text, "nothing was tried: the device is smaller than the request");
        }
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), creations);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_release), releases);
        EXPECT_EQ(called_back, 0);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 40 * GIB);
        EXPECT_EQ(rig_figures(&rig).out_of_memory, 2);
        EXPECT_OK(strata_validate(rig.s));
    }
}

static bool is_refused_for_good(rig_t *rig, uint64_t size) {
    EXPECT_EQ(rig_try(rig, NULL, size), STRATA_E_NO_MEMORY);
    return strstr(strata_last_error()->text, "the device is smaller") != NULL;
}

/* All that the device has may be served one day. A smaller request than 4 GiB is left to the device. */
TEST(facade_never_fits, the_device_itself_is_the_bound) {
    uint64_t available, total;
    RIG(rig, "strata", 5 * GIB);
    ASSERT_OK(strata_device_mem_info(rig.devices[0], &available, &total));
    total -= total % (2 * MIB);
    EXPECT_FALSE(is_refused_for_good(&rig, total));
    EXPECT_TRUE(is_refused_for_good(&rig, total + 2 * MIB));
    RIG(small, "strata", 2 * GIB);
    EXPECT_TRUE(is_refused_for_good(&small, 4 * GIB));
    EXPECT_FALSE(is_refused_for_good(&small, 4 * GIB - 2 * MIB));
}

/* A device that does not say what it has is asked for the memory. */
TEST(facade_never_fits, an_unknown_device_is_tried) {
    RIG(rig, "strata", 5 * GIB);
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_mem_info, 1, false, STRATA_E_DEVICE));
    EXPECT_FALSE(is_refused_for_good(&rig, 8 * GIB));
    EXPECT_TRUE(is_refused_for_good(&rig, 8 * GIB));
}

/* Another stack may have more memory than the device. */
TEST(facade_never_fits, a_stack_of_other_memory_serves_it) {
    RIG(rig,
        "stack:\n  - retry: {timeout: 1ms}\n  - fallback: {stacks: [[stream_safe, auto_growth_vmm, vmm], [system: {memory: managed}]]}\n",
        5 * GIB);
    strata_block_t block = rig_allocate(&rig, NULL, 8 * GIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 0);
    RIG_FREE(&rig, block);
}
