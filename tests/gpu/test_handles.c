/* The programs over virtual memory, on a real GPU and on a simulated one. */
#include "platform/sim/sim.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/handles.h"

typedef struct program {
    const char *name;
    void (*run)(strata_device_t *device);
} program_t;

static const program_t programs[] = {
    {"keep_contents_while_they_are_joined", handles_keep_contents_while_they_are_joined},
    {"join_beside_running_work", handles_join_beside_running_work},
    {"go_back_to_the_device", handles_go_back_to_the_device},
    {"are_fit_to_be_registered", handles_are_fit_to_be_registered},
    {"are_imported_beside_their_block", handles_are_imported_beside_their_block},
};

TEST_EACH(gpu_handles, on_a_gpu, program_t, programs) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, virtual_memory);
    GPU_NEEDS(device, work);
    GPU_NEEDS(device, share);
    row->run(device);
    strata_device_close(device);
}

TEST_EACH(gpu_handles, on_a_simulated_device, program_t, programs) {
    strata_sim_t *world = NULL;
    strata_device_t *device = NULL;
    ASSERT_OK(strata_sim_new(&(strata_sim_options_t){.contents = true, .capacity = 4ull << 30}, &world));
    ASSERT_OK(strata_sim_open(world, 0, &device));
    row->run(device);
    strata_device_close(device);
    strata_sim_drop(world);
}
