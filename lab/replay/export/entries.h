/* Records the events of a run for each device, by row, in the terms of PyTorch's memory snapshots. A free of
 * an unborrowed block completes at once. A free of a borrowed block completes after the next event, which is
 * how a borrow shows. */
#ifndef STRATA_REPLAY_ENTRIES_H
#define STRATA_REPLAY_ENTRIES_H

#include "lab/replay/run/run.h"

/* X(action) */
#define STRATA_ENTRY_MAP(X)                                                                                                        \
    X(alloc)                                                                                                                       \
    X(free_requested)                                                                                                              \
    X(free_completed)                                                                                                              \
    X(segment_alloc)                                                                                                               \
    X(segment_free)                                                                                                                \
    X(segment_map)                                                                                                                 \
    X(segment_unmap)                                                                                                               \
    X(oom)

typedef enum strata_entry_action {
#define STRATA_ENTRY_ENUM(name) STRATA_ENTRY_##name,
    STRATA_ENTRY_MAP(STRATA_ENTRY_ENUM)
#undef STRATA_ENTRY_ENUM
} strata_entry_action_t;

typedef struct strata_entry {
    uint64_t address, size, stream; /* the stream is the trace's; the address of an oom is 0 */
    uint64_t time_us;
    uint32_t stack; /* index in the trace */
    uint16_t tag; /* index in the trace */
    uint8_t device;
    uint8_t action;
} strata_entry_t;

/* A chunk that the strategy holds. */
typedef struct strata_entry_segment {
    uint64_t address, size, stream;
    uint32_t device;
} strata_entry_segment_t;

typedef struct strata_entries {
    const strata_trace_t *trace;
    strata_entry_t *all;
    size_t count, capacity;
    strata_entry_segment_t *segments, *previous; /* chunks held now and at the previous look, sorted by device and address */
    size_t segment_count, segment_capacity, previous_count, previous_capacity;
    bool *borrowed; /* by lifetime */
    uint64_t *sizes; /* requested bytes, by lifetime */
    strata_entry_t *deferred; /* frees that are completed after the next event */
    size_t deferred_count, deferred_capacity;
    strata_status_t status; /* the first failure */
} strata_entries_t;

strata_status_t strata_entries_begin(strata_entries_t *entries, const strata_trace_t *trace);
void strata_entries_end(strata_entries_t *entries);
/* Callbacks of strata_run_follow_t with the entries as context. */
void strata_entries_moment(void *entries, const strata_run_moment_t *moment, bool chunks);
void strata_entries_refused(void *entries, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text);
/* Completes the pending frees. Call after the last row. */
void strata_entries_finish(strata_entries_t *entries);

/* Returns the trace's number of a stream of the run. */
uint64_t strata_entries_stream(const strata_run_moment_t *moment, strata_place_t place, strata_stream_t stream);

#endif
