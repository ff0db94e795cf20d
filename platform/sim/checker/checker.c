/* Begin and end of the checker, and its results. */
#include "platform/sim/checker/checker.h"

#include <stdio.h>
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

strata_status_t strata_checker_begin(strata_sim_t *world, uint32_t rules, strata_checker_t **out) {
    if (rules & ~(STRATA_CHECKER_ALL | STRATA_CHECKER_FRESH_IS_VALID))
        return strata_fail(STRATA_E_INVALID, 0, "rules are numbered 1 to 10");
    strata_checker_t *checker = calloc(1, sizeof *checker);
    if (!checker) return sim_no_host_memory();
    strata_lock(&world->lock);
    bool fresh = !world->was_checked;
    if (fresh) {
        checker->world = world;
        checker->rules = rules;
        check_actor_new(checker, -1, "no actor");
        world->was_checked = true;
        world->checker = checker;
        /* From now on locks carry clocks between threads, even before there is a second thread. */
        strata_lock_observer_activate(&world->observer.observer);
    }
    strata_unlock(&world->lock);
    if (!fresh) free(checker);
    if (!fresh) return strata_fail(STRATA_E_INVALID, 0, "a simulated world already has a checker");
    *out = checker;
    return STRATA_OK;
}

static void segments_end(strata_checker_t *checker) {
    check_remove_range(checker, 0, UINT64_MAX, NULL, NULL);
    check_lease_end(checker, 0, UINT64_MAX, 0, 0);
    (void)check_paused_end(checker, 0, UINT64_MAX);
    for (size_t i = 0; i < checker->names.room; i++) {
        check_life_t *life = (check_life_t *)(uintptr_t)checker->names.pairs[i].value;
        if (checker->names.pairs[i].key && life) check_life_drop(life);
    }
}

void strata_checker_end(strata_checker_t *checker) {
    if (!checker) return;
    strata_lock(&checker->world->lock);
    checker->world->checker = NULL;
    strata_unlock(&checker->world->lock);
    segments_end(checker);
    for (uint32_t i = 0; i < checker->actor_count; i++) {
        check_clock_end(&checker->actors[i].clock);
        free(checker->actors[i].expected);
    }
    for (size_t i = 0; i < checker->clock_count; i++) check_clock_end(&checker->clocks[i]);
    for (size_t i = 0; i < SIM_DEVICES_MAX; i++) {
        check_clock_end(&checker->done[i]);
        check_clock_end(&checker->done_blocking[i]);
    }
    for (size_t i = 0; i < checker->report_count; i++) free(checker->reports[i]);
    free(checker->actors);
    free(checker->clocks);
    free(checker->names.pairs);
    free(checker->pools.pairs);
    free(checker->locks.pairs);
    free(checker->keys.pairs);
    free(checker->notes);
    free(checker);
}

uint64_t strata_checker_hazards_of(strata_checker_t *checker, strata_hazard_t kind) {
    strata_lock(&checker->world->lock);
    uint64_t count = checker->hazards[kind];
    strata_unlock(&checker->world->lock);
    return count;
}

uint64_t strata_checker_hazards(strata_checker_t *checker) {
    uint64_t count = 0;
    for (int i = 0; i < STRATA_HAZARDS; i++) count += strata_checker_hazards_of(checker, (strata_hazard_t)i);
    return count;
}

const char *strata_hazard_text(strata_hazard_t kind) {
    static const char *const texts[] = {
#define HAZARD_TEXT(name, text) text,
        STRATA_HAZARD_MAP(HAZARD_TEXT)
#undef HAZARD_TEXT
    };
    return texts[kind];
}

const char *strata_checker_report(strata_checker_t *checker, size_t index) {
    strata_lock(&checker->world->lock);
    const char *report = index < checker->report_count ? checker->reports[index] : NULL;
    strata_unlock(&checker->world->lock);
    return report;
}

bool strata_checker_complete(strata_checker_t *checker) {
    strata_lock(&checker->world->lock);
    bool complete = !checker->incomplete;
    strata_unlock(&checker->world->lock);
    return complete;
}

void strata_checker_name(strata_checker_t *checker, strata_device_t *device, strata_handle_t handle, const char *label) {
    strata_lock(&checker->world->lock);
    sim_stream_t *stream = sim_stream(sim_of(device), handle);
    uint32_t actor = stream ? check_stream(checker, stream) : 0;
    if (actor) snprintf(check_actor(checker, actor)->label, CHECK_LABEL, "%s", label);
    strata_unlock(&checker->world->lock);
}

void strata_checker_line(strata_checker_t *checker, uint64_t line) {
    strata_lock(&checker->world->lock);
    checker->line = line;
    strata_unlock(&checker->world->lock);
}
