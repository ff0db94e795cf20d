#include "facade/report/facts.h"

#include <stdio.h>
#include <string.h>

#include "allocation/call/ref_info.h"
#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "facade/figures/amounts.h"
#include "facade/report/victims.h"
#include "platform/arithmetic.h"
#include "platform/place.h"

enum {
    VICTIMS = 64,
    VICTIM_GROUPS = 4,
    POOLS = 16,
    UNIT_OF_BOUNDS = 1 << 20 /* precision of "enough", since the text rounds down */
};

/* ---- options of the stack that refused ---- */

/* Writes the beginning of a path to a layer of the refusing stack: "" for the gpu's, "pinned.",
 * "pools.weights.", "graph.", ... */
static void write_prefix(const strata_facts_t *f, strata_text_t *text) {
    const strata_group_t *group = f->refused->stack->group;
    const strata_named_kind_t kind = group->graph ? STRATA_NAMED_GRAPH : group->pool ? STRATA_NAMED_POOL : STRATA_NAMED_STREAM;
    const strata_model_named_t *named = *group->name ? strata_strategy_named(f->facade->strategy, kind, group->name) : NULL;
    strata_place_kind_t place = strata_place_kind(f->domain->place);
    if (named && named->stacks[place].count > 0) strata_text_append(text, "%s.", named->path);
    if (place != STRATA_PLACE_GPU) strata_text_append(text, "%s.", strata_place_name(place));
}

static void write_path(const strata_facts_t *f, const strata_plan_node_t *node, const char *option, char *path) {
    strata_text_t text = {.text = path, .capacity = STRATA_FACT_LETTERS};
    strata_text_append(&text, "%s", "");
    write_prefix(f, &text);
    strata_text_append(&text, "%s.%s", node->name, option);
}

/* Finds the path of an option in the stack, and its value. Returns NULL if no layer has it. */
static const strata_plan_node_t *read_option(const strata_facts_t *f, const char *option, char *path, char *now) {
    const strata_plan_t *plan = f->refused->stack->group->plan;
    for (uint32_t i = 1; i <= plan->count; i++) {
        const strata_plan_node_t *node = &plan->nodes[i];
        const strata_option_row_t *row = strata_option_find(node->type, option);
        if (!row) continue;
        strata_option_print(row, node->options, now, STRATA_FACT_LETTERS);
        write_path(f, node, option, path);
        return node;
    }
    return NULL;
}

static bool is_off(const strata_facts_t *f, const char *option, char *path) {
    char now[STRATA_FACT_LETTERS];
    return read_option(f, option, path, now) && strcmp(now, "false") == 0;
}

/* Returns true if the place is managed, or if it is gpu with a source of managed or host memory. */
static bool has_other_memory(const strata_facts_t *f) {
    const strata_plan_t *plan = f->refused->stack->group->plan;
    strata_place_kind_t kind = strata_place_kind(f->domain->place);
    char now[STRATA_FACT_LETTERS];
    if (kind != STRATA_PLACE_GPU) return kind == STRATA_PLACE_MANAGED;
    for (uint32_t i = 1; i <= plan->count; i++) {
        const strata_plan_node_t *node = &plan->nodes[i];
        const strata_option_row_t *row = node->type->role == STRATA_SOURCE ? strata_option_find(node->type, "memory") : NULL;
        if (!row) continue;
        strata_option_print(row, node->options, now, sizeof now);
        if (strcmp(now, "place") != 0 && strcmp(now, "device") != 0) return true;
    }
    return false;
}

static void read_options(strata_facts_t *f) {
    char now[STRATA_FACT_LETTERS];
    const strata_plan_node_t *chunks = read_option(f, "chunk_size", f->chunk_size, f->chunk_size_now);
    f->smaller_growth_is_off = is_off(f, "smaller_growth", f->smaller_growth);
    f->wait_first_is_off = is_off(f, "wait_first", f->wait_first);
    f->spills = has_other_memory(f);
    f->has_retry = read_option(f, "timeout", f->timeout, f->timeout_now) != NULL;
    (void)read_option(f, "max_split_size", f->max_split_size, now);
    if (!chunks) return;
    const strata_option_row_t *row = strata_option_find(chunks->type, "chunk_size");
    if (row->kind == STRATA_OPTION_SIZE)
        memcpy(&f->chunk_size_bytes, (const char *)chunks->options + row->offset, sizeof(uint64_t));
}

/* ---- the bound that refused ---- */

