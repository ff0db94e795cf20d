#include "planning/file/ahead.h"

#include <stdlib.h>

#include "planning/check.h"
#include "planning/file/json.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "trace/text/lines.h"

#define PEAK_MOST ((uint64_t)1 << 48)

typedef struct reading {
    const char *path;
    const strata_ahead_reading_t *how;
    strata_plan_table_t table;
    uint64_t end; /* of the plan, in its own time */
} reading_t;

uint64_t strata_ahead_name(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

void strata_ahead_delete(strata_ahead_t *plan) {
    strata_host_delete(plan->requests);
    *plan = (strata_ahead_t){0};
}

/* ---- what is wrong ---- */

static strata_shown_t name_of(const reading_t *r, size_t buffer) { return strata_shown(strata_plan_table_name(&r->table, buffer)); }

static strata_status_t wrong(const reading_t *r, size_t buffer, const char *what) {
    uint32_t line = r->table.lines[buffer];
    return strata_fail_at(STRATA_E_FORMAT, line, 0, "%s:%u: buffer \"%s\" %s", r->path, line, name_of(r, buffer).text, what);
}

static strata_status_t they_share(const reading_t *r, const size_t pair[2]) {
    uint32_t lines[] = {r->table.lines[pair[0]], r->table.lines[pair[1]]};
    return strata_fail_at(
        STRATA_E_FORMAT, lines[1], 0,
        "%s:%u: buffers \"%s\" and \"%s\" (line %u) share bytes while both live, sizes rounded up to %d; plan anew, "
        "with alignment %d: strata plan --anew -o FILE",
        r->path, lines[1], name_of(r, pair[1]).text, name_of(r, pair[0]).text, lines[0], STRATA_AHEAD_UNIT, STRATA_AHEAD_UNIT);
}

static strata_status_t check_buffer(const reading_t *r, size_t i) {
    const strata_plan_buffer_t *b = &r->table.buffers[i];
    if (!(b->flags & STRATA_PLAN_FIXED)) return wrong(r, i, "has no offset; write the plan with strata plan -o FILE");
    if (b->offset % STRATA_AHEAD_UNIT)
        return wrong(r, i, "is at no multiple of 256; write alignment 256 for it, and plan anew: strata plan --anew -o FILE");
    if (!r->how->branch && b->branch != r->table.buffers[0].branch)
        return wrong(r, i,
                     "is of another branch than those before it; say of which branch the plan is to be loaded, or plan each apart");
    if (b->offset + b->size > PEAK_MOST) return wrong(r, i, "ends above 2^48; write smaller offsets");
    return STRATA_OK;
}

/* ---- the buffers of the branch ---- */

/* The buffers that are not of the branch leave the table. */
static void choose(reading_t *r) {
    strata_plan_table_t *t = &r->table;
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->buffers[i].size == 0 || (r->how->branch && t->buffers[i].branch != *r->how->branch)) continue;
        t->buffers[kept] = t->buffers[i];
        t->lines[kept] = t->lines[i];
        t->name_at[kept++] = t->name_at[i];
    }
    t->count = kept;
}

/* Offsets as they are, sizes and alignments as the layer serves them; whatever the forks, one stream alone asks. */
static strata_status_t check_plan(reading_t *r, uint64_t *offsets) {
    strata_plan_table_t *t = &r->table;
    size_t pair[2] = {0, 0};
    for (size_t i = 0; i < t->count; i++) {
        strata_plan_buffer_t *b = &t->buffers[i];
        b->size = strata_round_down(b->size + STRATA_AHEAD_UNIT - 1, STRATA_AHEAD_UNIT);
        b->alignment = STRATA_AHEAD_UNIT;
        b->fork = 0;
        offsets[i] = b->offset;
        if (b->upper > r->end) r->end = b->upper;
    }
    strata_status_t status = strata_plan_check_pair(t->buffers, t->count, offsets, NULL, pair);
    return status == STRATA_E_CORRUPT ? they_share(r, pair) : status;
}

