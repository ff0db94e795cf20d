/* The streams that own or borrow blocks of one owner, such as a layer. An entry outlives its stream's
 * handle, which the driver may give to another stream. So a block that refers to the entry still
 * identifies its stream. Guarded by the owner's lock.
 *
 * There may be thousands of streams, so no look-up walks all entries. Those of exited threads are
 * searched once after each exit. The index counts the entries that were examined, and tests check that
 * count. */
#ifndef STRATA_ALLOCATION_USES_USERS_H
#define STRATA_ALLOCATION_USES_USERS_H

#include "allocation/domain/events.h"
#include "allocation/tables/index.h"
#include "strata/strata.h"

/* NAMED: the handle is valid. DESTROYED: the stream was destroyed, and the end of its work can be observed.
 * UNOBSERVABLE: the stream was destroyed, or its thread has exited, and the end of its work cannot be observed. */
typedef enum strata_user_state {
    STRATA_USER_UNUSED,
    STRATA_USER_NAMED,
    STRATA_USER_DESTROYED,
    STRATA_USER_UNOBSERVABLE
} strata_user_state_t;

typedef struct strata_user {
    uint32_t unused_link;
    uint32_t holds; /* blocks that it owns or borrows, and other references to the entry */
    strata_stream_t stream;
    uint64_t thread; /* of a per-thread default stream, otherwise 0 */
    strata_handle_t end_event; /* while DESTROYED: the event after all its work, or NULL if that work is done */
    uint64_t count; /* for the owner: a count of frees */
    uint32_t list; /* for the owner: a list that belongs to the stream */
    uint32_t busy; /* calls in progress that use the handle */
    strata_user_state_t state;
    strata_index_link_t link; /* of NAMED entries, by stream and thread */
    uint32_t next_thread, prev_thread; /* links of the per-thread default streams */
    uint32_t first, last; /* uses of freed blocks, in stream order: allocation/uses/uses.h */
    uint32_t last_polled; /* of these, the last at the latest glance; 0 if it no longer waits, or before any glance */
    uint32_t stride; /* of these, the number that the latest search found passed */
    uint32_t next_awaited, prev_awaited;
} strata_user_t;

enum { STRATA_USERS = 1 << 16 };

typedef struct strata_users {
    strata_nodes_t nodes;
    strata_index_t index;
    strata_events_t *events;
    uint32_t last; /* the entry that was found last, to be checked; 0 if there is none */
    uint32_t first_thread; /* per-thread default streams, in any state */
    uint64_t exits_seen; /* the number of thread exits when no exited thread had a NAMED entry left */
} strata_users_t;

static inline strata_user_t *strata_user_at(const strata_users_t *users, uint32_t node) { return strata_node(&users->nodes, node); }

/* `events` must outlive them. Returns E_HOST_MEMORY if there is no host memory. */
strata_status_t strata_users_init(strata_users_t *users, strata_events_t *events);
/* Requires that the device has been waited for. */
void strata_users_destroy(strata_users_t *users);
/* Returns whether the entry's handle identifies its stream in the calling thread. */
bool strata_user_is_nameable(const strata_user_t *user);
/* Returns whether `stream` identifies the user in the calling thread. */
bool strata_user_is(const strata_user_t *user, strata_stream_t stream);
/* Returns the user that a handle identifies in the calling thread, or 0. */
uint32_t strata_users_find(strata_users_t *users, strata_stream_t stream);
/* Like strata_users_find(), but adds the entry if there is none. Returns 0 after E_LIMIT. */
uint32_t strata_users_make(strata_users_t *users, strata_stream_t stream);
/* Detaches the handle from a NAMED entry and sets the state. Does nothing otherwise: two threads may
 * forget one stream concurrently, and only the first counts. */
void strata_users_detach(strata_users_t *users, uint32_t node, strata_user_state_t state);
/* Ends the entries of exited threads' default streams, which no handle identifies any more. For an entry
 * with holds it calls `detach` instead. */
void strata_users_reap(strata_users_t *users, void (*detach)(void *owner, uint32_t node), void *owner);
/* Returns the next UNOBSERVABLE entry of a thread after `node`, or the first if `node` is 0. Returns 0 if there
 * is none. */
uint32_t strata_users_next_exited_thread(const strata_users_t *users, uint32_t node);
/* Returns OK if all work of a DESTROYED stream is done, otherwise E_NOT_READY. E_CAPTURE if its last event was
 * recorded in a capture. */
strata_status_t strata_users_query(strata_users_t *users, uint32_t node);
static inline bool strata_users_has_passed(strata_users_t *users, uint32_t node) {
    return strata_users_query(users, node) == STRATA_OK;
}
/* Drops one hold. An entry without holds ends if its stream is gone. */
void strata_users_release(strata_users_t *users, uint32_t node);
/* Ends an entry without holds. */
void strata_users_end(strata_users_t *users, uint32_t node);
/* Checks the nodes and the index, which must have every NAMED entry. E_CORRUPT. */
strata_status_t strata_users_validate(strata_users_t *users);

#endif
