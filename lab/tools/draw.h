/* Draws the memory of each candidate of a comparison. */
#ifndef STRATA_TOOLS_DRAW_H
#define STRATA_TOOLS_DRAW_H

#include "lab/replay/draw/map.h"
#include "lab/replay/series/series.h"
#include "lab/tools/options/candidates.h"

/* Replays the trace under a candidate once more, up to a row, and keeps the contents of its chunks. If the
 * row is 0, nothing was reserved and the map stays empty. */
strata_status_t strata_run_map(const strata_arguments_t *arguments, const strata_candidate_t *candidate,
                               const strata_trace_t *trace, size_t row, strata_map_t *map);
/* Replays the trace under each candidate once more, up to its peak of reserved bytes. Draws the contents to
 * standard output. results[i] belongs to candidate i. Only candidates that represent themselves are drawn
 * (stands_for[i] is i). */
strata_status_t strata_draw_candidates(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                       const strata_trace_t *trace, const strata_run_result_t *results, const size_t *stands_for);
/* Draws the memory of each of these candidates over the rows of the trace. series[i] is the finished series
 * of candidate i. Draws nothing if no candidate held device memory. */
void strata_draw_curves(const strata_candidates_t *candidates, const strata_trace_t *trace, const strata_run_result_t *results,
                        const size_t *stands_for, const strata_series_t *series);

#endif
