#include <inttypes.h>
#include <stdlib.h>

#include "lab/replay/report/parts.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { ALL_STREAMS = 1200, MIN_STREAMS = 4, MAX_STREAMS = 64 }; /* limits for all traces together, and for one */

/* The requests of one stream of a trace for device memory, which do not depend on the strategy. */
typedef struct tally {
    uint32_t stream; /* index in the trace */
    uint64_t allocs, bytes; /* requests */
    uint64_t live, peak; /* bytes */
    uint64_t borrows; /* of blocks of other streams */
} tally_t;

typedef struct block {
    uint64_t size;
    uint32_t stream;
} block_t;

static bool of_device(const strata_trace_event_t *event) {
    return event->place == STRATA_PLACE_GPU || event->place == STRATA_PLACE_MANAGED;
}

static void count_row(const strata_trace_event_t *event, tally_t *tallies, block_t *blocks) {
    tally_t *tally = event->stream != STRATA_TRACE_NO_STREAM ? &tallies[event->stream] : NULL;
    switch ((strata_trace_op_t)event->op) {
    case STRATA_TRACE_alloc:
        if (!of_device(event)) return;
        blocks[event->id] = (block_t){.size = event->value, .stream = event->stream};
        tally->allocs++;
        tally->bytes += event->value;
        tally->live += event->value;
        tally->peak = strata_max(tally->peak, tally->live);
        break;
    case STRATA_TRACE_free:
        tallies[blocks[event->id].stream].live -= blocks[event->id].size;
        blocks[event->id].size = 0;
        break;
    case STRATA_TRACE_borrow: tally->borrows++; break;
    default: break;
    }
}

static int by_peak(const void *a, const void *b) {
    const tally_t *x = a, *y = b;
    if (x->peak != y->peak) return x->peak < y->peak ? 1 : -1;
    return (x->stream > y->stream) - (x->stream < y->stream);
}

static void put_tallies(strata_output_t *out, const strata_trace_t *trace, const tally_t *tallies, size_t most) {
    size_t shown = strata_min(trace->stream_count, most);
    strata_output_print(out, "\"streams\": [");
    for (size_t i = 0; i < shown; i++) {
        const tally_t *tally = &tallies[i];
        const strata_trace_stream_t *stream = &trace->streams[tally->stream];
        strata_output_print(out,
                            "%s\n{\"number\": %" PRIu64 ", \"device\": %" PRIu32 ", \"allocs\": %" PRIu64 ", \"bytes\": %" PRIu64
                            ", \"peak\": %" PRIu64 ", \"borrows\": %" PRIu64 "}",
                            i ? "," : "", stream->number, stream->device, tally->allocs, tally->bytes, tally->peak, tally->borrows);
    }
    strata_output_print(out, "], \"more_streams\": %zu", (size_t)trace->stream_count - shown);
}

strata_status_t strata_page_streams(strata_output_t *out, const strata_trace_t *trace, size_t traces) {
    tally_t *tallies = strata_host_new((size_t)trace->stream_count + 1, sizeof *tallies);
    block_t *blocks = strata_host_new((size_t)trace->lifetimes + 1, sizeof *blocks);
    strata_status_t status = tallies && blocks ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; i < trace->stream_count && status == STRATA_OK; i++) tallies[i].stream = i;
    for (size_t i = 0; i < trace->count && status == STRATA_OK; i++) count_row(&trace->events[i], tallies, blocks);
    if (status == STRATA_OK) {
        qsort(tallies, trace->stream_count, sizeof *tallies, by_peak);
        put_tallies(out, trace, tallies, strata_page_share(ALL_STREAMS, MIN_STREAMS, MAX_STREAMS, traces));
    }
    strata_host_delete(tallies);
    strata_host_delete(blocks);
    return status;
}
