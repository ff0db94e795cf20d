/* Every step of programs as text, for comparing two builds of Strata: scripts/oracle. */
#ifndef STRATA_TORTURE_STEPS_H
#define STRATA_TORTURE_STEPS_H

#include "lab/torture/campaign.h"
#include "trace/text/output.h"

/* Runs the programs of a campaign one after the other in this process, each by one thread. Writes a line for each run, one for each
 * operation with the blocks that it names, and at the end every layer's figures and every block. Lines of every `every`-th operation
 * have the figures of places that changed: taking figures settles what a stack has put off, so a run that is always looked at does not
 * go every way. *failed: runs in which something went wrong. E_IO, E_HOST_MEMORY. */
strata_status_t torture_write_steps(const torture_campaign_t *campaign, uint64_t every, strata_output_t *out, uint64_t *failed);

#endif