static void read_bound(strata_facts_t *f) {
    const strata_plan_t *plan = f->refused->stack->group->plan;
    const strata_refusal_t *refusal = &f->outcome->refusal;
    f->growth = refusal->by == STRATA_REFUSED_BY_OTHERS ? f->asked : refusal->asked;
    f->room = f->free;
    f->allowed = f->total && !f->spills ? f->most : UINT64_MAX;
    if (refusal->by == STRATA_REFUSED_BY_PLACE) snprintf(f->bound, sizeof f->bound, "strata_set_limit()");
    if (refusal->by == STRATA_REFUSED_BY_BOUND && refusal->layer <= plan->count)
        write_path(f, &plan->nodes[refusal->layer], refusal->option, f->bound);
    if (refusal->by != STRATA_REFUSED_BY_PLACE && refusal->by != STRATA_REFUSED_BY_BOUND) return;
    f->limit = refusal->limit;
    f->used = refusal->used;
    f->room = refusal->limit - strata_min(refusal->used, refusal->limit);
    f->allowed = strata_min(f->allowed, f->limit);
    if (!strata_add(refusal->used, refusal->asked, &f->enough) || !strata_round_up(f->enough, UNIT_OF_BOUNDS, &f->enough))
        f->enough = UINT64_MAX;
}

/* ---- the device ---- */

static bool is_of_device(strata_place_kind_t kind) { return kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED; }

/* Returns the domain of the other kind of memory on the same device. */
static strata_domain_t *sibling_domain(const strata_facts_t *f) {
    strata_place_kind_t kind = strata_place_kind(f->domain->place);
    strata_place_kind_t other = kind == STRATA_PLACE_GPU ? STRATA_PLACE_MANAGED : STRATA_PLACE_GPU;
    if (!is_of_device(kind)) return NULL;
    return atomic_load(&f->facade->domains[other][strata_place_device(f->domain->place)]);
}

/* A pool that groups share counts once. */
typedef struct pools {
    void *seen[POOLS];
    uint32_t count;
    uint64_t idle;
} pools_t;

static void count_pool(pools_t *pools, strata_device_t *device, void *pool) {
    uint64_t reserved, used;
    for (uint32_t i = 0; i < pools->count; i++)
        if (pools->seen[i] == pool) return;
    if (!pool || pools->count == POOLS) return;
    pools->seen[pools->count++] = pool;
    if (strata_device_pool_get(device, pool, STRATA_POOL_RESERVED_CURRENT, &reserved) != STRATA_OK) return;
    if (strata_device_pool_get(device, pool, STRATA_POOL_USED_CURRENT, &used) != STRATA_OK) return;
    pools->idle += reserved - strata_min(used, reserved);
}

static void count_pools(pools_t *pools, strata_domain_t *domain) {
    for (strata_group_t *group = NULL; (group = strata_domain_next_group(domain, group)) != NULL;)
        for (uint32_t n = 1; n <= group->plan->count; n++) {
            strata_layer_t *layer = group->shared[n];
            if (layer && STRATA_LAYER_HAS(layer->type, driver_pool))
                count_pool(pools, domain->device, layer->type->driver_pool(layer));
        }
}

static void read_device(strata_facts_t *f) {
    strata_domain_t *other = sibling_domain(f);
    pools_t pools = {.count = 0};
    f->reserved = strata_domain_reserved(f->domain);
    if (!is_of_device(strata_place_kind(f->domain->place))) return;
    count_pools(&pools, f->domain);
    if (other) count_pools(&pools, other);
    uint64_t held = f->event->device_free + f->reserved + (other ? strata_domain_reserved(other) : 0) + pools.idle;
    f->pooled = pools.idle;
    f->free = f->event->device_free;
    f->total = f->event->device_total;
    f->outside = f->total - strata_min(held, f->total);
    f->others = f->outside - strata_min(f->outside, STRATA_FACT_CONTEXT);
    f->most = f->total - strata_min(f->outside, STRATA_FACT_CONTEXT);
}

/* ---- owners and victims ---- */

static void write_note(const strata_facts_t *f, const strata_note_t *note, strata_text_t *text) {
    const char *tag = strata_names_text(&f->facade->names, note->tag);
    const char *operator_name = strata_names_text(&f->facade->names, note->operator_name);
    if (!*tag && !*operator_name) strata_text_append(text, "an unnamed owner");
    else strata_text_append(text, "%.60s%s%.60s", tag, *tag && *operator_name ? " of " : "", operator_name);
}

