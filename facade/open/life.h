/* The parts of opening and closing that a change of strategy also needs (facade/open/open.c). */
#ifndef STRATA_FACADE_LIFE_H
#define STRATA_FACADE_LIFE_H

#include "facade/registry/facade.h"

/* Checks the options of an open; errors name `function`. Returns E_INVALID for an unknown flag or value,
 * or a NULL that is not allowed. */
strata_status_t strata_facade_check_options(const strata_open_options_t *options, const char *function);
/* Loads the strategy that the options name. */
strata_status_t strata_facade_load(const strata_open_options_t *options, strata_strategy_t **strategy);
/* Builds the default stream's stack for every place of the open devices. A place that the device cannot
 * serve is skipped; the first request for it returns the error. */
strata_status_t strata_facade_build_default_stacks(strata_facade_t *facade);

/* Counts the live blocks and reports them with no lock held; `report` may be NULL. */
uint64_t strata_facade_report_leaks(strata_facade_t *facade, strata_leak_fn report, void *context);
/* Finishes deferred frees that are ready, and returns the bytes of the others. With `wait`, first waits for all work. */
uint64_t strata_facade_still_pending(strata_facade_t *facade, bool wait);
void strata_facade_end_domains(strata_facade_t *facade);

/* Opens a facade on devices that the caller opened and closes after it, for replay and tests. The
 * strategy must outlive the facade. */
strata_status_t strata_facade_open_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count,
                                      uint32_t flags, strata_t *facade);
/* Work like strata_facade_open_on(), in two steps. Between them the caller can set default streams and
 * stream names of places, before the first stacks are built. The caller closes the facade whatever status
 * the second step returns. */
strata_status_t strata_facade_begin_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count,
                                       uint32_t flags, strata_t *facade);
strata_status_t strata_facade_ready(strata_t facade);

#endif
