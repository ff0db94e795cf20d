/* Matches the names of a strategy with the numbers of a trace, for streams and pools. */
#ifndef STRATA_REPLAY_NAMES_H
#define STRATA_REPLAY_NAMES_H

#include "lab/replay/timeline/timeline.h"
#include "strategy/model.h"

/* Names each stream in the facade, for a strategy's `streams:`. The name is the trace's, or the stream's number. */
strata_status_t strata_names_of_streams(const strata_strategy_t *strategy, const strata_timeline_t *timeline,
                                        const strata_machine_t *machine, strata_t facade);
/* Returns the next pattern of a strategy's `streams:`, from *at on, that matches no stream of the trace.
 * Moves *at past it. Returns NULL if there is none. */
const char *strata_names_unmatched(const strata_strategy_t *strategy, const strata_trace_t *trace, uint32_t *at);
/* Makes stream 0 of each device the facade's NULL, unless it is the legacy stream. Call before the facade is ready. */
strata_status_t strata_names_default_streams(const strata_timeline_t *timeline, const strata_machine_t *machine, strata_t facade);
/* Sets *pools to an array, by the trace's pool index, of the facade's pools that have the pools' numbers as
 * names. An element is 0 if the strategy has no such pool. *pools is NULL if the strategy or the trace has no
 * pools. Free it with strata_host_delete(). */
strata_status_t strata_names_of_pools(const strata_strategy_t *strategy, const strata_trace_t *trace, strata_t facade,
                                      uint64_t **pools);

#endif
