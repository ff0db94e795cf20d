/* The streams that own or borrow blocks of a source of device scope. An entry outlives its stream's handle, which the driver may
 * give to another stream: whoever holds a block by the entry still knows what it means. Guarded by the owner's lock. */
#ifndef STRATA_ALLOCATION_USERS_H
#define STRATA_ALLOCATION_USERS_H

#include "allocation/mechanism/nodes.h"
#include "strata/strata.h"

/* NAMED: its handle is good. BEHIND: it is destroyed, and the free stream stands behind its work. LOST: destroyed, and nothing
 * tells when its work is done. */
typedef enum strata_user_state { STRATA_USER_UNUSED, STRATA_USER_NAMED, STRATA_USER_BEHIND, STRATA_USER_LOST } strata_user_state_t;

typedef struct strata_user {
    uint64_t unused_link;
    strata_stream_t stream;
    uint64_t thread; /* whose, of the per-thread default stream; else 0 */
    uint64_t waited; /* the number of the last pending free that the stream waits for */
    uint32_t holds;  /* blocks that it owns or borrows */
    uint32_t busy;   /* calls under way that use the handle */
    strata_user_state_t state;
} strata_user_t;

enum { STRATA_USERS = 1 << 16 };

static inline strata_user_t *strata_user_at(const strata_nodes_t *users, uint32_t node) {
    return strata_node(users, node);
}

strata_status_t strata_users_init(strata_nodes_t *users);
/* Whether the handle means the user's stream when the calling thread says it. */
bool strata_user_is_nameable(const strata_user_t *user);
/* Whether it is in this state, and the own default stream of a thread that has exited: nobody can name it any more. */
bool strata_user_is_of_the_dead(const strata_user_t *user, strata_user_state_t state);
/* The user that a handle means here; 0: none. */
uint32_t strata_users_find(const strata_nodes_t *users, strata_stream_t stream);
/* Likewise, made if need be; 0: E_LIMIT. A thread's own default stream takes the place of one whose thread has exited, if that
 * holds nothing. */
uint32_t strata_users_make(strata_nodes_t *users, strata_stream_t stream);
/* One block fewer; with the last an entry whose stream is gone ends. */
void strata_users_let_go(strata_nodes_t *users, uint32_t node);
/* Ends an entry that holds nothing. */
void strata_users_end(strata_nodes_t *users, uint32_t node);

#endif