static strata_status_t check(reading_t *r) {
    strata_status_t status = STRATA_OK;
    if (r->table.count > STRATA_AHEAD_REQUESTS)
        return strata_fail(STRATA_E_LIMIT, 0, "%s: %zu buffers; a plan that is followed has %d at most", r->path, r->table.count,
                           STRATA_AHEAD_REQUESTS);
    for (size_t i = 0; i < r->table.count && status == STRATA_OK; i++) status = check_buffer(r, i);
    if (status != STRATA_OK) return status;
    uint64_t *offsets = strata_host_new(r->table.count + 1, sizeof *offsets);
    status = offsets ? check_plan(r, offsets) : STRATA_E_HOST_MEMORY;
    strata_host_delete(offsets);
    return status;
}

/* ---- the requests ---- */

typedef struct turn {
    uint64_t key; /* when it is asked for, or where it lies */
    uint32_t buffer;
} turn_t;

static int by_key(const void *a, const void *b) {
    const turn_t *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

/* Nothing else has the addresses of what is held from the begin to the end: what lies above moves down. */
static void take_out_held(reading_t *r, turn_t *turns) {
    strata_plan_buffer_t *buffers = r->table.buffers;
    uint64_t out = 0;
    for (size_t i = 0; i < r->table.count; i++) turns[i] = (turn_t){buffers[i].offset, (uint32_t)i};
    qsort(turns, r->table.count, sizeof *turns, by_key);
    for (size_t i = 0; i < r->table.count; i++) {
        strata_plan_buffer_t *b = &buffers[turns[i].buffer];
        b->offset -= out;
        if ((b->flags & STRATA_PLAN_HELD) && b->upper == r->end) out += b->size;
    }
}

static void put_in_order(reading_t *r, turn_t *turns, strata_ahead_t *plan) {
    const strata_plan_buffer_t *buffers = r->table.buffers;
    uint32_t count = 0;
    for (size_t i = 0; i < r->table.count; i++)
        if (!(buffers[i].flags & STRATA_PLAN_HELD)) turns[count++] = (turn_t){buffers[i].lower, (uint32_t)i};
    qsort(turns, count, sizeof *turns, by_key);
    for (uint32_t i = 0; i < count; i++) {
        const strata_plan_buffer_t *b = &buffers[turns[i].buffer];
        plan->requests[i] = (strata_ahead_request_t){
            .size = b->size, .offset = b->offset, .name = strata_ahead_name(strata_plan_table_name(&r->table, turns[i].buffer))};
        plan->peak = strata_max(plan->peak, b->offset + b->size);
    }
    plan->count = count;
}

static strata_status_t make_requests(reading_t *r, strata_ahead_t *plan) {
    turn_t *turns = strata_host_new(r->table.count + 1, sizeof *turns);
    plan->requests = strata_host_new(r->table.count + 1, sizeof *plan->requests);
    bool made = turns && plan->requests;
    if (made) {
        take_out_held(r, turns);
        put_in_order(r, turns, plan);
    }
    strata_host_delete(turns);
    if (!made) return STRATA_E_HOST_MEMORY;
    if (plan->count > 0) return STRATA_OK;
    return strata_fail_at(STRATA_E_FORMAT, 1, 0, "%s:1: nothing is asked for in it%s", r->path,
                          r->how->branch ? " on this branch; name one that the column branch has"
                                         : "; write what strata plan -o writes");
}

strata_status_t strata_ahead_read(const char *path, const strata_ahead_reading_t *how, strata_ahead_t *plan) {
    reading_t r = {.path = path, .how = how};
    bool json = false;
    *plan = (strata_ahead_t){0};
    strata_status_t status = strata_plan_json_is_one(path, &json);
    if (status == STRATA_OK) status = json ? strata_plan_json_read(path, &r.table) : strata_plan_table_read(path, &r.table);
    if (status != STRATA_OK) return status;
    choose(&r);
    status = check(&r);
    if (status == STRATA_OK) status = make_requests(&r, plan);
    strata_plan_table_delete(&r.table);
    if (status != STRATA_OK) strata_ahead_delete(plan);
    return status;
}
