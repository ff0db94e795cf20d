#include "lab/torture/isolated.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/torture/campaign.h"

void *torture_shared_new(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) return memory;
    (void)strata_fail(STRATA_E_HOST_MEMORY, 0, "cannot allocate memory that processes share: %s", strerror(errno));
    return NULL;
}

void torture_shared_delete(void *memory, size_t size) {
    if (memory) (void)munmap(memory, size);
}

void torture_describe_exit(int how, int seconds, torture_verdict_t *verdict) {
    *verdict = (torture_verdict_t){.fault = TORTURE_FAULT_CRASH};
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM) {
        verdict->fault = TORTURE_FAULT_HANG;
        snprintf(verdict->text, sizeof verdict->text, "did not end within %d s", seconds);
    } else if (WIFSIGNALED(how)) {
        verdict->detail = WTERMSIG(how);
        snprintf(verdict->text, sizeof verdict->text, "ended by signal %d (%s)", WTERMSIG(how), strsignal(WTERMSIG(how)));
    } else {
        verdict->detail = 1000 + WEXITSTATUS(how);
        snprintf(verdict->text, sizeof verdict->text, "the process ended itself with status %d", WEXITSTATUS(how));
    }
}

pid_t torture_fork(void) {
    pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0); /* the parent ended before that call */
    return 0;
}

