/* The order that a traced program makes by itself. If a stream or the host has waited for another stream,
 * kernels submitted later are ordered after that stream's earlier work. */
#ifndef STRATA_TOOLS_PLAN_TRACE_ORDER_H
#define STRATA_TOOLS_PLAN_TRACE_ORDER_H

#include "platform/status.h"
#include "trace/trace.h"

typedef struct strata_trace_order {
    uint32_t streams; /* 0 if the order is unknown */
    uint32_t *seen; /* by lifetime and stream: the stream's last row that is ordered before the lifetime's begin */
    uint32_t *end; /* row of its free, or the number of rows plus 1 if there is none */
    uint16_t *owner;
    uint64_t *users; /* a bit for each stream that owns or borrows it */
} strata_trace_order_t;

/* The order is unknown for a trace with more than 64 streams, or with too many lifetimes for its streams. If
 * this fails with E_HOST_MEMORY, nothing is left. */
strata_status_t strata_trace_order_make(strata_trace_order_t *order, const strata_trace_t *trace);
void strata_trace_order_delete(strata_trace_order_t *order);
/* Returns true if the program orders all uses of `earlier` before those of `later`. `later` must begin after
 * `earlier` was freed. */
bool strata_trace_order_has(const strata_trace_order_t *order, uint32_t earlier, uint32_t later);

#endif
