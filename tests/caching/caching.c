#include "tests/caching/caching.h"

#include <stdio.h>

static void write_strategy(const char *options, char *text, size_t capacity) {
    snprintf(text, capacity, "version: 1\nstack:\n  - caching: {%s}\n  - system\npools: {any: }\n", options);
}

void caching_open(rig_t *rig, const char *options, uint64_t capacity) {
    char text[512];
    write_strategy(options, text, sizeof text);
    rig_open(rig, text, NULL, 0, capacity, 1);
}

/* With `streams: ignored` the builder adds a stream_safe above the cache. */
caching_t *caching_of(rig_t *rig) {
    strata_layer_t *const *shared = rig_domain(rig)->ordinary.shared;
    return (caching_t *)shared[shared[1]->type->role == STRATA_CACHE ? 1 : 2];
}

uint64_t caching_reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

void caching_make_idle(rig_t *rig, strata_stream_t stream, const size_t *mib, size_t count) {
    strata_block_t blocks[8];
    for (size_t i = 0; i < count; i++) blocks[i] = rig_allocate(rig, stream, mib[i] * MIB);
    for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

void caching_expect_refused(const char *options, const char *part) {
    char text[512];
    write_strategy(options, text, sizeof text);
    strata_config_request_t request = {.text = text, .devices = "sim"};
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&request, &strategy);
    if (status == STRATA_OK) {
        strata_plan_t plan;
        status = strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan);
        strata_strategy_delete(strategy);
    }
    EXPECT_EQ(status, STRATA_E_STRATEGY);
    if (status != STRATA_OK) EXPECT_CONTAINS(strata_last_error()->text, part);
}
