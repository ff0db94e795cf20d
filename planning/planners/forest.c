#include "planning/planners/forest.h"

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { SPLITS_AT_FIRST = 256, SPLITS_MAX = 1 << 22 };

strata_status_t strata_forest_init(strata_forest_t *f, const strata_problem_t *p, bool close_gaps) {
    *f = (strata_forest_t){.problem = p, .close_gaps = close_gaps, .alignment = STRATA_FOREST_ALIGNMENT, .used = 1};
    f->capacity = SPLITS_AT_FIRST;
    f->splits = strata_host_new(f->capacity, sizeof *f->splits);
    f->lower = strata_host_new((size_t)p->item_count + 1, sizeof *f->lower);
    f->upper = strata_host_new((size_t)p->item_count + 1, sizeof *f->upper);
    if (!f->splits || !f->lower || !f->upper) {
        strata_forest_destroy(f);
        return STRATA_E_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < p->item_count; i++) f->alignment = strata_max(f->alignment, p->items[i].alignment);
    return STRATA_OK;
}

void strata_forest_destroy(strata_forest_t *f) {
    strata_host_delete(f->splits);
    strata_host_delete(f->lower);
    strata_host_delete(f->upper);
}

/* ---- splits ---- */

static bool grow(strata_forest_t *f) {
    uint32_t capacity = 2 * f->capacity;
    strata_split_t *splits = capacity <= SPLITS_MAX ? strata_host_resize(f->splits, capacity, sizeof *splits) : NULL;
    if (!splits) {
        if (capacity > SPLITS_MAX) (void)strata_fail(STRATA_E_LIMIT, 0, "tree: more than %d splits", SPLITS_MAX);
        f->failed = true;
        return false;
    }
    f->splits = splits;
    f->capacity = capacity;
    return true;
}

static uint32_t new_split(strata_forest_t *f, strata_split_t split) {
    if (f->used == f->capacity && !grow(f)) return 0;
    f->splits[f->used] = split;
    return f->used++;
}

static uint32_t new_allocation(strata_forest_t *f, uint32_t item) {
    return new_split(f, (strata_split_t){.kind = STRATA_SPLIT_ALLOCATION,
                                         .item = item,
                                         .lower = f->lower[item],
                                         .upper = f->upper[item],
                                         .size = strata_forest_size_of(f, item)});
}

static uint32_t new_empty(strata_forest_t *f, uint64_t size) {
    return new_split(f, (strata_split_t){.kind = STRATA_SPLIT_EMPTY, .lower = UINT64_MAX, .size = size});
}

static void add_part(strata_forest_t *f, uint32_t temporal, uint32_t part) {
    strata_split_t *t = &f->splits[temporal], *x = &f->splits[part];
    x->next = 0;
    if (t->last) f->splits[t->last].next = part;
    else t->first = part;
    t->last = part;
    t->lower = strata_min(t->lower, x->lower);
    t->upper = strata_max(t->upper, x->upper);
    t->size = strata_max(t->size, x->size);
}

static uint32_t new_temporal(strata_forest_t *f, uint32_t part) {
    uint32_t temporal = new_split(f, (strata_split_t){.kind = STRATA_SPLIT_TEMPORAL, .lower = UINT64_MAX});
    add_part(f, temporal, part);
    return temporal;
}

static void measure_spatial(const strata_forest_t *f, strata_split_t *s) {
    const strata_split_t *left = &f->splits[s->first], *right = &f->splits[s->last];
    s->lower = strata_min(left->lower, right->lower);
    s->upper = strata_max(left->upper, right->upper);
    s->size = strata_align_up(left->size, f->alignment) + right->size;
}

static uint32_t new_spatial(strata_forest_t *f, uint32_t left, uint32_t right) {
    strata_split_t split = {.kind = STRATA_SPLIT_SPATIAL, .first = left, .last = right};
    measure_spatial(f, &split);
    return new_split(f, split);
}

