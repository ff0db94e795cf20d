#include "planning/planners/planners.h"

#include <string.h>

#include "planning/planners/exact.h"
#include "planning/planners/greedy.h"
#include "planning/planners/improve.h"
#include "planning/problem/buffers.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"
#include "platform/text/nearest.h"

#define BUDGET_DEFAULT UINT64_C(1000000000)

typedef struct planner {
    const char *name, *what;
    strata_planner_fn run;
} planner_t;

static const planner_t planners[] = {
#define STRATA_PLANNER_ROW(name, what) {#name, what, strata_planner_##name},
    STRATA_PLANNER_MAP(STRATA_PLANNER_ROW)
#undef STRATA_PLANNER_ROW
};
enum { PLANNERS = sizeof planners / sizeof *planners };

const char *strata_planner_name(size_t index) { return index < PLANNERS ? planners[index].name : NULL; }
const char *strata_planner_summary(size_t index) { return index < PLANNERS ? planners[index].what : NULL; }

/* ---- planners of only a few lines ---- */

/* Returns the deadline of a share of the time that starts now; never later than the overall deadline. */
static uint64_t until_share(const strata_planning_t *planning, uint64_t part) {
    return strata_min(strata_real_now() + planning->budget / part, planning->problem->deadline);
}

/* Improves for half of the time. `auto` does that too, and so has as much left for searching. */
strata_status_t strata_planner_greedy(const strata_planning_t *planning, strata_found_t *found) {
    strata_status_t status = strata_greedy_start(planning->problem, found);
    if (status != STRATA_OK) return status;
    return strata_improve(planning->problem, found, until_share(planning, 2));
}

strata_status_t strata_planner_exact(const strata_planning_t *planning, strata_found_t *found) {
    strata_status_t status = strata_greedy_start(planning->problem, found);
    if (status != STRATA_OK) return status;
    return strata_exact(planning->problem, found, planning->options->capacity, planning->problem->deadline);
}

/* Begins with a short search, since it may prove the best plan at once. */
strata_status_t strata_planner_auto(const strata_planning_t *planning, strata_found_t *found) {
    const strata_problem_t *p = planning->problem;
    strata_status_t status = strata_greedy_start(p, found);
    uint64_t capacity = planning->options->capacity;
    if (status == STRATA_OK) status = strata_exact(p, found, capacity, until_share(planning, 8));
    if (status == STRATA_OK) status = strata_improve(p, found, until_share(planning, 2));
    if (status == STRATA_OK) status = strata_exact(p, found, capacity, p->deadline);
    return status;
}

/* ---- entry point ---- */

static const char *planner_word(size_t index, const void *unused) {
    (void)unused;
    return strata_planner_name(index);
}

static strata_status_t find_planner(const char *name, const planner_t **found) {
    if (!name) name = planners[0].name;
    for (size_t i = 0; i < PLANNERS; i++) {
        *found = &planners[i];
        if (strcmp(planners[i].name, name) == 0) return STRATA_OK;
    }
    const char *near = strata_nearest_word(name, PLANNERS, planner_word, NULL);
    return strata_fail(STRATA_E_INVALID, 0, "there is no planner \"%.40s\"; write %s", name,
                       near ? near : "auto, greedy, exact, reuse or tree");
}

/* Reads the options of an older or newer caller. */
strata_status_t strata_planner_options(const strata_plan_options_t *given, const char *function, strata_plan_options_t *options) {
    *options = (strata_plan_options_t){.struct_size = sizeof *options};
    if (!given) return STRATA_OK;
    strata_status_t status = strata_check_options(given, sizeof given->struct_size, sizeof *options, function, "options");
    if (status != STRATA_OK) return status;
    memcpy(options, given, strata_min(given->struct_size, sizeof *options));
    options->struct_size = sizeof *options;
    if ((unsigned)options->pools > STRATA_PLAN_POOLS_COMBINED)
        return strata_fail(STRATA_E_INVALID, 0, "pools is %u; write one of STRATA_PLAN_POOLS_...", (unsigned)options->pools);
    return STRATA_OK;
}

/* The fixed buffers must be a valid plan by themselves. */
static strata_status_t check_fixed(const strata_problem_t *p) {
    if (!p->fixed) return STRATA_OK;
    strata_plan_buffer_t *fixed = strata_host_new(p->count, sizeof *fixed);
    uint64_t *offsets = strata_host_new(p->count, sizeof *offsets);
    strata_status_t status = fixed && offsets ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; status == STRATA_OK && i < p->count; i++) {
        fixed[i] = p->buffers[i];
        if (!(fixed[i].flags & STRATA_PLAN_FIXED)) fixed[i].flags |= STRATA_PLAN_REMOVED;
        offsets[i] = fixed[i].offset;
    }
    if (status == STRATA_OK) status = strata_plan_check(fixed, p->count, offsets, NULL);
    strata_host_delete(offsets);
    strata_host_delete(fixed);
    if (status != STRATA_E_CORRUPT) return status;
    const strata_error_t why = *strata_last_error();
    return strata_fail(STRATA_E_INVALID, 0, "the fixed buffers are not a valid plan: %.400s", why.text);
}

static void fill_result(const strata_planning_t *planning, const strata_found_t *found, strata_plan_result_t *result) {
    const strata_plan_result_t filled = {.peak = found->peak,
                                         .lower_bound = found->bound,
                                         .time_ns = strata_real_now() - planning->begin,
                                         .pools = found->pools,
                                         .proved = strata_found_is_optimal(found)};
    if (!result) return;
    strata_fill_result(result, &filled, sizeof filled);
}

static strata_status_t run(const planner_t *planner, strata_planning_t *planning, uint64_t *offsets, strata_plan_result_t *result) {
    const strata_problem_t *p = planning->problem;
    strata_found_t found = {.offsets = strata_host_new((size_t)p->item_count + 1, sizeof *found.offsets),
                            .peak = p->item_count ? UINT64_MAX : 0,
                            .bound = p->bound};
    if (!found.offsets) return STRATA_E_HOST_MEMORY;
    strata_status_t status = p->item_count ? planner->run(planning, &found) : STRATA_OK;
    if (status == STRATA_OK) {
        if (p->count) memset(offsets, 0, p->count * sizeof *offsets);
        for (uint32_t i = 0; i < p->item_count; i++) offsets[p->items[i].buffer] = found.offsets[i];
        fill_result(planning, &found, result);
    }
    strata_host_delete(found.offsets);
    return status;
}

strata_status_t strata_plan_make(const strata_plan_options_t *given, const strata_plan_buffer_t *buffers, size_t count,
                                 uint64_t *offsets, strata_plan_result_t *result) {
    STRATA_REFUSE_NULL_ARRAY(buffers, count);
    STRATA_REFUSE_NULL_ARRAY(offsets, count);
    if (result) STRATA_REFUSE_RESULT(result);
    strata_plan_options_t options;
    const planner_t *planner;
    strata_problem_t problem;
    uint64_t begin = strata_real_now();
    strata_status_t status = strata_planner_options(given, __func__, &options);
    if (status == STRATA_OK) status = find_planner(options.planner, &planner);
    if (status != STRATA_OK) return status;
    uint64_t budget = options.time_ns ? options.time_ns : BUDGET_DEFAULT;
    status = strata_problem_make(&problem, buffers, count, budget);
    if (status != STRATA_OK) return status;
    strata_planning_t planning = {.problem = &problem, .options = &options, .begin = begin, .budget = budget};
    status = check_fixed(&problem);
    if (status == STRATA_OK) status = run(planner, &planning, offsets, result);
    strata_problem_delete(&problem);
    return status;
}
