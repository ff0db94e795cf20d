#include "tests/allocation/bench.h"

#include <stdlib.h>

#include "allocation/options/option.h"

void bench_begin(bench_t *bench) {
    *bench = (bench_t){.options = strata_arena_new()};
    bench->plan.place = STRATA_PLACE_GPU;
    test_log.count = 0;
}

static void set_options(const strata_layer_type_t *type, void *options, const char *const *texts) {
    for (; texts && *texts; texts++) {
        char name[64];
        const char *value = strchr(*texts, '=');
        ASSERT_TRUE(value && value - *texts < (ptrdiff_t)sizeof name);
        memcpy(name, *texts, (size_t)(value - *texts));
        name[value - *texts] = 0;
        const strata_option_row_t *row = strata_option_find(type, name);
        if (row) EXPECT_OK(strata_option_set(row, options, value + 1));
    }
}

uint8_t bench_node(bench_t *bench, const strata_layer_type_t *type, const char *const *options) {
    uint8_t number = (uint8_t)++bench->plan.count;
    void *filled = strata_arena_alloc(bench->options, 1, type->options_size ? type->options_size : 1);
    strata_option_defaults(type, filled);
    set_options(type, filled, options);
    bench->plan.nodes[number] = (strata_plan_node_t){
        .type = type, .options = filled, .name = type->name, .number = number, .scope = type->scope};
    return number;
}

void bench_link(bench_t *bench, uint8_t upper, uint8_t lower) {
    strata_plan_node_t *node = &bench->plan.nodes[upper];
    node->below[node->below_count++] = lower;
}

void bench_straight(bench_t *bench, const strata_layer_type_t *const *types, const char *const *options) {
    uint8_t above = 0;
    for (; *types; types++) {
        uint8_t number = bench_node(bench, *types, options);
        if (above) bench_link(bench, above, number);
        above = number;
    }
}

void bench_open(bench_t *bench, uint64_t capacity) {
    strata_sim_options_t options = {.capacity = capacity};
    static const strata_domain_settings_t nothing = {.limit = UINT64_MAX};
    ASSERT_OK(strata_sim_new(&options, &bench->world));
    ASSERT_OK(strata_sim_open(bench->world, 0, &bench->device));
    ASSERT_OK(strata_domain_create(bench->device, strata_gpu(0), BENCH_FACADE, &bench->plan, NULL, &nothing, &bench->domain));
    ASSERT_OK(strata_stack_create(&bench->domain->ordinary, &(strata_stack_for_t){.stream = NULL}, &bench->stack));
}

void bench_open_cache(bench_t *bench, uint64_t capacity, const char *const *options) {
    bench_begin(bench);
    const strata_layer_type_t *types[] = {strata_layer_find("auto_growth"), &test_source_type, NULL};
    bench_straight(bench, types, options);
    bench_open(bench, capacity);
}

void bench_close(bench_t *bench) {
    strata_domain_destroy(bench->domain);
    EXPECT_EQ(bench_held(bench), 0);
    strata_device_close(bench->device);
    strata_sim_drop(bench->world);
    strata_arena_delete(bench->options);
}

strata_status_t bench_try(bench_t *bench, size_t size, strata_record_t **record) {
    strata_request_t serve = {.size = size, .alignment = 256};
    strata_growing_grow_if_marked(); /* as every call of the facade begins */
    return strata_stack_serve(bench->stack, &serve, record);
}

strata_record_t *bench_allocate(bench_t *bench, size_t size) {
    strata_record_t *record = NULL;
    EXPECT_OK(bench_try(bench, size, &record));
    return record;
}

void bench_free(bench_t *bench, strata_record_t *record) {
    strata_call_t call;
    strata_record_t *found;
    (void)bench;
    ASSERT_OK(strata_record_find(BENCH_FACADE, strata_ref_of(record), &call, &found));
    EXPECT_EQ(found, record);
    strata_record_free(&call, found);
}

uint64_t bench_held(const bench_t *bench) {
    strata_sim_figures_t figures;
    strata_sim_figures(bench->device, &figures);
    return figures.used_bytes;
}
