/* What a strategy calls by names, and a trace by numbers: streams and pools. */
#ifndef STRATA_REPLAY_NAMES_H
#define STRATA_REPLAY_NAMES_H

#include "replay/run/timeline.h"
#include "strategy/model.h"

/* Tells the facade each stream's number as its name: a strategy's `streams:` may mean it. */
strata_status_t strata_names_of_streams(const strata_strategy_t *strategy, const strata_timeline_t *timeline,
                                        const strata_machine_t *machine, strata_t facade);
/* Stream 0 of each device is what the facade's NULL stands for, unless it is the legacy one. Before the facade is ready. */
strata_status_t strata_names_default_streams(const strata_timeline_t *timeline, const strata_machine_t *machine, strata_t facade);
/* The facade's pool of each pool of the trace, by its index, where the strategy's `pools:` have its number as a name; 0: they do
 * not. NULL: of none. strata_host_delete() ends it. */
strata_status_t strata_names_of_pools(const strata_strategy_t *strategy, const strata_trace_t *trace, strata_t facade,
                                      uint64_t **pools);

#endif