/* Adds room behind a part. Returns the part itself for 0 bytes. */
static uint32_t pad_part(strata_forest_t *f, uint32_t part, uint64_t room) {
    if (room == 0) return part;
    uint32_t left = new_temporal(f, part), empty = new_empty(f, room), right = new_temporal(f, empty);
    return new_spatial(f, left, right);
}

/* Measures a split again after a change below it. */
static void measure(strata_forest_t *f, uint32_t split) {
    strata_split_t *s = &f->splits[split];
    if (s->kind == STRATA_SPLIT_SPATIAL) measure_spatial(f, s);
    if (s->kind != STRATA_SPLIT_TEMPORAL) return;
    s->size = 0;
    s->lower = UINT64_MAX;
    s->upper = 0;
    for (uint32_t part = s->first; part; part = f->splits[part].next) {
        s->size = strata_max(s->size, f->splits[part].size);
        s->lower = strata_min(s->lower, f->splits[part].lower);
        s->upper = strata_max(s->upper, f->splits[part].upper);
    }
}

/* Returns true if something below is live at the same time as the item. Live ranges are unions, so there
 * may be a hole between earlier and later items. */
static bool overlaps(const strata_forest_t *f, uint32_t split, uint32_t item) {
    const strata_split_t *s = &f->splits[split];
    if (s->kind == STRATA_SPLIT_EMPTY || s->lower >= f->upper[item] || s->upper <= f->lower[item]) return false;
    if (s->kind == STRATA_SPLIT_ALLOCATION) return true;
    if (s->kind == STRATA_SPLIT_SPATIAL)
        return overlaps(f, s->last, item) || overlaps(f, s->first, item); /* the right side is usually less deep */
    for (uint32_t part = s->first; part; part = f->splits[part].next)
        if (overlaps(f, part, item)) return true;
    return false;
}

static bool is_empty(const strata_forest_t *f, uint32_t split) {
    const strata_split_t *s = &f->splits[split];
    if (s->kind == STRATA_SPLIT_TEMPORAL) return s->first && s->first == s->last && is_empty(f, s->first);
    return s->kind == STRATA_SPLIT_EMPTY;
}

/* ---- insertion of an item ---- */

/* Removes all parts of a temporal split, and returns the first of them, linked by `next`. */
static uint32_t detach_parts(strata_forest_t *f, uint32_t temporal) {
    uint32_t parts = f->splits[temporal].first;
    f->splits[temporal] = (strata_split_t){.kind = STRATA_SPLIT_TEMPORAL, .next = f->splits[temporal].next, .lower = UINT64_MAX};
    return parts;
}

/* Puts an item beside parts that it does not overlap in time. */
static void insert_beside(strata_forest_t *f, uint32_t temporal, uint32_t item) {
    uint64_t room = f->splits[temporal].size, size = strata_forest_size_of(f, item);
    if (is_empty(f, temporal)) (void)detach_parts(f, temporal);
    for (uint32_t part = size > room ? detach_parts(f, temporal) : 0, next; part && !f->failed; part = next) {
        next = f->splits[part].next;
        add_part(f, temporal, pad_part(f, part, size - room));
    }
    uint32_t allocation = new_allocation(f, item);
    add_part(f, temporal, pad_part(f, allocation, size < room ? room - size : 0));
}

/* Returns a part without the empty room at its end. */
static uint32_t trim_part(const strata_forest_t *f, uint32_t part) {
    const strata_split_t *s = &f->splits[part];
    if (s->kind == STRATA_SPLIT_SPATIAL && is_empty(f, s->last)) {
        uint32_t left = s->first;
        if (f->splits[left].first == f->splits[left].last) return trim_part(f, f->splits[left].first);
        return left;
    }
    return part;
}

/* Returns the size that several parts need together, if they overlap the item in time. */
static uint64_t size_of_overlapping(const strata_forest_t *f, uint32_t temporal, uint32_t item) {
    uint64_t size = 0;
    for (uint32_t part = f->splits[temporal].first; part; part = f->splits[part].next)
        if (overlaps(f, part, item)) size = strata_max(size, f->splits[trim_part(f, part)].size);
    return size;
}

