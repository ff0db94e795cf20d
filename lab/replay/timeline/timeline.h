/* The execution model of a replay: when the host reaches each row, and what the GPU does meanwhile (docs/trace-format.md,
 * "How a replay runs"). On real devices time is real. If the device can carry out work, the host waits between rows as long as the
 * program did; without work it continues at once.
 *
 * The program's own launches, waits and synchronises go through here. Their cost is already in the trace's times, so it is
 * subtracted on the way to the following rows; the time that they wait is not. `own` has what they did, to be subtracted from the
 * figures.
 */
#ifndef STRATA_REPLAY_TIMELINE_H
#define STRATA_REPLAY_TIMELINE_H

#include "lab/replay/timeline/target.h"
#include "platform/arithmetic.h"
#include "trace/trace.h"

typedef struct strata_timeline_options {
    uint64_t lag_ns; /* how far the GPU runs behind at most, if the trace has no work */
    bool legacy_default; /* stream 0 is the legacy stream */
} strata_timeline_options_t;

typedef struct strata_timeline_own {
    uint64_t calls[STRATA_DEVICE_CALLS];
    uint64_t call_ns;
    uint64_t stall_ns;
} strata_timeline_own_t;

typedef struct strata_timeline_stream {
    strata_handle_t handle;
    strata_sim_stream_t *simulated; /* NULL: on a real device */
    uint32_t device;
    uint32_t holders; /* blocks that the stream uses until they are freed */
    uint64_t drained; /* end of the last wait for it */
} strata_timeline_stream_t;

typedef struct strata_timeline_device {
    strata_handle_t event; /* for `wait`; made at the first */
    uint64_t drained; /* end of the last wait for the device */
    uint64_t made; /* calls of all kinds that the rest has seen */
    uint64_t waits; /* calls so far that wait for the device */
    uint64_t stream_waits; /* and for one stream */
    uint32_t last; /* index of the stream whose work ends last, while it has holders */
} strata_timeline_device_t;

typedef struct strata_timeline {
    const strata_trace_t *trace;
    const strata_machine_t *machine;
    strata_timeline_options_t options;
    strata_timeline_stream_t *streams; /* by the trace's index */
    strata_timeline_device_t *devices;
    const _Atomic uint64_t *clock; /* virtual time; NULL: time is real */
    _Atomic uint64_t *steady; /* the same; NULL: more has to be done than to move it */
    bool lags; /* virtual time, and the trace does not say what the GPU does */
    uint64_t began; /* ns */
    uint64_t time_us; /* of the last row */
    uint64_t credit; /* ns that the program's own calls cost, not yet subtracted */
    strata_timeline_own_t own;
    /* Before virtual time passes: does what is due now, and returns when it wants to be asked next. NULL: nobody wants to be. */
    uint64_t (*passes)(void *context);
    void *passes_context;
} strata_timeline_t;

/* Creates the trace's streams; the program begins now. From then on one thread uses the timeline. */
strata_status_t strata_timeline_begin(strata_timeline_t *timeline, const strata_trace_t *trace, const strata_machine_t *machine,
                                      const strata_timeline_options_t *options);
void strata_timeline_end(strata_timeline_t *timeline);
/* The program begins now, not when it was first said to; nothing has happened in between. */
void strata_timeline_start(strata_timeline_t *timeline);

void strata_timeline_pass(strata_timeline_t *timeline, uint64_t way);
/* The host goes on to a row. */
static inline void strata_timeline_move(strata_timeline_t *timeline, uint64_t time_us) {
    uint64_t way = (time_us - timeline->time_us) * 1000; /* both are below 10^15 */
    timeline->time_us = time_us;
    if (!timeline->steady || timeline->passes || timeline->credit) {
        strata_timeline_pass(timeline, way);
        return;
    }
    uint64_t now = atomic_load_explicit(timeline->steady, memory_order_relaxed);
    atomic_store_explicit(timeline->steady, now + way, memory_order_relaxed);
}
/* A stream begins to use a block, or ends. */
static inline void strata_timeline_hold(strata_timeline_t *timeline, uint32_t stream) {
    strata_timeline_stream_t *at = &timeline->streams[stream];
    uint32_t *last = &timeline->devices[at->device].last;
    at->holders++;
    if (*last == stream) return;
    if (*last == STRATA_TRACE_NO_STREAM || at->drained < timeline->streams[*last].drained) *last = stream;
}
static inline void strata_timeline_drop(strata_timeline_t *timeline, uint32_t stream) { timeline->streams[stream].holders--; }
/* What is submitted to a stream now is done at now + min(lag, now - end of the last wait). In virtual time. */
static inline void strata_timeline_keep_busy(strata_timeline_t *timeline, const strata_timeline_stream_t *at) {
    uint64_t now = atomic_load_explicit(timeline->clock, memory_order_relaxed);
    uint64_t drained = strata_max(timeline->devices[at->device].drained, at->drained);
    strata_sim_stream_promise(at->simulated, now + strata_min(timeline->options.lag_ns, now - drained));
}
/* If the trace has no work: submits what the stream and its device were given until now. Before each call of the allocator. */
void strata_timeline_use_several(strata_timeline_t *timeline, uint32_t stream);
static inline void strata_timeline_use(strata_timeline_t *timeline, uint32_t stream) {
    if (!timeline->lags) return;
    const strata_timeline_stream_t *at = &timeline->streams[stream];
    const strata_timeline_device_t *device = &timeline->devices[at->device];
    if (at->holders > 0 && device->last == stream) strata_timeline_keep_busy(timeline, at);
    else strata_timeline_use_several(timeline, stream);
}
bool strata_timeline_look_for_waits(strata_timeline_t *timeline, uint32_t device);
/* After it: if the call waited for the device, the GPU is drained. Returns whether it waited for a stream; only the caller knows
 * which, and reports it by strata_timeline_drained(). */
static inline bool strata_timeline_see_waits(strata_timeline_t *timeline, uint32_t device) {
    uint64_t made = atomic_load_explicit(&timeline->machine->devices[device]->made, memory_order_relaxed);
    return made != timeline->devices[device].made && strata_timeline_look_for_waits(timeline, device);
}
void strata_timeline_drained(strata_timeline_t *timeline, uint32_t stream);

/* The program's own calls. work() does nothing on a device that cannot do it. */
strata_status_t strata_timeline_work(strata_timeline_t *timeline, uint32_t stream, uint64_t duration_ns,
                                     const strata_access_t *accesses, size_t count);
strata_status_t strata_timeline_wait(strata_timeline_t *timeline, uint32_t stream, uint32_t other);
strata_status_t strata_timeline_sync(strata_timeline_t *timeline, uint32_t stream);
strata_status_t strata_timeline_sync_device(strata_timeline_t *timeline, uint32_t device);

/* How far the host has come: ns since the program's beginning. */
uint64_t strata_timeline_elapsed(const strata_timeline_t *timeline);
/* When the program would end if it ended now with all work done: ns since its beginning. Real devices are waited for. */
uint64_t strata_timeline_length(strata_timeline_t *timeline);

#endif
