/* Runs independent jobs on several threads. */
#ifndef STRATA_REPLAY_JOBS_H
#define STRATA_REPLAY_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

typedef strata_status_t (*strata_job_fn)(void *context, size_t job);

/* Runs jobs 0 to count - 1, started in this order, on at most `threads` threads including the calling one.
 * With 0 or 1 threads, the jobs run one after another. After a failure no more jobs are started. The status
 * and the last error are those of the failed job with the lowest index, as in a serial run. All jobs before
 * it are done by then. */
strata_status_t strata_jobs_run(size_t count, size_t threads, strata_job_fn job, void *context);

#endif
