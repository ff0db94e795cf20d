/* The metrics that layers count themselves, read under the rules of the layer contract (strata/layer.h). */
#ifndef STRATA_ALLOCATION_FIGURES_H
#define STRATA_ALLOCATION_FIGURES_H

#include "allocation/domain/group.h"

enum { STRATA_STAT_ROWS = 256 /* that a type may have */, STRATA_OWN_FIGURES = STRATA_STAT_ROWS + 2 };

typedef struct strata_own_figure {
    const char *name, *unit, *doc;
    uint64_t value;
} strata_own_figure_t;

/* Sets the rows of a type, without values. They are its `stats`, then `idle_bytes` if it has that operation,
 * and `pool_idle_bytes` if it has `driver_pool`. A row of the type's own with that name is the only one.
 * Returns their number. */
uint32_t strata_own_figure_rows(const strata_layer_type_t *type, strata_own_figure_t rows[STRATA_OWN_FIGURES]);
/* Like strata_own_figure_rows(), with the values of an instance, all of one moment. The driver is asked for
 * `pool_idle_bytes` before that moment. Takes the lock of the layer's stack. No lock is held. */
uint32_t strata_own_figures(strata_layer_t *layer, strata_own_figure_t rows[STRATA_OWN_FIGURES]);
/* Sums the rows over all instances of a layer, by its number, in the stacks of one group. A layer of
 * device scope has one instance. Takes the stacks' locks one after the other. */
uint32_t strata_group_own_figures(strata_group_t *group, uint32_t number, strata_own_figure_t rows[STRATA_OWN_FIGURES]);

/* Resets all peaks of a place to the present values: its own, those of live and ended stacks, and those
 * of layers. No lock is held. */
void strata_domain_reset_peaks(strata_domain_t *domain);

#endif
