/* A facade over one simulated device, for a program that ends if a call fails. */
#ifndef STRATA_BENCH_SIMULATED_H
#define STRATA_BENCH_SIMULATED_H

#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "platform/sim/sim.h"

static inline void must(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s\n", strata_last_error()->text);
    exit(1);
}

/* `capacity` is as in strata_sim_options_t. The end of the program closes the facade. */
static inline strata_t simulated_open(const char *preset, uint64_t capacity) {
    static strata_strategy_t *strategy;
    strata_t facade;
    strata_sim_t *world;
    strata_device_t *device;
    strata_config_request_t request = {.preset = preset, .devices = "sim"};
    strata_sim_options_t options = {.capacity = capacity};
    must(strata_config_load(&request, &strategy));
    must(strata_sim_new(&options, &world));
    must(strata_sim_open(world, 0, &device));
    must(strata_facade_open_on(strategy, &device, 1, 0, &facade));
    return facade;
}

#endif
