/* Selects the memory of a pause or resume: sources of handles, and handles by the tags of the blocks in them. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/graphs/graphs.h"
#include "allocation/reclaim/over_limit.h"
#include "allocation/uses/record_notes.h"
#include "facade/pause/pause.h"
#include "facade/share/share.h"
#include "platform/host/host_memory.h"

/* ---- sources ---- */

static const strata_pausing_t *pausing_of(const strata_layer_t *source) {
    const strata_handles_t *handles = strata_share_handles(source);
    return handles ? handles->pausing : NULL;
}

static bool is_meant(const strata_pause_parts_t *parts, const strata_group_t *group) {
    if (strata_group_has_ended(group)) return false;
    return parts->pool == STRATA_POOL_EVERY || group->pool == parts->pool;
}

/* A layer that writes to freed blocks would write to addresses where nothing is mapped. */
static bool writes_to_freed(const strata_group_t *group) {
    for (uint32_t n = 1; n <= group->plan->count; n++)
        if (strcmp(group->plan->nodes[n].type->name, "guard") == 0) return true;
    return false;
}

/* Refuses to pause a pool that has memory outside handles, or that writes to freed memory. The text
 * suggests the change. */
static strata_status_t refuse(const strata_group_t *group, const strata_layer_t *source) {
    char name[STRATA_GROUP_NAME];
    const char *called = strata_group_name(group, name);
    if (source)
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "strata_pause: %s%s gets memory from %s, which has no handles; write vmm instead (stack: [stream_safe, "
                           "auto_growth_vmm, vmm])%s",
                           *called ? "the pool " : "memory outside pools", called, source->type->name,
                           group->graph ? ", in graph: of the strategy" : "");
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "strata_pause: %s%s has guard, which writes to freed memory; remove it",
                       *called ? "the pool " : "memory outside pools", called);
}

static const strata_layer_t *first_without_handles(const strata_group_t *group) {
    for (uint32_t n = 1; n <= group->plan->count; n++) {
        const strata_layer_t *layer = group->shared[n];
        if (layer && layer->type->role == STRATA_SOURCE && !pausing_of(layer)) return layer;
    }
    return NULL;
}

/* Adds one part for each source of the group. */
static strata_status_t add_group(strata_pause_parts_t *parts, strata_group_t *group) {
    strata_graph_pool_t *pool = atomic_load(&group->graph);
    for (uint32_t n = 1; n <= group->plan->count; n++) {
        strata_layer_t *layer = group->shared[n];
        if (!layer || layer->type->role != STRATA_SOURCE || !pausing_of(layer)) continue;
        strata_pause_part_t *more = strata_host_resize(parts->all, parts->count + 1, sizeof *more);
        if (!more) return STRATA_E_HOST_MEMORY;
        parts->all = more;
        more[parts->count++] = (strata_pause_part_t){.group = group,
                                                     .source = layer,
                                                     .pausing = pausing_of(layer),
                                                     .held = pool && strata_graph_pool_hold(pool) ? pool : NULL};
    }
    return STRATA_OK;
}

static strata_status_t check_group(strata_pause_parts_t *parts, strata_group_t *group, bool pauses) {
    const strata_layer_t *other = first_without_handles(group);
    bool skips = parts->pool == STRATA_POOL_EVERY || !pauses;
    if (pauses && !other && writes_to_freed(group)) return refuse(group, NULL);
    if (!other) return add_group(parts, group);
    return skips ? STRATA_OK : refuse(group, other);
}

static strata_status_t find_groups(strata_pause_parts_t *parts, bool pauses) {
    strata_group_t *group = NULL;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && (group = strata_domain_next_group(parts->domain, group)) != NULL)
        if (is_meant(parts, group)) status = check_group(parts, group, pauses);
    if (status == STRATA_OK && pauses && parts->count == 0 && parts->pool == STRATA_POOL_EVERY)
        return refuse(&parts->domain->ordinary, first_without_handles(&parts->domain->ordinary));
    return status;
}

strata_status_t strata_pause_parts_find(strata_pause_parts_t *parts, strata_facade_t *facade, strata_place_t place,
                                        uint64_t named_pool, const char *tag, bool pauses) {
    *parts = (strata_pause_parts_t){.facade = facade, .pool = named_pool};
    strata_status_t status = strata_facade_domain(facade, place, &parts->domain);
    if (status == STRATA_OK && named_pool != STRATA_POOL_EVERY)
        status = strata_facade_pool(facade, place, named_pool, &parts->pool);
    if (status == STRATA_OK && tag) status = strata_names_number(&facade->names, tag, &parts->tag);
    return status == STRATA_OK ? find_groups(parts, pauses) : status;
}

