#include "tests/chunked/chunked.h"

#include <stdio.h>

void cache_open(const cache_t *cache, rig_t *rig) {
    char text[512];
    snprintf(text, sizeof text, "version: 1\nstack:\n  - %s: {%s}\n  - system\n", cache->name, cache->options);
    rig_open(rig, text, NULL, 0, 0, 1);
}

strata_chunks_t *cache_of(const cache_t *cache, rig_t *rig) {
    const strata_stack_t *stack = rig_stack(rig, NULL);
    for (uint32_t n = 1; n <= stack->group->plan->count; n++)
        if (strcmp(stack->layers[n]->type->name, cache->name) == 0) return (strata_chunks_t *)stack->layers[n];
    FAIL_TEST("the stack has no %s", cache->name);
    return NULL;
}
