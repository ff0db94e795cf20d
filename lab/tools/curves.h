/* Curves of each run of a comparison, recorded while it runs. Other followers of the same runs are called, too. */
#ifndef STRATA_TOOLS_CURVES_H
#define STRATA_TOOLS_CURVES_H

#include "lab/replay/run/run.h"

typedef struct strata_curves strata_curves_t;

/* Fails with E_HOST_MEMORY. */
strata_status_t strata_curves_begin(size_t runs, strata_curves_t **curves);
void strata_curves_delete(strata_curves_t *curves);
/* Returns one follower for each run from number `first` on. Each calls its element of `others`, too. `others` may be NULL. */
const strata_run_follow_t *strata_curves_follow(strata_curves_t *curves, size_t first, size_t count,
                                                const strata_run_follow_t *others);
/* Clears the curves of these runs before other runs reuse their numbers. Fails with E_HOST_MEMORY. */
strata_status_t strata_curves_reset(strata_curves_t *curves, size_t first, size_t count);
/* Returns the finished series of these runs, one each. Call it once for each run. */
const strata_series_t *strata_curves_finish(strata_curves_t *curves, size_t first, size_t count);

#endif
