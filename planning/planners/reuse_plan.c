/* Turns the decisions of `reuse` into its lines and into a plan. Memory that is passed on is placed as
 * one buffer, from the first owner's begin to the last owner's end. */
#include "planning/placement/online.h"
#include "planning/planners/greedy.h"
#include "planning/planners/planners.h"
#include "planning/planners/reuse.h"
#include "planning/problem/buffers.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

/* ---- lines ---- */

static strata_plan_effect_t effect_of(const strata_reuse_t *r, const strata_keyed_t *event, uint64_t last_begin) {
    uint32_t buffer = event->value;
    if (!strata_buffer_counts(&r->buffers[buffer])) return STRATA_PLAN_null;
    if (strata_reuse_begins(event)) return r->prev_owner[buffer] == UINT32_MAX ? STRATA_PLAN_allocate : STRATA_PLAN_reuse;
    bool at_the_end = event->key > last_begin; /* everything is freed at the end anyway */
    return r->next_owner[buffer] != UINT32_MAX || at_the_end ? STRATA_PLAN_null : STRATA_PLAN_free;
}

static size_t write_lines(const strata_reuse_t *r, strata_plan_line_t *lines) {
    uint64_t last_begin = 0;
    size_t count = 0;
    for (size_t e = 0; e < 2 * r->count; e++)
        if (strata_reuse_begins(&r->events[e])) last_begin = r->events[e].key;
    for (size_t e = 0; e < 2 * r->count; e++) {
        const strata_keyed_t *event = &r->events[e];
        uint32_t buffer = event->value;
        if (!strata_reuse_begins(event) && (r->buffers[buffer].flags & STRATA_PLAN_OUTPUT)) continue;
        strata_plan_effect_t effect = effect_of(r, event, last_begin);
        const strata_plan_buffer_t *b = &r->buffers[buffer];
        lines[count++] = (strata_plan_line_t){.time = strata_reuse_begins(event) ? b->lower : b->upper,
                                              .effect = effect,
                                              .buffer = buffer,
                                              .other = effect == STRATA_PLAN_reuse ? r->prev_owner[buffer] : buffer};
    }
    return count;
}

strata_status_t strata_plan_reuse_lines(const strata_plan_options_t *options, const strata_plan_buffer_t *buffers, size_t count,
                                        strata_plan_line_t *lines, size_t *line_count) {
    STRATA_REFUSE_NULL_ARRAY(buffers, count);
    STRATA_REFUSE_NULL_ARRAY(lines, count);
    STRATA_REFUSE_NULL(line_count);
    strata_reuse_t reuse;
    strata_plan_options_t read;
    strata_status_t status = strata_planner_options(options, __func__, &read);
    if (status == STRATA_OK) status = strata_buffers_check(buffers, count);
    if (status == STRATA_OK) status = strata_reuse_run(&reuse, buffers, count, read.close_gaps);
    if (status != STRATA_OK) return status;
    *line_count = write_lines(&reuse, lines);
    strata_reuse_delete(&reuse);
    return STRATA_OK;
}

/* ---- the plan ---- */

/* Extends the first owner of each memory to the end of its last one. */
static void merge_lifetimes(const strata_reuse_t *r, strata_plan_buffer_t *owners) {
    for (size_t i = 0; i < r->count; i++) {
        owners[i] = r->buffers[i];
        if (r->root[i] != i) owners[i].flags |= STRATA_PLAN_REMOVED;
    }
    for (size_t i = 0; i < r->count; i++) owners[r->root[i]].upper = strata_max(owners[r->root[i]].upper, r->buffers[i].upper);
}

/* Places the owners as an allocator would in program order, or with forks, as `greedy` does. */
static strata_status_t place_owners(const strata_problem_t *owners, uint64_t *offsets) {
    uint64_t peak;
    if (owners->fork_count == 0) return strata_online_place(owners, false, offsets, &peak);
    strata_found_t found = {.offsets = offsets, .peak = UINT64_MAX, .bound = owners->bound};
    return strata_greedy_start(owners, &found);
}

static strata_status_t place(const strata_problem_t *p, const strata_reuse_t *r, strata_plan_buffer_t *owners,
                             strata_found_t *found) {
    strata_problem_t problem;
    uint64_t now = strata_real_now();
    merge_lifetimes(r, owners);
    strata_status_t status = strata_problem_make(&problem, owners, p->count, p->deadline - strata_min(now, p->deadline));
    if (status != STRATA_OK) return status;
    uint64_t *offsets = strata_host_new((size_t)problem.item_count + p->item_count + 1, sizeof *offsets);
    uint64_t *by_buffer = strata_host_new(p->count + 1, sizeof *by_buffer), *own = offsets ? offsets + problem.item_count : NULL;
    status = offsets && by_buffer ? place_owners(&problem, offsets) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) {
        for (uint32_t i = 0; i < problem.item_count; i++) by_buffer[problem.items[i].buffer] = offsets[i];
        for (uint32_t i = 0; i < p->item_count; i++) own[i] = by_buffer[r->root[p->items[i].buffer]];
        strata_found_update(p, found, own);
    }
    strata_host_delete(by_buffer);
    strata_host_delete(offsets);
    strata_problem_delete(&problem);
    return status;
}

strata_status_t strata_planner_reuse(const strata_planning_t *planning, strata_found_t *found) {
    const strata_problem_t *p = planning->problem;
    strata_reuse_t reuse;
    if (p->fixed) return strata_fail(STRATA_E_UNSUPPORTED, 0, "reuse does not support fixed offsets; use greedy, exact or auto");
    strata_status_t status = strata_reuse_run(&reuse, p->buffers, p->count, planning->options->close_gaps);
    if (status != STRATA_OK) return status;
    strata_plan_buffer_t *owners = strata_host_new(p->count, sizeof *owners);
    status = owners ? place(p, &reuse, owners, found) : STRATA_E_HOST_MEMORY;
    strata_host_delete(owners);
    strata_reuse_delete(&reuse);
    return status;
}
