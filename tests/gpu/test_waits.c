/* Which calls wait for running work on the GPU that is there, against what the simulator says of all. */
#include "tests/gpu/gpu.h"
#include "tests/platform/beside.h"

/* Whether the work had ended when the call came back. */
static bool waited(strata_device_t *device, const beside_row_t *row) {
    beside_t b;
    strata_handle_t ended;
    EXPECT_OK(strata_device_event_create(device, &ended));
    beside_open(&b, device);
    EXPECT_OK(strata_device_event_record(device, ended, b.running));
    strata_status_t status = row->make(&b);
    bool over = strata_device_event_query(device, ended) == STRATA_OK;
    if (status != STRATA_OK) FAIL_TEST("%s: %s", row->name, strata_last_error()->text);
    beside_close(&b);
    EXPECT_OK(strata_device_event_destroy(device, ended));
    return over;
}

TEST(gpu, each_call_waits_for_running_work_as_the_simulator_says) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, work);
    GPU_NEEDS(device, managed);
    GPU_NEEDS(device, pools);
    GPU_NEEDS(device, virtual_memory);
    ASSERT_EQ(BESIDE_UNIT % device->capabilities.granularity, 0);
    for (int i = 0; i < BESIDE_ROWS; i++) {
        const beside_row_t *row = &beside_rows[i];
        waited(device, row); /* the first call of a kind loads code, and code is loaded after all work */
        if (waited(device, row) != row->waits)
            FAIL_TEST("%s %s for running work", row->name, row->waits ? "does not wait" : "waits");
    }
    strata_device_close(device);
}
