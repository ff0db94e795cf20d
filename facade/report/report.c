#include "facade/report/report.h"

#include <string.h>

#include "allocation/call/figures.h"
#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "allocation/uses/record_notes.h"
#include "facade/figures/amounts.h"
#include "facade/figures/figures.h"
#include "facade/report/causes.h"
#include "platform/place.h"
#include "platform/text/pointer.h"

enum { SHOWN_OWNERS = 5, SHOWN_STREAMS = 10, SHOWN_WAITS = 4, SHOWN_POOLS = 5, SHOWN_LETTERS = 24 };
enum { SHOWN_LAYERS = 6, SHOWN_FIGURES = 6 };

typedef struct report {
    strata_text_t text;
    strata_facade_t *facade;
    strata_domain_t *domain;
    const strata_refused_t *refused;
    const strata_out_of_memory_t *event;
    strata_facts_t facts;
    strata_cause_t cause;
} report_t;

/* Writes the name of a stack's stream and its pool, if it has them. */
static void write_owner_stream(strata_text_t *text, const strata_stack_t *stack) {
    if (*stack->name) strata_text_append(text, " \"%.*s\"", SHOWN_LETTERS, stack->name);
    if (stack->group->pool) strata_text_append(text, " in pool %.*s", SHOWN_LETTERS, stack->group->name);
}

void strata_report_write_context(const strata_refused_t *refused, strata_text_t *text) {
    strata_place_t place = refused->stack->domain->place;
    strata_text_append(text, "out of memory in %s:%u on stream %s", strata_place_name(strata_place_kind(place)),
                       (unsigned)strata_place_device(place), strata_pointer_text(refused->stream).text);
    write_owner_stream(text, refused->stack);
    bool both = *refused->tag && *refused->operator_name;
    if (!*refused->tag && !*refused->operator_name) return;
    strata_text_append(text, " for %.127s%s%.127s", refused->tag, both ? " of " : "", refused->operator_name);
    if (refused->step) strata_text_append(text, " in step %llu", (unsigned long long)refused->step);
}

static void write_cause(report_t *r) {
    strata_text_t *text = &r->text;
    strata_report_write_context(r->refused, text);
    strata_text_append(text, ": ");
    strata_cause_write(&r->facts, r->cause, text);
    strata_advice_write(&r->facts, r->cause, text, "\n  try: ", "\n  or: ");
}

static void write_totals(report_t *r) {
    static const char device[] =
        "\n  requested {asked}, free on the device {free} of {total}, reserved here {reserved}, used by others {outside}";
    static const char pooled[] =
        "\n  requested {asked}, free on the device {free} of {total}, reserved here {reserved}, idle in the driver's "
        "pools {pooled}, used by others {outside}";
    static const char host[] = "\n  requested {asked}, reserved here {reserved}";
    strata_facts_write(&r->facts, &r->text, r->facts.pooled ? pooled : r->facts.total ? device : host);
    STRATA_APPEND_AMOUNTS(&r->text, "\n  allocated %, deferred %, idle %, largest free block %", r->facts.allocated,
                          r->facts.deferred, r->facts.survey.idle, r->facts.survey.largest_free);
}

/* ---- holders ---- */

static void write_idle_layers(strata_text_t *text, strata_stack_t *stack) {
    STRATA_EACH_OWN_LAYER(stack, layer) {
        strata_stack_lock_own(stack);
        uint64_t idle = layer->type->idle_bytes ? layer->type->idle_bytes(layer) : 0;
        strata_unlock(&stack->lock);
        if (idle == 0) continue;
        STRATA_APPEND_AMOUNTS(text, ", idle % in ", idle);
        strata_text_append(text, "%s", stack->group->plan->nodes[layer->number].name);
    }
}

static void write_stack(report_t *r, strata_stack_t *stack, uint32_t *shown, uint32_t *more) {
    strata_statistics_t f;
    strata_facade_stack_figures(stack, &f);
    if (f.reserved_bytes + f.allocated_bytes + f.deferred_bytes == 0) return;
    if (*shown == SHOWN_STREAMS) {
        ++*more;
        return;
    }
    ++*shown;
    strata_text_append(&r->text, "\n  ");
    if (stack->of_thread) strata_text_append(&r->text, "thread %llu, ", (unsigned long long)stack->of_thread);
    if (stack->is_shared) strata_text_append(&r->text, "shared by all streams");
    else strata_text_append(&r->text, "stream %s", strata_pointer_text(stack->stream).text);
    write_owner_stream(&r->text, stack);
    strata_text_append(&r->text, "%s:", stack->forgotten.orphan ? " (forgotten)" : "");
    if (stack->is_shared) STRATA_APPEND_AMOUNTS(&r->text, " reserved %, deferred %", f.reserved_bytes, f.deferred_bytes);
    else
        STRATA_APPEND_AMOUNTS(&r->text, " reserved %, allocated %, deferred %", f.reserved_bytes, f.allocated_bytes,
                              f.deferred_bytes);
    write_idle_layers(&r->text, stack);
}

