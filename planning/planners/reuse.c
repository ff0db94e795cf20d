/* The planner `reuse` passes freed memory on to the next buffer that matches exactly, last freed first,
 * in program order. The rules are those of PyTorch Inductor's memory_plan_reuse (torch 2.9,
 * codegen/wrapper.py), in a new implementation. Waiting memory stays allocated, so it is passed on only
 * to the very next moment, or if that does not raise the peak. With `mended`, the smallest larger one is
 * used if none matches exactly. */
#include "planning/planners/reuse.h"
#include "planning/problem/buffers.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define NOBODY UINT32_MAX

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
            r->keys[r->key_count++] = (strata_reuse_key_t){NOBODY, b};
        r->key_of[keyed[i].value] = r->key_count - 1;
    }
}

/* ---- the peak while memory waits ---- */

/* Adds bytes to a tree of the live bytes of each moment: `add` for whole nodes, `most` for the maximum below them. */
static void add_bytes(strata_reuse_t *r, size_t node, size_t from, size_t to, size_t begin, size_t end, int64_t bytes) {
    if (begin >= to || end <= from) return;
    if (begin <= from && to <= end) {
        r->add[node] += bytes;
        r->most[node] += bytes;
        return;
    }
    size_t middle = (from + to) / 2;
    add_bytes(r, 2 * node, from, middle, begin, end, bytes);
    add_bytes(r, 2 * node + 1, middle, to, begin, end, bytes);
    int64_t left = r->most[2 * node], right = r->most[2 * node + 1];
    r->most[node] = (left > right ? left : right) + r->add[node];
}

static int64_t most_between(const strata_reuse_t *r, size_t node, size_t from, size_t to, size_t begin, size_t end) {
    if (begin >= to || end <= from) return 0;
    if (begin <= from && to <= end) return r->most[node];
    size_t middle = (from + to) / 2;
    int64_t left = most_between(r, 2 * node, from, middle, begin, end),
            right = most_between(r, 2 * node + 1, middle, to, begin, end);
    return (left > right ? left : right) + r->add[node];
}

/* Returns true if memory of `size` may wait between two moments without raising the peak, and then counts it there. */
static bool may_wait(strata_reuse_t *r, uint32_t from, uint32_t to, uint64_t size) {
    if (from == to) return true;
    if (most_between(r, 1, 0, r->leaves, from, to) + (int64_t)size > r->peak) return false;
    add_bytes(r, 1, 0, r->leaves, from, to, (int64_t)size);
    return true;
}

/* ---- the program ---- */

static void push(strata_reuse_t *r, uint32_t buffer) {
    strata_reuse_key_t *key = &r->keys[r->key_of[r->root[buffer]]];
    r->below[buffer] = key->top;
    key->top = buffer;
}

/* Returns the key of freed memory for this buffer: its own, or with `mended` the next larger one of its
 * kind that has some. */
static uint32_t find_key(const strata_reuse_t *r, uint32_t buffer) {
    uint32_t own = r->key_of[buffer];
    for (uint32_t key = own; key < r->key_count && same_but_size(r->keys[key].sample, &r->buffers[buffer]); key++) {
        if (r->keys[key].top != NOBODY) return key;
        if (!r->mended) break;
    }
    return NOBODY;
}

static void begin_buffer(strata_reuse_t *r, uint32_t buffer) {
    uint32_t key = find_key(r, buffer), other = key == NOBODY ? NOBODY : r->keys[key].top;
    r->root[buffer] = buffer;
    if (other == NOBODY || !may_wait(r, r->upper[other], r->lower[buffer], r->keys[key].sample->size)) return;
    r->keys[key].top = r->below[other];
    r->root[buffer] = r->root[other];
    r->heir[other] = buffer;
    r->from[buffer] = other;
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
    r->peak = r->most[1];
}

static strata_status_t take_memory(strata_reuse_t *r) {
    size_t room = r->count + 1;
    r->events = strata_host_new(2 * room, sizeof *r->events);
    r->keys = strata_host_new(room, sizeof *r->keys);
    uint32_t **const arrays[] = {&r->key_of, &r->lower, &r->upper, &r->below, &r->root, &r->heir, &r->from};
    bool made = r->events && r->keys;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays && made; i++) {
        *arrays[i] = strata_host_new(room, sizeof **arrays[i]);
        made = *arrays[i] != NULL;
    }
    for (size_t i = 0; made && i < r->count; i++) r->heir[i] = r->from[i] = NOBODY;
    return made ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

static strata_status_t prepare(strata_reuse_t *r) {
    strata_status_t status = take_memory(r);
    strata_keyed_t *scratch = status == STRATA_OK ? strata_host_new(4 * r->count + 1, sizeof *scratch) : NULL;
    if (!scratch) return STRATA_E_HOST_MEMORY;
    number_keys(r, scratch);
    order_events(r, scratch);
    strata_host_delete(scratch);
    r->add = strata_host_new(2 * r->leaves, sizeof *r->add);
    r->most = strata_host_new(2 * r->leaves, sizeof *r->most);
    return r->add && r->most ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_reuse_run(strata_reuse_t *r, const strata_plan_buffer_t *buffers, size_t count, bool mended) {
    *r = (strata_reuse_t){.buffers = buffers, .count = count, .mended = mended};
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
    void *const all[] = {r->events, r->keys, r->key_of, r->lower, r->upper, r->below, r->root, r->heir, r->from, r->add, r->most};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) strata_host_delete(all[i]);
}
