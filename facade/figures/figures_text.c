/* Metrics as text for other programs. */
#include <inttypes.h>
#include <string.h>

#include "allocation/call/figures.h"
#include "allocation/domain/layer.h"
#include "facade/figures/figures.h"
#include "facade/registry/facade.h"
#include "facade/registry/text.h"
#include "platform/arguments.h"
#include "platform/place.h"
#include "strategy/model.h"

static strata_status_t hand_out(const strata_text_t *text, size_t *needed) {
    if (needed) *needed = text->length + 1;
    return STRATA_OK;
}

static void write_place(strata_text_t *text, strata_place_t place) {
    char name[STRATA_PLACE_LETTERS];
    strata_place_text(place, name);
    strata_text_append(text, "%s", name);
}

/* ---- JSON ---- */

static void write_fields(strata_text_t *text, const strata_statistics_t *figures) {
    const char *comma = "";
#define APPEND_FIELD(name, unit, kind, meaning)                                                                                    \
    strata_text_append(text, "%s\"" #name "\": %" PRIu64, comma, figures->name);                                                   \
    comma = ", ";
    STRATA_STATISTICS_MAP(APPEND_FIELD)
#undef APPEND_FIELD
}

/* Writes a name from the program or the strategy, if there is one. It has no control characters. */
static void write_name(strata_text_t *text, const char *key, const char *name) {
    if (!*name) return;
    strata_text_append(text, "\"%s\": \"", key);
    for (; *name; name++) strata_text_append(text, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
    strata_text_append(text, "\", ");
}

/* Names are words of strategy files, so they need no escapes. */
static void write_layer(strata_text_t *text, strata_layer_t *layer, const char **before) {
    const strata_plan_node_t *node = &layer->stack->group->plan->nodes[layer->number];
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    uint32_t count = strata_own_figures(layer, rows);
    if (count == 0) return;
    strata_text_append(text, "%s{\"layer\": \"%s\", \"type\": \"%s\", \"number\": %u, \"figures\": {", *before, node->name,
                       node->type->name, (unsigned)node->number);
    for (uint32_t i = 0; i < count; i++) strata_text_append(text, "%s\"%s\": %" PRIu64, i ? ", " : "", rows[i].name, rows[i].value);
    strata_text_append(text, "}}");
    *before = ", ";
}

static void write_layers(strata_text_t *text, strata_stack_t *stack) {
    const char *before = "";
    strata_text_append(text, ", \"layers\": [");
    STRATA_EACH_OWN_LAYER(stack, layer) write_layer(text, layer, &before);
    strata_text_append(text, "]");
}

static void write_stream(strata_text_t *text, strata_stack_t *stack, const char *before) {
    strata_statistics_t figures;
    char name[STRATA_GROUP_NAME];
    strata_facade_stack_figures(stack, &figures);
    strata_text_append(text, "%s\n    {\"stream\": \"0x%" PRIxPTR "\", ", before, (uintptr_t)stack->stream);
    write_name(text, "name", stack->name);
    write_name(text, "pool", stack->group->pool ? strata_group_name(stack->group, name) : "");
    strata_text_append(text, "\"thread\": %" PRIu64 ", \"forgotten\": %s, ", stack->thread ? stack->thread : stack->of_thread,
                       stack->forgotten.orphan ? "true" : "false");
    write_fields(text, &figures);
    write_layers(text, stack);
    strata_text_append(text, "}");
}

/* Returns the next used pool of a place, or NULL after the last. */
static strata_group_t *next_pool(strata_domain_t *domain, strata_group_t *previous) {
    strata_group_t *group = previous;
    while ((group = strata_domain_next_group(domain, group)) != NULL && (group->pool == 0 || strata_group_has_ended(group))) {}
    return group;
}

static void write_pools(strata_text_t *text, strata_domain_t *domain) {
    const char *comma = "";
    for (strata_group_t *group = next_pool(domain, NULL); group; group = next_pool(domain, group)) {
        strata_statistics_t figures;
        char name[STRATA_GROUP_NAME];
        strata_facade_pool_figures(domain, group->pool, &figures);
        strata_text_append(text, "%s\n    {", comma);
        write_name(text, "pool", strata_group_name(group, name));
        write_fields(text, &figures);
        STRATA_DOMAIN_EACH_OF(domain, group, stack)
            if (stack->is_shared) write_layers(text, stack);
        strata_text_append(text, "}");
        comma = ",";
    }
}

static void write_domain(strata_text_t *text, strata_domain_t *domain, const char *before) {
    strata_statistics_t figures;
    strata_facade_place_figures(domain, &figures);
    strata_text_append(text, "%s\n  {\"place\": \"", before);
    write_place(text, domain->place);
    strata_text_append(text, "\", \"total\": {");
    write_fields(text, &figures);
    strata_text_append(text, "}, \"streams\": [");
    const char *comma = "";
    STRATA_DOMAIN_EACH(domain, stack) {
        if (stack->is_shared) continue;
        write_stream(text, stack, comma);
        comma = ",";
    }
    strata_text_append(text, "]");
    STRATA_DOMAIN_EACH(domain, stack)
        if (stack->is_shared && stack->group == &domain->ordinary) write_layers(text, stack);
    strata_text_append(text, ", \"pools\": [");
    write_pools(text, domain);
    strata_text_append(text, "]}");
}

strata_status_t strata_statistics_json(strata_t handle, char *out, size_t capacity, size_t *needed) {
    STRATA_REFUSE_NULL_ARRAY_AS(out, "text", capacity);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_text_t text = {.text = out, .capacity = capacity};
    strata_text_append(&text, "{\"places\": [");
    uint32_t index = 0;
    strata_domain_t *domain;
    const char *comma = "";
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        write_domain(&text, domain, comma);
        comma = ",";
    }
    strata_text_append(&text, "]}\n");
    return hand_out(&text, needed);
}

/* ---- Prometheus ---- */

/* A row of the table of metrics. */
typedef struct metric {
    const char *name, *unit, *kind, *meaning; /* `kind` is "counter" or "gauge", as in Prometheus */
    size_t offset;
} metric_t;

static const metric_t metrics[] = {
#define METRIC(name, unit, kind, meaning) {#name, unit, #kind, meaning, offsetof(strata_statistics_t, name)},
    STRATA_STATISTICS_MAP(METRIC)
#undef METRIC
};

static const char *suffix_of(const metric_t *metric) { return strcmp(metric->kind, "counter") == 0 ? "_total" : ""; }

static uint64_t value_of(const metric_t *metric, const strata_statistics_t *figures) {
    uint64_t value;
    memcpy(&value, (const char *)figures + metric->offset, sizeof value);
    return value;
}

typedef struct place_figures {
    strata_place_t place;
    strata_statistics_t figures;
} place_figures_t;

static void write_heading(strata_text_t *text, const char *of, const metric_t *metric) {
    const char *suffix = suffix_of(metric);
    strata_text_append(text, "# HELP strata_%s%s%s %s (%s)\n", of, metric->name, suffix, metric->meaning, metric->unit);
    strata_text_append(text, "# TYPE strata_%s%s%s %s\n", of, metric->name, suffix, metric->kind);
}

static void write_metric(strata_text_t *text, const metric_t *metric, const place_figures_t *all, size_t count) {
    write_heading(text, "", metric);
    for (size_t i = 0; i < count; i++) {
        strata_text_append(text, "strata_%s%s{place=\"", metric->name, suffix_of(metric));
        write_place(text, all[i].place);
        strata_text_append(text, "\"} %" PRIu64 "\n", value_of(metric, &all[i].figures));
    }
}

/* A place's total is not the sum of its pools, so pools have their own metrics. */
static void write_pool_metric(strata_text_t *text, const metric_t *metric, strata_facade_t *facade) {
    uint32_t index = 0;
    bool begun = false;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        for (strata_group_t *group = next_pool(domain, NULL); group; group = next_pool(domain, group)) {
            strata_statistics_t figures;
            char name[STRATA_GROUP_NAME];
            strata_facade_pool_figures(domain, group->pool, &figures);
            if (!begun) write_heading(text, "pool_", metric);
            begun = true;
            strata_text_append(text, "strata_pool_%s%s{place=\"", metric->name, suffix_of(metric));
            write_place(text, domain->place);
            strata_text_append(text, "\",pool=\"%s\"} %" PRIu64 "\n", strata_group_name(group, name), value_of(metric, &figures));
        }
}

/* Escapes a help text, which may be from the author of an external layer. */
static void write_help(strata_text_t *text, const char *help) {
    for (; *help; help++) {
        if (*help == '\\') strata_text_append(text, "\\\\");
        else if (*help == '\n') strata_text_append(text, "\\n");
        else strata_text_append(text, "%c", *help);
    }
}

/* One metric of one layer type: its samples in all places. */
typedef struct layer_metric {
    const strata_layer_type_t *type;
    const strata_own_figure_t *row;
    uint32_t index; /* of the row */
    bool begun;
} layer_metric_t;

static void write_sample(strata_text_t *text, layer_metric_t *metric, strata_group_t *group, uint32_t number) {
    strata_own_figure_t sums[STRATA_OWN_FIGURES];
    char name[STRATA_GROUP_NAME];
    if (strata_group_has_ended(group) || strata_group_own_figures(group, number, sums) <= metric->index) return;
    if (!metric->begun) {
        strata_text_append(text, "# HELP strata_layer_%s_%s ", metric->type->name, metric->row->name);
        write_help(text, metric->row->doc);
        if (*metric->row->unit) strata_text_append(text, " (%s)", metric->row->unit);
        strata_text_append(text, "\n# TYPE strata_layer_%s_%s gauge\n", metric->type->name, metric->row->name);
        metric->begun = true;
    }
    strata_text_append(text, "strata_layer_%s_%s{place=\"", metric->type->name, metric->row->name);
    write_place(text, group->domain->place);
    if (*group->name) strata_text_append(text, "\",%s=\"%s", group->pool ? "pool" : "streams", strata_group_name(group, name));
    strata_text_append(text, "\",layer=\"%s\",number=\"%u\"} %" PRIu64 "\n", group->plan->nodes[number].name,
                       (unsigned)group->plan->nodes[number].number, sums[metric->index].value);
}

static void write_layer_metrics(strata_text_t *text, strata_facade_t *facade, const strata_layer_type_t *type) {
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    uint32_t count = strata_own_figure_rows(type, rows);
    for (uint32_t i = 0; i < count; i++) {
        layer_metric_t metric = {.type = type, .row = &rows[i], .index = i};
        uint32_t index = 0;
        strata_domain_t *domain;
        while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
            for (strata_group_t *group = NULL; (group = strata_domain_next_group(domain, group)) != NULL;)
                for (uint32_t number = 1; number <= group->plan->count; number++)
                    if (group->plan->nodes[number].type == type) write_sample(text, &metric, group, number);
    }
}

strata_status_t strata_statistics_prometheus(strata_t handle, char *out, size_t capacity, size_t *needed) {
    STRATA_REFUSE_NULL_ARRAY_AS(out, "text", capacity);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    place_figures_t all[STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES];
    size_t count = 0;
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        all[count].place = domain->place;
        strata_facade_place_figures(domain, &all[count++].figures);
    }
    strata_text_t text = {.text = out, .capacity = capacity};
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) write_metric(&text, &metrics[i], all, count);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) write_pool_metric(&text, &metrics[i], facade);
    const strata_layer_type_t *type;
    for (size_t i = 0; (type = strata_layer_at(i)); i++) write_layer_metrics(&text, facade, type);
    return hand_out(&text, needed);
}
