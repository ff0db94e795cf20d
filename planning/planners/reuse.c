/* The planner `reuse` passes freed memory on to the next buffer that matches exactly, last freed first,
 * in program order. The rules are those of PyTorch Inductor's memory_plan_reuse (torch 2.9,
 * codegen/wrapper.py), in a new implementation. Waiting memory stays allocated, so it is passed on only
 * to the very next moment, or if that does not raise the peak. With `close_gaps`, the smallest larger one is
 * used if none matches exactly. */
#include "planning/planners/reuse.h"
#include "planning/problem/buffers.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define NO_BUFFER UINT32_MAX

/* ---- keys ---- */

/* Returns a part of the key of matching buffers, least significant part first. */
static uint64_t part_of_key(const strata_plan_buffer_t *b, int part) {
    switch (part) {
    case 0: return b->size;
    case 1: return b->alignment;
    case 2: return b->branch;
    case 3: return b->fork;
    default: return b->kind;
    }
}

static bool same_but_size(const strata_plan_buffer_t *a, const strata_plan_buffer_t *b) {
    for (int part = 1; part < 5; part++)
        if (part_of_key(a, part) != part_of_key(b, part)) return false;
    return true;
}

static void number_keys(strata_reuse_t *r, strata_keyed_t *keyed) {
    size_t count = r->count;
    for (uint32_t i = 0; i < count; i++) keyed[i].value = i;
    for (int part = 0; part < 5; part++) {
        for (size_t i = 0; i < count; i++) keyed[i].key = part_of_key(&r->buffers[keyed[i].value], part);
        strata_sort_keyed(keyed, keyed + count, count);
    }
    for (size_t i = 0; i < count; i++) {
        const strata_plan_buffer_t *b = &r->buffers[keyed[i].value];
        const strata_plan_buffer_t *before = i ? &r->buffers[keyed[i - 1].value] : NULL;
        if (!before || !same_but_size(b, before) || b->size != before->size)
            r->keys[r->key_count++] = (strata_reuse_key_t){NO_BUFFER, b};
        r->key_of[keyed[i].value] = r->key_count - 1;
    }
}

/* ---- the peak while memory waits ---- */

/* Adds bytes to a tree of the live bytes of each moment: `add` for whole nodes, `most` for the maximum below them. */
static void add_bytes(strata_reuse_t *r, size_t node, size_t from, size_t to, size_t begin, size_t end, int64_t bytes) {
    if (begin >= to || end <= from) return;
    if (begin <= from && to <= end) {
        r->add[node] += bytes;
        r->max_live[node] += bytes;
        return;
    }
    size_t middle = (from + to) / 2;
    add_bytes(r, 2 * node, from, middle, begin, end, bytes);
    add_bytes(r, 2 * node + 1, middle, to, begin, end, bytes);
    int64_t left = r->max_live[2 * node], right = r->max_live[2 * node + 1];
    r->max_live[node] = (left > right ? left : right) + r->add[node];
}

static int64_t max_between(const strata_reuse_t *r, size_t node, size_t from, size_t to, size_t begin, size_t end) {
    if (begin >= to || end <= from) return 0;
    if (begin <= from && to <= end) return r->max_live[node];
    size_t middle = (from + to) / 2;
    int64_t left = max_between(r, 2 * node, from, middle, begin, end), right = max_between(r, 2 * node + 1, middle, to, begin, end);
    return (left > right ? left : right) + r->add[node];
}

/* Returns true if memory of `size` may wait between two moments without raising the peak, and then counts it there. */
static bool try_hold(strata_reuse_t *r, uint32_t from, uint32_t to, uint64_t size) {
    if (from == to) return true;
    if (max_between(r, 1, 0, r->leaves, from, to) + (int64_t)size > r->peak) return false;
    add_bytes(r, 1, 0, r->leaves, from, to, (int64_t)size);
    return true;
}

/* ---- the program ---- */

static void push(strata_reuse_t *r, uint32_t buffer) {
    strata_reuse_key_t *key = &r->keys[r->key_of[r->root[buffer]]];
    r->below[buffer] = key->top;
    key->top = buffer;
}

/* Returns the key of freed memory for this buffer: its own, or with `close_gaps` the next larger one of its
 * kind that has some. */
static uint32_t find_key(const strata_reuse_t *r, uint32_t buffer) {
    uint32_t own = r->key_of[buffer];
    for (uint32_t key = own; key < r->key_count && same_but_size(r->keys[key].sample, &r->buffers[buffer]); key++) {
        if (r->keys[key].top != NO_BUFFER) return key;
        if (!r->close_gaps) break;
    }
    return NO_BUFFER;
}

