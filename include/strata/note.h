/* What a program does by a runtime of its own, told to whoever records it (the layer `trace`): kernels, waits between streams, waits of the
 * host. A trace with the program's work is replayed with the program's own overlap, instead of a modelled lag (docs/records.md).
 *
 *     matmul<<<grid, block, 0, stream>>>(a, b);
 *     strata_note_work(s, gpu, stream, 120 * 1000, refs, 2);     as it was measured: 120 us, on blocks a and b
 *     cudaStreamWaitEvent(other, event, 0);
 *     strata_note_wait(s, gpu, other, stream);
 *
 * Nothing is launched or waited for, and no rule of memory follows from a note: blocks are borrowed by strata_record_stream(), and freed as
 * ever. A place that was not used before is opened. Without a layer that records, a note costs a look at the place's plans.
 *
 * Order     A note stands in the record where the calling thread has told it, among its requests: kernels in the order of their launches.
 * Threads   Any.
 * Errors    E_INVALID, E_STALE: a place, stream or ref is wrong; E_UNKNOWN_STREAM, under STRATA_OPEN_CHECK_STREAM_IDS; those of the open of a
 *           place. Nothing is told then. strata_stream_work(), strata_stream_wait() and strata_stream_synchronize() tell by themselves, and
 *           need no note. */
#ifndef STRATA_NOTE_H
#define STRATA_NOTE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel of `duration_ns` was launched on `stream` and uses `count` live blocks of any place, `refs` (may be NULL if `count` is 0). A
 * program that notes one kernel must note them all, because a replay then assumes no other work of the GPU. */
STRATA_API strata_status_t strata_note_work(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                            const strata_ref_t *refs, size_t count);
/* Later work of `stream` comes after all that `other` has been given so far. */
STRATA_API strata_status_t strata_note_wait(strata_t facade, strata_place_t place, strata_stream_t stream, strata_stream_t other);
/* The host has waited for all work of `stream`. */
STRATA_API strata_status_t strata_note_sync(strata_t facade, strata_place_t place, strata_stream_t stream);
/* The host has waited for all work of the place's device. */
STRATA_API strata_status_t strata_note_device_sync(strata_t facade, strata_place_t place);

#ifdef __cplusplus
}
#endif
#endif
