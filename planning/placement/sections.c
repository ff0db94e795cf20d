#include "planning/placement/sections.h"

#include <string.h>

#include "platform/host/host_memory.h"

/* Sorts begins and ends by time, ends first. */
static void order_events(const strata_problem_t *p, strata_keyed_t *events) {
    size_t count = 2 * (size_t)p->item_count;
    for (uint32_t i = 0; i < p->item_count; i++) {
        events[2 * (size_t)i] = (strata_keyed_t){2 * (uint64_t)p->items[i].lower + 1, i};
        events[2 * (size_t)i + 1] = (strata_keyed_t){2 * (uint64_t)p->items[i].upper, i};
    }
    strata_sort_keyed(events, events + count, count);
}

/* A section ends at the first end after a begin. */
static void number_sections(strata_sections_t *s, const strata_keyed_t *events, size_t count) {
    bool begun = false;
    for (size_t e = 0; e < count; e++) {
        bool begins = events[e].key % 2;
        if (begins) {
            s->first[events[e].value] = s->count;
        } else {
            if (begun) s->count++;
            s->last[events[e].value] = s->count - 1;
        }
        begun = begins;
    }
}

/* Builds `at` and `list` from the section of each item. */
static void list_by(const uint32_t *section, uint32_t items, uint32_t sections, uint32_t *at, uint32_t *list) {
    memset(at, 0, ((size_t)sections + 2) * sizeof *at);
    for (uint32_t i = 0; i < items; i++) at[section[i] + 2]++;
    for (uint32_t s = 2; s < sections + 2; s++) at[s] += at[s - 1];
    for (uint32_t i = 0; i < items; i++) list[at[section[i] + 1]++] = i;
}

strata_status_t strata_sections_make(strata_sections_t *s, const strata_problem_t *p) {
    size_t room = (size_t)p->item_count + 2;
    strata_keyed_t *events = strata_host_new(4 * room, sizeof *events);
    *s = (strata_sections_t){.first = strata_host_new(room, sizeof *s->first),
                             .last = strata_host_new(room, sizeof *s->last),
                             .begin_at = strata_host_new(room, sizeof *s->begin_at),
                             .beginning = strata_host_new(room, sizeof *s->beginning),
                             .end_at = strata_host_new(room, sizeof *s->end_at),
                             .ending = strata_host_new(room, sizeof *s->ending)};
    bool made = events && s->first && s->last && s->begin_at && s->beginning && s->end_at && s->ending;
    if (made) {
        order_events(p, events);
        number_sections(s, events, 2 * (size_t)p->item_count);
        list_by(s->first, p->item_count, s->count, s->begin_at, s->beginning);
        list_by(s->last, p->item_count, s->count, s->end_at, s->ending);
    } else {
        strata_sections_delete(s);
    }
    strata_host_delete(events);
    return made ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_sections_delete(strata_sections_t *s) {
    strata_host_delete(s->first);
    strata_host_delete(s->last);
    strata_host_delete(s->begin_at);
    strata_host_delete(s->beginning);
    strata_host_delete(s->end_at);
    strata_host_delete(s->ending);
    *s = (strata_sections_t){0};
}

static void order_list(const uint32_t *at, uint32_t *list, uint32_t sections, const uint32_t *rank, strata_keyed_t *keyed) {
    for (uint32_t s = 0; s < sections; s++) {
        uint32_t begin = at[s], count = at[s + 1] - begin;
        for (uint32_t i = 0; i < count; i++) keyed[i] = (strata_keyed_t){rank[list[begin + i]], list[begin + i]};
        strata_sort_keyed(keyed, keyed + count, count);
        for (uint32_t i = 0; i < count; i++) list[begin + i] = keyed[i].value;
    }
}

strata_status_t strata_sections_order(strata_sections_t *s, uint32_t items, const uint32_t *rank) {
    strata_keyed_t *keyed = strata_host_new(2 * (size_t)items + 1, sizeof *keyed);
    if (!keyed) return STRATA_E_HOST_MEMORY;
    order_list(s->begin_at, s->beginning, s->count, rank, keyed);
    order_list(s->end_at, s->ending, s->count, rank, keyed);
    strata_host_delete(keyed);
    return STRATA_OK;
}
