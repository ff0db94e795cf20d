#include "planning/placement/skyline.h"

#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define NO_ITEM UINT32_MAX

/* A valley: adjacent sections of one height between higher ones. An edge is its first or last section,
 * with the choices there. */
typedef struct valley {
    uint32_t from, to; /* sections; `to` is excluded */
    uint64_t floor, walls; /* the lower of the neighbors' heights; UINT64_MAX without neighbors */
} valley_t;

typedef struct edge {
    valley_t valley;
    bool right; /* true for the last section of the valley, false for the first */
    uint64_t next; /* lowest height for an item if none goes on the floor; UINT64_MAX if no item fits */
    uint32_t choices;
} edge_t;

static strata_verdict_t solve_run(strata_skyline_t *s, uint32_t from, uint32_t to);

/* ---- moves ---- */

static bool is_unplaced(const strata_skyline_t *s, uint32_t item) { return s->offsets[item] == STRATA_ANYWHERE; }

/* Puts an item on the floor of its sections, which must be flat (`sign` -1), or removes it (1). */
static void set_item(strata_skyline_t *s, uint32_t item, uint64_t offset, int sign) {
    uint32_t first = s->sections.first[item], last = s->sections.last[item], one = (uint32_t)sign;
    uint64_t size = s->problem->items[item].size;
    s->offsets[item] = sign < 0 ? offset : STRATA_ANYWHERE;
    for (uint32_t i = first; i <= last; i++) {
        s->height[i] = sign < 0 ? s->height[i] + size : s->height[i] - size;
        s->unplaced[i] += one;
        if (i < last) s->crossing[i] += one;
    }
}

static bool note_move(strata_skyline_t *s, struct strata_move move) {
    if (s->move_count == s->move_capacity) return false;
    s->moves[s->move_count++] = move;
    return true;
}

static bool place(strata_skyline_t *s, uint32_t item, uint64_t offset) {
    if (!note_move(s, (struct strata_move){.item = item})) return false;
    set_item(s, item, offset, -1);
    return true;
}

static bool waste(strata_skyline_t *s, uint32_t section, uint64_t bytes) {
    if (!note_move(s, (struct strata_move){.item = NO_ITEM, .section = section, .wasted = bytes})) return false;
    s->height[section] += bytes;
    s->room[section] -= bytes;
    return true;
}

static void undo_to(strata_skyline_t *s, uint32_t count) {
    while (s->move_count > count) {
        const struct strata_move *move = &s->moves[--s->move_count];
        if (move->item != NO_ITEM) {
            set_item(s, move->item, 0, 1);
        } else {
            s->height[move->section] -= move->wasted;
            s->room[move->section] += move->wasted;
        }
    }
}

/* ---- choices ---- */

/* Returns true if a fixed item blocks an item on the floor. */
static bool overlaps_fixed(const strata_skyline_t *s, uint32_t item, uint64_t floor) {
    const strata_problem_t *p = s->problem;
    for (uint32_t k = 0; k < s->fixed_count; k++) {
        uint32_t i = s->fixed[k];
        if (i != item && is_unplaced(s, i) && s->sections.first[i] <= s->sections.last[item] &&
            s->sections.last[i] >= s->sections.first[item] && floor + p->items[item].size > p->items[i].fixed)
            return true;
    }
    return false;
}

/* Returns true if the item, which begins or ends at the edge, can go on the floor of the valley. */
static bool can_place(const strata_skyline_t *s, const valley_t *v, uint32_t item) {
    const strata_item_t *it = &s->problem->items[item];
    if (!is_unplaced(s, item) || s->sections.first[item] < v->from || s->sections.last[item] >= v->to) return false;
    if (s->twin[item] != NO_ITEM && is_unplaced(s, s->twin[item])) return false;
    if (v->floor % it->alignment || v->floor + it->size - it->slack > s->target) return false;
    if (!s->problem->fixed) return true;
    return it->fixed == STRATA_ANYWHERE ? !overlaps_fixed(s, item, v->floor) : it->fixed == v->floor;
}

/* Returns the items that begin, or end, at the edge. */
static const uint32_t *items_at_edge(const strata_skyline_t *s, const edge_t *e, uint32_t *count) {
    const strata_sections_t *x = &s->sections;
    uint32_t section = e->right ? e->valley.to - 1 : e->valley.from;
    const uint32_t *at = e->right ? x->end_at : x->begin_at, *list = e->right ? x->ending : x->beginning;
    *count = at[section + 1] - at[section];
    return list + at[section];
}

