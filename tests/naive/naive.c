#include "tests/naive/naive.h"
#include "platform/place.h"

#include <stdio.h>
#include <string.h>

void naive_open(rig_t *rig, const char *layer, const char *options, uint64_t capacity) {
    char text[512];
    snprintf(text, sizeof text, "version: 1\nstack:\n  - %s: {%s}\n  - system\n", layer, options);
    rig_open(rig, text, NULL, 0, capacity, 1);
}

naive_t *naive_of(rig_t *rig, strata_stream_t stream) {
    const strata_stack_t *stack = rig_stack(rig, stream);
    for (uint32_t n = 1; n <= stack->group->plan->count; n++)
        if (stack->layers[n]->type->create == strata_naive_create) return (naive_t *)stack->layers[n];
    FAIL_TEST("the stack has no such layer");
    return NULL;
}

uint64_t naive_usable(rig_t *rig) {
    uint64_t available = 0, total;
    EXPECT_OK(strata_device_mem_info(rig->devices[0], &available, &total));
    return available / 100 * 95 + available % 100 * 95 / 100;
}

uint64_t naive_pool_used(rig_t *rig) {
    naive_t *self = naive_of(rig, NULL);
    strata_layer_notify(&self->base, &(strata_notice_t){.kind = STRATA_NOTICE_FIGURES}, NULL);
    return self->used_bytes;
}

void naive_expect_refused(const char *place, const char *options, const char *part) {
    char text[512];
    bool gpu = strcmp(place, "gpu") == 0;
    snprintf(text, sizeof text, "version: 1\n%s%s%s\n    - naive_best_fit: {%s}\n    - system\n", gpu ? "stack:" : "places:\n  ",
             gpu ? "" : place, gpu ? "" : ":", options);
    strata_config_request_t request = {.text = text, .devices = "sim"};
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&request, &strategy);
    if (status == STRATA_OK) {
        strata_plan_t plan;
        status = strata_strategy_plan(strategy, strata_place_find(place), &plan);
        strata_strategy_delete(strategy);
    }
    EXPECT_EQ(status, STRATA_E_STRATEGY);
    if (status != STRATA_OK) EXPECT_CONTAINS(strata_last_error()->text, part);
}
