/* Shows how two strategies differ: layers that only one of them has, and values of layers that both have. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "config/words.h"
#include "platform/place.h"

enum { LIMIT = STRATA_PLAN_NODES };

/* A layer with its position in the tree: "binning[1]" is the first branch of the router called binning. */
typedef struct entry {
    const strata_model_layer_t *layer;
    char prefix[200]; /* the routers above it; "" at the top */
} entry_t;

typedef struct side {
    entry_t entries[LIMIT];
    size_t count;
} side_t;

static void append_layers(side_t *side, const strata_model_stack_t *stack, const char *prefix) {
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        if (side->count == LIMIT) return;
        entry_t *entry = &side->entries[side->count++];
        entry->layer = layer;
        snprintf(entry->prefix, sizeof entry->prefix, "%s", prefix);
        for (size_t b = 0; b < layer->branch_count; b++) {
            char inner[sizeof side->entries[0].prefix];
            snprintf(inner, sizeof inner, "%.90s%.60s[%zu].", prefix, layer->name, b + 1);
            append_layers(side, &layer->branches[b], inner);
        }
    }
}

static bool is_same_layer(const entry_t *a, const entry_t *b) {
    bool named = strcmp(a->layer->name, b->layer->name) == 0 || a->layer->type == &strata_retry_type;
    return a->layer->type == b->layer->type && named && strcmp(a->prefix, b->prefix) == 0;
}

/* pairs[i][j] is the number of layers of a from i on and of b from j on that can be paired in order. */
typedef struct pairing {
    unsigned char pairs[LIMIT + 1][LIMIT + 1];
} pairing_t;

static void pair_layers(const side_t *a, const side_t *b, pairing_t *pairing) {
    memset(pairing, 0, sizeof *pairing);
    for (size_t i = a->count; i-- > 0;)
        for (size_t j = b->count; j-- > 0;) {
            unsigned char apart = pairing->pairs[i + 1][j], other = pairing->pairs[i][j + 1];
            unsigned char best = apart > other ? apart : other;
            unsigned char paired = (unsigned char)(pairing->pairs[i + 1][j + 1] + 1);
            if (is_same_layer(&a->entries[i], &b->entries[j]) && paired > best) best = paired;
            pairing->pairs[i][j] = best;
        }
}

typedef struct report {
    const char *names[2];
    char place[2 * STRATA_NAME_LETTERS]; /* as in "stack", "pinned", "gpu:1", "pools.weights.gpu" */
    size_t differences;
    FILE *out;
} report_t;

static void print_layer(report_t *report, int whose, const entry_t *entry) {
    char where[4200];
    strata_origin_text(&entry->layer->origin, where, sizeof where);
    const char *name = entry->layer->name;
    fprintf(report->out, "%s.%s%s: only in %s  [%s]\n", report->place, entry->prefix, name, report->names[whose], where);
    report->differences++;
}

static void print_values(report_t *report, const entry_t *a, const entry_t *b) {
    const entry_t *both[2] = {a, b};
    for (const strata_option_row_t *row = a->layer->type->options; row && row->name; row++) {
        char values[2][STRATA_OPTION_TEXT_BYTES];
        for (int i = 0; i < 2; i++) strata_option_print(row, both[i]->layer->options, values[i], sizeof values[i]);
        if (strcmp(values[0], values[1]) == 0) continue;
        fprintf(report->out, "%s.%s%s.%s:\n", report->place, a->prefix, a->layer->name, row->name);
        for (int i = 0; i < 2; i++) {
            char where[4200];
            strata_origin_text(&both[i]->layer->option_origins[row - a->layer->type->options], where, sizeof where);
            fprintf(report->out, "  %-20s %-12s [%s]\n", report->names[i], values[i], where);
        }
        report->differences++;
    }
}

static void compare_stacks(report_t *report, const strata_model_stack_t *first, const strata_model_stack_t *second) {
    side_t a = {.count = 0}, b = {.count = 0};
    pairing_t pairing;
    append_layers(&a, first, "");
    append_layers(&b, second, "");
    pair_layers(&a, &b, &pairing);
    size_t i = 0, j = 0;
    while (i < a.count || j < b.count) {
        bool both = i < a.count && j < b.count;
        if (both && is_same_layer(&a.entries[i], &b.entries[j]) && pairing.pairs[i][j] == pairing.pairs[i + 1][j + 1] + 1)
            print_values(report, &a.entries[i++], &b.entries[j++]);
        else if (j == b.count || (both && pairing.pairs[i + 1][j] >= pairing.pairs[i][j + 1]))
            print_layer(report, 0, &a.entries[i++]);
        else print_layer(report, 1, &b.entries[j++]);
    }
}

