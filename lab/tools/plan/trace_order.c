#include "lab/tools/plan/trace_order.h"

#include <string.h>

#include "platform/host/host_memory.h"

enum { STREAMS_MAX = 64, SEEN_MAX = 1 << 26 };

/* Clocks are rows, counted from 1: clock[s][t] is the last row of stream t that is ordered before stream s. */
typedef struct ordering {
    strata_trace_order_t *order;
    const strata_trace_t *trace;
    uint32_t streams;
    uint32_t *clock; /* of the streams, then of the host */
} ordering_t;

static uint32_t *clock_of(const ordering_t *x, uint32_t stream) { return x->clock + (size_t)stream * x->streams; }

static void merge_clock(const ordering_t *x, uint32_t *into, const uint32_t *from) {
    for (uint32_t t = 0; t < x->streams; t++)
        if (from[t] > into[t]) into[t] = from[t];
}

/* Orders the waiter after everything that the stream was given so far. */
static void wait_for(const ordering_t *x, uint32_t waiter, uint32_t stream, uint32_t row) {
    clock_of(x, stream)[stream] = row;
    merge_clock(x, clock_of(x, waiter), clock_of(x, stream));
}

static void begin_block(const ordering_t *x, const strata_trace_event_t *e, uint32_t row) {
    uint32_t *seen = x->order->seen + (size_t)e->id * x->streams, *own = clock_of(x, e->stream);
    merge_clock(x, own, clock_of(x, x->streams)); /* the host submits the stream's next kernel */
    own[e->stream] = row;
    memcpy(seen, own, x->streams * sizeof *seen);
    x->order->owner[e->id] = e->stream;
    x->order->users[e->id] = UINT64_C(1) << e->stream;
    x->order->end[e->id] = (uint32_t)x->trace->count + 1;
}

static void visit_rows(const ordering_t *x) {
    for (uint32_t i = 0; i < x->trace->count; i++) {
        const strata_trace_event_t *e = &x->trace->events[i];
        bool streamed = e->stream != STRATA_TRACE_NO_STREAM;
        if (e->op == STRATA_TRACE_alloc) begin_block(x, e, i + 1);
        if (e->op == STRATA_TRACE_free) x->order->end[e->id] = i + 1;
        if (e->op == STRATA_TRACE_borrow || (e->op == STRATA_TRACE_free && streamed))
            x->order->users[e->id] |= UINT64_C(1) << e->stream;
        if (e->op == STRATA_TRACE_wait && streamed) wait_for(x, e->stream, e->other, i + 1);
        if (e->op != STRATA_TRACE_sync) continue;
        for (uint32_t t = 0; t < x->streams; t++)
            if (streamed ? t == e->stream : x->trace->streams[t].device == e->other) wait_for(x, x->streams, t, i + 1);
    }
}

strata_status_t strata_trace_order_make(strata_trace_order_t *order, const strata_trace_t *trace) {
    uint32_t streams = trace->stream_count;
    *order = (strata_trace_order_t){0};
    if (streams == 0 || streams > STREAMS_MAX || (uint64_t)trace->lifetimes * streams > SEEN_MAX) return STRATA_OK;
    ordering_t x = {.order = order, .trace = trace, .streams = streams};
    x.clock = strata_host_new(((size_t)streams + 1) * streams, sizeof *x.clock);
    order->seen = strata_host_new((size_t)trace->lifetimes * streams + 1, sizeof *order->seen);
    order->end = strata_host_new((size_t)trace->lifetimes + 1, sizeof *order->end);
    order->owner = strata_host_new((size_t)trace->lifetimes + 1, sizeof *order->owner);
    order->users = strata_host_new((size_t)trace->lifetimes + 1, sizeof *order->users);
    bool made = x.clock && order->seen && order->end && order->owner && order->users;
    if (made) {
        order->streams = streams;
        visit_rows(&x);
    } else {
        strata_trace_order_delete(order);
    }
    strata_host_delete(x.clock);
    return made ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_trace_order_delete(strata_trace_order_t *order) {
    strata_host_delete(order->seen);
    strata_host_delete(order->end);
    strata_host_delete(order->owner);
    strata_host_delete(order->users);
    *order = (strata_trace_order_t){0};
}

bool strata_trace_order_has(const strata_trace_order_t *order, uint32_t earlier, uint32_t later) {
    if (order->streams == 0) return false;
    const uint32_t *seen = order->seen + (size_t)later * order->streams;
    for (uint32_t t = 0; t < order->streams; t++) {
        if (!(order->users[earlier] >> t & 1) || t == order->owner[later]) continue;
        if (seen[t] < order->end[earlier]) return false;
    }
    return true;
}