static pid_t begin_process(void) {
    (void)fflush(stdout);
    (void)fflush(stderr);
    pid_t child = torture_fork();
    if (child < 0) (void)strata_fail(STRATA_E_IO, 0, "cannot start a process for a run: %s", strerror(errno));
    /* Hundreds of processes may crash while a program is shrunk, so none leaves a core. */
    if (child == 0) (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    return child;
}

static int wait_for(pid_t child) {
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {}
    return how;
}

static bool exited_ok(int how) { return WIFEXITED(how) && WEXITSTATUS(how) == 0; }

strata_status_t torture_play_isolated(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                                      strata_torture_mode_t mode, torture_verdict_t *shared) {
    static torture_verdict_t played;
    torture_describe_exit(0, 0,
                          shared); /* the verdict until the child sets another, because the code that it runs may call exit() */
    pid_t child = begin_process();
    if (child < 0) return STRATA_E_IO;
    if (child == 0) {
        (void)alarm(TORTURE_SECONDS_SMALL);
        torture_play(program, strategy, may_refuse, mode, &played);
        *shared = played;
        _exit(0);
    }
    int how = wait_for(child);
    if (!exited_ok(how)) torture_describe_exit(how, TORTURE_SECONDS_SMALL, shared);
    return STRATA_OK;
}

/* ---- a campaign ---- */

/* The part of one process: every `jobs`-th program. It is in shared memory. The process writes it, and the
 * parent reads it when the process has ended. */
typedef struct part {
    _Atomic uint64_t done, failed; /* so far; read at any time */
    uint64_t next; /* the current program, as an offset from the first */
    torture_run_t run; /* the current one */
    torture_sum_t sum;
    uint32_t count;
    torture_failure_t failures[TORTURE_FAILURES_KEPT];
} part_t;

typedef struct working {
    const torture_campaign_t *campaign;
    part_t *part;
    const torture_run_t *after; /* a process that ended has made the runs of its program up to this one */
    torture_verdict_t verdict;
} working_t;

static void note_failure(part_t *part, const torture_run_t *run, const torture_verdict_t *verdict) {
    part->sum.failed++;
    atomic_fetch_add(&part->failed, 1);
    if (part->count < TORTURE_FAILURES_KEPT) part->failures[part->count++] = (torture_failure_t){*run, *verdict};
}

static bool is_same(const torture_run_t *a, const torture_run_t *b) {
    return a->number == b->number && a->strategy == b->strategy && a->mode == b->mode;
}

static bool work(void *context, const torture_run_t *run, const torture_program_t *well_formed) {
    working_t *working = context;
    part_t *part = working->part;
    const torture_strategy_t *strategy = &working->campaign->strategies->all[run->strategy];
    if (working->after) {
        if (is_same(run, working->after)) working->after = NULL;
        return true;
    }
    part->run = *run;
    (void)alarm(TORTURE_SECONDS);
    torture_play(well_formed, strategy->strategy, strategy->may_refuse, run->mode, &working->verdict);
    torture_sum_add(&part->sum, run, well_formed, &working->verdict);
    if (working->verdict.fault) note_failure(part, run, &working->verdict);
    return true;
}

static _Noreturn void run_part(const torture_campaign_t *campaign, part_t *part, const torture_run_t *after) {
    static working_t working;
    torture_run_t ended = after ? *after : (torture_run_t){.number = 0};
    working = (working_t){.campaign = campaign, .part = part, .after = after ? &ended : NULL};
    for (; part->next < campaign->programs; part->next += campaign->jobs) {
        torture_each_run(campaign, campaign->first + part->next, work, &working);
        working.after = NULL;
        part->sum.programs++;
        atomic_fetch_add(&part->done, 1);
    }
    (void)alarm(0);
    _exit(0);
}

static strata_status_t begin_part(const torture_campaign_t *campaign, part_t *part, const torture_run_t *after, pid_t *child) {
    *child = begin_process();
    if (*child == 0) run_part(campaign, part, after);
    return *child < 0 ? STRATA_E_IO : STRATA_OK;
}

static void report_progress(const torture_campaign_t *campaign, const part_t *parts) {
    uint64_t done = 0, failed = 0;
    for (uint32_t i = 0; i < campaign->jobs; i++) {
        done += atomic_load(&parts[i].done);
        failed += atomic_load(&parts[i].failed);
    }
    campaign->progress(campaign->progress_context, done, failed);
}

static int wait_watching(const torture_campaign_t *campaign, const part_t *parts, pid_t child) {
    int how = 0;
    if (!campaign->progress) return wait_for(child);
    report_progress(campaign, parts);
    for (pid_t ended = 0; ended != child;) {
        ended = waitpid(child, &how, WNOHANG);
        if (ended == 0) (void)poll(NULL, 0, TORTURE_LOOK_MS);
        report_progress(campaign, parts);
    }
    return how;
}

/* If the process of a part ended in a run, another process continues after that run. A part with too many
 * failures ends, because a strategy may end every process. */
static strata_status_t finish_part(const torture_campaign_t *campaign, part_t *parts, uint32_t number, pid_t child) {
    static torture_verdict_t verdict;
    part_t *part = &parts[number];
    for (;;) {
        int how = wait_watching(campaign, parts, child);
        if (exited_ok(how) && part->next >= campaign->programs) return STRATA_OK;
        torture_describe_exit(how, TORTURE_SECONDS, &verdict);
        torture_run_t run = part->run;
        note_failure(part, &run, &verdict);
        if (part->count == TORTURE_FAILURES_KEPT) return STRATA_OK;
        strata_status_t status = begin_part(campaign, part, &run, &child);
        if (status != STRATA_OK) return status;
    }
}

static void add_part(const part_t *part, torture_sum_t *sum, torture_failure_t *failures, uint32_t *count) {
    sum->programs += part->sum.programs;
    sum->operations += part->sum.operations;
    sum->served += part->sum.served;
    sum->refused += part->sum.refused;
    sum->unopened += part->sum.unopened;
    sum->recycled += part->sum.recycled;
    sum->captures += part->sum.captures;
    sum->launches += part->sum.launches;
    sum->hazards += part->sum.hazards;
    sum->failed += part->sum.failed;
    for (int i = 0; i < STRATA_TORTURE_MODES; i++) sum->runs[i] += part->sum.runs[i];
    for (uint32_t i = 0; i < part->count && *count < TORTURE_FAILURES_KEPT; i++) failures[(*count)++] = part->failures[i];
}

strata_status_t torture_run_isolated(const torture_campaign_t *campaign, torture_sum_t *sum, torture_failure_t *failures,
                                     uint32_t *failure_count) {
    pid_t children[TORTURE_JOBS];
    uint32_t begun = 0;
    strata_status_t status = STRATA_OK;
    part_t *parts = torture_shared_new(campaign->jobs * sizeof *parts);
    if (!parts) return STRATA_E_HOST_MEMORY;
    for (; begun < campaign->jobs && status == STRATA_OK; begun++) {
        parts[begun].next = begun;
        status = begin_part(campaign, &parts[begun], NULL, &children[begun]);
    }
    begun -= status != STRATA_OK;
    *sum = (torture_sum_t){.programs = 0};
    *failure_count = 0;
    for (uint32_t i = 0; i < begun; i++) {
        strata_status_t finished = finish_part(campaign, parts, i, children[i]);
        if (status == STRATA_OK) status = finished;
        add_part(&parts[i], sum, failures, failure_count);
    }
    torture_shared_delete(parts, campaign->jobs * sizeof *parts);
    return status;
}
