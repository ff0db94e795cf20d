/* Computes the operations that each thread of a program waits for. These are operations of other threads on the same block, graph
 * or pool. They are also operations that renew a stream that it uses, or begin or end a capture of the stream. */
#include "platform/host/host_memory.h"
#include "programs/rules.h"

typedef struct place_in_thread {
    uint8_t thread;
    uint32_t number; /* number of an operation of the thread, from 1, or 0 if there is none */
} place_in_thread_t;

typedef struct order_state {
    uint32_t done[TORTURE_THREADS];
    place_in_thread_t *touched; /* the last operation on each block, graph and pool */
    place_in_thread_t changed[TORTURE_STREAMS];
    uint32_t used[TORTURE_STREAMS][TORTURE_THREADS], freed[TORTURE_STREAMS][TORTURE_THREADS];
} order_state_t;

static void order_after(torture_needs_t *needs, const place_in_thread_t *before) {
    if (needs->required[before->thread] < before->number) needs->required[before->thread] = before->number;
}

static void order_after_touched(order_state_t *state, const torture_program_t *program, torture_needs_t *needs,
                                place_in_thread_t self) {
    for (uint32_t i = 0; i < needs->touch_count; i++) {
        place_in_thread_t *last = &state->touched[program->touched[needs->touch_begin + i]];
        if (last->thread == self.thread && last->number == self.number) continue; /* the operation names it twice */
        order_after(needs, last);
        *last = self;
    }
}

/* Orders a change of the stream after all earlier operations that use it. A change of its capture also follows the frees of
 * blocks that it had borrowed. */
static void order_change(order_state_t *state, torture_needs_t *needs, uint32_t stream, place_in_thread_t self, bool captures) {
    for (uint8_t t = 0; t < TORTURE_THREADS; t++) {
        uint32_t used = state->used[stream][t];
        if (captures && state->freed[stream][t] > used) used = state->freed[stream][t];
        if (t == self.thread && used == self.number) used--;
        order_after(needs, &(place_in_thread_t){.thread = t, .number = used});
    }
    state->changed[stream] = self;
}

static void order_op(order_state_t *state, const torture_program_t *program, uint32_t number) {
    const torture_op_t *op = &program->ops[number];
    torture_needs_t *needs = &program->all_needs[number];
    place_in_thread_t self = {.thread = op->thread, .number = ++state->done[op->thread]};
    order_after_touched(state, program, needs, self);
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++) {
        if (!(needs->uses & torture_bit(s))) continue;
        order_after(needs, &state->changed[s]);
        state->used[s][op->thread] = self.number;
    }
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (needs->stream_changes & torture_bit(s)) order_change(state, needs, s, self, op->kind != STRATA_TORTURE_RENEW);
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (needs->lent & torture_bit(s)) state->freed[s][op->thread] = self.number;
}

bool rules_threads(torture_program_t *program) {
    order_state_t state = {.done = {0}};
    state.touched = strata_host_new(TORTURE_FIRST_BLOCK + program->blocks, sizeof *state.touched);
    for (uint32_t i = 0; i < program->count && state.touched; i++) order_op(&state, program, i);
    bool done = state.touched != NULL;
    strata_host_delete(state.touched);
    return done;
}
