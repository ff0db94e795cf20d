#include "planning/steady.h"

#include "planning/greedy.h"
#include "platform/host/host_memory.h"

/* Longer than any order takes. */
#define LONG_ENOUGH (UINT64_MAX / 4)
/* A plan that exceeds the bound by no more than one part is good enough. */
enum { GOOD_PART = 96 };

strata_status_t strata_plan_steady(const strata_plan_buffer_t *buffers, size_t count, uint64_t *offsets) {
    strata_problem_t problem;
    strata_status_t status = strata_problem_make(&problem, buffers, count, LONG_ENOUGH);
    if (status != STRATA_OK) return status;
    strata_found_t found = {.offsets = strata_host_new((size_t)problem.item_count + 1, sizeof *found.offsets),
                            .peak = problem.item_count ? UINT64_MAX : 0,
                            .bound = problem.bound + problem.bound / GOOD_PART};
    status = !found.offsets ? STRATA_E_HOST_MEMORY : problem.item_count ? strata_greedy_start(&problem, &found) : STRATA_OK;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) offsets[i] = 0;
    for (uint32_t i = 0; i < problem.item_count && status == STRATA_OK; i++) offsets[problem.items[i].buffer] = found.offsets[i];
    strata_host_delete(found.offsets);
    strata_problem_delete(&problem);
    return status;
}
