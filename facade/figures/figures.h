/* Figures of a facade for the rest of the library. */
#ifndef STRATA_FACADE_FIGURES_H
#define STRATA_FACADE_FIGURES_H

#include "facade/registry/facade.h"

/* Bytes of live chunks got from the device, without a look at the stacks; 0 if the place is not served. */
uint64_t strata_facade_reserved(strata_t facade, strata_place_t place);
/* The most of them so far. */
uint64_t strata_facade_peak_reserved(strata_t facade, strata_place_t place);

/* The figures of one stack, of all stacks of a place, and of those of a pool (0: outside pools), those of ended stacks included. */
void strata_facade_stack_figures(strata_stack_t *stack, strata_statistics_t *figures);
void strata_facade_place_figures(strata_domain_t *domain, strata_statistics_t *figures);
void strata_facade_pool_figures(strata_domain_t *domain, uint64_t pool, strata_statistics_t *figures);

#endif
