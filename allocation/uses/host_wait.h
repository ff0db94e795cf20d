/* Borrows that no layer of the stack handles: the free waits for the borrowers on the host (docs/contracts.md §4). The call holds
 * the lock of the stack that served the record. */
#ifndef STRATA_ALLOCATION_USES_HOST_WAIT_H
#define STRATA_ALLOCATION_USES_HOST_WAIT_H

#include "allocation/domain/layer.h"

/* The free of the record will wait for `stream`. E_LIMIT, E_HOST_MEMORY; E_STALE: the record was freed while the lock was open. */
strata_status_t strata_host_wait_note(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
/* Takes the note back; no note is no error. */
void strata_host_wait_erase(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
/* Waits for every noted stream, with the locks open. False: neither a stream nor the device could be waited for: nothing shows when
 * the block is free, and it is quarantined; or a capture is under way, at whose end it goes down. */
bool strata_host_wait_all(strata_call_t *call, strata_record_t *record);
/* The end of a stack's notes; NULL: it has none. No lock is held. */
void strata_host_wait_end(strata_uses_t *uses);
/* Frees that were kept while a user was being captured. No lock is held. */
void strata_host_wait_poll(strata_stack_t *stack);
/* A capture into the stack's pool begins, or ends: meanwhile frees are kept, and no stream is waited for. No lock is held. */
void strata_host_wait_capture(strata_stack_t *stack, bool begins);
/* `stream` will be destroyed: whoever is noted to wait for it waits now, and frees that are waiting for it finish first. No lock is
 * held. */
void strata_host_wait_stream_gone(strata_stack_t *stack, strata_stream_t stream);

#endif
