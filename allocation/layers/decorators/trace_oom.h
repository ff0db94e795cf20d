/* The output of the layer trace at the first out-of-memory: the trace so far, and a snapshot of the place's
 * blocks. */
#ifndef STRATA_LAYER_TRACE_OOM_H
#define STRATA_LAYER_TRACE_OOM_H

#include "allocation/domain/layer.h"
#include "trace/recorder.h"

/* Writes the trace to the path of `pattern`, and the snapshot beside it, with .pickle for .csv or .csv.gz.
 * Writes them only the first time for each recorded file. No lock is held. */
strata_status_t strata_trace_dump(strata_recorder_ring_t *ring, strata_domain_t *domain, const char *pattern, uint64_t now_ns);

#endif
