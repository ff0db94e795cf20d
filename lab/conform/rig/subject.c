#include "lab/conform/rig/subject.h"

#include <stdio.h>

#include "lab/conform/rig/source.h"

/* ---- strategies by hand ---- */

static const strata_origin_t origin = {.source = STRATA_FROM_FILE, .file = "the suite", .line = 1, .column = 1};

static strata_status_t fill_stack(strata_strategy_t *strategy, strata_model_stack_t *stack,
                                  const strata_layer_type_t *const *types) {
    *stack = (strata_model_stack_t){.origin = origin};
    while (types[stack->count]) stack->count++;
    stack->layers = strata_arena_alloc(strategy->memory, stack->count, sizeof *stack->layers);
    strata_status_t status = stack->layers ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < stack->count && status == STRATA_OK; i++)
        status = strata_model_layer_init(strategy->memory, &stack->layers[i], types[i], &origin);
    return status;
}

/* Returns a valid value for a branch by its kind. If there are several words, it is the first. */
static const char *some_value(const strata_option_row_t *row) {
    static char word[64];
    switch (row->kind) {
    case STRATA_OPTION_BOOL: return "true";
    case STRATA_OPTION_COUNT: return "4";
    case STRATA_OPTION_SIZE: return "64KiB";
    case STRATA_OPTION_TIME: return "1ms";
    case STRATA_OPTION_FRACTION: return "0.5";
    case STRATA_OPTION_CHOICE: snprintf(word, sizeof word, "%.*s", (int)strcspn(row->choices, "|"), row->choices); return word;
    case STRATA_OPTION_TEXT: return "some";
    }
    return "";
}

/* The first branch gets some of the suite's requests, whatever the router selects its branches by. */
static strata_status_t add_branches(strata_strategy_t *strategy, strata_model_layer_t *router) {
    const strata_layer_type_t *cached[] = {strata_layer_find("auto_growth"), &test_source_type, NULL};
    const strata_layer_type_t *alone[] = {&test_source_type, NULL};
    router->branch_count = 2;
    router->branches = strata_arena_alloc(strategy->memory, 2, sizeof *router->branches);
    strata_status_t status = router->branches ? fill_stack(strategy, &router->branches[0], cached) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) status = fill_stack(strategy, &router->branches[1], alone);
    for (const strata_option_row_t *row = router->type->options; row && row->name && status == STRATA_OK; row++)
        if (strata_option_branch(row) == 1) status = strata_model_layer_set(router, row, some_value(row), &origin);
    return status;
}

static strata_status_t strategy_of(const subject_t *subject, strata_strategy_t **out) {
    const strata_layer_type_t *system[] = {strata_layer_find("system"), NULL};
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_strategy_new(&strategy);
    if (status != STRATA_OK) return status;
    strategy->name = subject->name;
    strategy->devices = "sim";
    strategy->device_choice.profile = strata_sim_profile(strata_sim_profile_name(0));
    strata_model_stack_t *stack = &strategy->stacks[STRATA_PLACE_GPU];
    status = fill_stack(strategy, stack, subject->layers);
    if (status == STRATA_OK && subject->routed) status = add_branches(strategy, &stack->layers[stack->count - 1]);
    for (int kind = STRATA_PLACE_MANAGED; kind < STRATA_PLACE_KINDS && status == STRATA_OK; kind++)
        status = fill_stack(strategy, &strategy->stacks[kind], system);
    if (status == STRATA_OK) *out = strategy;
    else strata_strategy_delete(strategy);
    return status;
}

/* ---- the list ---- */

static bool is_legal(const subject_t *subject) {
    strata_strategy_t *strategy = NULL;
    strata_plan_t plan;
    if (strategy_of(subject, &strategy) != STRATA_OK) return false;
    bool legal = strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan) == STRATA_OK;
    strata_strategy_delete(strategy);
    return legal;
}

/* The list to append to. */
typedef struct adding {
    subject_t *list;
    size_t *count;
    subject_refused_fn refused;
    void *context;
} adding_t;

/* A stack that the builder refuses is not added. */
static size_t add(const adding_t *to, const char *name, const char *place, const strata_layer_type_t *const *layers) {
    subject_t subject = {.preset = NULL};
    snprintf(subject.name, sizeof subject.name, "%.40s%s", name, place);
    for (size_t i = 0; layers[i]; i++) {
        subject.layers[i] = layers[i];
        subject.routed = layers[i]->role == STRATA_ROUTER;
        subject.test_source = layers[i] == &test_source_type || subject.routed;
    }
    if (!is_legal(&subject)) {
        if (to->refused) to->refused(to->context, subject.name);
        return 0;
    }
    if (*to->count < SUBJECTS) to->list[*to->count] = subject;
    ++*to->count;
    return 1;
}

