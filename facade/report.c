#include "facade/report.h"

#include <string.h>

#include "allocation/figures.h"
#include "allocation/ladder.h"
#include "allocation/layer.h"
#include "allocation/option.h"
#include "allocation/side.h"
#include "facade/survey.h"
#include "facade/text.h"
#include "platform/arithmetic.h"

enum { SHOWN_OWNERS = 5, SHOWN_STREAMS = 10, SHOWN_WAITS = 4, SHOWN_POOLS = 5, SHOWN_LETTERS = 24 };
enum { SHOWN_LAYERS = 6, SHOWN_FIGURES = 6, PREFIX = STRATA_NAME_LETTERS + 32 /* of a path */ };

typedef struct report {
    strata_text_t text;
    strata_facade_t *facade;
    strata_domain_t *domain;
    const strata_refused_t *refused;
    const strata_out_of_memory_t *event;
    strata_climbed_t climbed;
    strata_survey_t survey;
    uint64_t outside; /* bytes of the device that others hold */
} report_t;

/* The name of a stack's stream and its pool, where there are such. */
static void say_whose(strata_text_t *text, const strata_stack_t *stack) {
    if (*stack->name) strata_text_say(text, " \"%.*s\"", SHOWN_LETTERS, stack->name);
    if (stack->family->pool) strata_text_say(text, " in pool %.*s", SHOWN_LETTERS, stack->family->name);
}

static void say_totals(report_t *r) {
    static const char *const kinds[] = {"gpu", "managed", "pinned", "host"};
    strata_text_t *text = &r->text;
    strata_text_say(text, "out of memory in %s:%u on stream %p", kinds[strata_place_kind(r->domain->place)],
                    (unsigned)strata_place_device(r->domain->place), r->refused->stream);
    say_whose(text, r->refused->stack);
    strata_text_say(text, ":");
    strata_text_say_size(text, " asked ", r->event->size);
    strata_text_say_size(text, ", free on the device ", r->event->device_free);
    strata_text_say_size(text, " of ", r->event->device_total);
    strata_text_say_size(text, ", reserved here ", strata_domain_reserved(r->domain));
    strata_text_say_size(text, ", taken by others ", r->outside);
    strata_text_say_size(text, "\n  allocated ", r->survey.allocated);
    strata_text_say_size(text, ", deferred ", r->survey.deferred);
    strata_text_say_size(text, ", idle ", r->survey.idle);
    strata_text_say_size(text, ", largest free block ", r->survey.largest_free);
}

/* ---- a layer that limits ---- */

/* A figure by its name; false: it is not among them. */
static bool figure_of(const strata_own_figure_t *rows, uint32_t count, const char *name, uint64_t *value) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *value = rows[i].value;
        return true;
    }
    return false;
}

/* What holds a whole place to a limit, whatever layers serve it. */
static const char WHOLE_PLACE[] = "strata_set_limit";

/* What holds requests of this place to a limit that the request would have broken: a shared layer, or the program's own word. NULL:
 * nothing does. */
static const char *limiting(const report_t *r, uint64_t *limit, uint64_t *used) {
    const strata_family_t *family = r->refused->stack->family;
    *limit = atomic_load(&r->domain->quota.limit);
    *used = atomic_load(&r->domain->quota.used);
    if (*limit - strata_min(*used, *limit) < r->event->size) return WHOLE_PLACE;
    for (uint32_t i = 1; i <= family->plan->count; i++) {
        strata_layer_t *layer = family->shared[i];
        strata_own_figure_t rows[STRATA_OWN_FIGURES];
        uint32_t count = layer ? strata_own_figures(layer, rows) : 0;
        if (!figure_of(rows, count, "limit_bytes", limit) || !figure_of(rows, count, "used_bytes", used)) continue;
        if (*limit - strata_min(*used, *limit) < r->event->size) return family->plan->nodes[i].name;
    }
    return NULL;
}

static void say_limit(report_t *r) {
    uint64_t limit, used;
    const char *name = limiting(r, &limit, &used);
    if (!name) return;
    strata_text_say(&r->text, "\n  %s:", name);
    strata_text_say_size(&r->text, " at most ", limit);
    strata_text_say_size(&r->text, ", of which ", used);
    strata_text_say(&r->text, " are used");
}

/* ---- who holds it ---- */

static void say_idle_layers(strata_text_t *text, strata_stack_t *stack) {
    STRATA_EACH_OWN_LAYER(stack, layer) {
        strata_lock(&stack->lock);
        uint64_t idle = layer->type->idle_bytes ? layer->type->idle_bytes(layer) : 0;
        strata_unlock(&stack->lock);
        if (idle == 0) continue;
        strata_text_say_size(text, ", idle ", idle);
        strata_text_say(text, " in %s", stack->family->plan->nodes[layer->number].name);
    }
}

