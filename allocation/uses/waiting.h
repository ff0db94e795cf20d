/* What the parts of uses share: the uses of freed blocks in the queues of their users. */
#ifndef STRATA_ALLOCATION_USES_WAITING_H
#define STRATA_ALLOCATION_USES_WAITING_H

#include "allocation/domain/domain.h"
#include "allocation/uses/uses.h"

/* Blocks that are done, in a list by `later` that is the caller's. */
typedef struct strata_done {
    uint32_t first, last;
} strata_done_t;

static inline strata_domain_t *domain_of(const strata_uses_t *uses) { return uses->stack->domain; }
static inline strata_user_t *user_of(const strata_uses_t *uses, const strata_use_t *use) {
    return strata_user_at(&uses->users, use->user);
}

/* The capture of a user's stream, where that counts; else 0. */
uint64_t strata_uses_capture_of(const strata_uses_t *uses, uint32_t user);
/* A block with uses is freed while captures are under way: DONE, or WAITS to their end at most. */
strata_freed_t strata_uses_free_inside(strata_uses_t *uses, uint32_t head);
/* strata_uses_poll() meanwhile. */
uint32_t strata_uses_poll_inside(strata_uses_t *uses);
/* A freed block waits until no user of it is being captured: strata_uses_take_up(). */
void strata_uses_keep(strata_uses_t *uses, uint32_t head);
/* Those that wait to be joined wait so too. */
void strata_uses_keep_joining(strata_uses_t *uses);
void strata_uses_add_done(strata_uses_t *uses, strata_done_t *done, uint32_t head);
void strata_uses_drop_event(strata_uses_t *uses, strata_use_t *use);
/* A use of a freed block waits from now on, after those that its user has already. */
void strata_uses_enqueue(strata_uses_t *uses, uint32_t node);
/* A use ends that is in no queue, whatever tells it. */
void strata_uses_end(strata_uses_t *uses, uint32_t node, strata_use_state_t state);
/* The block of a first use waits, and its bytes count. */
void strata_uses_count(strata_uses_t *uses, uint32_t head);
/* Nothing tells when a use of the block is over. */
void strata_uses_quarantine(strata_uses_t *uses, uint32_t head);

#endif
