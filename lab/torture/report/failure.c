/* Shrinks a failure and prints it. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "lab/torture/campaign.h"
#include "lab/torture/isolated.h"
#include "lab/torture/report/print.h"
#include "lab/torture/report/shrink.h"
#include "platform/host/host_memory.h"

enum { ATTEMPTS = 3000, TRIES_AT_ONCE = 10, MAX_SECONDS = 90 };

typedef struct trial {
    const torture_strategy_t *strategy;
    strata_torture_mode_t mode;
    const torture_verdict_t *fault;
    torture_verdict_t *shared; /* NULL if runs are made in this process */
    strata_status_t status;
    time_t until; /* shrinking stops then */
} trial_t;

static time_t seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void attempt_once(trial_t *t, const torture_program_t *program, torture_verdict_t *verdict) {
    if (!t->shared) {
        torture_play(program, t->strategy->strategy, t->strategy->may_refuse, t->mode, verdict);
        return;
    }
    t->status = torture_play_isolated(program, t->strategy->strategy, t->strategy->may_refuse, t->mode, t->shared);
    if (t->status == STRATA_OK) *verdict = *t->shared;
    else *verdict = (torture_verdict_t){.fault = TORTURE_FAULT_HOST};
}

/* Threads that run at once rarely interleave twice in the same way, so there are several tries. */
static void attempt(void *context, const torture_program_t *program, torture_verdict_t *verdict) {
    trial_t *t = context;
    *verdict = (torture_verdict_t){.fault = TORTURE_FAULT_NONE};
    if (t->status != STRATA_OK || seconds() > t->until) return;
    int tries = t->mode == STRATA_TORTURE_AT_ONCE ? TRIES_AT_ONCE : 1;
    do attempt_once(t, program, verdict);
    while (--tries > 0 && !torture_same_fault(verdict, t->fault));
}

/* Finds the simplest mode in which the program fails: the same call sequence by one thread, threads in turns,
 * threads at once. */
static bool find_mode(trial_t *t, const torture_program_t *program, strata_torture_mode_t found, torture_verdict_t *verdict) {
    for (t->mode = STRATA_TORTURE_INTERLEAVED; t->mode < found; t->mode++) {
        attempt(t, program, verdict);
        if (torture_same_fault(verdict, t->fault)) return true;
    }
    t->mode = found;
    attempt(t, program, verdict);
    return torture_same_fault(verdict, t->fault);
}

typedef struct work {
    torture_program_t program;
    torture_verdict_t verdict;
    trial_t trial;
    uint32_t attempts;
    bool again; /* it failed again */
} work_t;

static strata_status_t reduce(const torture_campaign_t *campaign, const torture_failure_t *failure, bool apart, work_t *work) {
    const torture_strategy_t *strategy = &campaign->strategies->all[failure->run.strategy];
    work->trial = (trial_t){.strategy = strategy, .fault = &failure->verdict, .until = seconds() + MAX_SECONDS};
    if (apart) work->trial.shared = torture_shared_new(sizeof *work->trial.shared);
    if (apart && !work->trial.shared) return STRATA_E_HOST_MEMORY;
    bool drawn = torture_campaign_draw(campaign, failure->run.number, &work->program) &&
                 torture_make_well_formed(&work->program, strategy->dialect);
    if (!drawn) return STRATA_E_HOST_MEMORY;
    work->again = find_mode(&work->trial, &work->program, failure->run.mode, &work->verdict);
    if (work->again)
        work->attempts = torture_shrink(&work->program, strategy->dialect, &failure->verdict, attempt, &work->trial, ATTEMPTS);
    work->trial.until = seconds() + MAX_SECONDS;
    if (work->again) attempt(&work->trial, &work->program, &work->verdict);
    torture_shared_delete(work->trial.shared, sizeof *work->trial.shared);
    return work->trial.status;
}

static void print_failure(FILE *out, const torture_campaign_t *campaign, const torture_failure_t *failure, const work_t *work) {
    const torture_strategy_t *strategy = work->trial.strategy;
    char about[1024];
    fprintf(out, "program %" PRIu64 " of seed %" PRIu64 " under %s: %s (%s)\n", failure->run.number, campaign->seed, strategy->name,
            torture_fault_text(failure->verdict.fault), torture_mode_text(failure->run.mode));
    fprintf(out, "%s\n", work->again ? work->verdict.text : failure->verdict.text);
    if (!work->again) fprintf(out, "it did not fail again; the whole program is below\n");
    else fprintf(out, "reduced in %u runs: %u operations\n", work->attempts, work->program.count);
    snprintf(about, sizeof about, "strata torture --seed %" PRIu64 " --first %" PRIu64 " --programs 1%s, under %s", campaign->seed,
             failure->run.number, campaign->again ? campaign->again : "", strategy->name);
    torture_page_t page = {
        .strategy = strategy->text, .about = about, .mode = work->trial.mode, .may_refuse = strategy->may_refuse};
    torture_print(out, &work->program, &page);
}

strata_status_t torture_report_failure(FILE *out, const torture_campaign_t *campaign, const torture_failure_t *failure,
                                       bool apart) {
    work_t *work = strata_host_new(1, sizeof *work);
    strata_status_t status = work ? reduce(campaign, failure, apart, work) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) print_failure(out, campaign, failure, work);
    if (work) torture_program_delete(&work->program);
    strata_host_delete(work);
    return status;
}