/* Finds the farthest section reached by items at the edge that fit into the valley. Returns false if there are none. */
static bool reach_of_inner(const strata_skyline_t *s, const edge_t *e, uint32_t *reach) {
    uint32_t count, found = UINT32_MAX;
    const uint32_t *items = items_at_edge(s, e, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = s->sections.first[items[i]], last = s->sections.last[items[i]];
        if (!is_unplaced(s, items[i]) || first < e->valley.from || last >= e->valley.to) continue;
        if (found == UINT32_MAX || (e->right ? first < found : last > found)) found = e->right ? first : last;
    }
    *reach = found;
    return found != UINT32_MAX;
}

/* Returns the smallest item that may go on the floor beside the edge, under an item that begins or ends there. */
static uint64_t min_beside(const strata_skyline_t *s, const edge_t *e, uint32_t reach) {
    const strata_sections_t *x = &s->sections;
    const valley_t *v = &e->valley;
    uint64_t least = UINT64_MAX;
    uint32_t begin = e->right ? v->from : v->from + 1, end = e->right ? v->to : reach + 1;
    for (uint32_t i = x->begin_at[begin]; i < x->begin_at[end]; i++) {
        uint32_t item = x->beginning[i];
        if (!is_unplaced(s, item) || x->last[item] >= v->to - e->right || (e->right && x->last[item] < reach)) continue;
        least = strata_min(least, s->problem->items[item].size);
    }
    return least;
}

/* Items with a larger alignment begin at its next multiple. */
static uint64_t next_multiple(const strata_skyline_t *s, const edge_t *e) {
    uint32_t count;
    uint64_t next = UINT64_MAX;
    const uint32_t *items = items_at_edge(s, e, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t alignment = s->problem->items[items[i]].alignment;
        if (is_unplaced(s, items[i]) && e->valley.floor % alignment)
            next = strata_min(next, strata_align_up(e->valley.floor, alignment));
    }
    return next;
}

static uint64_t next_fixed(const strata_skyline_t *s, uint32_t section, uint64_t floor) {
    const strata_problem_t *p = s->problem;
    uint64_t next = UINT64_MAX;
    for (uint32_t k = 0; k < s->fixed_count; k++) {
        uint32_t i = s->fixed[k];
        if (p->items[i].fixed > floor && is_unplaced(s, i) && s->sections.first[i] <= section && s->sections.last[i] >= section)
            next = strata_min(next, p->items[i].fixed);
    }
    return next;
}

/* Returns a lower bound for the lowest item of the edge's section if it is not on the floor. An item that
 * does not fit into the valley begins at a wall or above. An item that fits may begin on another one in
 * the valley, or at its next multiple. */
static uint64_t next_begin(const strata_skyline_t *s, const edge_t *e) {
    const valley_t *v = &e->valley;
    uint64_t next = v->walls;
    uint32_t reach;
    if (reach_of_inner(s, e, &reach)) {
        uint64_t beside = min_beside(s, e, reach);
        if (beside != UINT64_MAX) next = strata_min(next, v->floor + beside);
        next = strata_min(next, next_multiple(s, e));
    }
    return s->problem->fixed ? strata_min(next, next_fixed(s, e->right ? v->to - 1 : v->from, v->floor)) : next;
}

static void count_choices(const strata_skyline_t *s, edge_t *e) {
    uint32_t count, section = e->right ? e->valley.to - 1 : e->valley.from;
    const uint32_t *items = items_at_edge(s, e, &count);
    e->choices = 0;
    e->next = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) e->choices += can_place(s, &e->valley, items[i]);
    if (s->room[section] == 0) return;
    uint64_t next = next_begin(s, e);
    if (next == UINT64_MAX || next - e->valley.floor > s->room[section]) return;
    e->next = next;
    e->choices++;
}

/* Finds the valley that begins at section `from`. Returns false if a lower section is beside it. */
static bool valley_at(const strata_skyline_t *s, uint32_t from, uint32_t begin, uint32_t end, valley_t *v) {
    *v = (valley_t){.from = from, .to = from + 1, .floor = s->height[from], .walls = UINT64_MAX};
    while (v->to < end && s->height[v->to] == v->floor) v->to++;
    if (from > begin) v->walls = s->height[from - 1];
    if (v->to < end) v->walls = strata_min(v->walls, s->height[v->to]);
    return (from == begin || s->height[from - 1] > v->floor) && (v->to == end || s->height[v->to] > v->floor);
}

/* An item that does not fit into the valley begins at a wall or above. Below that height a section holds
 * only items that fit, and wastes the rest. Returns false if a section does not have the room for that. */