/* Closes a gap of the peer's rules: the parts that the item overlaps in time become one part, with the
 * item behind them. */
static bool insert_behind_overlapping(strata_forest_t *f, uint32_t temporal, uint32_t item, bool grows) {
    uint64_t room = f->splits[temporal].size, size = strata_forest_size_of(f, item);
    uint64_t needed = strata_align_up(size_of_overlapping(f, temporal, item), f->alignment) + size;
    if (needed > room && !grows) return false;
    uint64_t total = strata_max(room, needed);
    uint32_t left = new_split(f, (strata_split_t){.kind = STRATA_SPLIT_TEMPORAL, .lower = UINT64_MAX});
    for (uint32_t part = detach_parts(f, temporal), next; part && !f->failed; part = next) {
        next = f->splits[part].next;
        if (overlaps(f, part, item)) add_part(f, left, trim_part(f, part));
        else add_part(f, temporal, pad_part(f, part, total - room));
    }
    uint32_t allocation = new_allocation(f, item), right = new_temporal(f, pad_part(f, allocation, total - needed));
    add_part(f, temporal, new_spatial(f, left, right));
    return true;
}

static bool insert(strata_forest_t *f, uint32_t split, uint32_t item, bool grows);

static bool insert_temporal(strata_forest_t *f, uint32_t temporal, uint32_t item, bool grows) {
    uint32_t overlapping = 0, count = 0;
    if (!grows && strata_forest_size_of(f, item) > f->splits[temporal].size) return false;
    for (uint32_t part = f->splits[temporal].first; part; part = f->splits[part].next) {
        if (!overlaps(f, part, item)) continue;
        overlapping = part;
        count++;
    }
    if (count > 1) return f->close_gaps && insert_behind_overlapping(f, temporal, item, grows);
    if (count == 1) return insert(f, overlapping, item, grows);
    insert_beside(f, temporal, item);
    return true;
}

static bool insert(strata_forest_t *f, uint32_t split, uint32_t item, bool grows) {
    strata_split_kind_t kind = f->splits[split].kind;
    bool done = false;
    if (kind == STRATA_SPLIT_TEMPORAL) done = insert_temporal(f, split, item, grows);
    if (kind == STRATA_SPLIT_SPATIAL)
        done = insert(f, f->splits[split].first, item, false) || insert(f, f->splits[split].last, item, grows);
    if (done) measure(f, split);
    return done;
}

uint32_t strata_forest_new_pool(strata_forest_t *f, uint32_t item) { return new_temporal(f, new_allocation(f, item)); }

bool strata_forest_insert(strata_forest_t *f, uint32_t root, uint32_t item, bool grows) { return insert(f, root, item, grows); }

uint32_t strata_forest_append(strata_forest_t *f, uint32_t root, uint32_t item) {
    uint32_t right = strata_forest_new_pool(f, item);
    return new_temporal(f, new_spatial(f, root, right));
}

/* Drops the empty room at the end of a spatial split. */
uint64_t strata_forest_set_offsets(const strata_forest_t *f, uint32_t split, uint64_t offset, uint64_t *offsets) {
    const strata_split_t *s = &f->splits[split];
    uint64_t size = 0;
    if (s->kind == STRATA_SPLIT_EMPTY) return 0;
    if (s->kind == STRATA_SPLIT_ALLOCATION) {
        offsets[s->item] = offset;
        return s->size;
    }
    if (s->kind == STRATA_SPLIT_SPATIAL) {
        size = strata_forest_set_offsets(f, s->first, offset, offsets);
        if (is_empty(f, s->last)) return size;
        size = strata_align_up(size, f->alignment);
        return size + strata_forest_set_offsets(f, s->last, offset + size, offsets);
    }
    for (uint32_t part = s->first; part; part = f->splits[part].next)
        size = strata_max(size, strata_forest_set_offsets(f, part, offset, offsets));
    return size;
}
