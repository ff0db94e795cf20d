/* Records the work that a program does by a runtime of its own, for layers that record (`trace`). That work is kernels, waits
 * between streams, and waits of the host. A replay of such a trace has the program's own overlap, instead of a modeled lag
 * (docs/records.md).
 *
 *     matmul<<<grid, block, 0, stream>>>(a, b);
 *     strata_note_work(s, gpu, stream, 120 * 1000, refs, 2);     as it was measured: 120 us, on blocks a and b
 *     cudaStreamWaitEvent(other, event, 0);
 *     strata_note_wait(s, gpu, other, stream);
 *
 * A note launches nothing, waits for nothing, and has no effect on memory: borrows still need strata_record_stream(). A place
 * that was not used before is opened. Without a layer that records, a note costs one check of the place's plans.
 *
 * Order     A note is recorded between the calling thread's requests, where it was made: kernels in the order of their launches.
 * Threads   Any.
 * Errors    E_INVALID or E_STALE if a place, stream or ref is wrong. E_UNKNOWN_STREAM under STRATA_OPEN_CHECK_STREAM_IDS. Errors
 *           of the open of a place. Nothing is recorded then. strata_stream_work(), strata_stream_wait() and
 *           strata_stream_synchronize() make their own notes. */
#ifndef STRATA_NOTE_H
#define STRATA_NOTE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records a kernel of `duration_ns` on `stream` that uses `count` live blocks of any place, `refs` (may be NULL if `count` is 0).
 * A program that notes one kernel must note them all, because a replay then assumes no other work of the GPU. */
STRATA_API strata_status_t strata_note_work(strata_t facade, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                            const strata_ref_t *refs, size_t count);
/* Records that later work of `stream` waits for all work that `other` has now. */
STRATA_API strata_status_t strata_note_wait(strata_t facade, strata_place_t place, strata_stream_t stream, strata_stream_t other);
/* Records that the host has waited for all work of `stream`. */
STRATA_API strata_status_t strata_note_sync(strata_t facade, strata_place_t place, strata_stream_t stream);
/* Records that the host has waited for all work of the place's device. */
STRATA_API strata_status_t strata_note_device_sync(strata_t facade, strata_place_t place);

#ifdef __cplusplus
}
#endif
#endif