static void write_stacks(report_t *r) {
    uint32_t shown = 0, more = 0;
    STRATA_DOMAIN_EACH(r->domain, stack) write_stack(r, stack, &shown, &more);
    if (more) strata_text_append(&r->text, "\n  and %u more streams", (unsigned)more);
}

/* Writes pools that hold any memory, each over all its streams. */
static void write_pools(report_t *r) {
    strata_group_t *group = NULL;
    uint32_t found = 0;
    while ((group = strata_domain_next_group(r->domain, group)) != NULL) {
        strata_statistics_t f;
        strata_facade_pool_figures(r->domain, group->pool, &f);
        if (!group->pool || f.reserved_bytes + f.allocated_bytes + f.deferred_bytes == 0 || ++found > SHOWN_POOLS) continue;
        char name[STRATA_GROUP_NAME];
        strata_text_append(&r->text, "\n  pool %.*s:", SHOWN_LETTERS, strata_group_name(group, name));
        STRATA_APPEND_AMOUNTS(&r->text, " reserved %, allocated %, deferred %", f.reserved_bytes, f.allocated_bytes,
                              f.deferred_bytes);
    }
    if (found > SHOWN_POOLS) strata_text_append(&r->text, "\n  and %u more pools", (unsigned)(found - SHOWN_POOLS));
}

static void write_figure(strata_text_t *text, const strata_own_figure_t *figure, const char *before) {
    strata_text_append(text, "%s%s", before, figure->name);
    if (strcmp(figure->unit, "bytes") == 0) STRATA_APPEND_AMOUNTS(text, " %", figure->value);
    else strata_text_append(text, " %llu", (unsigned long long)figure->value);
}

/* Sums the metrics over the layer's instances and keeps the nonzero ones. Idle memory in a stream's own
 * cache is shown with the stream. */
static uint32_t figures_to_write(const report_t *r, uint32_t number, strata_own_figure_t sums[STRATA_OWN_FIGURES]) {
    strata_group_t *group = r->refused->stack->group;
    uint32_t count = strata_group_own_figures(group, number, sums), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool with_its_stream = strcmp(sums[i].name, "idle_bytes") == 0 && !group->shared[number];
        if (sums[i].value != 0 && sums[i].value != UINT64_MAX /* unlimited */ && !with_its_stream) sums[kept++] = sums[i];
    }
    return kept;
}

/* Writes the layers of the group that received the request. */
static void write_layers(report_t *r) {
    const strata_plan_t *plan = r->refused->stack->group->plan;
    uint32_t shown = 0, more = 0;
    for (uint32_t number = 1; number <= plan->count; number++) {
        strata_own_figure_t sums[STRATA_OWN_FIGURES];
        uint32_t count = figures_to_write(r, number, sums);
        if (count == 0) continue;
        if (shown == SHOWN_LAYERS) {
            more++;
            continue;
        }
        shown++;
        strata_text_append(&r->text, "\n  layer %s:", plan->nodes[number].name);
        for (uint32_t i = 0; i < count && i < SHOWN_FIGURES; i++) write_figure(&r->text, &sums[i], i ? ", " : " ");
        if (count > SHOWN_FIGURES) strata_text_append(&r->text, ", and %u more figures", (unsigned)(count - SHOWN_FIGURES));
    }
    if (more) strata_text_append(&r->text, "\n  and %u more layers", (unsigned)more);
}

/* Each wait has the unit of its own size. */
static void write_waits(report_t *r) {
    const strata_survey_t *survey = &r->facts.survey;
    uint64_t more = survey->awaited_more;
    for (uint32_t i = 0; i < survey->awaited_count; i++) {
        if (i >= SHOWN_WAITS) {
            more += survey->awaited[i].bytes;
            continue;
        }
        STRATA_APPEND_AMOUNTS(&r->text, i ? ", %" : "\n  deferred frees: %", survey->awaited[i].bytes);
        if (survey->awaited[i].destroyed) strata_text_append(&r->text, " wait for a stream that was destroyed");
        else strata_text_append(&r->text, " wait for stream %s", strata_pointer_text(survey->awaited[i].stream).text);
    }
    if (more) STRATA_APPEND_AMOUNTS(&r->text, ", for others %", more);
}

static void write_limbo(report_t *r) {
    static const char line[] = "\n  freed and in use by other processes: {limbo} in {limbo_blocks} blocks";
    if (r->facts.limbo) strata_facts_write(&r->facts, &r->text, line);
}

static void write_owner(report_t *r, const strata_owner_t *owner) {
    const char *tag = strata_names_text(&r->facade->names, owner->note.tag);
    const char *operator_name = strata_names_text(&r->facade->names, owner->note.operator_name);
    strata_text_append(&r->text, " in %llu block%s by ", (unsigned long long)owner->blocks, owner->blocks == 1 ? "" : "s");
    if (!*tag && !*operator_name) {
        strata_text_append(&r->text, "an unnamed owner");
        return;
    }
    strata_text_append(&r->text, "%s%s%s", tag, *tag && *operator_name ? " of " : "", operator_name);
    strata_text_append(&r->text, owner->note.step == owner->last_step ? " (step %llu)" : " (steps %llu to %llu)",
                       (unsigned long long)owner->note.step, (unsigned long long)owner->last_step);
}

