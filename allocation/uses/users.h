/* The streams that own or borrow blocks of one owner: a layer, or the core's own waits. An entry outlives its stream's handle,
 * which the driver may give to another stream: whoever holds a block by the entry still knows which stream it meant. Guarded by the
 * owner's lock.
 *
 * There may be thousands of streams: no look-up passes all entries, and those of exited threads are searched once after each exit.
 * The index counts the entries that were looked at; tests check it. */
#ifndef STRATA_ALLOCATION_USES_USERS_H
#define STRATA_ALLOCATION_USES_USERS_H

#include "allocation/domain/events.h"
#include "allocation/tables/index.h"
#include "strata/strata.h"

/* NAMED: its handle is valid. GONE: its stream was destroyed, and it is known when its work is over. LOST: destroyed, or its thread
 * has exited, and nothing shows when its work is over. */
typedef enum strata_user_state { STRATA_USER_UNUSED, STRATA_USER_NAMED, STRATA_USER_GONE, STRATA_USER_LOST } strata_user_state_t;

typedef struct strata_user {
    uint32_t unused_link;
    uint32_t holds; /* blocks that it owns or borrows, and whatever else needs the entry */
    strata_stream_t stream;
    uint64_t thread; /* if it is a per-thread default stream, its thread; else 0 */
    strata_handle_t gone; /* GONE: the event after all its work; NULL: none is needed any more */
    uint64_t count; /* for the owner: of frees */
    uint32_t list; /* for the owner: what belongs to the stream */
    uint32_t busy; /* calls under way that use the handle */
    strata_user_state_t state;
    strata_index_link_t link; /* by stream and thread, of those that are NAMED */
    uint32_t next_thread, prev_thread; /* entries of threads' own default streams */
    uint32_t first, last; /* uses of freed blocks, in the stream's order: allocation/uses/uses.h */
    uint32_t seen; /* of these, the last at the latest glance; 0: it does not wait any more, or nobody glanced */
    uint32_t stride; /* of these, how many the latest search found passed, or half of it and so on where it found none */
    uint32_t next_awaited, prev_awaited;
} strata_user_t;

enum { STRATA_USERS = 1 << 16 };

typedef struct strata_users {
    strata_nodes_t nodes;
    strata_index_t index;
    strata_events_t *events;
    uint32_t last; /* the entry that was found last, to be checked; 0: none */
    uint32_t first_thread; /* entries of threads' own default streams, whatever their state */
    uint64_t exits_seen; /* of threads, of which none is NAMED here any more */
} strata_users_t;

static inline strata_user_t *strata_user_at(const strata_users_t *users, uint32_t node) { return strata_node(&users->nodes, node); }

/* `events` outlives them. E_HOST_MEMORY. */
strata_status_t strata_users_init(strata_users_t *users, strata_events_t *events);
/* The device has been waited for. */
void strata_users_destroy(strata_users_t *users);
/* Whether the handle means this user's stream when the calling thread uses it. */
bool strata_user_is_nameable(const strata_user_t *user);
/* Whether a handle that is used here would mean the user. */
bool strata_user_is(const strata_user_t *user, strata_stream_t stream);
/* The user that a handle means here; 0: none. */
uint32_t strata_users_find(strata_users_t *users, strata_stream_t stream);
/* The same, added if necessary; 0: E_LIMIT. */
uint32_t strata_users_make(strata_users_t *users, strata_stream_t stream);
/* The handle no longer belongs to the entry; returns the state that the entry has from now on. Two threads may forget one stream at
 * once: the first one counts. */
void strata_users_leave(strata_users_t *users, uint32_t node, strata_user_state_t state);
/* Nobody can name the own default stream of a thread that has exited: such entries end; those that hold something are for
 * `leave`. */
void strata_users_bury(strata_users_t *users, void (*leave)(void *owner, uint32_t node), void *owner);
/* The next LOST entry after `node` (0: the first) of a thread; 0: none. */
uint32_t strata_users_next_lost_thread(const strata_users_t *users, uint32_t node);
/* Whether all work of a stream that is gone is done: OK, E_NOT_READY; E_CAPTURE: the event after it was recorded in a capture. */
strata_status_t strata_users_how_far(strata_users_t *users, uint32_t node);
static inline bool strata_users_has_passed(strata_users_t *users, uint32_t node) {
    return strata_users_how_far(users, node) == STRATA_OK;
}
/* One block fewer; after the last an entry whose stream is gone ends. */
void strata_users_let_go(strata_users_t *users, uint32_t node);
/* Ends an entry that holds nothing. */
void strata_users_end(strata_users_t *users, uint32_t node);
/* The nodes and the index, and that the index has everyone who is NAMED. E_CORRUPT. */
strata_status_t strata_users_validate(strata_users_t *users);

#endif
