/* The execution model of a replay: when the host reaches each row, and how far the GPU is by then
 * (docs/records.md, "How a replay runs"). On real devices time is real. If the device can carry out
 * work, the host waits between rows as long as the program did. Otherwise it continues at once.
 *
 * The program's own launches, waits and synchronizations are made through this module. The trace's times
 * already include their cost, so it is subtracted on the way to the following rows. The time that they wait
 * is not. `own` has their totals, to be subtracted from the metrics. */
#ifndef STRATA_REPLAY_TIMELINE_H
#define STRATA_REPLAY_TIMELINE_H

#include "lab/replay/timeline/target.h"
#include "platform/arithmetic.h"
#include "trace/trace.h"

typedef struct strata_timeline_options {
    uint64_t lag_ns; /* max lag of the GPU behind the host, if the trace has no work */
    bool legacy_default; /* stream 0 is the legacy stream */
} strata_timeline_options_t;

typedef struct strata_timeline_own {
    uint64_t calls[STRATA_DEVICE_CALLS];
    uint64_t call_ns;
    uint64_t stall_ns;
} strata_timeline_own_t;

typedef struct strata_timeline_stream {
    strata_handle_t handle;
    strata_sim_stream_t *simulated; /* NULL on a real device */
    uint32_t device;
    uint32_t holders; /* blocks that the stream uses until they are freed */
    uint64_t drained; /* end of the last wait for it */
} strata_timeline_stream_t;

typedef struct strata_timeline_device {
    strata_handle_t event; /* for strata_timeline_wait(); created by the first call */
    uint64_t drained; /* end of the last wait for the device */
    uint64_t made; /* calls of all kinds at the last update of the members below */
    uint64_t waits; /* calls so far that wait for the device */
    uint64_t stream_waits; /* calls so far that wait for one stream */
    uint32_t last; /* index of the stream that ends its work last, while it has holders */
} strata_timeline_device_t;

typedef struct strata_timeline {
    const strata_trace_t *trace;
    const strata_machine_t *machine;
    strata_timeline_options_t options;
    strata_timeline_stream_t *streams; /* by the trace's index */
    strata_timeline_device_t *devices;
    const _Atomic uint64_t *clock; /* virtual time, or NULL if time is real */
    _Atomic uint64_t *steady; /* virtual time if moving it needs nothing else, or NULL */
    bool lags; /* virtual time, and the trace has no work */
    uint64_t began; /* ns */
    uint64_t time_us; /* of the last row */
    uint64_t credit; /* ns that the program's own calls cost, not yet subtracted */
    strata_timeline_own_t own;
    /* Called before virtual time passes. It does the work that is due, and returns the time of its next call. May be NULL. */
    uint64_t (*on_advance)(void *context);
    void *advance_context;
} strata_timeline_t;

/* Creates the trace's streams; the program begins now. From then on one thread uses the timeline. */
strata_status_t strata_timeline_begin(strata_timeline_t *timeline, const strata_trace_t *trace, const strata_machine_t *machine,
                                      const strata_timeline_options_t *options);
void strata_timeline_end(strata_timeline_t *timeline);
/* Restarts the program now. Nothing may have happened since strata_timeline_begin(). */
void strata_timeline_start(strata_timeline_t *timeline);

void strata_timeline_advance(strata_timeline_t *timeline, uint64_t delta_ns);
/* Moves the host on to a row. */
static inline void strata_timeline_move(strata_timeline_t *timeline, uint64_t time_us) {
    uint64_t delta_ns = (time_us - timeline->time_us) * 1000; /* both are below 10^15 */
    timeline->time_us = time_us;
    if (!timeline->steady || timeline->on_advance || timeline->credit) {
        strata_timeline_advance(timeline, delta_ns);
        return;
    }
    uint64_t now = atomic_load_explicit(timeline->steady, memory_order_relaxed);
    atomic_store_explicit(timeline->steady, now + delta_ns, memory_order_relaxed);
}
/* A stream begins or ends its use of a block. */
static inline void strata_timeline_hold(strata_timeline_t *timeline, uint32_t stream) {
    strata_timeline_stream_t *at = &timeline->streams[stream];
    uint32_t *last = &timeline->devices[at->device].last;
    at->holders++;
    if (*last == stream) return;
    if (*last == STRATA_TRACE_NO_STREAM || at->drained < timeline->streams[*last].drained) *last = stream;
}
static inline void strata_timeline_drop(strata_timeline_t *timeline, uint32_t stream) { timeline->streams[stream].holders--; }
/* In virtual time, work submitted to a stream now is done at now + min(lag, now - end of the last wait). */
static inline void strata_timeline_keep_busy(strata_timeline_t *timeline, const strata_timeline_stream_t *at) {
    uint64_t now = atomic_load_explicit(timeline->clock, memory_order_relaxed);
    uint64_t drained = strata_max(timeline->devices[at->device].drained, at->drained);
    strata_sim_stream_promise(at->simulated, now + strata_min(timeline->options.lag_ns, now - drained));
}
/* If the trace has no work, submits the work that the stream and its device were given until now. Call before
 * each call of the allocator. */
void strata_timeline_use_several(strata_timeline_t *timeline, uint32_t stream);
static inline void strata_timeline_use(strata_timeline_t *timeline, uint32_t stream) {
    if (!timeline->lags) return;
    const strata_timeline_stream_t *at = &timeline->streams[stream];
    const strata_timeline_device_t *device = &timeline->devices[at->device];
    if (at->holders > 0 && device->last == stream) strata_timeline_keep_busy(timeline, at);
    else strata_timeline_use_several(timeline, stream);
}
bool strata_timeline_update_waits(strata_timeline_t *timeline, uint32_t device);
/* Call after the call of the allocator. If it waited for the device, the GPU is drained. Returns true if it
 * waited for a stream. Only the caller can identify that stream, and reports it by strata_timeline_drained(). */
static inline bool strata_timeline_check_waits(strata_timeline_t *timeline, uint32_t device) {
    uint64_t made = atomic_load_explicit(&timeline->machine->devices[device]->made, memory_order_relaxed);
    return made != timeline->devices[device].made && strata_timeline_update_waits(timeline, device);
}
void strata_timeline_drained(strata_timeline_t *timeline, uint32_t stream);

/* The program's own calls. work() does nothing on a device that cannot carry out work. */
strata_status_t strata_timeline_work(strata_timeline_t *timeline, uint32_t stream, uint64_t duration_ns,
                                     const strata_access_t *accesses, size_t count);
strata_status_t strata_timeline_wait(strata_timeline_t *timeline, uint32_t stream, uint32_t other);
strata_status_t strata_timeline_sync(strata_timeline_t *timeline, uint32_t stream);
strata_status_t strata_timeline_sync_device(strata_timeline_t *timeline, uint32_t device);

/* Returns the host's time in ns since the program's beginning. */
uint64_t strata_timeline_elapsed(const strata_timeline_t *timeline);
/* Returns the program's length in ns if it ended now with all work done. Waits for real devices. */
uint64_t strata_timeline_length(strata_timeline_t *timeline);

#endif