size_t subjects_of_layer(subject_t *list, size_t *count, const strata_layer_type_t *type, subject_refused_fn refused,
                         void *context) {
    const strata_layer_type_t *cache = strata_layer_find("auto_growth"), *safe = strata_layer_find("stream_safe");
    const strata_layer_type_t *source = type->needs & STRATA_TRAIT_HANDLE_SOURCE ? strata_layer_find("vmm") : &test_source_type;
    const strata_layer_type_t *alone[] = {type, NULL}, *over[] = {type, source, NULL};
    const strata_layer_type_t *below[] = {cache, type, NULL}, *under_safe[] = {safe, type, source, NULL};
    const strata_layer_type_t *over_cache[] = {type, cache, source, NULL};
    const strata_layer_type_t *under_cache[] = {cache, type, source, NULL}, *routed[] = {safe, type, NULL};
    const adding_t to = {.list = list, .count = count, .refused = refused, .context = context};
    const char *name = type->name;
    switch (type->role) {
    case STRATA_SOURCE: return add(&to, name, "", alone) + add(&to, name, "_under_cache", below);
    case STRATA_CACHE: return add(&to, name, "", over) + add(&to, name, "_under_stream_safe", under_safe);
    case STRATA_DECORATOR:
        return add(&to, name, "", over) + add(&to, name, "_over_cache", over_cache) + add(&to, name, "_under_cache", under_cache);
    case STRATA_ROUTER: return add(&to, name, "", alone) + add(&to, name, "_below_stream_safe", routed);
    }
    return 0;
}

size_t subject_on_top(subject_t *list, size_t *count, const strata_layer_type_t *type, subject_refused_fn refused, void *context) {
    const strata_layer_type_t *safe = strata_layer_find("stream_safe"), *aligned = strata_layer_find("aligned");
    const strata_layer_type_t *layers[] = {type, safe, aligned, strata_layer_find("auto_growth"), &test_source_type, NULL};
    const adding_t to = {.list = list, .count = count, .refused = refused, .context = context};
    return type->role == STRATA_DECORATOR ? add(&to, type->name, "_on_top", layers) : 0;
}

static void add_preset(subject_t *list, size_t *count, const char *name, const char *after, const char *preset) {
    if (*count < SUBJECTS) {
        list[*count] = (subject_t){.preset = preset};
        snprintf(list[*count].name, sizeof list[*count].name, "%.40s%s", name, after);
    }
    ++*count;
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

void subjects_of_routers(subject_t *list, size_t *count) {
    add_preset(list, count, "by_size", "_strategy", by_size);
    add_preset(list, count, "each_safe", "_strategy", each_safe);
    add_preset(list, count, "falls_back", "_strategy", falls_back);
    add_preset(list, count, "routed_below_a_cache", "_strategy", below_a_cache);
}

void subject_of_preset(subject_t *list, size_t *count, const char *preset) { add_preset(list, count, preset, "_preset", preset); }

/* ---- its use ---- */

void subject_open_with(const subject_t *subject, const strata_sim_options_t *options, rig_t *rig) {
    strata_strategy_t *strategy = NULL;
    if (subject->preset) strategy = rig_strategy(subject->preset, NULL, 0);
    else ASSERT_OK(strategy_of(subject, &strategy));
    rig_open_on(rig, strategy, options, 0);
    rig->borrowed_strategy = false;
    rig->subject = subject;
    rig->capacity = options->capacity;
    if (subject->preset) snprintf(rig->opened_with, sizeof rig->opened_with, "%s", subject->preset);
}

void subject_open(const subject_t *subject, uint64_t capacity, rig_t *rig) {
    subject_open_with(subject, &(strata_sim_options_t){.devices = 1, .capacity = capacity}, rig);
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
    /* A stack requests memory by one of these calls. */
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_malloc, k, onward, status));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_malloc_async, k, onward, status));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_create, k, onward, status));
}

uint64_t subject_requests(const subject_t *subject, rig_t *rig) {
    return subject->test_source
               ? test_source_calls()
               : rig_calls(rig, STRATA_CALL_malloc) + rig_calls(rig, STRATA_CALL_malloc_async) + rig_calls(rig, STRATA_CALL_create);
}
