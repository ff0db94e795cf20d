#include "tests/conformance/subject.h"

#include <stdio.h>

#include "strategy/legal.h"
#include "tests/allocation/test_layers.h"

static void add(subject_t *list, size_t *count, const char *name, const char *behind, const strata_layer_type_t *const *layers,
                const char *preset) {
    if (*count < SUBJECTS) {
        subject_t *s = &list[*count];
        *s = (subject_t){.preset = preset};
        snprintf(s->name, sizeof s->name, "%s%s", name, behind);
        for (size_t i = 0; layers && layers[i]; i++) {
            s->layers[i] = layers[i];
            s->test_source = layers[i] == &test_source_type;
        }
    }
    ++*count;
}

static void mark_routed(subject_t *list, size_t count) {
    if (count <= SUBJECTS) list[count - 1].routed = list[count - 1].test_source = true;
}

/* Alone, and below the layer that knows borrows. */
static void add_router(subject_t *list, size_t *count, const strata_layer_type_t *type) {
    const strata_layer_type_t *alone[] = {type, NULL}, *below[] = {strata_layer_find("stream_safe"), type, NULL};
    add(list, count, type->name, "", alone, NULL);
    mark_routed(list, *count);
    add(list, count, type->name, "_below_stream_safe", below, NULL);
    mark_routed(list, *count);
}

static const char by_size[] = "stack:\n"
                              "  - retry: {timeout: 1ms}\n"
                              "  - stream_safe\n"
                              "  - binning:\n"
                              "      routes:\n"
                              "        - {up_to: 4KiB, stack: [auto_growth: {chunk_size: 256KiB}, system]}\n"
                              "        - {up_to: 1MiB, stack: [buffered, auto_growth: {chunk_size: 4MiB}, system]}\n"
                              "        - {stack: [buffered, system]}\n";
static const char each_safe[] = "stack:\n"
                                "  - retry: {timeout: 1ms}\n"
                                "  - binning:\n"
                                "      routes:\n"
                                "        - {up_to: 8KiB, stack: [stream_safe, auto_growth: {chunk_size: 256KiB}, system]}\n"
                                "        - {stack: [stream_safe, auto_growth: {order: any}, system]}\n";
static const char falls_back[] = "stack:\n"
                                 "  - fallback:\n"
                                 "      stacks:\n"
                                 "        - [retry: {timeout: 1ms}, stream_safe, auto_growth: {chunk_size: 16MiB}, system]\n"
                                 "        - [stream_safe, buffered: {reuse_below: 1}, system]\n";
static const char below_a_cache[] = "stack:\n"
                                    "  - stream_safe\n"
                                    "  - auto_growth: {chunk_size: 1MiB}\n"
                                    "  - binning:\n"
                                    "      routes:\n"
                                    "        - {up_to: 1MiB, stack: [auto_growth: {chunk_size: 8MiB}, system]}\n"
                                    "        - {stack: [fallback: {stacks: [[buffered, system], [system]]}]}\n";

/* A layer stands over the test's source, and, if it is a decorator that may, over a cache and under one too. */
static void add_layer(subject_t *list, size_t *count, const strata_layer_type_t *type) {
    const strata_layer_type_t *cache = strata_layer_find("auto_growth");
    const strata_layer_type_t *alone[] = {type, NULL}, *over[] = {type, &test_source_type, NULL};
    const strata_layer_type_t *over_cache[] = {type, cache, &test_source_type, NULL};
    if (type->role == STRATA_ROUTER) {
        add_router(list, count, type);
        return;
    }
    const strata_layer_type_t *under_cache[] = {cache, type, &test_source_type, NULL};
    if (type->role == STRATA_SOURCE) add(list, count, type->name, "", alone, NULL);
    else add(list, count, type->name, "", over, NULL);
    if (type->role != STRATA_DECORATOR) return;
    if (strata_clash_of_pair(type, cache) == STRATA_CLASH_NONE) add(list, count, type->name, "_over_cache", over_cache, NULL);
    if (strata_clash_of_pair(cache, type) == STRATA_CLASH_NONE) add(list, count, type->name, "_under_cache", under_cache, NULL);
}