static void read_owner(strata_facts_t *f) {
    const strata_owner_t *owner = &f->survey.owners[0];
    strata_text_t text = {.text = f->owner, .capacity = sizeof f->owner};
    if (owner->blocks == 0) return;
    write_note(f, &owner->note, &text);
    f->owner_bytes = owner->bytes;
    f->owner_blocks = owner->blocks;
    f->first_step = owner->note.step;
    f->last_step = owner->last_step;
}

static bool may_serve(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, const void *context) {
    const strata_facts_t *f = context;
    const strata_survey_for_t whom = {.stack = f->refused->stack, .stream = f->refused->stream, .size = f->asked};
    return strata_idle_why(&whom, stack, layer, block) == STRATA_IDLE_OWN;
}

/* Blocks of one owner among the victims. */
typedef struct group {
    strata_note_t note;
    uint64_t bytes, blocks;
} group_t;

static void group_victims(const strata_ref_t *refs, size_t count, group_t groups[VICTIM_GROUPS]) {
    for (size_t i = 0; i < count; i++) {
        strata_ref_info_t info;
        uint32_t at = 0;
        strata_ref_info_of(refs[i], &info);
        if (!info.live) continue;
        while (at + 1 < VICTIM_GROUPS && groups[at].blocks &&
               (groups[at].note.tag != info.note.tag || groups[at].note.operator_name != info.note.operator_name))
            at++;
        if (groups[at].blocks == 0) groups[at].note = info.note;
        groups[at].bytes += info.size;
        groups[at].blocks++;
    }
}

static void write_victims(strata_facts_t *f, const group_t groups[VICTIM_GROUPS]) {
    strata_text_t text = {.text = f->victims_of, .capacity = sizeof f->victims_of};
    uint64_t sizes[VICTIM_GROUPS];
    uint32_t count = 0;
    for (; count < VICTIM_GROUPS && groups[count].blocks; count++) sizes[count] = groups[count].bytes;
    unsigned unit = strata_amounts_unit(sizes, count);
    for (uint32_t i = 0; i < count; i++) {
        char amount[48];
        strata_amount_print(sizes[i], unit, amount, sizeof amount);
        strata_text_append(&text, "%s%s in %llu by ", i ? ", " : "", amount, (unsigned long long)groups[i].blocks);
        write_note(f, &groups[i].note, &text);
    }
}

void strata_facts_find_victims(strata_facts_t *f) {
    strata_ref_t refs[VICTIMS];
    group_t groups[VICTIM_GROUPS] = {{.blocks = 0}};
    strata_victims_t victims = {.size = f->asked, .refs = refs, .capacity = VICTIMS, .may_serve = may_serve, .context = f};
    if (!strata_victims_find(f->domain, &victims) || victims.count == 0) return;
    f->victims = victims.count;
    f->victims_bytes = victims.bytes;
    group_victims(refs, strata_min(victims.count, VICTIMS), groups);
    write_victims(f, groups);
}

/* ---- all facts ---- */

void strata_facts_select_idle(strata_facts_t *f, strata_idle_why_t why) {
    const strata_idle_t *idle = &f->survey.idle_by[why];
    f->there = idle->bytes;
    f->there_largest = idle->largest;
    f->there_whole = idle->whole;
    f->there_held = idle->held;
    f->there_chunks = idle->chunks;
}

void strata_facts_gather(strata_facade_t *facade, const strata_refused_t *refused, const strata_out_of_memory_t *event,
                         strata_facts_t *f) {
    const strata_survey_for_t whom = {.stack = refused->stack, .stream = refused->stream, .size = refused->size};
    memset(f, 0, sizeof *f);
    f->facade = facade;
    f->domain = refused->stack->domain;
    f->refused = refused;
    f->event = event;
    f->asked = refused->size;
    f->outcome = refused->outcome;
    snprintf(f->reason, sizeof f->reason, "%s", refused->reason);
    read_device(f);
    read_options(f);
    read_bound(f);
    strata_survey_make(f->domain, &whom, &f->survey);
    f->allocated = f->survey.allocated;
    f->deferred = f->survey.deferred;
    f->limbo = f->survey.limbo;
    f->limbo_blocks = f->survey.limbo_blocks;
    f->later_run = f->survey.later_run;
    f->whole = f->pooled;
    for (uint32_t why = 0; why < STRATA_IDLE_WHYS; why++) {
        f->idle += f->survey.idle_by[why].bytes;
        if (why != STRATA_IDLE_CAPTURED && why != STRATA_IDLE_KEPT) f->whole += f->survey.idle_by[why].whole;
    }
    read_owner(f);
}
