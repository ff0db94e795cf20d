/* Tracks the last user of each free block, in pools that serve several streams. A block's mark
 * (allocation/mechanism/marks.h) has the number of its free and its user. Another stream gets the block
 * only after the host has waited. One wait covers every block that is free at that time. Guarded by the
 * owner's lock. */
#ifndef STRATA_ALLOCATION_USES_LAST_USERS_H
#define STRATA_ALLOCATION_USES_LAST_USERS_H

#include "allocation/mechanism/marks.h"
#include "allocation/uses/users.h"

typedef struct strata_last_users {
    /* Each entry has one hold of its own. A DESTROYED entry keeps it until the host has waited for `count`
     * frees, because valid marks may name it until then. */
    strata_users_t users;
    uint64_t frees, waited; /* frees so far, and the number of them that the host has waited for */
    uint32_t first_destroyed, last_destroyed; /* DESTROYED entries by rising `count`, linked by `list` */
} strata_last_users_t;

/* Returns E_HOST_MEMORY if there is no host memory. */
strata_status_t strata_last_users_init(strata_last_users_t *last, strata_domain_t *domain);
void strata_last_users_destroy(strata_last_users_t *last);
/* Returns the user of a stream, created if there is none, or 0 after E_LIMIT. */
uint32_t strata_last_users_of(strata_last_users_t *last, strata_stream_t stream);

/* Adds a hold to a user that gets a block. Does nothing for 0, an unknown user. */
static inline void strata_last_users_hold(strata_last_users_t *last, uint32_t user) {
    if (user) strata_user_at(&last->users, user)->holds++;
}
/* Drops that hold. */
static inline void strata_last_users_release(strata_last_users_t *last, uint32_t user) {
    if (user) strata_users_release(&last->users, user);
}
/* Records `user` as the last user of a block that is now free, and drops the user's hold. */
void strata_last_users_mark(strata_last_users_t *last, strata_record_t *block, uint32_t user);
/* Return whether any stream, or any stream other than `user`, may still use a free block. */
static inline bool strata_last_users_uses(const strata_last_users_t *last, const strata_record_t *block) {
    return strata_mark_count(block) > last->waited;
}
static inline bool strata_last_users_other_uses(const strata_last_users_t *last, const strata_record_t *block, uint32_t user) {
    return strata_last_users_uses(last, block) && (user == 0 || strata_mark_stream(block) != user);
}
/* Waits on the host for every use of the blocks that are free. The locks are released during the wait.
 * Returns false if the device fails, or if a captured stream prevents the wait. */
bool strata_last_users_wait(strata_last_users_t *last, strata_domain_t *domain, strata_call_t *call);
/* Records an event after the stream's work, because the handle may soon belong to another stream. The
 * lock may be released. */
void strata_last_users_stream_destroyed(strata_last_users_t *last, strata_domain_t *domain, strata_stream_t stream,
                                        strata_call_t *call);
/* Returns E_CORRUPT if a list or an entry is wrong. */
strata_status_t strata_last_users_validate(strata_last_users_t *last);

#endif
