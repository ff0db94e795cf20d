#include "replay/run/steps.h"

#include "platform/host/host_memory.h"
#include "replay/run/figures.h"

enum { SETTLED = 2 }; /* steps after which addresses should stay */

/* Most allocs of one step; 0: nothing marks steps. */
static uint32_t most_allocs(const strata_trace_t *trace) {
    uint32_t most = 0, count = 0;
    for (size_t row = 0; row < trace->count && trace->has_steps; row++) {
        strata_trace_op_t op = (strata_trace_op_t)trace->events[row].op;
        count = op == STRATA_TRACE_step ? 0 : count + (op == STRATA_TRACE_alloc);
        if (count > most) most = count;
    }
    return most;
}

strata_status_t strata_steps_begin(strata_steps_t *steps, const strata_trace_t *trace) {
    uint32_t most = most_allocs(trace);
    *steps = (strata_steps_t){.repeats = true};
    if (most == 0) return STRATA_OK;
    steps->now = strata_host_new(most, sizeof *steps->now);
    steps->before = strata_host_new(most, sizeof *steps->before);
    return steps->now && steps->before ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_steps_end(strata_steps_t *steps) {
    strata_host_delete(steps->now);
    strata_host_delete(steps->before);
    *steps = (strata_steps_t){.count = 0};
}

static bool asks_the_same(const strata_step_alloc_t *a, const strata_step_alloc_t *b) {
    return a->size == b->size && a->stream == b->stream && a->pool == b->pool && a->place == b->place;
}

void strata_steps_compare(strata_steps_t *steps, const strata_trace_event_t *event, uint64_t address) {
    uint32_t at = steps->count++;
    strata_step_alloc_t *now = &steps->now[at];
    const strata_step_alloc_t *before = &steps->before[at];
    *now = (strata_step_alloc_t){
        .address = address, .size = event->value, .stream = event->stream, .pool = event->pool, .place = event->place};
    steps->repeats = steps->repeats && at < steps->count_before && asks_the_same(now, before);
    if (steps->repeats) steps->changed += address != before->address;
}

void strata_steps_step(strata_steps_t *steps) {
    if (!steps->now) return;
    if (steps->ended >= SETTLED && steps->count > 0 && steps->repeats && steps->count == steps->count_before) {
        steps->compared++;
        steps->changes += steps->changed;
    }
    strata_step_alloc_t *now = steps->now;
    steps->now = steps->before;
    steps->before = now;
    steps->count_before = steps->count;
    steps->count = steps->changed = 0;
    steps->repeats = true;
    steps->ended++;
}

uint64_t strata_steps_changes(const strata_steps_t *steps) { return steps->compared > 0 ? steps->changes : STRATA_FIGURE_NULL; }
