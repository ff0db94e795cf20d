/* The parts of opening and closing that a change of strategy needs too (facade/open/open.c). */
#ifndef STRATA_FACADE_LIFE_H
#define STRATA_FACADE_LIFE_H

#include "facade/registry/facade.h"

/* Checks the options of an open; `function` is named in errors. E_INVALID: an unknown flag or value, or a NULL that is not allowed. */
strata_status_t strata_facade_check_options(const strata_open_options_t *options, const char *function);
/* The strategy that options name. */
strata_status_t strata_facade_load(const strata_open_options_t *options, strata_strategy_t **strategy);
/* Builds the default stream's stack for every place of the open devices. A place that the device cannot serve is left until
 * somebody asks for it and gets the error. */
strata_status_t strata_facade_build_default_stacks(strata_facade_t *facade);

/* Counts what is live, and reports it with no lock held; `report` may be NULL. */
uint64_t strata_facade_report_leaks(strata_facade_t *facade, strata_leak_fn report, void *context);
/* Bytes of frees that still wait, after those that have passed were finished; with `wait`, after a wait for all work. */
uint64_t strata_facade_still_pending(strata_facade_t *facade, bool wait);
void strata_facade_end_domains(strata_facade_t *facade);

/* A facade over devices that the caller opens, and closes after it: for replay and tests. The strategy must outlive it. */
strata_status_t strata_facade_open_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count,
                                      uint32_t flags, strata_t *facade);
/* The same in two steps, so that places can be told their default streams and stream names before their first stacks are built. The
 * caller closes the facade whatever the second step answers. */
strata_status_t strata_facade_begin_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count,
                                       uint32_t flags, strata_t *facade);
strata_status_t strata_facade_ready(strata_t facade);

#endif
