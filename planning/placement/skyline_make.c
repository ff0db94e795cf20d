/* Makes a search: the parts that do not change while it runs. */
#include <string.h>

#include "planning/placement/skyline.h"
#include "platform/host/host_memory.h"

/* Items of work between two checks of the clock, about a millisecond. The work per step grows with the
 * number of items. */
enum { ITEMS_BETWEEN_CHECKS = 1 << 16 };

/* Returns one of the sort keys that make items interchangeable, least significant first. */
static uint64_t part_of_kind(const strata_skyline_t *s, uint32_t item, int part) {
    const strata_item_t *it = &s->problem->items[item];
    switch (part) {
    case 0: return it->slack;
    case 1: return it->alignment;
    case 2: return it->size;
    case 3: return s->sections.last[item];
    default: return s->sections.first[item];
    }
}

enum { KIND_PARTS = 5 };

static bool are_alike(const strata_skyline_t *s, uint32_t a, uint32_t b) {
    bool alike = true;
    for (int part = 0; part < KIND_PARTS; part++) alike = alike && part_of_kind(s, a, part) == part_of_kind(s, b, part);
    return alike;
}

static void number_kinds(strata_skyline_t *s, strata_keyed_t *keyed) {
    const strata_problem_t *p = s->problem;
    uint32_t count = 0, kinds = 0;
    for (uint32_t i = 0; i < p->item_count; i++) {
        s->kind[i] = UINT32_MAX;
        if (p->items[i].fixed != STRATA_ANYWHERE) s->fixed[s->fixed_count++] = i;
        else keyed[count++].value = i;
    }
    for (int part = 0; part < KIND_PARTS; part++) {
        for (uint32_t i = 0; i < count; i++) keyed[i].key = part_of_kind(s, keyed[i].value, part);
        strata_sort_keyed(keyed, keyed + count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        kinds += i > 0 && !are_alike(s, keyed[i].value, keyed[i - 1].value);
        s->kind[keyed[i].value] = kinds;
    }
}

/* The lists of the sections define the order in which items are tried. */
static void find_twins(strata_skyline_t *s) {
    const strata_sections_t *x = &s->sections;
    for (uint32_t i = 0; i < s->problem->item_count; i++) s->last_of_kind[i] = UINT32_MAX;
    for (uint32_t i = 0; i < s->problem->item_count; i++) {
        uint32_t item = x->beginning[i], kind = s->kind[item];
        s->twin[item] = kind == UINT32_MAX ? UINT32_MAX : s->last_of_kind[kind];
        if (kind != UINT32_MAX) s->last_of_kind[kind] = item;
    }
}

static void hash_items(strata_skyline_t *s) {
    uint64_t state = 0;
    for (uint32_t i = 0; i < s->problem->item_count; i++) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t x = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        s->hash[i] = x ^ x >> 31;
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
    s->kind = strata_host_new(items, sizeof *s->kind);
    s->last_of_kind = strata_host_new(items, sizeof *s->last_of_kind);
    s->fixed = strata_host_new(items, sizeof *s->fixed);
    s->hash = strata_host_new(items, sizeof *s->hash);
    s->height = strata_host_new(sections, sizeof *s->height);
    s->room = strata_host_new(sections, sizeof *s->room);
    s->inner = strata_host_new(sections, sizeof *s->inner);
    s->unplaced = strata_host_new(sections, sizeof *s->unplaced);
    s->crossing = strata_host_new(sections, sizeof *s->crossing);
    s->moves = strata_host_new(s->move_capacity, sizeof *s->moves);
    strata_keyed_t *keyed = strata_host_new(2 * items, sizeof *keyed);
    bool made = keyed && s->offsets && s->order && s->rank && s->twin && s->kind && s->last_of_kind && s->fixed && s->hash &&
                s->height && s->room && s->inner && s->unplaced && s->crossing && s->moves;
    if (status == STRATA_OK && made) number_kinds(s, keyed);
    strata_host_delete(keyed);
    if (status != STRATA_OK || !made) {
        strata_skyline_destroy(s);
        return STRATA_E_HOST_MEMORY;
    }
    hash_items(s);
    s->check_every = 1 + ITEMS_BETWEEN_CHECKS / items;
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
    strata_host_delete(s->kind);
    strata_host_delete(s->last_of_kind);
    strata_host_delete(s->fixed);
    strata_host_delete(s->hash);
    strata_host_delete(s->height);
    strata_host_delete(s->room);
    strata_host_delete(s->inner);
    strata_host_delete(s->unplaced);
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