static void say_stack(report_t *r, strata_stack_t *stack, uint32_t *shown, uint32_t *more) {
    strata_statistics_t f;
    strata_facade_stack_figures(stack, &f);
    if (f.reserved_bytes + f.allocated_bytes + f.deferred_bytes == 0) return;
    if (*shown == SHOWN_STREAMS) {
        ++*more;
        return;
    }
    ++*shown;
    strata_text_say(&r->text, "\n  ");
    if (stack->of_thread) strata_text_say(&r->text, "thread %llu, ", (unsigned long long)stack->of_thread);
    if (stack->trunk) strata_text_say(&r->text, "shared by all streams");
    else strata_text_say(&r->text, "stream %p", stack->stream);
    say_whose(&r->text, stack);
    strata_text_say(&r->text, "%s:", stack->orphan ? " (forgotten)" : "");
    strata_text_say_size(&r->text, " reserved ", f.reserved_bytes);
    if (!stack->trunk) strata_text_say_size(&r->text, ", allocated ", f.allocated_bytes);
    strata_text_say_size(&r->text, ", deferred ", f.deferred_bytes);
    say_idle_layers(&r->text, stack);
}

static void say_stacks(report_t *r) {
    uint32_t shown = 0, more = 0;
    STRATA_DOMAIN_EACH(r->domain, stack) say_stack(r, stack, &shown, &more);
    if (more) strata_text_say(&r->text, "\n  and %u streams more", (unsigned)more);
}

/* Pools that hold anything, each with all its streams. */
static void say_pools(report_t *r) {
    strata_family_t *family = NULL;
    uint32_t found = 0;
    while ((family = strata_domain_next_family(r->domain, family)) != NULL) {
        strata_statistics_t f;
        strata_facade_pool_figures(r->domain, family->pool, &f);
        if (!family->pool || f.reserved_bytes + f.allocated_bytes + f.deferred_bytes == 0 || ++found > SHOWN_POOLS) continue;
        strata_text_say(&r->text, "\n  pool %.*s:", SHOWN_LETTERS, family->name);
        strata_text_say_size(&r->text, " reserved ", f.reserved_bytes);
        strata_text_say_size(&r->text, ", allocated ", f.allocated_bytes);
        strata_text_say_size(&r->text, ", deferred ", f.deferred_bytes);
    }
    if (found > SHOWN_POOLS) strata_text_say(&r->text, "\n  and %u pools more", (unsigned)(found - SHOWN_POOLS));
}

static void say_figure(strata_text_t *text, const strata_own_figure_t *figure, const char *before) {
    strata_text_say(text, "%s%s", before, figure->name);
    if (strcmp(figure->unit, "bytes") == 0) strata_text_say_size(text, " ", figure->value);
    else strata_text_say(text, " %llu", (unsigned long long)figure->value);
}

/* The sums of its instances' figures, those alone that are not 0; what a stream's own cache holds idle stands with the stream. */
static uint32_t figures_to_say(const report_t *r, uint32_t number, strata_own_figure_t sums[STRATA_OWN_FIGURES]) {
    strata_family_t *family = r->refused->stack->family;
    uint32_t count = strata_family_own_figures(family, number, sums), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool with_its_stream = strcmp(sums[i].name, "idle_bytes") == 0 && !family->shared[number];
        if (sums[i].value != 0 && !with_its_stream) sums[kept++] = sums[i];
    }
    return kept;
}

/* Those of the family that the request came to. */
static void say_layers(report_t *r) {
    const strata_plan_t *plan = r->refused->stack->family->plan;
    uint32_t shown = 0, more = 0;
    for (uint32_t number = 1; number <= plan->count; number++) {
        strata_own_figure_t sums[STRATA_OWN_FIGURES];
        uint32_t count = figures_to_say(r, number, sums);
        if (count == 0) continue;
        if (shown == SHOWN_LAYERS) {
            more++;
            continue;
        }
        shown++;
        strata_text_say(&r->text, "\n  layer %s:", plan->nodes[number].name);
        for (uint32_t i = 0; i < count && i < SHOWN_FIGURES; i++) say_figure(&r->text, &sums[i], i ? ", " : " ");
        if (count > SHOWN_FIGURES) strata_text_say(&r->text, ", and %u figures more", (unsigned)(count - SHOWN_FIGURES));
    }
    if (more) strata_text_say(&r->text, "\n  and %u layers more", (unsigned)more);
}

