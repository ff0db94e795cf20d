/* The figures of a layer's own, read as the layer contract says. */
#ifndef STRATA_ALLOCATION_FIGURES_H
#define STRATA_ALLOCATION_FIGURES_H

#include "allocation/domain/group.h"

enum { STRATA_OWN_FIGURES = 257 /* the rows that a type may have, and one more */ };

typedef struct strata_own_figure {
    const char *name, *unit, *doc;
    uint64_t value;
} strata_own_figure_t;

/* The rows that a type's instances tell, without values: those of its `stats`, and behind them `idle_bytes`, where it knows what
 * it holds idle and has no row of that name. How many. */
uint32_t strata_own_figure_rows(const strata_layer_type_t *type, strata_own_figure_t rows[STRATA_OWN_FIGURES]);
/* The same of an instance, all values of one moment. Takes the lock of the layer's stack. */
uint32_t strata_own_figures(strata_layer_t *layer, strata_own_figure_t rows[STRATA_OWN_FIGURES]);
/* The sums over all instances of a layer in the stacks of one group, by its number; those of device scope are one. Takes the
 * stacks' locks in turn. */
uint32_t strata_group_own_figures(strata_group_t *group, uint32_t number, strata_own_figure_t rows[STRATA_OWN_FIGURES]);

/* All peaks of a place begin at what is now: its own, those of its stacks and of what has ended, and those of layers. No lock is
 * held. */
void strata_domain_reset_peaks(strata_domain_t *domain);

#endif
