#include "tests/failures/subjects.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocation/options/option.h"
#include "config/reader/reader.h"

/* ---- texts ---- */

/* What a router has below it: a cache over the device for its first stack, the device alone for the second. */
static void router_text(const strata_layer_type_t *type, char *text, size_t capacity) {
    char values[200] = "";
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        size_t length = strlen(values);
        int letters = strata_option_branch(row) == 1 ? (int)(strrchr(row->name, '_') - row->name) : 0;
        if (letters > 0) snprintf(values + length, sizeof values - length, "%.*s: 64KiB, ", letters, row->name);
    }
    static const char cached[] = "[auto_growth: {chunk_size: 2MiB}, system]", alone[] = "[system]";
    if (*values) snprintf(text, capacity, "%s: {routes: [{%sstack: %s}, {stack: %s}]}", type->name, values, cached, alone);
    else snprintf(text, capacity, "%s: {stacks: [%s, %s]}", type->name, cached, alone);
}

/* A layer that waits does so for 2 ms: a lone thread waits for nothing, unless the device answers no question. */
static const char *patience(const strata_layer_type_t *type) { return strata_option_find(type, "timeout") ? "timeout: 2ms" : ""; }

/* A stack of layers, outermost first, closed by NULL; '*' is the layer itself as `own` says it. */
static void stack_text(const char *const *layers, const char *own, char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "strategy: failing\nstack:\n");
    for (; *layers && length < capacity; layers++)
        length += (size_t)snprintf(text + length, capacity - length, "  - %s\n", **layers == '*' ? own : *layers);
}

/* ---- the list ---- */

static strata_strategy_t *load(const char *preset, const char *text, const char *set) {
    strata_config_request_t request = {.preset = preset, .text = text, .set = &set, .set_count = set != NULL, .devices = "sim"};
    strata_strategy_t *strategy = NULL;
    return strata_config_load(&request, &strategy) == STRATA_OK ? strategy : NULL;
}

/* What the builder refuses is no subject. */
static bool add(failing_subjects_t *subjects, const char *name, const char *preset, const char *text, const char *set) {
    const char *only = getenv("STRATA_FAILURES_ONLY");
    strata_strategy_t *strategy = load(preset, text, set);
    if (!strategy) return false;
    if ((only && !strstr(name, only)) || subjects->count == FAILING_SUBJECTS) {
        EXPECT_LT(subjects->count, FAILING_SUBJECTS);
        strata_strategy_delete(strategy);
        return true;
    }
    failing_subject_t *subject = &subjects->list[subjects->count++];
    snprintf(subject->name, sizeof subject->name, "%s", name);
    snprintf(subject->text, sizeof subject->text, "%s%s%s", text ? text : preset, set ? " with " : "", set ? set : "");
    subject->strategy = strategy;
    return true;
}

#define FULL "retry: {timeout: 2ms}", "stream_safe"
static const char *const sources[][6] = {{"*"}, {"auto_growth", "*"}, {FULL, "auto_growth: {chunk_size: 2MiB}", "*"}};
static const char *const caches[][6] = {{"*", "system"}, {"stream_safe", "*", "system"}, {FULL, "*", "system"}};
static const char *const handle_caches[][6] = {{"*", "vmm"}, {"stream_safe", "*", "vmm"}, {FULL, "*", "vmm"}};
static const char *const decorators[][6] = {{"*", "system"},
                                            {"*", "auto_growth", "system"},
                                            {"auto_growth", "*", "system"},
                                            {FULL, "*", "auto_growth: {chunk_size: 2MiB}", "system"}};
static const char *const routers[][6] = {{"*"}, {"stream_safe", "*"}, {FULL, "*"}};

/* Each other value that a row of true and false or of words may have. */
static void add_options(failing_subjects_t *subjects, const strata_layer_type_t *type, const char *const *layers) {
    char own[400], text[FAILING_LETTERS], name[160], value[64];
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        bool is_bool = row->kind == STRATA_OPTION_BOOL;
        size_t values = is_bool ? 2 : row->kind == STRATA_OPTION_CHOICE ? strata_choice_count(row) : 0;
        for (uint32_t i = 0; i < values; i++) {
            if (is_bool) snprintf(value, sizeof value, "%s", i ? "true" : "false");
            else strata_choice_name(row, i, value, sizeof value);
            if (strcmp(value, row->default_text) == 0) continue;
            snprintf(own, sizeof own, "%s: {%s: %s%s%s}", type->name, row->name, value, *patience(type) ? ", " : "",
                     patience(type));
            snprintf(name, sizeof name, "%s with %s %s", type->name, row->name, value);
            stack_text(layers, own, text, sizeof text);
            (void)add(subjects, name, NULL, text, NULL);
        }
    }
}