static bool can_fill(const strata_skyline_t *s, const valley_t *v) {
    const strata_sections_t *x = &s->sections;
    uint64_t sum = 0;
    memset(s->inner + v->from, 0, (v->to - v->from + 1) * sizeof *s->inner);
    for (uint32_t i = x->begin_at[v->from]; i < x->begin_at[v->to]; i++) {
        uint32_t item = x->beginning[i];
        if (!is_unplaced(s, item) || x->last[item] >= v->to) continue;
        s->inner[x->first[item]] += s->problem->items[item].size;
        s->inner[x->last[item] + 1] -= s->problem->items[item].size; /* may wrap below zero until it is summed */
    }
    for (uint32_t section = v->from; section < v->to; section++) {
        sum += s->inner[section];
        if (v->floor + sum + s->room[section] < v->walls) return false;
    }
    return true;
}

static uint32_t width_of(const edge_t *e) { return e->valley.to - e->valley.from; }

/* Returns the edge with the fewest choices, and among equals the one of the widest valley. */
static edge_t best_edge(strata_skyline_t *s, uint32_t begin, uint32_t end) {
    edge_t best = {.choices = UINT32_MAX}, e = {.choices = 0};
    for (uint32_t from = begin; from < end; from = e.valley.to) {
        if (!valley_at(s, from, begin, end, &e.valley)) continue;
        if (e.valley.walls != UINT64_MAX && !can_fill(s, &e.valley)) return (edge_t){.choices = 0};
        for (int right = 0; right < 2; right++) {
            e.right = right;
            count_choices(s, &e);
            if (e.choices < best.choices || (e.choices == best.choices && width_of(&e) > width_of(&best))) best = e;
            if (best.choices == 0) return best;
        }
    }
    return best;
}

/* ---- the search ---- */

static bool is_exhausted(strata_skyline_t *s) {
    if (s->steps++ >= s->step_limit || s->depth >= STRATA_SKYLINE_DEPTH) return true;
    return s->steps % s->check_every == 0 && strata_problem_time_is_up(s->problem);
}

/* Tries an item on the floor. */
static strata_verdict_t try_item(strata_skyline_t *s, uint32_t item, uint64_t floor, uint32_t from, uint32_t to) {
    uint32_t begun = s->move_count;
    if (!place(s, item, floor)) return STRATA_VERDICT_STOPPED;
    strata_verdict_t verdict = solve_run(s, from, to);
    if (verdict == STRATA_VERDICT_IMPOSSIBLE) undo_to(s, begun);
    return verdict;
}

static strata_verdict_t decide_edge(strata_skyline_t *s, uint32_t from, uint32_t to) {
    edge_t e = best_edge(s, from, to);
    uint32_t count, begun = s->move_count, section = e.right ? e.valley.to - 1 : e.valley.from;
    if (e.choices == 0) return STRATA_VERDICT_IMPOSSIBLE;
    const uint32_t *items = items_at_edge(s, &e, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!can_place(s, &e.valley, items[i])) continue;
        strata_verdict_t verdict = try_item(s, items[i], e.valley.floor, from, to);
        if (verdict != STRATA_VERDICT_IMPOSSIBLE) return verdict;
    }
    if (e.next == UINT64_MAX) return STRATA_VERDICT_IMPOSSIBLE;
    if (!waste(s, section, e.next - e.valley.floor)) return STRATA_VERDICT_STOPPED;
    strata_verdict_t verdict = solve_run(s, from, to);
    if (verdict == STRATA_VERDICT_IMPOSSIBLE) undo_to(s, begun);
    return verdict;
}

static valley_t lowest_valley(const strata_skyline_t *s, uint32_t begin, uint32_t end) {
    valley_t lowest = {.floor = UINT64_MAX}, v;
    for (uint32_t from = begin; from < end; from = v.to)
        if (valley_at(s, from, begin, end, &v) && v.floor < lowest.floor) lowest = v;
    return lowest;
}

/* Returns the lowest height in the valley for an item if none goes on its floor. */
static uint64_t next_in_valley(const strata_skyline_t *s, const valley_t *v) {
    uint64_t next = v->walls;
    for (uint32_t section = v->from; section < v->to; section++) {
        edge_t at = {.valley = {.from = section, .to = v->to, .floor = v->floor}};
        next = strata_min(next, next_multiple(s, &at));
        if (s->problem->fixed) next = strata_min(next, next_fixed(s, section, v->floor));
    }
    return next;
}

