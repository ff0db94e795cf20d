#include "lab/tools/plan/steps.h"

/* SAME is the number of equal events required before a distance is examined, and PLACES the number of places
 * where this is tried. SHORTEST is the shortest step. From one place, at most PASSES times all events are
 * examined. */
enum { SAME = 24, PLACES = 4, SHORTEST = 4, PASSES = 32 };

/* Finds the stretch around `at` in which every event equals the one `distance` later. */
static void stretch_of(const strata_step_event_t *e, size_t count, size_t at, size_t distance, size_t *from, size_t *to) {
    *from = *to = at;
    while (*from > 0 && e[*from - 1].signature == e[*from - 1 + distance].signature) --*from;
    while (*to + distance < count && e[*to].signature == e[*to + distance].signature) ++*to;
}

static bool is_repeat(const strata_step_event_t *e, size_t count, size_t at, size_t distance) {
    for (size_t i = 0; i < SAME; i++)
        if (at + i + distance >= count || e[at + i].signature != e[at + i + distance].signature) return false;
    return true;
}

/* Returns the event of the first step at which the fewest bytes live. */
static size_t quietest(const strata_step_event_t *e, size_t first, size_t length) {
    size_t best = first;
    for (size_t i = first; i < first + length; i++)
        if (e[i].live < e[best].live) best = i;
    return best;
}

static void try_position(const strata_step_event_t *e, size_t count, size_t at, strata_steps_t *best, size_t *covered) {
    size_t looked = 0, from, to;
    for (size_t distance = SHORTEST; distance < count / 2 && looked < PASSES * count; distance++) {
        if (!is_repeat(e, count, at, distance)) continue;
        stretch_of(e, count, at, distance, &from, &to);
        looked += to - from;
        size_t covers = to - from + distance;
        if (to - from < distance || covers <= *covered + *covered / 8) continue; /* a multiple of the step covers no more */
        *covered = covers;
        *best = (strata_steps_t){.first = from, .length = distance, .count = covers / distance};
    }
}

strata_steps_t strata_steps_find(const strata_step_event_t *e, size_t count) {
    strata_steps_t best = {0};
    size_t covered = 0;
    for (size_t i = 0; i < PLACES; i++) try_position(e, count, count * (i + 1) / (2 * PLACES), &best, &covered);
    if (covered < count / 2) return (strata_steps_t){0};
    size_t begin = quietest(e, best.first, best.length), end = best.first + covered;
    best.first = begin;
    best.count = (end - begin) / best.length;
    return best;
}
