#include "tests/facade/fixture.h"

void rig_open(rig_t *rig, const char *preset_or_text, const char *const *set, size_t set_count, uint64_t capacity,
              uint32_t count) {
    memset(rig, 0, sizeof *rig);
    bool is_text = strchr(preset_or_text, ':') != NULL;
    strata_config_request_t request = {.preset = is_text ? NULL : preset_or_text, .text = is_text ? preset_or_text : NULL,
                                       .set = set, .set_count = set_count, .devices = "sim"};
    ASSERT_OK(strata_config_load(&request, &rig->strategy));
    strata_sim_options_t options = {.devices = count, .capacity = capacity};
    ASSERT_OK(strata_sim_new(&options, &rig->world));
    for (uint32_t i = 0; i < count; i++) ASSERT_OK(strata_sim_open(rig->world, i, &rig->devices[i]));
    rig->count = count;
    rig->gpu = strata_gpu(0);
    ASSERT_OK(strata_facade_open_on(rig->strategy, rig->devices, count, 0, &rig->s));
}

static void end(rig_t *rig) {
    for (uint32_t i = 0; i < rig->count; i++) {
        strata_sim_figures_t figures;
        strata_sim_figures(rig->devices[i], &figures);
        EXPECT_EQ(figures.used_bytes, 0);
        strata_device_close(rig->devices[i]);
    }
    strata_sim_drop(rig->world);
    strata_strategy_delete(rig->strategy);
}

void rig_close(rig_t *rig) {
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_WAIT, NULL, NULL));
    end(rig);
}

void rig_close_by_force(rig_t *rig) {
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL));
    end(rig);
}

strata_stream_t rig_stream(rig_t *rig) {
    strata_stream_t stream = NULL;
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, &stream));
    return stream;
}

strata_block_t rig_allocate(rig_t *rig, strata_stream_t stream, size_t size) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(rig->s, rig->gpu, stream, size, &block));
    return block;
}

strata_statistics_t rig_figures(rig_t *rig) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(rig->s, rig->gpu, &figures));
    return figures;
}

uint64_t rig_calls(rig_t *rig, strata_device_call_t call) {
    return atomic_load(&rig->devices[0]->calls[call]);
}
