/* Turns a trace into buffers: the requests to the device and place with the highest peak, in the order of its rows. */
#include <stdio.h>
#include <string.h>

#include "lab/tools/plan/input.h"
#include "lab/tools/plan/steps.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/trace.h"

enum { ALIGNMENT = 256, MARKS = 1 << 20 };

typedef struct lifetime {
    uint32_t begin, end; /* event numbers; `end` is UINT32_MAX if it is never freed */
    uint64_t size; /* rounded up to the alignment */
    uint32_t row; /* of its alloc in the trace */
} lifetime_t;

typedef struct tracing {
    const strata_trace_t *trace;
    uint32_t device;
    strata_place_kind_t place;
    lifetime_t *lives; /* by id */
    strata_step_event_t *events; /* allocs and frees of the place */
    uint32_t *marks; /* event numbers at the trace's `step` rows */
    uint32_t event_count, mark_count;
    bool streams;
} tracing_t;

static uint32_t device_of(const strata_trace_t *t, const strata_trace_event_t *e) {
    return e->stream == STRATA_TRACE_NO_STREAM ? 0 : t->streams[e->stream].device;
}

static bool is_selected(const tracing_t *x, const strata_trace_event_t *e) {
    return e->place == (uint8_t)x->place && device_of(x->trace, e) == x->device;
}

/* Chooses the device and place with the highest peak. */
static void choose_place(tracing_t *x) {
    const strata_trace_t *t = x->trace;
    uint64_t live[STRATA_TRACE_DEVICES][STRATA_PLACE_KINDS] = {{0}}, peak[STRATA_TRACE_DEVICES][STRATA_PLACE_KINDS] = {{0}},
             most = 0;
    for (size_t i = 0; i < t->count; i++) {
        const strata_trace_event_t *e = &t->events[i];
        if (e->op == STRATA_TRACE_alloc) x->lives[e->id] = (lifetime_t){.size = e->value, .row = (uint32_t)i};
        if (e->op != STRATA_TRACE_alloc && e->op != STRATA_TRACE_free) continue;
        const lifetime_t *life = &x->lives[e->id];
        const strata_trace_event_t *made = &t->events[life->row];
        uint64_t *now = &live[device_of(t, made)][made->place], *highest = &peak[device_of(t, made)][made->place];
        *now = e->op == STRATA_TRACE_alloc ? *now + life->size : *now - life->size;
        *highest = strata_max(*highest, *now);
        if (*highest <= most) continue;
        most = *highest;
        x->device = device_of(t, made);
        x->place = (strata_place_kind_t)made->place;
    }
}

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a + UINT64_C(0x9e3779b97f4a7c15)) ^ (b << 1 | b >> 63);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 27;
}

static void note_event(tracing_t *x, const strata_trace_event_t *e, uint64_t *live) {
    lifetime_t *life = &x->lives[e->id];
    uint64_t age = x->event_count - life->begin;
    x->events[x->event_count].live = *live;
    if (e->op == STRATA_TRACE_alloc) {
        life->begin = x->event_count;
        age = 0;
        *live += life->size;
    } else {
        life->end = x->event_count;
        *live -= life->size;
    }
    uint64_t stream = e->stream == STRATA_TRACE_NO_STREAM ? 0 : e->stream;
    x->events[x->event_count++].signature = mix(mix(mix(life->size, age), e->op), stream);
}

static void note_events(tracing_t *x) {
    const strata_trace_t *t = x->trace;
    uint64_t live = 0;
    uint16_t first = STRATA_TRACE_NO_STREAM;
    for (uint32_t id = 0; id < t->lifetimes; id++) {
        const strata_trace_event_t *e = &t->events[x->lives[id].row];
        uint64_t alignment = e->align ? UINT64_C(1) << e->align : ALIGNMENT;
        (void)strata_round_up(x->lives[id].size, alignment > ALIGNMENT ? ALIGNMENT : alignment, &x->lives[id].size);
        x->lives[id].end = UINT32_MAX;
        if (!is_selected(x, e)) continue;
        if (first == STRATA_TRACE_NO_STREAM) first = e->stream;
        x->streams = x->streams || e->stream != first;
    }
    for (size_t i = 0; i < t->count; i++) {
        const strata_trace_event_t *e = &t->events[i];
        if (e->op == STRATA_TRACE_step && x->mark_count < MARKS) x->marks[x->mark_count++] = x->event_count;
        if (e->op != STRATA_TRACE_alloc && e->op != STRATA_TRACE_free) continue;
        if (is_selected(x, &t->events[x->lives[e->id].row])) note_event(x, e, &live);
    }
}

/* ---- the step ---- */

/* Steps are the ranges between the trace's `step` rows. Returns true if this step and the next one are equal. */
static bool same_step(const tracing_t *x, uint32_t step) {
    uint32_t a = x->marks[step - 1], b = x->marks[step], length = b - a;
    if (step + 1 >= x->mark_count || x->marks[step + 1] - b != length || length == 0) return false;
    for (uint32_t i = 0; i < length; i++)
        if (x->events[a + i].signature != x->events[b + i].signature) return false;
    return true;
}

