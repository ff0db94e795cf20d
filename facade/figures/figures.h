/* Metrics of a facade, for the rest of the library. */
#ifndef STRATA_FACADE_FIGURES_H
#define STRATA_FACADE_FIGURES_H

#include "facade/registry/facade.h"

/* Returns the bytes of live chunks from the device, without visiting the stacks. Returns 0 if the place is not served. */
uint64_t strata_facade_reserved(strata_t facade, strata_place_t place);
/* Returns the peak of strata_facade_reserved(). */
uint64_t strata_facade_peak_reserved(strata_t facade, strata_place_t place);

/* Return the metrics of one stack, of all stacks of a place, or of a pool's stacks (0 means outside
 * pools). The latter two include ended stacks. */
void strata_facade_stack_figures(strata_stack_t *stack, strata_statistics_t *figures);
void strata_facade_place_figures(strata_domain_t *domain, strata_statistics_t *figures);
void strata_facade_pool_figures(strata_domain_t *domain, uint64_t pool, strata_statistics_t *figures);

#endif
