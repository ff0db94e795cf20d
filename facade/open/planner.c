/* The thread that makes plans: one a facade, only where its strategy has a layer that follows some. It sleeps until a step has been
 * repeated, so that whoever ends that step need not wait for the plan. It makes no device call. */
#include "facade/open/planner.h"

#include "allocation/stack/planning.h"
#include "allocation/stack/threads.h"
#include "facade/open/idle.h"
#include "facade/open/worker.h"
#include "facade/registry/plans.h"

bool strata_planner_wake(void *context) {
    strata_facade_t *facade = context;
    strata_lock(&facade->lock);
    bool runs = facade->planner.runs;
    facade->plans_wanted = true;
    if (runs) strata_condition_broadcast(&facade->planner.wakes);
    strata_unlock(&facade->lock);
    return runs;
}

static void make_plans(strata_facade_t *facade) {
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        STRATA_DOMAIN_EACH(domain, stack) strata_stack_make_plans(stack);
}

static void *keep_planning(void *context) {
    strata_facade_t *facade = context;
    strata_threads_stand_apart();
    strata_lock(&facade->lock);
    while (!facade->planner.stops) {
        bool wanted = facade->plans_wanted;
        facade->plans_wanted = false;
        if (!wanted) {
            strata_condition_wait(&facade->planner.wakes, &facade->lock, UINT64_MAX);
            continue;
        }
        strata_unlock(&facade->lock);
        make_plans(facade);
        strata_lock(&facade->lock);
    }
    strata_unlock(&facade->lock);
    return NULL;
}

/* What was wanted before the thread last stopped is looked for first. */
void strata_planner_start(strata_facade_t *facade) {
    if (!strata_plans_follow(facade) || strata_facade_clock(facade)->is_virtual) return;
    facade->plans_wanted = true;
    (void)strata_worker_start(facade, &facade->planner, keep_planning);
}

void strata_planner_stop(strata_facade_t *facade) { strata_worker_stop(facade, &facade->planner); }
