/* Reports a replay to the happens-before checker (docs/testing.md). Without a checker these functions do
 * nothing.
 *
 * If the trace has work, its kernels list the blocks that they use. If it has none, a block is in use on its
 * stream from the alloc to the free. Borrowers use it until the free (docs/records.md). Nothing more is
 * known, so a borrower's first use needs no order. Work does not record whether it reads or writes a block.
 * Lifetimes are checked, data races are not. */
#ifndef STRATA_REPLAY_WATCH_H
#define STRATA_REPLAY_WATCH_H

#include "lab/replay/timeline/timeline.h"
#include "platform/sim/checker/checker.h"

typedef struct strata_watch {
    strata_checker_t *checker; /* NULL if the run is not checked */
    const strata_timeline_t *timeline;
    uint64_t *names; /* of the blocks that the next kernel uses */
    size_t name_capacity;
} strata_watch_t;

/* Call before the machine's first call. Fails with E_UNSUPPORTED on real devices. */
strata_status_t strata_watch_begin(strata_watch_t *watch, const strata_machine_t *machine, const strata_timeline_t *timeline);
/* Call once the timeline has its streams. */
void strata_watch_name_streams(strata_watch_t *watch);
/* Call before the facade closes. */
void strata_watch_end(strata_watch_t *watch);

static inline void strata_watch_row(strata_watch_t *watch, const strata_trace_event_t *event) {
    if (watch->checker) strata_checker_line(watch->checker, event->line);
}
/* The parts of strata_watch_last_use(), strata_watch_free() and strata_watch_alloc() that need a checker. */
void strata_watch_note_last_use(strata_watch_t *watch, uint32_t lifetime, uint32_t stream);
void strata_watch_note_free(strata_watch_t *watch, const strata_trace_event_t *event, bool on_another);
void strata_watch_note_alloc(strata_watch_t *watch, const strata_trace_event_t *event, uint64_t address, uint64_t granted);
/* Call after a successful alloc, borrow or unborrow. */
static inline void strata_watch_alloc(strata_watch_t *watch, const strata_trace_event_t *event, uint64_t address,
                                      uint64_t granted) {
    if (watch->checker) strata_watch_note_alloc(watch, event, address, granted);
}
void strata_watch_borrow(strata_watch_t *watch, const strata_trace_event_t *event);
void strata_watch_unborrow(strata_watch_t *watch, const strata_trace_event_t *event);
/* Reports a stream's last use of a block. The stream is the owner's, the free's or a borrower's. */
static inline void strata_watch_last_use(strata_watch_t *watch, uint32_t lifetime, uint32_t stream) {
    if (watch->checker) strata_watch_note_last_use(watch, lifetime, stream);
}
/* Call before the facade's free. `on_another` is true if the free's stream is not the owner's. */
static inline void strata_watch_free(strata_watch_t *watch, const strata_trace_event_t *event, bool on_another) {
    if (watch->checker) strata_watch_note_free(watch, event, on_another);
}
/* Access `index` of the next kernel is to a lifetime. Report the kernel after its accesses. */
strata_status_t strata_watch_access(strata_watch_t *watch, size_t index, uint32_t lifetime);
void strata_watch_kernel(strata_watch_t *watch, size_t count);

#endif
