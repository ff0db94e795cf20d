/* Rings of events, and the trace files to which they are written. The layer `trace` is built on them.
 *
 *     stack A --put--> ring A --+
 *                               +-- merged by time --> one file for all rings with the same path
 *     stack B --put--> ring B --+
 *
 * One thread at a time adds events to a ring, under its stack's lock. Writing removes them, and needs
 * none of the stacks' locks. All rings of a process with the same path share a file. The file appears
 * under its name when the last of them leaves. */
#ifndef STRATA_TRACE_RECORDER_H
#define STRATA_TRACE_RECORDER_H

#include <stdatomic.h>

#include "strata/strata.h"
#include "trace/trace.h"

enum { STRATA_RECORDER_TAG = 25 }; /* bytes of a tag, with the terminating zero */

/* 72 bytes. The ring has the frames of the event's call stack after it. */
typedef struct strata_recorder_event {
    uint64_t time_ns;
    /* The block's name while it lives. For work without a block it is 0. For wait it is the handle of
     * the other stream, and for sync it is 1 if the whole device is meant. */
    uint64_t block;
    uint64_t size; /* for alloc; for work: the duration in ns */
    uint64_t stream; /* the stream's handle; per-thread default streams are distinguished by thread */
    uint64_t pool; /* for alloc: the number of its pool plus 1, or 0 if none; for work: the number of the kernel */
    uint32_t thread;
    uint8_t op; /* strata_trace_op_t, except pool_begin and pool_end */
    uint8_t align; /* for alloc: log2; 0 means the place's */
    uint8_t frames; /* number of frames after the event */
    char tag[STRATA_RECORDER_TAG]; /* the beginning of the tag */
} strata_recorder_event_t;

typedef struct strata_recorder_file strata_recorder_file_t;

typedef struct strata_recorder_ring {
    char *events;
    size_t stride; /* bytes from one event to the next */
    size_t reserved;
    uint64_t capacity; /* events */
    uint32_t frames; /* max frames of an event */
    _Atomic uint64_t head, tail; /* events added and removed so far */
    strata_recorder_file_t *file;
    strata_place_t place;
    uint64_t steps; /* rows `step` of the file that this ring has reached; guarded by the file's mutex */
} strata_recorder_ring_t;

/* Every ring of a program reports each of its steps. The first report writes the row, and those of the
 * other rings are the same step. */

/* Creates a ring of at most `capacity` events of at most `frames` frames for the file with that path.
 * The process's number replaces %p in the path. The time of a new file begins at `now_ns`. On E_IO and
 * E_HOST_MEMORY nothing remains. */
strata_status_t strata_recorder_attach(strata_recorder_ring_t *ring, const char *path, uint64_t capacity, uint32_t frames,
                                       strata_place_t place, uint64_t now_ns);
/* Writes all events that the file's rings hold up to now and destroys the ring, whatever the status.
 * The last ring finishes the file, unless it has no row and another file has its name. On E_IO and
 * E_HOST_MEMORY there is no file, or will be none. */
strata_status_t strata_recorder_detach(strata_recorder_ring_t *ring, uint64_t now_ns);
/* Writes all events that the file's rings hold up to now. The caller holds no lock of Strata. */
strata_status_t strata_recorder_write(strata_recorder_ring_t *ring, uint64_t now_ns);

/* Writes a copy of the file up to now as a separate trace, under the path of `pattern`. That happens
 * only the first time for a file, and then sets *first. Writes the path to `path`. The caller holds no
 * lock of Strata. */
strata_status_t strata_recorder_copy(strata_recorder_ring_t *ring, const char *pattern, uint64_t now_ns, char *path,
                                     size_t capacity, bool *first);
/* Copies the tag of a live block and sets *stack to its call stack, which is valid as long as the ring.
 * Returns false if nothing is recorded. */
bool strata_recorder_read(strata_recorder_ring_t *ring, uint64_t block, char tag[STRATA_RECORDER_TAG], const char **stack);

/* Returns the number that a stream has in the file, by its handle as events have it. Returns 0 if the
 * host has no memory for a new one. */
uint64_t strata_recorder_stream(strata_recorder_ring_t *ring, uint64_t stream);

static inline uint64_t strata_recorder_room(const strata_recorder_ring_t *ring) {
    return ring->capacity -
           (atomic_load_explicit(&ring->head, memory_order_relaxed) - atomic_load_explicit(&ring->tail, memory_order_acquire));
}

static inline strata_recorder_event_t *strata_recorder_at(const strata_recorder_ring_t *ring, uint64_t number) {
    return (strata_recorder_event_t *)(void *)(ring->events + number % ring->capacity * ring->stride);
}

/* Adds an event. `frames` has event->frames entries, at most the ring's max. The caller has checked
 * that there is room. */
static inline void strata_recorder_append(strata_recorder_ring_t *ring, const strata_recorder_event_t *event,
                                          const uint64_t *frames) {
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    strata_recorder_event_t *to = strata_recorder_at(ring, head);
    *to = *event;
    for (uint32_t i = 0; i < event->frames; i++) ((uint64_t *)(to + 1))[i] = frames[i];
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

#endif
