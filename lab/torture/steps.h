/* Writes every step of programs as text, to compare two builds of Strata (scripts/oracle). */
#ifndef STRATA_TORTURE_STEPS_H
#define STRATA_TORTURE_STEPS_H

#include "lab/torture/campaign.h"
#include "trace/text/output.h"

/* Runs the programs of a campaign one after the other in this process, each by one thread. Writes a line for
 * each run, and one for each operation with its blocks. At the end it writes every layer's metrics and every
 * block. The lines of every `every`-th operation have the metrics of places that changed. Reading metrics
 * completes work that a stack has deferred, so reading them at every operation would hide some paths. *failed
 * is the number of runs with a fault. Fails with E_IO or E_HOST_MEMORY. */
strata_status_t torture_write_steps(const torture_campaign_t *campaign, uint64_t every, strata_output_t *out, uint64_t *failed);

#endif
