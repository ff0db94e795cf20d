/* A strategy file: loading and checking agree, what is refused says where, and what is accepted can be told about and serves. */
#include <string.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/owned.h"

enum { DEVICES = 2, SIZES = 6 };
#define CAPACITY (UINT64_C(256) << 20)

/* Options whose text names no file, whatever it says. */
static const char *const nameless[] = {"roundup_power2_divisions"};

/* Whether an option's text is none that the layer has of itself: it may be the name of a file to be written. */
static bool may_name_a_file(const strata_model_layer_t *layer, const strata_option_row_t *row) {
    char text[STRATA_OPTION_TEXT_BYTES];
    if (row->kind != STRATA_OPTION_TEXT) return false;
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++)
        if (strcmp(row->name, nameless[i]) == 0) return false;
    strata_option_print(row, layer->options, text, sizeof text);
    return strcmp(text, row->default_text) != 0;
}

static bool writes_files(const strata_model_stack_t *stack) {
    const strata_model_layer_t *layers[STRATA_STACK_LAYERS];
    size_t count = strata_model_layers(stack, layers, STRATA_STACK_LAYERS);
    for (size_t i = 0; i < count && i < STRATA_STACK_LAYERS; i++)
        for (const strata_option_row_t *row = layers[i]->type->options; row && row->name; row++)
            if (may_name_a_file(layers[i], row)) return true;
    return false;
}

/* Else it would write what the bytes name. */
static bool may_serve(const strata_strategy_t *strategy) {
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
        for (uint32_t device = 0; device < DEVICES; device++)
            if (writes_files(strata_strategy_stack(strategy, place, device))) return false;
        for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++)
            for (size_t i = 0; i < strategy->named[kind].count; i++)
                if (writes_files(&strategy->named[kind].list[i].stacks[place])) return false;
    }
    return true;
}

/* A few requests on two streams; any of them may be refused, and nothing may be lost. */
static void use(strata_t s, strata_place_t place) {
    static const size_t sizes[SIZES] = {1, 0, 70000, 3 << 20, 256, 40 << 20};
    strata_stream_t streams[2] = {NULL, NULL};
    strata_block_t blocks[SIZES];
    bool live[SIZES];
    (void)strata_stream_create(s, place, 0, &streams[1]);
    for (size_t i = 0; i < SIZES; i++) {
        live[i] = strata_allocate(s, place, streams[i % 2], sizes[i], &blocks[i]) == STRATA_OK;
        if (!live[i]) continue;
        FUZZ_EXPECT(blocks[i].size >= sizes[i]);
        (void)strata_record_stream(s, blocks[i].ref, streams[(i + 1) % 2]);
    }
    for (size_t i = 0; i < SIZES; i += 2)
        if (live[i]) FUZZ_EXPECT_OK(strata_free(s, blocks[i].ref));
    FUZZ_EXPECT_OK(strata_validate(s));
    (void)strata_release(s, place, NULL);
    for (size_t i = 1; i < SIZES; i += 2)
        if (live[i]) FUZZ_EXPECT_OK(strata_free(s, blocks[i].ref));
    FUZZ_EXPECT_OK(strata_validate(s));
}

static void use_pools(strata_t s, const strata_model_names_t *pools) {
    for (size_t i = 0; i < pools->count; i++) {
        uint64_t pool;
        FUZZ_EXPECT_OK(strata_pool(s, pools->list[i].name, &pool));
        FUZZ_EXPECT_OK(strata_pool_begin(s, strata_gpu(0), pool));
        use(s, strata_gpu(0));
        FUZZ_EXPECT_OK(strata_pool_end(s, strata_gpu(0)));
    }
}

static void serve(const strata_strategy_t *strategy) {
    strata_sim_t *world = NULL;
    strata_device_t *devices[DEVICES];
    strata_t s = 0;
    char text[256];
    FUZZ_EXPECT_OK(strata_sim_new(&(strata_sim_options_t){.devices = DEVICES, .capacity = CAPACITY}, &world));
    for (uint32_t i = 0; i < DEVICES; i++) FUZZ_EXPECT_OK(strata_sim_open(world, i, &devices[i]));
    if (strata_facade_open_on(strategy, devices, DEVICES, 0, &s) == STRATA_OK) {
        use(s, strata_gpu(0));
        use(s, strata_gpu(1));
        use(s, strata_managed(0));
        use(s, strata_pinned());
        use(s, strata_host());
        use_pools(s, &strategy->named[STRATA_NAMED_POOL]);
        FUZZ_EXPECT_OK(strata_close(s, STRATA_CLOSE_FORCE, NULL, NULL));
    }
    for (uint32_t i = 0; i < DEVICES; i++) {
        strata_sim_held_t held;
        strata_sim_held(devices[i], &held);
        strata_sim_held_text(&held, text, sizeof text);
        FUZZ_EXPECT(*text == '\0');
        strata_device_close(devices[i]);
    }
    strata_sim_drop(world);
}

static void tell(const strata_strategy_t *strategy) {
    FUZZ_EXPECT_OK(strata_config_explain(strategy, fuzz_nowhere()));
    FUZZ_EXPECT_OK(strata_config_diff(strategy, strategy, "a", "b", fuzz_nowhere()));
}

/* The same once more, with a host that has no memory left somewhere. */
static void load_in_need(const strata_config_request_t *request, uint64_t k) {
    strata_strategy_t *strategy = NULL;
    strata_host_fail_at(k, 1);
    strata_status_t status = strata_config_load(request, &strategy);
    strata_host_fail_at(0, 0);
    if (status == STRATA_OK) strata_strategy_delete(strategy);
    else FUZZ_EXPECT(status == STRATA_E_HOST_MEMORY || status == STRATA_E_STRATEGY);
}

void fuzz_strategy(const uint8_t *bytes, size_t count) {
    const char *path = fuzz_file(bytes, count);
    strata_config_request_t request = {.file = path};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = NULL;
    uint64_t before = strata_host_allocations();
    strata_status_t status = strata_config_load(&request, &strategy);
    uint64_t allocations = strata_host_allocations() - before;
    size_t error_sink = strata_config_check(path, false, fuzz_nowhere());
    FUZZ_EXPECT((status == STRATA_OK) == (error_sink == 0));
    if (count && allocations) load_in_need(&request, 1 + bytes[count / 2] % allocations);
    if (status != STRATA_OK) {
        FUZZ_EXPECT(status == STRATA_E_STRATEGY);
        return;
    }
    tell(strategy);
    if (may_serve(strategy)) serve(strategy);
}