static void say_waits(report_t *r) {
    const strata_survey_t *survey = &r->survey;
    uint64_t more = survey->awaited_more;
    for (uint32_t i = 0; i < survey->awaited_count; i++) {
        if (i >= SHOWN_WAITS) {
            more += survey->awaited[i].bytes;
            continue;
        }
        strata_text_say_size(&r->text, i ? ", " : "\n  deferred frees: ", survey->awaited[i].bytes);
        if (survey->awaited[i].gone) strata_text_say(&r->text, " wait for a stream that was destroyed");
        else strata_text_say(&r->text, " wait for stream %p", survey->awaited[i].stream);
    }
    if (more) strata_text_say_size(&r->text, ", for others ", more);
}

static void say_owner(report_t *r, const strata_owner_t *owner, const char *before) {
    const char *tag = strata_names_text(&r->facade->names, owner->note.tag);
    const char *operator_name = strata_names_text(&r->facade->names, owner->note.operator_name);
    strata_text_say_size(&r->text, before, owner->bytes);
    strata_text_say(&r->text, " in %llu block%s by ", (unsigned long long)owner->blocks, owner->blocks == 1 ? "" : "s");
    if (!*tag && !*operator_name) {
        strata_text_say(&r->text, "nobody named");
        return;
    }
    strata_text_say(&r->text, "%s%s%s", tag, *tag && *operator_name ? " of " : "", operator_name);
    strata_text_say(&r->text, owner->note.step == owner->last_step ? " (step %llu)" : " (steps %llu to %llu)",
                    (unsigned long long)owner->note.step, (unsigned long long)owner->last_step);
}

static void say_owners(report_t *r) {
    const strata_survey_t *survey = &r->survey;
    uint64_t more = survey->other_owners.bytes;
    for (uint32_t i = 0; i < STRATA_SURVEY_OWNERS && survey->owners[i].blocks; i++) {
        if (i < SHOWN_OWNERS) say_owner(r, &survey->owners[i], i ? "; " : "\n  live blocks: ");
        else more += survey->owners[i].bytes;
    }
    if (more) strata_text_say_size(&r->text, "; by others ", more);
}

/* ---- what was tried ---- */

static void say_ladder(report_t *r) {
    const strata_climbed_t *c = &r->climbed;
    if (!c->climbed) {
        bool forbidden = r->refused->flags & (STRATA_NO_RETRY | STRATA_NO_GROW);
        strata_text_say(&r->text, "\n  nothing was tried%s", forbidden ? ": the request forbids it" : "");
        return;
    }
    char took[64];
    strata_print_time(c->took_ns, took, sizeof took);
    strata_text_say_size(&r->text, "\n  tried: polling gave ", c->polled);
    strata_text_say_size(&r->text, ", waiting first ", c->waited);
    strata_text_say_size(&r->text, ", releasing ", c->released);
    strata_text_say_size(&r->text, ", callbacks ", c->called_back);
    strata_text_say(&r->text, "%s%s; it took %s", c->asked_small ? ", smaller growth nothing" : "",
                    c->slept ? ", waiting for other frees nothing" : "", took);
}

/* ---- what may help ---- */

/* The layer of the stack that has an option and what it says; NULL: none has it. */
static const strata_plan_node_t *node_with(const strata_family_t *family, const char *option, char *value, size_t capacity) {
    for (uint32_t i = 1; i <= family->plan->count; i++) {
        const strata_plan_node_t *node = &family->plan->nodes[i];
        const strata_option_row_t *row = strata_option_find(node->type, option);
        if (!row) continue;
        strata_option_print(row, node->options, value, capacity);
        return node;
    }
    return NULL;
}

/* What stands before a layer in a path of the refused stack: "" of the gpu's, "pinned.", "pools.weights.", ... */
static const char *prefix_of(const report_t *r, char *text, size_t capacity) {
    const strata_family_t *family = r->refused->stack->family;
    const strata_named_kind_t kind = family->pool ? STRATA_NAMED_POOL : STRATA_NAMED_STREAM;
    const strata_model_named_t *named =
        *family->name ? strata_strategy_named(r->facade->strategy, kind, family->name) : NULL;
    strata_place_kind_t place = strata_place_kind(r->domain->place);
    strata_text_t prefix = {.text = text, .capacity = capacity};
    strata_text_say(&prefix, "%s", "");
    if (named && named->stacks[place].count > 0) strata_text_say(&prefix, "%s.%s.", strata_named_key(kind), named->name);
    if (place != STRATA_PLACE_GPU) strata_text_say(&prefix, "%s.", strata_place_name(place));
    return text;
}

/* "auto_growth.smaller_growth: true", where the option is there and off. */
static bool suggest(report_t *r, const char *option, const char *why) {
    char value[64];
    const strata_plan_node_t *node = node_with(r->refused->stack->family, option, value, sizeof value);
    if (!node || value[0] != 'f') return false;
    char prefix[PREFIX];
    strata_text_say(&r->text, "\n  may help: %s%s.%s: true, %s", prefix_of(r, prefix, sizeof prefix), node->name, option, why);
    return true;
}

