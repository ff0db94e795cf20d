/* Functions that the parts of uses share: the uses of freed blocks, in the queues of their users. */
#ifndef STRATA_ALLOCATION_USES_WAITING_H
#define STRATA_ALLOCATION_USES_WAITING_H

#include "allocation/domain/domain.h"
#include "allocation/uses/uses.h"

/* A list of done blocks, linked by `next_waiting`. It belongs to the caller. */
typedef struct strata_done {
    uint32_t first, last;
} strata_done_t;

static inline strata_domain_t *domain_of(const strata_uses_t *uses) { return uses->stack->domain; }
static inline strata_user_t *user_of(const strata_uses_t *uses, const strata_use_t *use) {
    return strata_user_at(&uses->users, use->user);
}

/* Returns the id of the capture of a user's stream, or 0 if there is none or `reuse` does not apply. */
uint64_t strata_uses_capture_of(const strata_uses_t *uses, uint32_t user);
/* Frees a block with uses during a capture. Returns DONE, or WAITS, at most until the captures end. */
strata_freed_t strata_uses_free_in_capture(strata_uses_t *uses, uint32_t head);
/* Polls as strata_uses_poll() does, during a capture. */
uint32_t strata_uses_poll_in_capture(strata_uses_t *uses);
/* Keeps a freed block until no user of it is being captured: strata_uses_resume_kept() begins its wait. */
void strata_uses_hold_for_captures(strata_uses_t *uses, uint32_t head);
/* Keeps the blocks that wait for a join in the same way. */
void strata_uses_keep_joining(strata_uses_t *uses);
void strata_uses_add_done(strata_uses_t *uses, strata_done_t *done, uint32_t head);
void strata_uses_drop_event(strata_uses_t *uses, strata_use_t *use);
/* Begins the wait of a freed block's use, after the uses that its user already has. */
void strata_uses_enqueue(strata_uses_t *uses, uint32_t node);
/* Ends a use that is in no queue, however its end was observed. */
void strata_uses_end(strata_uses_t *uses, uint32_t node, strata_use_state_t state);
/* Adds the block of a first use to the blocks that wait, and counts its bytes. */
void strata_uses_count(strata_uses_t *uses, uint32_t head);
/* Quarantines a block, because the end of one of its uses cannot be observed. */
void strata_uses_quarantine(strata_uses_t *uses, uint32_t head);

#endif
