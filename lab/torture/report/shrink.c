#include "lab/torture/report/shrink.h"

#include <string.h>

#include "platform/host/host_memory.h"

typedef struct shrinking {
    torture_program_t *program;
    torture_dialect_t dialect;
    const torture_verdict_t *fault;
    torture_attempt_fn attempt;
    void *context;
    uint32_t attempts, budget;
    bool failed; /* the host has no memory, so shrinking stops */
    torture_program_t candidate;
    torture_verdict_t verdict;
} shrinking_t;

/* ---- weights ---- */

static uint64_t weight_of_op(const torture_op_t *op, const torture_needs_t *needs) {
    uint64_t weight = 10000 + op->count * 20u + op->thread * 5u;
    weight += (op->flags != 0) * 10u + (op->alignment != 0) * 10u + (op->tag != NULL) * 5u;
    weight += op->by_pointer * 5u + op->refused * 5u + (op->how != 0) * 3u;
    weight += (uint64_t)__builtin_popcount(needs->waits | needs->owner_waits) * 2 +
              (uint64_t)__builtin_popcount(needs->syncs | needs->borrows);
    for (uint64_t size = op->size; size; size >>= 1) weight++;
    for (uint32_t us = op->us; us; us >>= 1) weight++;
    return weight + op->stream;
}

static uint64_t weight_of(const torture_program_t *program) {
    uint64_t weight = program->threads * 100u + program->devices * 100u + (program->capacity ? 100u : 0);
    for (uint32_t i = 0; i < program->count; i++) weight += weight_of_op(&program->ops[i], &program->all_needs[i]);
    return weight;
}

static void begin(shrinking_t *s) { s->failed |= !torture_program_copy(&s->candidate, s->program); }

/* The candidate replaces the program if it is well-formed, smaller, and shows the same fault. */
static bool accept(shrinking_t *s) {
    s->failed |= !torture_make_well_formed(&s->candidate, s->dialect);
    if (s->failed || s->attempts == s->budget || weight_of(&s->candidate) >= weight_of(s->program)) return false;
    s->attempts++;
    s->attempt(s->context, &s->candidate, &s->verdict);
    if (!torture_same_fault(&s->verdict, s->fault)) return false;
    torture_program_t taken = s->candidate;
    s->candidate = *s->program;
    *s->program = taken;
    return true;
}

/* ---- fewer operations ---- */

static bool drop_range(shrinking_t *s, uint32_t at, uint32_t length) {
    begin(s);
    memmove(&s->candidate.ops[at], &s->candidate.ops[at + length], (s->candidate.count - at - length) * sizeof *s->candidate.ops);
    s->candidate.count -= length;
    return accept(s);
}

static bool drop_operations(shrinking_t *s) {
    bool some = false;
    for (uint32_t length = s->program->count / 2; length; length /= 2)
        for (uint32_t at = 0; at + length <= s->program->count;) {
            bool dropped = drop_range(s, at, length);
            some |= dropped;
            if (!dropped) at += length;
        }
    return some;
}

static bool is_of_graph(const torture_op_t *op, uint32_t graph) {
    bool names = op->kind == STRATA_TORTURE_CAPTURE || op->kind == STRATA_TORTURE_END_CAPTURE ||
                 op->kind == STRATA_TORTURE_LAUNCH || op->kind == STRATA_TORTURE_DESTROY;
    return names && op->graph == graph;
}

static bool is_of_pool(const torture_op_t *op, uint32_t pool) {
    bool names = op->kind == STRATA_TORTURE_POOL_BEGIN || op->kind == STRATA_TORTURE_POOL_END ||
                 op->kind == STRATA_TORTURE_POOL_REMOVE;
    return names && op->pool == pool;
}

/* A capture without its end would include the operations after it. So all operations of a graph or pool are
 * dropped together. */
static bool drop_named(shrinking_t *s, bool (*is_of)(const torture_op_t *, uint32_t), uint32_t most) {
    bool some = false;
    for (uint32_t number = 0; number < most; number++) {
        uint32_t kept = 0;
        begin(s);
        for (uint32_t i = 0; i < s->candidate.count; i++)
            if (!is_of(&s->candidate.ops[i], number)) s->candidate.ops[kept++] = s->candidate.ops[i];
        if (kept == s->candidate.count) continue;
        s->candidate.count = kept;
        some |= accept(s);
    }
    return some;
}

/* Drops all operations on one block at once: the request, the uses and the free. */
static bool drop_blocks(shrinking_t *s) {
    bool some = false;
    for (uint32_t block = 0; block < s->program->blocks; block++) {
        uint32_t kept = 0;
        begin(s);
        for (uint32_t i = 0; i < s->candidate.count; i++) {
            const torture_op_t *op = &s->candidate.ops[i];
            if (op->count != 1 || op->blocks[0] != block) s->candidate.ops[kept++] = *op;
        }
        if (kept == s->candidate.count) continue;
        s->candidate.count = kept;
        some |= accept(s);
    }
    return some;
}

