/* The streams that own or borrow blocks of a source of device scope. An entry outlives its stream's handle, which the driver may
 * give to another stream: whoever holds a block by the entry still knows what it means. Guarded by the owner's lock.
 *
 * A source may serve thousands of streams: no look-up passes all entries, and the scan for those of exited threads none as long as no
 * thread has one. The index counts the entries that were looked at, and tests hold it. */
#ifndef STRATA_ALLOCATION_USERS_H
#define STRATA_ALLOCATION_USERS_H

#include "allocation/tables/index.h"
#include "strata/strata.h"

/* NAMED: its handle is good. BEHIND: it is destroyed, and the free stream stands behind its work. LOST: destroyed, and nothing
 * tells when its work is done. */
typedef enum strata_user_state { STRATA_USER_UNUSED, STRATA_USER_NAMED, STRATA_USER_BEHIND, STRATA_USER_LOST } strata_user_state_t;

typedef struct strata_user {
    uint64_t unused_link;
    strata_stream_t stream;
    uint64_t thread; /* whose, of the per-thread default stream; else 0 */
    uint64_t waited; /* the number of the last pending free that the stream waits for */
    uint32_t holds; /* blocks that it owns or borrows */
    uint32_t busy; /* calls under way that use the handle */
    strata_user_state_t state;
    strata_index_link_t link; /* by stream and thread, of those that are NAMED */
} strata_user_t;

enum { STRATA_USERS = 1 << 16 };

typedef struct strata_users {
    strata_nodes_t nodes;
    strata_index_t index;
    uint32_t last; /* the entry that was found last, to be checked; 0: none */
    uint32_t of_threads; /* entries of threads' own default streams, whatever their state */
} strata_users_t;

static inline strata_user_t *strata_user_at(const strata_users_t *users, uint32_t node) { return strata_node(&users->nodes, node); }

/* `entry_size`: of the owner's entries, which begin with a strata_user_t. E_HOST_MEMORY. */
strata_status_t strata_users_init(strata_users_t *users, size_t entry_size);
void strata_users_destroy(strata_users_t *users);
/* Whether the handle means the user's stream when the calling thread says it. */
bool strata_user_is_nameable(const strata_user_t *user);
/* The user that a handle means here; 0: none. */
uint32_t strata_users_find(strata_users_t *users, strata_stream_t stream);
/* Likewise, made if need be; 0: E_LIMIT. A thread's own default stream takes the place of one whose thread has exited, if that
 * holds nothing. */
uint32_t strata_users_make(strata_users_t *users, strata_stream_t stream);
/* The handle is not the entry's own any more; the state that it has from now on. Two threads may forget one stream at once. */
void strata_users_leave(strata_users_t *users, uint32_t node, strata_user_state_t state);
/* The next entry behind `node` (0: the first) in this state that is the own default stream of a thread which has exited: nobody can
 * name it any more. 0: none. */
uint32_t strata_users_next_of_the_dead(strata_users_t *users, uint32_t node, strata_user_state_t state);
/* One block fewer; with the last an entry whose stream is gone ends. */
void strata_users_let_go(strata_users_t *users, uint32_t node);
/* Ends an entry that holds nothing. */
void strata_users_end(strata_users_t *users, uint32_t node);
/* The nodes, the index, and that it has who is NAMED. E_CORRUPT. */
strata_status_t strata_users_validate(strata_users_t *users);

#endif
