/* The figures that layers count themselves, read as the layer contract says. */
#ifndef STRATA_ALLOCATION_FIGURES_H
#define STRATA_ALLOCATION_FIGURES_H

#include "allocation/domain/group.h"

enum { STRATA_OWN_FIGURES = 257 /* the rows that a type may have, and one more */ };

typedef struct strata_own_figure {
    const char *name, *unit, *doc;
    uint64_t value;
} strata_own_figure_t;

/* The rows of a type, without values: those of its `stats`, and then `idle_bytes` if it knows what it holds idle and has no row of
 * that name. Returns their number. */
uint32_t strata_own_figure_rows(const strata_layer_type_t *type, strata_own_figure_t rows[STRATA_OWN_FIGURES]);
/* The same for an instance, all values of one moment. Takes the lock of the layer's stack. */
uint32_t strata_own_figures(strata_layer_t *layer, strata_own_figure_t rows[STRATA_OWN_FIGURES]);
/* The sums over all instances of a layer, by its number, in the stacks of one group; those of device scope are one. Takes the
 * stacks' locks in turn. */
uint32_t strata_group_own_figures(strata_group_t *group, uint32_t number, strata_own_figure_t rows[STRATA_OWN_FIGURES]);

/* Sets all peaks of a place to the present values: its own, those of its stacks and of ended ones, and those of layers. No lock is
 * held. */
void strata_domain_reset_peaks(strata_domain_t *domain);

#endif