/* Compares devices that have their own stacks in either strategy, by device number. */
static void compare_own(report_t *report, const strata_strategy_t *a, const strata_strategy_t *b) {
    for (uint32_t device = 0; device < STRATA_MODEL_DEVICES; device++)
        for (strata_place_kind_t kind = STRATA_PLACE_GPU; kind <= STRATA_PLACE_MANAGED; kind++) {
            const strata_model_stack_t *first = strata_strategy_stack(a, kind, device);
            const strata_model_stack_t *second = strata_strategy_stack(b, kind, device);
            if (first == &a->stacks[kind] && second == &b->stacks[kind]) continue;
            snprintf(report->place, sizeof report->place, "%s:%u", strata_place_name(kind), device);
            compare_stacks(report, first, second);
        }
}

/* ---- pools, streams, graphs ---- */

static void print_named(report_t *report, int whose, const strata_model_named_t *named) {
    char where[4200];
    strata_origin_text(&named->origin, where, sizeof where);
    fprintf(report->out, "%s: only in %s  [%s]\n", named->path, report->names[whose], where);
    report->differences++;
}

/* A place that has no stack under this name uses the layers of the place. */
static const strata_model_stack_t *effective(const strata_strategy_t *strategy, const strata_model_named_t *named,
                                             strata_place_kind_t place) {
    return named->stacks[place].count > 0 ? &named->stacks[place] : &strategy->stacks[place];
}

static void compare_keep(report_t *report, const strata_model_named_t *const *named) {
    if (named[0]->keep == named[1]->keep) return;
    fprintf(report->out, "%s.keep:\n", named[0]->path);
    for (int i = 0; i < 2; i++) {
        char where[4200];
        strata_origin_text(&named[i]->keep_origin, where, sizeof where);
        fprintf(report->out, "  %-20s %-12s [%s]\n", report->names[i], named[i]->keep ? "true" : "false", where);
    }
    report->differences++;
}

static void compare_named(report_t *report, const strata_strategy_t *const *both, strata_named_kind_t kind, const char *name) {
    const strata_model_named_t *named[2];
    for (int i = 0; i < 2; i++) named[i] = strata_strategy_named(both[i], kind, name);
    compare_keep(report, named);
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
        if (named[0]->stacks[place].count + named[1]->stacks[place].count == 0) continue;
        snprintf(report->place, sizeof report->place, "%s.%s", named[0]->path, strata_place_name(place));
        compare_stacks(report, effective(both[0], named[0], place), effective(both[1], named[1], place));
    }
}

/* Checks that patterns in both strategies are tried in the same order. */
static void compare_order(report_t *report, const strata_strategy_t *const *both) {
    const strata_model_names_t *names[2] = {&both[0]->named[STRATA_NAMED_STREAM], &both[1]->named[STRATA_NAMED_STREAM]};
    size_t at[2] = {0, 0};
    for (; at[0] < names[0]->count; at[0]++) {
        const char *name = names[0]->list[at[0]].name;
        if (!strata_strategy_named(both[1], STRATA_NAMED_STREAM, name)) continue;
        while (!strata_strategy_named(both[0], STRATA_NAMED_STREAM, names[1]->list[at[1]].name)) at[1]++;
        if (strcmp(name, names[1]->list[at[1]++].name) != 0) break;
    }
    if (at[0] == names[0]->count) return;
    fprintf(report->out, "streams: tried in another order from \"%s\" on\n", names[0]->list[at[0]].name);
    report->differences++;
}

static void compare_names(report_t *report, const strata_strategy_t *const *both, strata_named_kind_t kind) {
    for (int whose = 0; whose < 2; whose++)
        for (size_t i = 0; i < both[whose]->named[kind].count; i++) {
            const strata_model_named_t *named = &both[whose]->named[kind].list[i];
            bool shared = strata_strategy_named(both[1 - whose], kind, named->name) != NULL;
            if (!shared) print_named(report, whose, named);
            else if (whose == 0) compare_named(report, both, kind, named->name);
        }
}

strata_status_t strata_config_diff(const strata_strategy_t *a, const strata_strategy_t *b, const char *name_of_a,
                                   const char *name_of_b, FILE *out) {
    report_t report = {.names = {name_of_a, name_of_b}, .out = out};
    if (strcmp(a->devices, b->devices) != 0) {
        fprintf(out, "devices:\n  %-20s %s\n  %-20s %s\n", name_of_a, a->devices, name_of_b, b->devices);
        report.differences++;
    }
    if (a->short_report != b->short_report) {
        static const char *const reports[] = {"full", "short"};
        fprintf(out, "report:\n  %-20s %s\n  %-20s %s\n", name_of_a, reports[a->short_report], name_of_b, reports[b->short_report]);
        report.differences++;
    }
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
        snprintf(report.place, sizeof report.place, "%s", place == STRATA_PLACE_GPU ? "stack" : strata_place_name(place));
        compare_stacks(&report, &a->stacks[place], &b->stacks[place]);
    }
    compare_own(&report, a, b);
    const strata_strategy_t *both[2] = {a, b};
    for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++) compare_names(&report, both, (strata_named_kind_t)kind);
    compare_order(&report, both);
    if (report.differences == 0) fprintf(out, "no difference\n");
    return strata_config_written(out);
}
