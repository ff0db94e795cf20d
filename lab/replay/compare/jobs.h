/* Pieces of work that know nothing of each other, on several threads. */
#ifndef STRATA_REPLAY_JOBS_H
#define STRATA_REPLAY_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

typedef strata_status_t (*strata_job_fn)(void *context, size_t job);

/* Does jobs 0 .. count - 1, begun in this order, at most `threads` at once, the calling thread's among them; 0 or 1: one after another.
 * After a failure no more are begun. The status and the last error are those of the first failed job, as if they had been done one
 * after another: any before it is done by then. */
strata_status_t strata_jobs_do(size_t count, size_t threads, strata_job_fn job, void *context);

#endif