static void add_layer(failing_subjects_t *subjects, const strata_layer_type_t *type) {
    static const struct {
        const char *const (*stacks)[6];
        size_t count;
    } of_role[] = {[STRATA_SOURCE] = {sources, 3},
                   [STRATA_CACHE] = {caches, 3},
                   [STRATA_DECORATOR] = {decorators, 4},
                   [STRATA_ROUTER] = {routers, 3}};
    char own[400], text[FAILING_LETTERS], name[160];
    bool of_handles = (type->needs & STRATA_TRAIT_HANDLE_SOURCE) != 0;
    const char *const(*stacks)[6] = of_handles ? handle_caches : of_role[type->role].stacks;
    snprintf(own, sizeof own, "%s: {%s}", type->name, patience(type));
    if (type->role == STRATA_ROUTER) router_text(type, own, sizeof own);
    size_t found = 0, last = of_role[type->role].count - 1;
    for (size_t i = 0; i <= last; i++) {
        snprintf(name, sizeof name, "%s, stack %zu", type->name, i);
        stack_text(stacks[i], own, text, sizeof text);
        found += add(subjects, name, NULL, text, NULL);
    }
    if (found == 0) FAIL_TEST("no stack with %s is legal", type->name);
    if (type->role != STRATA_ROUTER) add_options(subjects, type, stacks[last]);
}

/* What divides auto_growth's chunks, and ways of several lengths to several kinds of memory. */
static const char divided[] = "strategy: divided\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - auto_growth: {order: any, "
                              "small_pool_size: 64KiB, small_chunk_size: 1MiB, chunk_size: 8MiB, small_preallocate: 1MiB, "
                              "preallocate: 4MiB}\n  - system\n";
static const char routed[] = "strategy: routed\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - binning:\n      routes:\n"
                             "        - {up_to: 16KiB, stack: [auto_growth: {chunk_size: 1MiB}, system]}\n"
                             "        - {up_to: 256KiB, stack: [buffered, auto_growth: {chunk_size: 4MiB, order: any}, system]}\n"
                             "        - {stack: [fallback: {stacks: [[auto_growth: {chunk_size: 16MiB}, system],\n"
                             "                                       [buffered, system: {memory: pinned}]]}]}\n";

/* Regions side by side that become one. */
static const char coalescing[] = "strategy: coalescing\nstack:\n  - retry: {timeout: 2ms}\n  - bfc: {coalesce_regions: true, "
                                 "max_region: 2MiB}\n  - vmm\n";

/* A pool beside the ordinary stacks. */
static const char pooled[] = "strategy: pooled\nstack:\n  - retry: {timeout: 2ms}\n  - stream_safe\n  - auto_growth: {chunk_size: "
                             "2MiB}\n  - system\npools:\n  " FAILING_POOL ": {stack: [stream_safe, auto_growth: {chunk_size: 1MiB, "
                             "order: any}, system]}\n";

void failing_subjects_make(failing_subjects_t *subjects) {
    char name[160];
    subjects->count = 0;
    subjects->list = calloc(FAILING_SUBJECTS, sizeof *subjects->list);
    ASSERT_NE(subjects->list, NULL);
    for (size_t i = 0; strata_preset_name(i); i++) {
        const char *preset = strata_preset_name(i);
        snprintf(name, sizeof name, "preset %s", preset);
        /* A lone thread waits for nothing; where the device answers no query the deadline ends the wait. */
        if (!add(subjects, name, preset, NULL, "retry.timeout=2ms") && !add(subjects, name, preset, NULL, NULL))
            FAIL_TEST("preset %s does not load", preset);
    }
    for (size_t i = 0; strata_layer_at(i); i++) add_layer(subjects, strata_layer_at(i));
    EXPECT_TRUE(add(subjects, "divided", NULL, divided, NULL));
    EXPECT_TRUE(add(subjects, "coalescing", NULL, coalescing, NULL));
    EXPECT_TRUE(add(subjects, "pooled", NULL, pooled, NULL));
    EXPECT_TRUE(add(subjects, "routed", NULL, routed, NULL));
}

void failing_subjects_drop(failing_subjects_t *subjects) {
    for (size_t i = 0; i < subjects->count; i++) strata_strategy_delete(subjects->list[i].strategy);
    free(subjects->list);
    *subjects = (failing_subjects_t){.list = NULL};
}
