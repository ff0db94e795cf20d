/* Advice for a strategy of which one option does not suit a trace. */
#ifndef STRATA_REPLAY_ADVICE_H
#define STRATA_REPLAY_ADVICE_H

#include "lab/replay/compare/compare.h"

enum { STRATA_ADVICE_PATH = 128 };

/* An option of a layer in the stack of the GPU, and the value to write. */
typedef struct strata_chunk_advice {
    char path[STRATA_ADVICE_PATH]; /* as for --set */
    uint64_t now, better; /* bytes */
    uint64_t unused; /* max bytes that the present value leaves unused at once */
} strata_chunk_advice_t;

/* Finds an option `chunk_size` that leaves much memory unused. A chunk holds only one block of more than half its size, and
 * the rest of it is lost to other such blocks. With a chunk_size of the smallest of these blocks, each of them has a chunk
 * of its own size. Returns false if there is no such option, or if the rest is less than a tenth of the candidate's peak.
 * Returns false too if the candidate used most of the rest for other blocks. */
bool strata_chunk_advice_find(const strata_candidate_t *candidate, const strata_trace_t *trace, const strata_figures_t *figures,
                              strata_chunk_advice_t *advice);

typedef struct strata_threshold_advice {
    char path[STRATA_ADVICE_PATH];
    uint64_t now; /* bytes */
    double percent; /* of the program's time, in device calls */
} strata_threshold_advice_t;

/* Finds an option `release_threshold` below the candidate's peak, with which device calls take at least a tenth of the time.
 * Each wait of the host then gives memory of the driver's pool to the device, and the next step requests it again. */
bool strata_threshold_advice_find(const strata_candidate_t *candidate, const strata_figures_t *figures,
                                  strata_threshold_advice_t *advice);

#endif
