/* Loads a strategy for programs. */
#ifndef STRATA_PROGRAMS_LOAD_H
#define STRATA_PROGRAMS_LOAD_H

#include "config/config.h"
#include "programs/program.h"

/* Calls strata_config_load(), and shortens all waits for memory. *dialect receives the rules of the strategy for its programs,
 * and the places in which it serves captured graphs. Returns the errors of strata_config_load(). */
strata_status_t torture_load(const strata_config_request_t *request, strata_strategy_t **strategy, torture_dialect_t *dialect);

#endif