static void write_owners(report_t *r) {
    const strata_survey_t *survey = &r->facts.survey;
    uint64_t sizes[SHOWN_OWNERS + 1] = {0}, more = survey->other_owners.bytes;
    uint32_t shown = 0;
    char amount[48];
    for (uint32_t i = 0; i < STRATA_SURVEY_OWNERS && survey->owners[i].blocks; i++) {
        if (i < SHOWN_OWNERS) sizes[shown++] = survey->owners[i].bytes;
        else more += survey->owners[i].bytes;
    }
    sizes[shown] = more;
    unsigned unit = strata_amounts_unit(sizes, shown + 1);
    for (uint32_t i = 0; i < shown; i++) {
        strata_amount_print(sizes[i], unit, amount, sizeof amount);
        strata_text_append(&r->text, "%s%s", i ? "; " : "\n  live blocks: ", amount);
        write_owner(r, &survey->owners[i]);
    }
    strata_amount_print(more, unit, amount, sizeof amount);
    if (more) strata_text_append(&r->text, "; by other owners %s", amount);
}

/* ---- steps that were tried ---- */

static void write_own_steps(report_t *r) {
    const strata_outcome_t *o = r->facts.outcome;
    if (!o->own) return;
    strata_text_append(&r->text, "\n  tried: %s's own steps", r->refused->stack->group->plan->nodes[o->own->number].name);
    STRATA_APPEND_AMOUNTS(&r->text, "; % went back to the device", o->own_released);
}

/* Rounds a time down to three digits; more would add nothing about a wait. */
static uint64_t in_three_digits(uint64_t time) {
    uint64_t step = 1;
    while (time / step >= 1000) step *= 10;
    return time / step * step;
}

static void write_recovery(report_t *r) {
    const strata_recovery_result_t *c = &r->facts.outcome->recovery;
    write_own_steps(r);
    if (!c->ran) {
        bool forbidden = r->refused->flags & (STRATA_NO_RETRY | STRATA_NO_GROW);
        bool for_good = strata_is_refused_for_good(r->facts.outcome);
        const char *why = forbidden ? ": the request forbids it" : for_good ? ": the device is smaller than the request" : "";
        if (!r->facts.outcome->own) strata_text_append(&r->text, "\n  nothing was tried%s", why);
        return;
    }
    char took[64];
    strata_print_time(in_three_digits(c->took_ns), took, sizeof took);
    STRATA_APPEND_AMOUNTS(&r->text, "\n  tried: polling reclaimed %, waiting first %, releasing %, callbacks %", c->polled,
                          c->waited, c->released, c->called_back);
    strata_text_append(&r->text, "%s%s; it took %s", c->asked_small ? ", smaller growth nothing" : "",
                       c->slept ? ", waiting for other frees nothing" : "", took);
}

/* ---- lines by layers ---- */

static void write_from_layer(const strata_report_sink_t *sink, const char *text) {
    report_t *r = sink->context;
    strata_text_append(&r->text, "%s", text);
}

static const char *find_note(const strata_report_sink_t *sink, const strata_record_t *record, uint64_t *step) {
    const report_t *r = sink->context;
    const strata_record_notes_t *notes = strata_record_notes_of(record);
    *step = notes ? notes->note.step : 0;
    return notes ? strata_names_text(&r->facade->names, notes->note.operator_name) : "";
}

/* Asks the layers of the group that refused. Instances of device scope exist as long as the group. */
static void write_by_layers(report_t *r) {
    const strata_group_t *group = r->refused->stack->group;
    for (uint32_t n = 1; n <= group->plan->count; n++) {
        strata_layer_t *layer = group->shared[n];
        if (!layer || !strata_layer_handles_notice(layer->type, STRATA_NOTICE_REPORT)) continue;
        strata_report_sink_t sink = {.struct_size = sizeof sink,
                                     .size = r->event->size,
                                     .layer = group->plan->nodes[n].name,
                                     .write = write_from_layer,
                                     .find_note = find_note,
                                     .context = r};
        strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_REPORT, .sink = &sink};
        strata_layer_notify(layer, &notice, NULL);
    }
}

void strata_report_write(strata_facade_t *facade, const strata_refused_t *refused, strata_out_of_memory_t *event, char *text,
                         size_t capacity) {
    report_t report = {.text = {.text = text, .capacity = capacity},
                       .facade = facade,
                       .domain = refused->stack->domain,
                       .refused = refused,
                       .event = event};
    strata_facts_gather(facade, refused, event, &report.facts);
    event->cause = report.cause = strata_cause_find(&report.facts);
    write_cause(&report);
    write_totals(&report);
    write_stacks(&report);
    write_pools(&report);
    write_layers(&report);
    write_waits(&report);
    write_limbo(&report);
    write_owners(&report);
    write_recovery(&report);
    write_by_layers(&report);
}
