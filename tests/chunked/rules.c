/* Each cache against the plain model of its rules, block by block. */
#include <stdio.h>

#include "tests/chunked/chunked.h"
#include "tests/chunked/model.h"

enum { STREAMS = 3, HELD = 256, STEPS = 5000 };

static uint64_t next(uint64_t *random, uint64_t bound) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return (*random >> 33) % bound;
}

/* ---- auto_growth: `first` is the chunk size ---- */

static uint64_t chunk_of_auto_growth(model_t *model, uint64_t size) { return size > model->first ? size : model->first; }

static const model_rules_t auto_growth_rules = {.unit = 256, .high = true, .chunk = chunk_of_auto_growth};

static size_t up_to_20_kb(uint64_t *random) { return 1 + next(random, 20000); }
static size_t up_to_1500(uint64_t *random) { return 1 + next(random, 1500); }

/* ---- caching: `first` is max_split_size, `second` max_non_split_rounding ---- */

static uint32_t lane_of_caching(uint32_t stream, uint64_t size) { return 2 * stream + (size > MIB); }

static uint64_t chunk_of_caching(model_t *model, uint64_t size) {
    (void)model;
    return size <= MIB ? 2 * MIB : size < 10 * MIB ? 20 * MIB : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static bool caching_takes(const model_t *model, uint64_t block, uint64_t size) {
    bool oversize = size >= model->first;
    return oversize ? block < size + model->second : block < model->first;
}

static bool caching_cuts(const model_t *model, const model_block_t *block, uint64_t size) {
    return block->lane % 2 ? size < model->first && block->size - size > MIB : block->size - size >= 512;
}

static const model_rules_t caching_rules = {
    .unit = 512, .lane = lane_of_caching, .chunk = chunk_of_caching, .takes = caching_takes, .cuts = caching_cuts};

static size_t size_for_caching(uint64_t *random) {
    switch (next(random, 8)) {
    case 0: return 1 + next(random, 60 * MIB);
    case 1: return 1 + next(random, 12 * MIB);
    case 2: return MIB - 2000 + next(random, 4000);
    case 3: return 512 * (1 + next(random, 4));
    default: return 1 + next(random, 400 * KIB);
    }
}

/* ---- bfc: `first` is the size of the next region, `second` what a block may have above its request ---- */

/* One that had to be doubled for its request is not doubled again. */
static uint64_t chunk_of_bfc(model_t *model, uint64_t size) {
    bool enough = model->first >= size;
    while (model->first < size) model->first *= 2;
    uint64_t region = model->first;
    if (enough) model->first *= 2;
    return region;
}

static bool bfc_cuts(const model_t *model, const model_block_t *block, uint64_t size) {
    return block->size >= 2 * size || block->size - size >= model->second;
}

static const model_rules_t bfc_rules = {.unit = 256, .chunk = chunk_of_bfc, .cuts = bfc_cuts};

static size_t size_for_bfc(uint64_t *random) {
    uint64_t shift = next(random, 24);
    return 1 + next(random, 1ull << shift);
}

/* ---- the runs ---- */

typedef struct versus {
    const char *name, *options;
    const model_rules_t *rules;
    uint64_t first, second;
    size_t (*size)(uint64_t *random);
} versus_t;

static const versus_t runs[] = {
    {"auto_growth_of_large_chunks", "auto_growth: {chunk_size: 1MiB}", &auto_growth_rules, MIB, 0, up_to_20_kb},
    {"auto_growth_of_few_sizes", "auto_growth: {chunk_size: 64KiB}", &auto_growth_rules, 64 * 1024, 0, up_to_1500},
    {"auto_growth_of_exact_chunks", "auto_growth: {chunk_size: 0}", &auto_growth_rules, 0, 0, up_to_20_kb},
    {"caching", "caching", &caching_rules, UINT64_MAX, 0, size_for_caching},
    {"caching_that_splits_small", "caching: {max_split_size: 20MiB}", &caching_rules, 20 * MIB, 20 * MIB, size_for_caching},
    {"caching_that_takes_larger", "caching: {max_split_size: 32MiB, max_non_split_rounding: 30MiB}", &caching_rules, 32 * MIB,
     30 * MIB, size_for_caching},
    {"bfc", "bfc", &bfc_rules, 2 * MIB, 128 * MIB, size_for_bfc},
    {"bfc_with_little_slack", "bfc: {initial_region: 300KiB, memory_limit: 1GiB, fragmentation_fraction: 0.001}", &bfc_rules,
     300 * 1024, (uint64_t)(0.001 * (double)GIB), size_for_bfc},
};

static strata_block_t allocate_both(rig_t *rig, model_t *model, strata_stream_t stream, uint32_t lane, size_t size) {
    uint64_t chunk, reserved = rig_figures(rig).reserved_bytes;
    const model_block_t *expected = model_allocate(model, lane, size, &chunk);
    strata_block_t b = rig_allocate(rig, stream, size);
    EXPECT_EQ(rig_figures(rig).reserved_bytes - reserved, chunk);
    if (!expected) expected = model_grow(model, lane, size, (uintptr_t)b.ptr, chunk);
    EXPECT_EQ((uintptr_t)b.ptr, expected->at);
    EXPECT_EQ(b.size, expected->size);
    return b;
}

static void free_both(rig_t *rig, model_t *model, strata_block_t *b) {
    if (b->ref == 0) return;
    model_free(model, (uintptr_t)b->ptr);
    EXPECT_OK(strata_free(rig->s, b->ref));
    b->ref = 0;
}

static void release_both(rig_t *rig, model_t *model) {
    uint64_t released;
    EXPECT_OK(strata_release(rig->s, rig->gpu, &released));
    EXPECT_EQ(released, model_release(model));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, model_reserved(model));
}

TEST_EACH(chunked, serves_what_the_rules_say, versus_t, runs) {
    static model_t model;
    char text[300];
    strata_stream_t streams[STREAMS];
    strata_block_t held[HELD] = {{.ref = 0}};
    uint64_t random = 77;
    model = (model_t){.rules = row->rules, .first = row->first, .second = row->second};
    snprintf(text, sizeof text, "version: 1\nstack:\n  - %s\n  - system\n", row->options);
    RIG(rig, text, STRATA_SIM_UNLIMITED);
    for (int i = 0; i < STREAMS; i++) streams[i] = row->rules->lane ? rig_stream(&rig) : NULL;
    for (int i = 0; i < STEPS && !strata_test_has_failed(); i++) {
        strata_block_t *b = &held[next(&random, HELD)];
        uint32_t lane = (uint32_t)next(&random, STREAMS);
        if (b->ref) free_both(&rig, &model, b);
        else *b = allocate_both(&rig, &model, streams[lane], lane, row->size(&random));
        if (next(&random, 500) == 0) release_both(&rig, &model);
        if (i % 100 == 0) EXPECT_OK(strata_validate(rig.s));
    }
    for (int i = 0; i < HELD; i++) free_both(&rig, &model, &held[i]);
    release_both(&rig, &model);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}
