/* The end of a run: whether the layers were sound, and whether the device got everything back. */
#ifndef STRATA_REPLAY_ENDED_H
#define STRATA_REPLAY_ENDED_H

#include <strata/strata.h>

#include "lab/replay/timeline/target.h"

/* In words; "" if there is nothing to report. */
typedef struct strata_run_ended {
    char unsound[512]; /* of a checked run: what strata_validate() refused */
    char lost[512]; /* what the facade's close reported, such as a file that a layer could not write */
    char kept[512]; /* of a checked run: what no device got back, by place and, after the close, by kind of memory */
} strata_run_ended_t;

/* After the last row, with the facade still open. */
void strata_run_ended_validate(strata_run_ended_t *ended, strata_t facade);
/* The same, and every block is freed: whatever is then neither live nor idle is reported. Unsound layers are not asked. */
void strata_run_ended_empty(strata_run_ended_t *ended, strata_t facade);
/* Closes the facade, whatever is live. */
void strata_run_ended_close(strata_run_ended_t *ended, strata_t facade);
/* The facade is closed, the devices are not, and nobody else holds anything of them. */
void strata_run_ended_count(strata_run_ended_t *ended, const strata_machine_t *machine);

#endif
