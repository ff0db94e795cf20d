/* The end of a run: checks that the layers are sound and that the device got everything back. */
#ifndef STRATA_REPLAY_ENDED_H
#define STRATA_REPLAY_ENDED_H

#include <strata/strata.h>

#include "lab/replay/timeline/target.h"

/* Each text is empty if there is nothing to report. */
typedef struct strata_run_ended {
    char unsound[512]; /* of a checked run: the error of strata_validate() */
    char close_error[512]; /* errors of the facade's close, such as a file that a layer could not write */
    char leaked[512]; /* of a checked run: memory that no device got back, by place and, after the close, by kind of memory */
} strata_run_ended_t;

/* Call after the last row, with the facade still open. */
void strata_run_ended_validate(strata_run_ended_t *ended, strata_t facade);
/* Call after strata_run_ended_validate(), when every block is freed. Reports memory that is neither live nor
 * idle. Does nothing if the layers are unsound. */
void strata_run_ended_empty(strata_run_ended_t *ended, strata_t facade);
/* Closes the facade, even if blocks are live. */
void strata_run_ended_close(strata_run_ended_t *ended, strata_t facade);
/* Call when the facade is closed, the devices are still open, and nothing else holds memory of them. */
void strata_run_ended_count(strata_run_ended_t *ended, const strata_machine_t *machine);

#endif