/* A cache as it was before blocks could be looked for and caches trimmed: what it lacks the core does without. */
static const strata_layer_type_t *older_cache(void) {
    static strata_layer_type_t older;
    older = *strata_layer_find("auto_growth");
    older.struct_size = offsetof(strata_layer_type_t, find);
    older.find = NULL;
    older.trim = NULL;
    older.name = "older_cache";
    return &older;
}

size_t subjects(subject_t *list) {
    size_t count = 0;
    for (size_t i = 0; strata_layer_at(i); i++) add_layer(list, &count, strata_layer_at(i));
    add_layer(list, &count, &test_counter_type);
    add_layer(list, &count, older_cache());
    for (size_t i = 0; strata_strategy_name(i); i++)
        add(list, &count, strata_strategy_name(i), "_preset", NULL, strata_strategy_name(i));
    add(list, &count, "by_size", "_strategy", NULL, by_size);
    add(list, &count, "each_safe", "_strategy", NULL, each_safe);
    add(list, &count, "falls_back", "_strategy", NULL, falls_back);
    add(list, &count, "routed_below_a_cache", "_strategy", NULL, below_a_cache);
    return count;
}

/* ---- strategies by hand ---- */

static const strata_origin_t origin = {.source = STRATA_FROM_FILE, .file = "the suite", .line = 1, .column = 1};

static void fill_stack(strata_strategy_t *strategy, strata_model_stack_t *stack, const strata_layer_type_t *const *types) {
    *stack = (strata_model_stack_t){.origin = origin};
    while (types[stack->count]) stack->count++;
    stack->layers = strata_arena_take(strategy->memory, stack->count, sizeof *stack->layers);
    ASSERT_TRUE(stack->layers);
    for (size_t i = 0; i < stack->count; i++)
        ASSERT_OK(strata_model_layer_init(strategy->memory, &stack->layers[i], types[i], &origin));
}

/* Whatever a router tells its branches by, the first gets some of what the suite asks. */
static void add_branches(strata_strategy_t *strategy, strata_model_layer_t *router) {
    const strata_layer_type_t *cached[] = {strata_layer_find("auto_growth"), &test_source_type, NULL};
    const strata_layer_type_t *alone[] = {&test_source_type, NULL};
    router->branch_count = 2;
    router->branches = strata_arena_take(strategy->memory, 2, sizeof *router->branches);
    ASSERT_TRUE(router->branches);
    fill_stack(strategy, &router->branches[0], cached);
    fill_stack(strategy, &router->branches[1], alone);
    for (const strata_option_row_t *row = router->type->options; row && row->name; row++)
        if (strata_option_branch(row) == 1) ASSERT_OK(strata_model_layer_set(router, row, "64KiB", &origin));
}

void subject_open(const subject_t *subject, uint64_t capacity, rig_t *rig) {
    if (subject->preset) {
        rig_open(rig, subject->preset, NULL, 0, capacity, 1);
        return;
    }
    const strata_layer_type_t *system[] = {strata_layer_find("system"), NULL};
    strata_strategy_t *strategy = NULL;
    ASSERT_OK(strata_strategy_new(&strategy));
    strategy->name = subject->name;
    strategy->devices = "sim";
    strata_model_stack_t *stack = &strategy->stacks[STRATA_PLACE_GPU];
    fill_stack(strategy, stack, subject->layers);
    if (subject->routed) add_branches(strategy, &stack->layers[stack->count - 1]);
    for (int kind = STRATA_PLACE_MANAGED; kind < STRATA_PLACE_KINDS; kind++)
        fill_stack(strategy, &strategy->stacks[kind], system);
    strata_sim_options_t options = {.capacity = capacity};
    rig_open_on(rig, strategy, &options, 0);
    rig->borrowed_strategy = false;
}

void subject_fail(const subject_t *subject, rig_t *rig, uint64_t k, bool onward, strata_status_t status) {
    if (subject->test_source) {
        test_source_fail(k, onward, status);
        return;
    }
    if (k == 0) {
        strata_sim_clear_faults(rig->devices[0]);
        return;
    }
    /* A stack asks by one of them. */
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_malloc, k, onward, status));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_malloc_async, k, onward, status));
}

uint64_t subject_asked(const subject_t *subject, rig_t *rig) {
    return subject->test_source ? test_source_calls()
                                : rig_calls(rig, STRATA_CALL_malloc) + rig_calls(rig, STRATA_CALL_malloc_async);
}