/* ---- simpler operations ---- */

enum { SIMPLIFICATIONS = 11 };

static void simplify(torture_op_t *op, int how) {
    switch (how) {
    case 0: op->flags = 0; return;
    case 1: op->alignment = 0; return;
    case 2: op->tag = NULL; return;
    case 3: op->by_pointer = false; return;
    case 4: op->how = 0; return;
    case 5: op->size = op->size > 4096 ? 4096 : op->size / 2; return;
    case 6: op->us = op->us > 1000 ? 1000 : op->us / 2; return;
    case 7: op->count = (uint8_t)(op->count - (op->count > 1)); return;
    case 8: op->thread = 0; return;
    case 9: op->refused = false; return;
    default: op->size /= 2; return;
    }
}

static bool simplify_operations(shrinking_t *s) {
    bool some = false;
    for (uint32_t i = 0; i < s->program->count; i++)
        for (int how = 0; how < SIMPLIFICATIONS && i < s->program->count; how++) {
            begin(s);
            simplify(&s->candidate.ops[i], how);
            some |= accept(s);
        }
    return some;
}

/* Gives all blocks one size, so that freed memory fits later requests. */
static bool make_sizes_one(shrinking_t *s) {
    begin(s);
    for (uint32_t i = 0; i < s->candidate.count; i++)
        if (s->candidate.ops[i].kind == STRATA_TORTURE_ALLOCATE) s->candidate.ops[i].size = 4096;
    return accept(s);
}

/* ---- fewer threads, streams, devices ---- */

static bool fold_threads(shrinking_t *s) {
    bool some = false;
    for (uint32_t threads = 1; threads < s->program->threads; threads++) {
        begin(s);
        s->candidate.threads = threads;
        for (uint32_t i = 0; i < s->candidate.count; i++) s->candidate.ops[i].thread %= (uint8_t)threads;
        some |= accept(s);
    }
    return some;
}

static bool fold_stream(shrinking_t *s, uint8_t from, uint8_t to) {
    begin(s);
    for (uint32_t i = 0; i < s->candidate.count; i++) {
        torture_op_t *op = &s->candidate.ops[i];
        if (op->stream == from) op->stream = to;
        if (op->other == from) op->other = to;
    }
    return accept(s);
}

static bool fold_streams(shrinking_t *s) {
    bool some = false;
    for (uint8_t from = 1; from < TORTURE_STREAMS; from++)
        for (uint8_t to = 0; to < from; to++) some |= fold_stream(s, from, to);
    return some;
}

static bool fold_devices(shrinking_t *s) {
    bool some = false;
    begin(s);
    s->candidate.capacity = 0;
    some |= accept(s);
    begin(s);
    s->candidate.devices = 1;
    for (uint32_t i = 0; i < s->candidate.count; i++) {
        torture_op_t *op = &s->candidate.ops[i];
        if (op->stream != STRATA_TORTURE_NO_STREAM) op->stream %= TORTURE_STREAMS_EACH;
        op->other %= TORTURE_STREAMS_EACH;
    }
    return accept(s) || some;
}

/* Numbers the blocks without gaps, for human readers. */
static void number_blocks(torture_program_t *program) {
    uint32_t next = 1, *number = strata_host_new(program->blocks + 1, sizeof *number);
    for (uint32_t i = 0; i < program->count && number; i++)
        for (uint8_t k = 0; k < program->ops[i].count; k++) {
            uint32_t *block = &program->ops[i].blocks[k];
            if (number[*block] == 0) number[*block] = next++;
            *block = number[*block] - 1;
        }
    strata_host_delete(number);
}

uint32_t torture_shrink(torture_program_t *program, torture_dialect_t dialect, const torture_verdict_t *fault,
                        torture_attempt_fn attempt, void *context, uint32_t budget) {
    static _Thread_local shrinking_t s;
    s = (shrinking_t){.program = program, .dialect = dialect, .fault = fault, .attempt = attempt, .context = context};
    s.budget = budget;
    for (bool some = true; some && s.attempts < budget && !s.failed;) {
        some = fold_threads(&s);
        some |= drop_operations(&s);
        some |= drop_blocks(&s);
        some |= drop_named(&s, is_of_graph, STRATA_TORTURE_GRAPHS);
        some |= drop_named(&s, is_of_pool, STRATA_TORTURE_POOLS);
        some |= make_sizes_one(&s);
        some |= fold_devices(&s);
        some |= fold_streams(&s);
        some |= simplify_operations(&s);
    }
    number_blocks(program);
    (void)torture_make_well_formed(program, dialect);
    torture_program_delete(&s.candidate);
    return s.attempts;
}
