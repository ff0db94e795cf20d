#include "lab/replay/run/steps.h"

#include "lab/replay/run/figures.h"
#include "platform/host/host_memory.h"

enum { SETTLED = 2 }; /* steps after which addresses should stay */

void strata_steps_begin(strata_steps_t *steps, const strata_trace_t *trace) {
    *steps = (strata_steps_t){.repeats = true, .any = trace->has_steps};
}

void strata_steps_end(strata_steps_t *steps) {
    strata_host_delete(steps->now);
    strata_host_delete(steps->before);
    *steps = (strata_steps_t){.count = 0};
}

static bool asks_the_same(const strata_step_alloc_t *a, const strata_step_alloc_t *b) {
    return a->size == b->size && a->stream == b->stream && a->pool == b->pool && a->place == b->place;
}

/* Resizes both arrays to one capacity. */
static strata_status_t grow(strata_steps_t *steps) {
    uint32_t capacity = steps->capacity ? steps->capacity * 2 : 256;
    strata_step_alloc_t *grown = strata_host_resize(steps->now, capacity, sizeof *grown);
    if (!grown) return STRATA_E_HOST_MEMORY;
    steps->now = grown;
    grown = strata_host_resize(steps->before, capacity, sizeof *grown);
    if (!grown) return STRATA_E_HOST_MEMORY;
    steps->before = grown;
    steps->capacity = capacity;
    return STRATA_OK;
}

strata_status_t strata_steps_compare(strata_steps_t *steps, const strata_trace_event_t *event, uint64_t address) {
    uint32_t at = steps->count;
    if (at == steps->capacity && grow(steps) != STRATA_OK) return STRATA_E_HOST_MEMORY;
    strata_step_alloc_t *now = &steps->now[at];
    const strata_step_alloc_t *before = &steps->before[at];
    steps->count++;
    *now = (strata_step_alloc_t){
        .address = address, .size = event->value, .stream = event->stream, .pool = event->pool, .place = event->place};
    steps->repeats = steps->repeats && at < steps->count_before && asks_the_same(now, before);
    if (steps->repeats) steps->changed += address != before->address;
    return STRATA_OK;
}

void strata_steps_step(strata_steps_t *steps) {
    if (!steps->any) return;
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
