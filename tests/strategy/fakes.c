#include "tests/strategy/fakes.h"

#include "tests/harness/owned.h"
#include <stdio.h>

#define FAKE(...)                                                                                                                  \
    { .struct_size = sizeof(strata_layer_type_t), .doc = "a fake", __VA_ARGS__ }

const strata_layer_type_t source = FAKE(.name = "source", .role = STRATA_SOURCE, .scope = STRATA_SCOPE_DEVICE);
const strata_layer_type_t ordered_source = FAKE(.name = "ordered_source", .role = STRATA_SOURCE, .scope = STRATA_SCOPE_DEVICE,
                                                .gives = STRATA_TRAIT_STREAM_ORDERED);
const strata_layer_type_t waiting_source = FAKE(.name = "waiting_source", .role = STRATA_SOURCE, .scope = STRATA_SCOPE_DEVICE,
                                                .gives = STRATA_TRAIT_WAITS);
const strata_layer_type_t cache = FAKE(.name = "cache", .role = STRATA_CACHE, .scope = STRATA_SCOPE_STREAM, .guarded = true,
                                       .gives = STRATA_TRAIT_STREAM_ORDERED);
const strata_layer_type_t device_cache = FAKE(.name = "device_cache", .role = STRATA_CACHE, .scope = STRATA_SCOPE_DEVICE,
                                              .guarded = true, .gives = STRATA_TRAIT_STREAM_ORDERED);
const strata_layer_type_t thread_cache = FAKE(.name = "thread_cache", .role = STRATA_CACHE, .scope = STRATA_SCOPE_THREAD,
                                              .guarded = true);
const strata_layer_type_t locker = FAKE(.name = "locker", .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_STREAM, .guarded = true);
const strata_layer_type_t waiter = FAKE(.name = "waiter", .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_NONE,
                                        .gives = STRATA_TRAIT_WAITS);
const strata_layer_type_t needs_order = FAKE(.name = "needs_order", .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_NONE,
                                             .needs = STRATA_TRAIT_STREAM_ORDERED);
const strata_layer_type_t tells_owners = FAKE(.name = "tells_owners", .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_NONE,
                                              .gives = STRATA_TRAIT_TELLS_OWNERS, .passes = ~0u);
const strata_layer_type_t passes = FAKE(.name = "passes", .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_NONE,
                                        .passes = STRATA_TRAIT_STREAM_ORDERED);
const strata_layer_type_t device_count = FAKE(.name = "device_count", .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_DEVICE);
const strata_layer_type_t router = FAKE(.name = "router", .role = STRATA_ROUTER, .scope = STRATA_SCOPE_DEVICE);

strata_strategy_t *stack_of(strata_place_kind_t place, const strata_layer_type_t *const *types) {
    strata_strategy_t *strategy = NULL;
    strata_origin_t origin = {.source = STRATA_FROM_FILE, .file = "fake.yaml", .line = 9, .column = 3};
    if (strata_strategy_new(&strategy)) return NULL;
    strata_model_stack_t *stack = &strategy->stacks[place];
    while (types[stack->count]) stack->count++;
    stack->origin = origin;
    stack->layers = strata_arena_alloc(strategy->memory, stack->count + 1, sizeof *stack->layers);
    for (size_t i = 0; stack->layers && i < stack->count; i++) {
        origin.line = (uint32_t)(10 + i);
        origin.column = 5;
        EXPECT_OK(strata_model_layer_init(strategy->memory, &stack->layers[i], types[i], &origin));
    }
    return strategy;
}

void expect_illegal(const strata_layer_type_t *const *types, unsigned upper, const char *what) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_GPU, types);
    strata_plan_t plan = {.count = 77};
    char at[64];
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    snprintf(at, sizeof at, "fake.yaml:%u:5: ", 10 + upper);
    EXPECT_CONTAINS(strata_last_error()->text, at);
    EXPECT_CONTAINS(strata_last_error()->text, what);
    EXPECT_CONTAINS(strata_last_error()->text, "; ");
    EXPECT_EQ(strata_last_error()->line, 10 + upper);
    EXPECT_EQ(plan.count, 77);
}

void expect_legal(const strata_layer_type_t *const *types) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_PINNED, types);
    strata_plan_t plan = {.count = 0};
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_PINNED, &plan));
    EXPECT_EQ(plan.place, STRATA_PLACE_PINNED);
    uint32_t named = 0;
    for (uint32_t i = 1; i <= plan.count; i++) {
        if (plan.nodes[i].number) EXPECT_EQ(plan.nodes[i].type, types[named++]);
        EXPECT_EQ(plan.nodes[i].below_count, i < plan.count);
        if (i < plan.count) EXPECT_EQ(plan.nodes[i].below[0], i + 1);
    }
    EXPECT_EQ(named, strategy->stacks[STRATA_PLACE_PINNED].count);
}
