/* What the layer trace leaves at the first out-of-memory: the trace so far, and a snapshot of the place's blocks. */
#ifndef STRATA_LAYER_TRACE_OOM_H
#define STRATA_LAYER_TRACE_OOM_H

#include "allocation/domain/layer.h"
#include "trace/recorder.h"

/* The trace to the path that `pattern` says, the snapshot beside it, with .pickle for .csv or .csv.gz. Of a file's recording the first
 * time alone. No lock is held. */
strata_status_t strata_trace_leave(strata_recorder_ring_t *ring, strata_domain_t *domain, const char *pattern, uint64_t now_ns);

#endif
