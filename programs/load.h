/* Strategies as programs run under them. */
#ifndef STRATA_PROGRAMS_LOAD_H
#define STRATA_PROGRAMS_LOAD_H

#include "config/config.h"
#include "programs/program.h"

/* strata_config_load(); waits for memory are short, and *dialect is what the strategy asks of its programs, and
 * whether it serves captured graphs. */
strata_status_t torture_load(const strata_config_request_t *request, strata_strategy_t **strategy, torture_dialect_t *dialect);

#endif
