/* What a replay reports to the happens-before checker (docs/checker.md). Without a checker nothing happens here.
 *
 * If the trace has work, kernels say what they use. If it has none, each block is in use on its stream from the alloc to the free,
 * and on its borrowers' streams until the free (docs/trace-format.md). No more is known, so a borrower's first use needs no order.
 * Work says that it uses a block, not whether it reads or writes: lifetimes are checked, not data races.
 */
#ifndef STRATA_REPLAY_WATCH_H
#define STRATA_REPLAY_WATCH_H

#include "lab/replay/timeline/timeline.h"
#include "platform/sim/checker/checker.h"

typedef struct strata_watch {
    strata_checker_t *checker; /* NULL: nobody watches */
    const strata_timeline_t *timeline;
    uint64_t *names; /* of the blocks that the next kernel uses */
    size_t name_capacity;
} strata_watch_t;

/* Before the machine's first call. E_UNSUPPORTED on real devices. */
strata_status_t strata_watch_begin(strata_watch_t *watch, const strata_machine_t *machine, const strata_timeline_t *timeline);
/* Once the timeline has its streams. */
void strata_watch_name_streams(strata_watch_t *watch);
/* Before the facade closes. */
void strata_watch_end(strata_watch_t *watch);

static inline void strata_watch_row(strata_watch_t *watch, const strata_trace_event_t *event) {
    if (watch->checker) strata_checker_line(watch->checker, event->line);
}
/* What strata_watch_last_use(), strata_watch_free() and strata_watch_alloc() do where there is a checker. */
void strata_watch_tell_last_use(strata_watch_t *watch, uint32_t lifetime, uint32_t stream);
void strata_watch_tell_free(strata_watch_t *watch, const strata_trace_event_t *event, bool on_another);
void strata_watch_tell_alloc(strata_watch_t *watch, const strata_trace_event_t *event, uint64_t address, uint64_t granted);
/* After a successful alloc, borrow or unborrow. */
static inline void strata_watch_alloc(strata_watch_t *watch, const strata_trace_event_t *event, uint64_t address,
                                      uint64_t granted) {
    if (watch->checker) strata_watch_tell_alloc(watch, event, address, granted);
}
void strata_watch_borrow(strata_watch_t *watch, const strata_trace_event_t *event);
void strata_watch_unborrow(strata_watch_t *watch, const strata_trace_event_t *event);
/* A stream ends its use of a block: the owner's, the one of the free, each borrower's. */
static inline void strata_watch_last_use(strata_watch_t *watch, uint32_t lifetime, uint32_t stream) {
    if (watch->checker) strata_watch_tell_last_use(watch, lifetime, stream);
}
/* Before the facade's free; `on_another`: its stream is not the owner's. */
static inline void strata_watch_free(strata_watch_t *watch, const strata_trace_event_t *event, bool on_another) {
    if (watch->checker) strata_watch_tell_free(watch, event, on_another);
}
/* Access `index` of the next kernel is to a lifetime; then comes the kernel. */
strata_status_t strata_watch_access(strata_watch_t *watch, size_t index, uint32_t lifetime);
void strata_watch_kernel(strata_watch_t *watch, size_t count);

#endif
