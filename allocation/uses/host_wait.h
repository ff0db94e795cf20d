/* Borrows that no layer of the stack handles: the free waits for the borrowers on the host (docs/contracts.md §4). The call holds
 * the lock of the stack that served the record. */
#ifndef STRATA_ALLOCATION_USES_HOST_WAIT_H
#define STRATA_ALLOCATION_USES_HOST_WAIT_H

#include "allocation/domain/layer.h"

/* Notes that the free of the record waits for `stream`. Fails with E_LIMIT or E_HOST_MEMORY, or with E_STALE if the record was freed
 * while the lock was open. */
strata_status_t strata_host_wait_note(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
/* Removes the note, if there is one. */
void strata_host_wait_erase(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
/* Waits for every noted stream, with the locks open. Returns false in two cases. The device may fail to wait; then the block is
 * quarantined, because nothing shows when its memory is free. During a capture the free is deferred to the capture's end. */
bool strata_host_wait_all(strata_call_t *call, strata_record_t *record);
/* Ends a stack's notes. NULL is ignored. No lock is held. */
void strata_host_wait_end(strata_uses_t *uses);
/* Finishes frees that were deferred while a user was being captured. No lock is held. */
void strata_host_wait_poll(strata_stack_t *stack);
/* Begins or ends a capture into the stack's pool. During it, frees are deferred and no stream is waited for. No lock is held. */
void strata_host_wait_capture(strata_stack_t *stack, bool begins);
/* Must run before `stream` is destroyed. Waits for the noted uses of it, and finishes the frees that wait for it. No lock is held. */
void strata_host_wait_stream_gone(strata_stack_t *stack, strata_stream_t stream);

#endif