/* Tries every item on the floor of the lowest valley, and then none. */
static strata_verdict_t decide_lowest(strata_skyline_t *s, uint32_t from, uint32_t to) {
    valley_t v = lowest_valley(s, from, to);
    uint32_t begun = s->move_count;
    for (uint32_t i = 0; i < s->problem->item_count; i++) {
        /* With many fixed items, one scan of all others takes long. */
        if (i % s->check_every == s->check_every - 1 && s->fixed_count > 0 && strata_problem_time_is_up(s->problem))
            return STRATA_VERDICT_STOPPED;
        if (!can_place(s, &v, s->order[i])) continue;
        strata_verdict_t verdict = try_item(s, s->order[i], v.floor, from, to);
        if (verdict != STRATA_VERDICT_IMPOSSIBLE) return verdict;
    }
    uint64_t next = next_in_valley(s, &v);
    for (uint32_t section = v.from; section < v.to; section++)
        if (next == UINT64_MAX || next - v.floor > s->room[section]) return STRATA_VERDICT_IMPOSSIBLE;
    for (uint32_t section = v.from; section < v.to; section++)
        if (!waste(s, section, next - v.floor)) return STRATA_VERDICT_STOPPED;
    strata_verdict_t verdict = solve_run(s, from, to);
    if (verdict == STRATA_VERDICT_IMPOSSIBLE) undo_to(s, begun);
    return verdict;
}

/* Returns a key of the items left in a run of sections, independent of their order. */
static uint64_t key_of(const strata_skyline_t *s, uint32_t from, uint32_t to) {
    const strata_sections_t *x = &s->sections;
    uint64_t key = (uint64_t)from << 32 | to;
    for (uint32_t i = x->begin_at[from]; i < x->begin_at[to]; i++)
        if (is_unplaced(s, x->beginning[i])) key ^= s->hash[x->beginning[i]];
    return key;
}

/* Solves sections that are connected by items that are left. */
static strata_verdict_t solve_part(strata_skyline_t *s, uint32_t from, uint32_t to) {
    if (is_exhausted(s)) return STRATA_VERDICT_STOPPED;
    uint64_t key = key_of(s, from, to);
    if (strata_memo_has(&s->memo, key, s->room + from, to - from)) return STRATA_VERDICT_IMPOSSIBLE;
    s->depth++;
    strata_verdict_t verdict = s->lowest ? decide_lowest(s, from, to) : decide_edge(s, from, to);
    s->depth--;
    if (verdict == STRATA_VERDICT_IMPOSSIBLE) strata_memo_note(&s->memo, key, s->room + from, to - from);
    return verdict;
}

/* Finds the part with the fewest sections among those with items left. Returns false if there is none. */
static bool smallest_part(const strata_skyline_t *s, uint32_t from, uint32_t to, uint32_t *begin, uint32_t *end) {
    *begin = *end = from;
    for (uint32_t at = from, next; at < to; at = next) {
        for (next = at; next < to - 1 && s->crossing[next]; next++) continue;
        next++;
        if (s->unplaced[at] == 0 || (*end > *begin && next - at >= *end - *begin)) continue;
        *begin = at;
        *end = next;
    }
    return *end > *begin;
}

/* Solves any sections part by part, the smallest first, since it fails soonest. A solved part is kept
 * until another part turns out to be impossible. */
static strata_verdict_t solve_run(strata_skyline_t *s, uint32_t from, uint32_t to) {
    uint32_t begun = s->move_count, begin, end;
    while (smallest_part(s, from, to, &begin, &end)) {
        strata_verdict_t verdict = solve_part(s, begin, end);
        if (verdict == STRATA_VERDICT_SOLVED) continue;
        if (verdict == STRATA_VERDICT_IMPOSSIBLE) undo_to(s, begun);
        return verdict;
    }
    return STRATA_VERDICT_SOLVED;
}

/* ---- start ---- */

/* Resets the search. Returns false if some section needs more than the peak. */
static bool begin(strata_skyline_t *s, uint64_t peak) {
    const strata_problem_t *p = s->problem;
    size_t sections = s->sections.count;
    memset(s->height, 0, sections * sizeof *s->height);
    memset(s->unplaced, 0, sections * sizeof *s->unplaced);
    memset(s->crossing, 0, sections * sizeof *s->crossing);
    for (size_t i = 0; i < sections; i++) s->room[i] = peak + p->slack;
    for (uint32_t i = 0; i < p->item_count; i++) {
        s->offsets[i] = STRATA_ANYWHERE;
        for (uint32_t k = s->sections.first[i]; k <= s->sections.last[i]; k++) {
            if (s->room[k] < p->items[i].size) return false;
            s->room[k] -= p->items[i].size;
            s->unplaced[k]++;
            if (k < s->sections.last[i]) s->crossing[k]++;
        }
    }
    s->target = peak;
    s->move_count = s->depth = 0;
    s->steps = 0;
    return true;
}

strata_verdict_t strata_skyline_solve(strata_skyline_t *s, uint64_t peak, uint64_t steps) {
    /* Dead ends remain valid at other heights, if only the room between them matters. */
    if (s->memo_target != peak && s->absolute) strata_memo_clear(&s->memo);
    s->memo_target = peak;
    s->step_limit = steps;
    if (!begin(s, peak)) return STRATA_VERDICT_IMPOSSIBLE;
    return solve_run(s, 0, s->sections.count);
}
