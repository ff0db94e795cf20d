/* What a traced program orders by itself: a kernel that is submitted after its stream has waited for another one, or after the host
 * has, comes after what that other stream did before. */
#ifndef STRATA_TOOLS_PLAN_TRACE_ORDER_H
#define STRATA_TOOLS_PLAN_TRACE_ORDER_H

#include "platform/status.h"
#include "trace/trace.h"

typedef struct strata_trace_order {
    uint32_t streams; /* 0: nothing is known */
    uint32_t *seen; /* of each lifetime's begin: up to which row it comes after each stream; streams to a lifetime */
    uint32_t *end; /* row of its free; the number of rows if there is none */
    uint16_t *owner;
    uint64_t *users; /* a bit for each stream that has it, or borrows it */
} strata_trace_order_t;

/* Of a trace with more than 64 streams, or too many lifetimes for them, nothing is known. E_HOST_MEMORY: nothing is left. */
strata_status_t strata_trace_order_make(strata_trace_order_t *order, const strata_trace_t *trace);
void strata_trace_order_delete(strata_trace_order_t *order);
/* Whether the program orders everything that uses `earlier` before what uses `later`, which begins after it was freed. */
bool strata_trace_order_has(const strata_trace_order_t *order, uint32_t earlier, uint32_t later);

#endif
