/* Making a search: what does not change while it goes on. */
#include <string.h>

#include "planning/skyline.h"
#include "platform/host/host_memory.h"

static bool are_alike(const strata_skyline_t *s, uint32_t a, uint32_t b) {
    const strata_item_t *x = &s->problem->items[a], *y = &s->problem->items[b];
    return s->sections.first[a] == s->sections.first[b] && s->sections.last[a] == s->sections.last[b] && x->size == y->size &&
           x->alignment == y->alignment && x->slack == y->slack && x->fixed == y->fixed && x->fixed == STRATA_ANYWHERE;
}

static void find_twins(strata_skyline_t *s) {
    const strata_sections_t *x = &s->sections;
    for (uint32_t section = 0; section < x->count; section++)
        for (uint32_t i = x->begin_at[section]; i < x->begin_at[section + 1]; i++) {
            uint32_t item = x->beginning[i];
            s->twin[item] = UINT32_MAX;
            for (uint32_t k = x->begin_at[section]; k < i; k++)
                if (are_alike(s, item, x->beginning[k])) s->twin[item] = x->beginning[k];
        }
}

static void name_items(strata_skyline_t *s) {
    uint64_t state = 0;
    for (uint32_t i = 0; i < s->problem->item_count; i++) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t x = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        s->name[i] = x ^ x >> 31;
    }
}

strata_status_t strata_skyline_init(strata_skyline_t *s, const strata_problem_t *p) {
    *s = (strata_skyline_t){.problem = p};
    strata_status_t status = strata_sections_make(&s->sections, p);
    if (status == STRATA_OK) status = strata_memo_init(&s->memo, p->item_count);
    size_t items = (size_t)p->item_count + 1, sections = (size_t)s->sections.count + 1;
    s->move_capacity = 16 * STRATA_SKYLINE_DEPTH + p->item_count;
    s->offsets = strata_host_new(items, sizeof *s->offsets);
    s->order = strata_host_new(items, sizeof *s->order);
    s->rank = strata_host_new(items, sizeof *s->rank);
    s->twin = strata_host_new(items, sizeof *s->twin);
    s->name = strata_host_new(items, sizeof *s->name);
    s->height = strata_host_new(sections, sizeof *s->height);
    s->room = strata_host_new(sections, sizeof *s->room);
    s->inner = strata_host_new(sections, sizeof *s->inner);
    s->left = strata_host_new(sections, sizeof *s->left);
    s->crossing = strata_host_new(sections, sizeof *s->crossing);
    s->moves = strata_host_new(s->move_capacity, sizeof *s->moves);
    bool made = s->offsets && s->order && s->rank && s->twin && s->name && s->height && s->room && s->inner && s->left &&
                s->crossing && s->moves;
    if (status != STRATA_OK || !made) {
        strata_skyline_destroy(s);
        return STRATA_E_HOST_MEMORY;
    }
    name_items(s);
    s->absolute = p->fixed || p->slack;
    for (uint32_t i = 0; i < p->item_count; i++) s->absolute = s->absolute || p->items[i].alignment != p->unit;
    return STRATA_OK;
}

void strata_skyline_destroy(strata_skyline_t *s) {
    strata_sections_delete(&s->sections);
    strata_memo_destroy(&s->memo);
    strata_host_delete(s->offsets);
    strata_host_delete(s->order);
    strata_host_delete(s->rank);
    strata_host_delete(s->twin);
    strata_host_delete(s->name);
    strata_host_delete(s->height);
    strata_host_delete(s->room);
    strata_host_delete(s->inner);
    strata_host_delete(s->left);
    strata_host_delete(s->crossing);
    strata_host_delete(s->moves);
}

strata_status_t strata_skyline_order(strata_skyline_t *s, const uint32_t *order) {
    uint32_t count = s->problem->item_count;
    memcpy(s->order, order, count * sizeof *order);
    for (uint32_t i = 0; i < count; i++) s->rank[order[i]] = i;
    strata_status_t status = strata_sections_order(&s->sections, count, s->rank);
    if (status == STRATA_OK) find_twins(s);
    return status;
}