static bool suggest_against_pieces(report_t *r) {
    char value[64];
    const strata_plan_node_t *node = node_with(r->refused->stack->family, "chunk_size", value, sizeof value);
    if (!node) return false;
    char prefix[PREFIX];
    strata_text_say(&r->text, "\n  may help: a smaller %s%s.chunk_size (now %s), so that chunks become idle as a whole",
                    prefix_of(r, prefix, sizeof prefix), node->name, value);
    return true;
}

/* What was freed and still in use would have been enough: the request gave up too early. */
static bool suggest_more_time(report_t *r) {
    char value[64];
    uint64_t deferred = r->survey.deferred, size = r->event->size;
    if (deferred == 0 || !r->climbed.timed_out || r->event->device_free + deferred < size) return false;
    const strata_plan_node_t *node = node_with(r->refused->stack->family, "timeout", value, sizeof value);
    if (!node) return false;
    char prefix[PREFIX];
    strata_text_say(&r->text, "\n  may help: a longer %s%s.timeout (now %s), since", prefix_of(r, prefix, sizeof prefix), node->name,
                    value);
    strata_text_say_size(&r->text, " ", deferred);
    strata_text_say(&r->text, " are freed and wait for other streams");
    return true;
}

static void say_what_helps(report_t *r) {
    const strata_survey_t *survey = &r->survey;
    uint64_t size = r->event->size;
    uint64_t limit, used;
    const char *bound = limiting(r, &limit, &used);
    bool said = bound != NULL;
    char prefix[PREFIX] = "";
    if (bound && bound != WHOLE_PLACE) (void)prefix_of(r, prefix, sizeof prefix);
    if (bound) strata_text_say(&r->text, "\n  may help: a higher bound in %s%s", prefix, bound);
    if (r->refused->flags & (STRATA_NO_RETRY | STRATA_NO_GROW)) {
        strata_text_say(&r->text, "\n  may help: the request without STRATA_NO_RETRY and STRATA_NO_GROW");
        said = true;
    }
    if (r->event->device_free >= size) said = suggest(r, "smaller_growth", "since the device has what was asked") || said;
    if (survey->deferred >= size) said = suggest(r, "wait_first", "since enough was freed and waits for other streams") || said;
    said = suggest_more_time(r) || said;
    if (survey->idle >= size && survey->largest_free < size) said = suggest_against_pieces(r) || said;
    if (r->outside >= size) {
        strata_text_say(&r->text, "\n  may help: to end what else uses the device");
        said = true;
    }
    if (!said) strata_text_say(&r->text, "\n  may help: to ask for less, or to free something");
}

/* ---- what layers say themselves ---- */

static void say_told(const strata_telling_t *telling, const char *text) {
    report_t *r = telling->context;
    strata_text_say(&r->text, "%s", text);
}

static const char *noted(const strata_telling_t *telling, const strata_record_t *record, uint64_t *step) {
    const report_t *r = telling->context;
    const strata_side_t *side = strata_side_of(record);
    *step = side ? side->note.step : 0;
    return side ? strata_names_text(&r->facade->names, side->note.operator_name) : "";
}

/* Of the family that refused. The instances of device scope stay as long as the family. */
static void say_by_layers(report_t *r) {
    const strata_family_t *family = r->refused->stack->family;
    for (uint32_t n = 1; n <= family->plan->count; n++) {
        strata_layer_t *layer = family->shared[n];
        if (!layer || !STRATA_LAYER_HAS(layer->type, tell)) continue;
        strata_telling_t telling = {.struct_size = sizeof telling, .size = r->event->size, .layer = family->plan->nodes[n].name,
                                    .say = say_told, .noted = noted, .context = r};
        layer->type->tell(layer, &telling);
    }
}

void strata_report_write(strata_facade_t *facade, const strata_refused_t *refused, const strata_out_of_memory_t *event,
                         char *text, size_t capacity) {
    strata_domain_t *domain = refused->stack->domain;
    uint64_t held = event->device_free + strata_domain_reserved(domain);
    report_t report = {.text = {.text = text, .capacity = capacity}, .facade = facade, .domain = domain, .refused = refused,
                       .event = event, .climbed = strata_ladder_last(),
                       .outside = event->device_total - strata_min(held, event->device_total)};
    strata_survey_make(domain, &report.survey);
    say_totals(&report);
    say_limit(&report);
    say_stacks(&report);
    say_pools(&report);
    say_layers(&report);
    say_waits(&report);
    say_owners(&report);
    say_ladder(&report);
    say_what_helps(&report);
    say_by_layers(&report);
}
