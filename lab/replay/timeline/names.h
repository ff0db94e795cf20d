/* What a strategy calls by names and a trace by numbers: streams and pools. */
#ifndef STRATA_REPLAY_NAMES_H
#define STRATA_REPLAY_NAMES_H

#include "lab/replay/timeline/timeline.h"
#include "strategy/model.h"

/* Names each stream in the facade, for a strategy's `streams:`. The name is the trace's, or the stream's number. */
strata_status_t strata_names_of_streams(const strata_strategy_t *strategy, const strata_timeline_t *timeline,
                                        const strata_machine_t *machine, strata_t facade);
/* Returns the next pattern of a strategy's `streams:`, from *at on, that matches no stream of the trace, and moves *at past it. NULL: none. */
const char *strata_names_unmatched(const strata_strategy_t *strategy, const strata_trace_t *trace, uint32_t *at);
/* Stream 0 of each device becomes the facade's NULL, unless it is the legacy one. Before the facade is ready. */
strata_status_t strata_names_default_streams(const strata_timeline_t *timeline, const strata_machine_t *machine, strata_t facade);
/* For each pool of the trace, by its index, the facade's pool that has its number as a name; 0: the strategy has none. NULL: no
 * pool at all. strata_host_delete() ends it. */
strata_status_t strata_names_of_pools(const strata_strategy_t *strategy, const strata_trace_t *trace, strata_t facade,
                                      uint64_t **pools);

#endif
