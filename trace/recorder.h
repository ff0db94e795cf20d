/* Rings of events, and the trace files that they are written to: what the layer `trace` stands on.
 *
 * One thread at a time puts events into a ring (its stack's lock sees to that); writing takes them out, and needs none of the
 * stacks' locks. All rings of a process that name the same path share a file: their events are merged by time, and the file
 * appears under its name when the last of them leaves. */
#ifndef STRATA_TRACE_RECORDER_H
#define STRATA_TRACE_RECORDER_H

#include <stdatomic.h>

#include "strata/strata.h"
#include "trace/trace.h"

enum { STRATA_RECORDER_TAG = 25 }; /* bytes of a tag, with the closing zero */

/* 72 bytes, and behind them in the ring the frames of its call stack. */
typedef struct strata_recorder_event {
    uint64_t time_ns;
    uint64_t block; /* names the block while it lives; work: 0: none; wait: the handle of the other stream; sync: 1: of
                       the whole device */
    uint64_t size; /* alloc; work: how long it takes, ns */
    uint64_t stream; /* its handle; of the per-thread default stream told apart by thread */
    uint64_t pool; /* alloc: the number of its pool, plus 1; 0: none; work: the number of the kernel */
    uint32_t thread;
    uint8_t op; /* strata_trace_op_t: all but pool_begin and pool_end */
    uint8_t align; /* alloc: log2, 0: the place's */
    uint8_t frames; /* behind it */
    char tag[STRATA_RECORDER_TAG]; /* its beginning */
} strata_recorder_event_t;

typedef struct strata_recorder_file strata_recorder_file_t;

typedef struct strata_recorder_ring {
    char *events;
    size_t stride; /* bytes from one event to the next */
    size_t reserved;
    uint64_t capacity; /* events */
    uint32_t frames; /* that an event has room for */
    _Atomic uint64_t head, tail; /* put and taken so far */
    strata_recorder_file_t *file;
    strata_place_t place;
    uint64_t steps; /* rows `step` of the file that this ring has told or been told of; the file's mutex guards it */
} strata_recorder_ring_t;

/* Every ring of a program tells each of its steps: the first one makes the row, and the others' are the same step. */

/* A ring of at most `capacity` events of at most `frames` frames for the file of that path, in which %p stands for the process's
 * number. `now_ns` is the begin of a file's time. E_IO, E_HOST_MEMORY: nothing is left. */
strata_status_t strata_recorder_join(strata_recorder_ring_t *ring, const char *path, uint64_t capacity, uint32_t frames,
                                     strata_place_t place, uint64_t now_ns);
/* Writes what all rings of the file hold up to now; with the last ring the file is finished, unless it has no row and another
 * file stands under its name. The ring is gone whatever comes back: E_IO, E_HOST_MEMORY: there is no file, or will be none. */
strata_status_t strata_recorder_leave(strata_recorder_ring_t *ring, uint64_t now_ns);
/* Writes what all rings of the file hold up to now. No lock of Strata is held. */
strata_status_t strata_recorder_write(strata_recorder_ring_t *ring, uint64_t now_ns);

/* What the file holds up to now as a trace of its own, under the path that `pattern` says; only the first time for a file, then *first
 * is true. Its rest stands in `path`. No lock of Strata is held. */
strata_status_t strata_recorder_copy(strata_recorder_ring_t *ring, const char *pattern, uint64_t now_ns, char *path,
                                     size_t capacity, bool *first);
/* What was told of a live block: its tag, and its call stack, which stays where it is as long as the ring. False: nothing. */
bool strata_recorder_told(strata_recorder_ring_t *ring, uint64_t block, char tag[STRATA_RECORDER_TAG], const char **stack);

/* The number that a stream has in the file, by its handle as events have it; 0 if the host has no memory for a new one. */
uint64_t strata_recorder_stream(strata_recorder_ring_t *ring, uint64_t stream);

static inline uint64_t strata_recorder_room(const strata_recorder_ring_t *ring) {
    return ring->capacity -
           (atomic_load_explicit(&ring->head, memory_order_relaxed) - atomic_load_explicit(&ring->tail, memory_order_acquire));
}

static inline strata_recorder_event_t *strata_recorder_at(const strata_recorder_ring_t *ring, uint64_t number) {
    return (strata_recorder_event_t *)(void *)(ring->events + number % ring->capacity * ring->stride);
}

/* `frames` has as many as the event says, and not more than the ring has room for. The caller has seen that there is room. */
static inline void strata_recorder_put(strata_recorder_ring_t *ring, const strata_recorder_event_t *event, const uint64_t *frames) {
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    strata_recorder_event_t *to = strata_recorder_at(ring, head);
    *to = *event;
    for (uint32_t i = 0; i < event->frames; i++) ((uint64_t *)(to + 1))[i] = frames[i];
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

#endif
