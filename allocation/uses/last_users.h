/* Who used a free block last, where one pool serves several streams. A block's mark (allocation/mechanism/marks.h) tells the number
 * of its free and the user; another stream gets the block once the host has waited, which is for everything that is free at the
 * time. Guarded by the owner's lock. */
#ifndef STRATA_ALLOCATION_USES_LAST_USERS_H
#define STRATA_ALLOCATION_USES_LAST_USERS_H

#include "allocation/mechanism/marks.h"
#include "allocation/uses/users.h"

typedef struct strata_last_users {
    strata_users_t users; /* each holds itself; once it is gone, until no mark that counts names it: `count` frees are waited for */
    uint64_t frees, waited; /* frees so far, and those that the host has waited for */
    uint32_t first_gone, last_gone; /* in that order, by `list` */
} strata_last_users_t;

/* E_HOST_MEMORY. */
strata_status_t strata_last_users_init(strata_last_users_t *last, strata_domain_t *domain);
void strata_last_users_destroy(strata_last_users_t *last);
/* The user that a stream is, made if need be; 0: E_LIMIT. */
uint32_t strata_last_users_of(strata_last_users_t *last, strata_stream_t stream);

/* A user (0: nobody knows who) has a block from now on. */
static inline void strata_last_users_hold(strata_last_users_t *last, uint32_t user) {
    if (user) strata_user_at(&last->users, user)->holds++;
}
/* It has one block fewer. */
static inline void strata_last_users_let_go(strata_last_users_t *last, uint32_t user) {
    if (user) strata_users_let_go(&last->users, user);
}
/* The block is free, and was its user's until now, who lets go. */
void strata_last_users_mark(strata_last_users_t *last, strata_record_t *block, uint32_t user);
/* Whether a free block may be in use yet; and whether by another than `user`. */
static inline bool strata_last_users_uses(const strata_last_users_t *last, const strata_record_t *block) {
    return strata_mark_count(block) > last->waited;
}
static inline bool strata_last_users_other_uses(const strata_last_users_t *last, const strata_record_t *block, uint32_t user) {
    return strata_last_users_uses(last, block) && (user == 0 || strata_mark_stream(block) != user);
}
/* The host waits for every use of what is free. The locks are open meanwhile. False: the device fails. */
bool strata_last_users_wait(strata_last_users_t *last, strata_domain_t *domain, strata_call_t *call);
/* The handle may soon be another stream's: an event is taken for its work. The lock may be open meanwhile. */
void strata_last_users_stream_gone(strata_last_users_t *last, strata_domain_t *domain, strata_stream_t stream, strata_call_t *call);
/* E_CORRUPT. */
strata_status_t strata_last_users_validate(strata_last_users_t *last);

#endif
