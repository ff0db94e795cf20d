#include "lab/replay/compare/jobs.h"

#include <pthread.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "trace/text/partial.h"

typedef struct jobs {
    strata_job_fn job;
    void *context;
    pthread_mutex_t lock; /* protects the members below */
    size_t next, count; /* the next job to start, and the end of those that may be started */
    strata_error_t error; /* of job `count`, which failed; its status is OK if none failed */
} jobs_t;

/* Returns true and the next job if another one may be started. */
static bool next_job(jobs_t *jobs, size_t *job) {
    pthread_mutex_lock(&jobs->lock);
    bool any = jobs->next < jobs->count;
    if (any) *job = jobs->next++;
    pthread_mutex_unlock(&jobs->lock);
    return any;
}

static void fail(jobs_t *jobs, size_t job) {
    pthread_mutex_lock(&jobs->lock);
    if (job < jobs->count) {
        jobs->count = job;
        jobs->error = *strata_last_error();
    }
    pthread_mutex_unlock(&jobs->lock);
}

static void *work(void *context) {
    jobs_t *jobs = context;
    size_t job;
    while (next_job(jobs, &job))
        if (jobs->job(jobs->context, job) != STRATA_OK) fail(jobs, job);
    return NULL;
}

/* Signals are blocked while the threads start, so that only existing threads handle them. */
static size_t start(jobs_t *jobs, pthread_t *threads, size_t count) {
    sigset_t before;
    size_t started = 0;
    strata_partial_block_signals(&before);
    while (started < count && pthread_create(&threads[started], NULL, work, jobs) == 0) started++;
    strata_partial_unblock_signals(&before);
    return started;
}

/* If fewer threads can be started than requested, the jobs only take longer. */
strata_status_t strata_jobs_run(size_t count, size_t threads, strata_job_fn job, void *context) {
    size_t others = strata_min(count, threads) > 1 ? strata_min(count, threads) - 1 : 0;
    jobs_t *jobs = strata_host_new(1, sizeof *jobs);
    pthread_t *started = strata_host_new(others + 1, sizeof *started);
    strata_status_t status = jobs && started ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) {
        *jobs = (jobs_t){.job = job, .context = context, .count = count};
        pthread_mutex_init(&jobs->lock, NULL);
        others = start(jobs, started, others);
        work(jobs);
        for (size_t i = 0; i < others; i++) pthread_join(started[i], NULL);
        pthread_mutex_destroy(&jobs->lock);
        if (jobs->error.status != STRATA_OK) status = strata_fail_again(&jobs->error);
    }
    strata_host_delete(jobs);
    strata_host_delete(started);
    return status;
}