static void begin_buffer(strata_reuse_t *r, uint32_t buffer) {
    uint32_t key = find_key(r, buffer), other = key == NO_BUFFER ? NO_BUFFER : r->keys[key].top;
    r->root[buffer] = buffer;
    if (other == NO_BUFFER || !try_hold(r, r->upper[other], r->lower[buffer], r->keys[key].sample->size)) return;
    r->keys[key].top = r->below[other];
    r->root[buffer] = r->root[other];
    r->next_owner[other] = buffer;
    r->prev_owner[buffer] = other;
}

/* Outputs are never freed. */
static void end_buffer(strata_reuse_t *r, uint32_t buffer) {
    if (!(r->buffers[buffer].flags & STRATA_PLAN_OUTPUT)) push(r, buffer);
}

static void run_program(strata_reuse_t *r) {
    for (size_t e = 0; e < 2 * r->count; e++) {
        uint32_t buffer = r->events[e].value;
        if (!strata_buffer_counts(&r->buffers[buffer])) continue;
        if (strata_reuse_begins(&r->events[e])) begin_buffer(r, buffer);
        else end_buffer(r, buffer);
    }
}

/* ---- making ---- */

/* Sorts the events, ends before begins at one moment, and numbers the moments. */
static void order_events(strata_reuse_t *r, strata_keyed_t *scratch) {
    size_t count = r->count;
    uint32_t moment = 0;
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = (strata_keyed_t){r->buffers[i].upper, i | STRATA_REUSE_ENDS};
        scratch[count + i] = (strata_keyed_t){r->buffers[i].lower, i};
    }
    strata_sort_keyed(scratch, scratch + 2 * count, 2 * count);
    for (size_t e = 0; e < 2 * count; e++) {
        if (e > 0 && scratch[e].key != scratch[e - 1].key) moment++;
        uint32_t buffer = scratch[e].value & ~STRATA_REUSE_ENDS;
        bool begins = !(scratch[e].value & STRATA_REUSE_ENDS);
        r->events[e] = (strata_keyed_t){(uint64_t)moment << 1 | begins, buffer};
        if (begins) r->lower[buffer] = moment;
        else r->upper[buffer] = moment;
    }
    for (r->leaves = 1; r->leaves < (size_t)moment + 1;) r->leaves *= 2;
}

static void count_live(strata_reuse_t *r) {
    for (size_t i = 0; i < r->count; i++)
        if (strata_buffer_counts(&r->buffers[i]))
            add_bytes(r, 1, 0, r->leaves, r->lower[i], r->upper[i], (int64_t)r->buffers[i].size);
    r->peak = r->max_live[1];
}

static strata_status_t allocate_arrays(strata_reuse_t *r) {
    size_t room = r->count + 1;
    r->events = strata_host_new(2 * room, sizeof *r->events);
    r->keys = strata_host_new(room, sizeof *r->keys);
    uint32_t **const arrays[] = {&r->key_of, &r->lower, &r->upper, &r->below, &r->root, &r->next_owner, &r->prev_owner};
    bool made = r->events && r->keys;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays && made; i++) {
        *arrays[i] = strata_host_new(room, sizeof **arrays[i]);
        made = *arrays[i] != NULL;
    }
    for (size_t i = 0; made && i < r->count; i++) r->next_owner[i] = r->prev_owner[i] = NO_BUFFER;
    return made ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

static strata_status_t prepare(strata_reuse_t *r) {
    strata_status_t status = allocate_arrays(r);
    strata_keyed_t *scratch = status == STRATA_OK ? strata_host_new(4 * r->count + 1, sizeof *scratch) : NULL;
    if (!scratch) return STRATA_E_HOST_MEMORY;
    number_keys(r, scratch);
    order_events(r, scratch);
    strata_host_delete(scratch);
    r->add = strata_host_new(2 * r->leaves, sizeof *r->add);
    r->max_live = strata_host_new(2 * r->leaves, sizeof *r->max_live);
    return r->add && r->max_live ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_reuse_run(strata_reuse_t *r, const strata_plan_buffer_t *buffers, size_t count, bool close_gaps) {
    *r = (strata_reuse_t){.buffers = buffers, .count = count, .close_gaps = close_gaps};
    strata_status_t status = prepare(r);
    if (status == STRATA_OK) {
        count_live(r);
        run_program(r);
    } else {
        strata_reuse_delete(r);
    }
    return status;
}

void strata_reuse_delete(strata_reuse_t *r) {
    void *const all[] = {r->events, r->keys,       r->key_of,     r->lower, r->upper,   r->below,
                         r->root,   r->next_owner, r->prev_owner, r->add,   r->max_live};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) strata_host_delete(all[i]);
}