void strata_pause_parts_end(strata_pause_parts_t *parts) {
    for (uint32_t i = 0; i < parts->count; i++)
        if (parts->all[i].held) (void)strata_graph_pool_release(parts->all[i].held);
    if (parts->count > 0) strata_over_limit_sweep(parts->domain);
    strata_host_delete(parts->all);
}

/* ---- handles by tag ---- */

typedef struct extent {
    uint64_t address, size;
    bool has_tag;
} extent_t;

typedef struct extents {
    extent_t *all;
    uint64_t count, room;
    uint32_t tag;
} extents_t;

static void note_extent(const strata_record_t *record, void *context) {
    extents_t *extents = context;
    if (record->size == 0 || extents->count++ >= extents->room) return;
    const strata_record_notes_t *notes = strata_record_notes_of(record);
    extents->all[extents->count - 1] = (extent_t){record->ptr, record->size, notes && notes->note.tag == extents->tag};
}

static void walk(const strata_group_t *group, extents_t *extents) {
    extents->count = 0;
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) strata_stack_walk_live(stack, note_extent, extents);
}

/* Nothing is served during a pause, so a second walk finds no more blocks than the first. */
static strata_status_t find_extents(const strata_group_t *group, extents_t *extents) {
    walk(group, extents);
    if (extents->count == 0) return STRATA_OK;
    extents->all = strata_host_new(extents->count, sizeof *extents->all);
    if (!extents->all) return STRATA_E_HOST_MEMORY;
    extents->room = extents->count;
    walk(group, extents);
    return STRATA_OK;
}

static strata_status_t mark_part(const strata_pause_parts_t *parts, const strata_pause_part_t *part, bool stays) {
    extents_t extents = {.tag = parts->tag};
    strata_status_t status = find_extents(part->group, &extents);
    for (uint64_t i = 0; i < extents.count && i < extents.room; i++)
        if (extents.all[i].has_tag || stays)
            (void)part->pausing->mark(part->source, extents.all[i].address, extents.all[i].size, extents.all[i].has_tag);
    strata_host_delete(extents.all);
    return status;
}

strata_status_t strata_pause_mark(const strata_pause_parts_t *parts, bool stays) {
    strata_status_t status = STRATA_OK;
    for (uint32_t i = 0; i < parts->count && status == STRATA_OK; i++) status = mark_part(parts, &parts->all[i], stays);
    return status;
}

/* ---- memory used by graphs ---- */

static bool is_chosen(const strata_pause_parts_t *parts, strata_ref_t ref) {
    strata_call_t call;
    strata_record_t *record;
    if (strata_record_find(parts->facade->handle, ref, &call, &record) != STRATA_OK) return false;
    uint64_t address = record->ptr, size = record->size;
    (void)strata_call_unlock(&call);
    bool chosen = false;
    for (uint32_t i = 0; i < parts->count && size > 0; i++)
        chosen = chosen || parts->all[i].pausing->is_chosen(parts->all[i].source, address, size);
    return chosen;
}

static strata_status_t refuse_outside(const strata_pause_parts_t *parts, strata_graph_pool_t *pool) {
    strata_ref_t *refs;
    uint32_t count;
    bool chosen = false;
    strata_status_t status = strata_graph_pool_outside(pool, &refs, &count);
    for (uint32_t i = 0; i < count && status == STRATA_OK; i++) chosen = chosen || is_chosen(parts, refs[i]);
    strata_host_delete(refs);
    if (!chosen) return status;
    return strata_fail(STRATA_E_BUSY, 0,
                       "strata_pause: a captured graph uses a block of this memory; keep its contents (STRATA_PAUSE_PINNED)");
}

static strata_status_t refuse_outside_in(const strata_pause_parts_t *parts, strata_domain_t *domain) {
    strata_group_t *group = NULL;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && (group = strata_domain_next_group(domain, group)) != NULL)
        if (group->graph && !strata_group_has_ended(group)) status = refuse_outside(parts, group->graph);
    return status;
}

strata_status_t strata_pause_refuse_graphs(const strata_pause_parts_t *parts) {
    for (uint32_t i = 0; i < parts->count; i++)
        if (parts->all[i].held)
            return strata_fail(STRATA_E_BUSY, 0,
                               "strata_pause: a pool of captured graphs needs its contents, which a launch reads; keep them "
                               "(STRATA_PAUSE_PINNED)");
    uint32_t index = 0;
    strata_domain_t *domain;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && (domain = strata_facade_next_domain(parts->facade, &index)) != NULL)
        status = refuse_outside_in(parts, domain);
    return status;
}