static bool find_marked(const tracing_t *x, uint64_t wanted, uint32_t *from, uint32_t *to, char *about, size_t room) {
    uint32_t steps = x->mark_count > 1 ? x->mark_count - 1 : 0, step = 0;
    for (uint32_t i = 1; wanted == STRATA_PLAN_STEP_FOUND && i < steps && !step; i++)
        if (same_step(x, i)) step = i + 1;
    if (wanted != STRATA_PLAN_STEP_FOUND && wanted <= steps) step = (uint32_t)wanted;
    if (step == 0) return false;
    *from = x->marks[step - 1];
    *to = x->marks[step];
    snprintf(about, room, "step %u of %u, from its rows", step, steps);
    return true;
}

static bool find_repeated(const tracing_t *x, uint64_t wanted, uint32_t *from, uint32_t *to, char *about, size_t room) {
    strata_steps_t steps = strata_steps_find(x->events, x->event_count);
    uint64_t step = wanted == STRATA_PLAN_STEP_FOUND ? (steps.count + 1) / 2 : wanted;
    if (steps.count == 0 || step > steps.count) return false;
    *from = (uint32_t)(steps.first + (step - 1) * steps.length);
    *to = (uint32_t)(*from + steps.length);
    snprintf(about, room, "step %llu of %zu repeated steps", (unsigned long long)step, steps.count);
    return true;
}

static strata_status_t find_step(const tracing_t *x, uint64_t wanted, uint32_t *from, uint32_t *to, strata_plan_input_t *input) {
    size_t room = sizeof input->about;
    *from = 0;
    *to = x->event_count;
    if (wanted == STRATA_PLAN_STEP_ALL || find_marked(x, wanted, from, to, input->about, room)) return STRATA_OK;
    if (find_repeated(x, wanted, from, to, input->about, room) || wanted == STRATA_PLAN_STEP_FOUND) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "%s has no step %llu; write --step all, or leave it out", x->trace->path,
                       (unsigned long long)wanted);
}

/* ---- buffers ---- */

/* Adds the part of a lifetime that is within [from, to). */
static strata_status_t add_buffer(const tracing_t *x, uint32_t id, uint32_t from, uint32_t to, strata_plan_input_t *input) {
    const lifetime_t *life = &x->lives[id];
    const strata_trace_event_t *e = &x->trace->events[life->row];
    char name[STRATA_TRACE_TAG_BYTES + 32];
    uint32_t lower = life->begin < from ? from : life->begin, upper = life->end > to ? to : life->end;
    if (!is_selected(x, e) || lower >= upper) return STRATA_OK;
    strata_plan_buffer_t buffer = {.lower = lower,
                                   .upper = upper,
                                   .size = life->size,
                                   .alignment = e->align ? UINT64_C(1) << e->align : ALIGNMENT,
                                   .fork = x->streams,
                                   .branch = x->streams ? e->stream : 0,
                                   .flags = life->begin < from ? STRATA_PLAN_HELD : 0};
    snprintf(name, sizeof name, "%s%sline %u", x->trace->tags[e->tag], e->tag ? " " : "", e->line);
    input->lifetimes[input->table.count] = id;
    return strata_plan_table_add(&input->table, &buffer, name);
}

static strata_status_t make_buffers(tracing_t *x, uint64_t step, strata_plan_input_t *input) {
    uint32_t from = 0, to = 0;
    choose_place(x);
    note_events(x);
    strata_status_t status = find_step(x, step, &from, &to, input);
    for (uint32_t id = 0; id < x->trace->lifetimes && status == STRATA_OK; id++) status = add_buffer(x, id, from, to, input);
    input->streams = x->streams;
    return status == STRATA_OK && x->streams ? strata_trace_order_make(&input->order, x->trace) : status;
}

strata_status_t strata_plan_input_trace(const char *path, uint64_t step, strata_plan_input_t *input) {
    strata_trace_t *trace = NULL;
    strata_status_t status = strata_trace_load(path, &trace);
    if (status != STRATA_OK) return status;
    tracing_t x = {.trace = trace};
    x.lives = strata_host_new((size_t)trace->lifetimes + 1, sizeof *x.lives);
    x.events = strata_host_new(2 * (size_t)trace->lifetimes + 1, sizeof *x.events);
    x.marks = strata_host_new(trace->count < MARKS ? trace->count + 1 : MARKS, sizeof *x.marks);
    input->lifetimes = strata_host_new((size_t)trace->lifetimes + 1, sizeof *input->lifetimes);
    status = x.lives && x.events && x.marks && input->lifetimes ? make_buffers(&x, step, input) : STRATA_E_HOST_MEMORY;
    strata_host_delete(x.marks);
    strata_host_delete(x.events);
    strata_host_delete(x.lives);
    strata_trace_delete(trace);
    return status;
}
