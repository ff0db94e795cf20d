/* What each run of a comparison holds over its rows, kept while it runs, beside whoever else follows the same runs. */
#ifndef STRATA_TOOLS_CURVES_H
#define STRATA_TOOLS_CURVES_H

#include "lab/replay/run/run.h"

typedef struct strata_curves strata_curves_t;

/* E_HOST_MEMORY. */
strata_status_t strata_curves_begin(size_t runs, strata_curves_t **curves);
void strata_curves_delete(strata_curves_t *curves);
/* Followers of the runs from number `first` on, one each, which tell `others` (one each too, or NULL) the same. */
const strata_run_follow_t *strata_curves_follow(strata_curves_t *curves, size_t first, size_t count,
                                                const strata_run_follow_t *others);
/* Clears the curves of these runs before other runs reuse their numbers. E_HOST_MEMORY. */
strata_status_t strata_curves_reset(strata_curves_t *curves, size_t first, size_t count);
/* The finished series of these runs, one each. Once for each run. */
const strata_series_t *strata_curves_finish(strata_curves_t *curves, size_t first, size_t count);

#endif
