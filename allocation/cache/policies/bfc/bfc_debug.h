/* Shared by the report of bfc and its memory map. These functions read under the lock of the shared stack. */
#ifndef STRATA_ALLOCATION_LAYER_BFC_DEBUG_H
#define STRATA_ALLOCATION_LAYER_BFC_DEBUG_H

#include "allocation/cache/policies/bfc/bfc_state.h"

enum { STRATA_BFC_DRAWN = 100 };

/* The blocks with the sizes of one bin, free or in use. */
typedef struct bfc_bin {
    uint64_t bytes, bytes_in_use, requested_in_use;
    uint32_t chunks, chunks_in_use;
} bfc_bin_t;

typedef struct bfc_row {
    uint64_t address, size, requested, freed_at, action, id, step;
    const char *operator_name; /* valid as long as the facade */
    int bin; /* -1 if the block is in use */
    bool in_use;
} bfc_row_t;

/* Draws the regions: '_' is free, '*' is requested, and 'x' is granted beyond the request. */
void strata_bfc_draw(const bfc_t *self, char drawn[STRATA_BFC_DRAWN + 1]);
void strata_bfc_sum_bins(const bfc_t *self, bfc_bin_t bins[STRATA_BFC_BINS]);
double strata_bfc_fragmentation(const bfc_t *self);
void strata_bfc_read_row(const bfc_t *self, const strata_report_sink_t *sink, uint32_t slot, bfc_row_t *row);
/* Writes the map of all blocks to a file and reports its name. Takes the lock itself (bfc_dump.c). */
void strata_bfc_dump(bfc_t *self, const strata_report_sink_t *sink);

#endif
