/* Tracks which streams use a block, and until when its memory must not be reused. An owner of blocks,
 * such as a layer, keeps one strata_uses_t. All owners share this one state machine. A use is of one
 * block by one user, which is a stream (users.h):
 *
 *     live      the block is held, or its free waits for the end of a capture; erasing the use ends it, unless
 *               its user owns the block
 *     waiting   the block is freed; an event in the order of the user's stream shows when the use is over
 *     passed    the use is over: its event has passed, or the host has waited
 *     lost      its end can never be observed: neither an event nor a wait was possible, or the event was
 *               recorded in a capture, whose graph may be launched again
 *
 * A freed block is done once all its uses have passed. A block with a lost use is quarantined: it is
 * counted, is never done, and is returned with its owner's memory. When a stream is destroyed, one event
 * marks all its work and covers the uses that have none.
 *
 * The owner is notified of captures. While one is in progress, frees are kept, and take no event before
 * the last capture has ended. With `reuse`, a block is done once its owner has joined its borrowers in
 * the capture.
 *
 * The uses of a block form a list that begins in a word of its record. The lock of the owner's stack
 * guards everything. Functions that take the call may release its locks while they wait or create events.
 *
 * Parts:
 *  - users.* has the streams; uses.c has live blocks and frees, waiting.c deferred frees, joined.c joins
 *    in captures
 *  - ends.c handles streams that are destroyed, captured.c refuses work on captured streams, check.c
 *    validates
 *  - last_users.* has the last user of each block in pools that serve several streams
 *  - free_stream.* frees in the order of a stream, record_notes.* has further facts about allocations */
#ifndef STRATA_ALLOCATION_USES_USES_H
#define STRATA_ALLOCATION_USES_USES_H

#include "allocation/uses/users.h"
#include "strata/layer.h"

typedef enum strata_use_state {
    STRATA_USE_LIVE,
    STRATA_USE_WAITING,
    STRATA_USE_PASSED,
    STRATA_USE_UNOBSERVABLE
} strata_use_state_t;

/* The first use of a freed block represents the block. */
typedef struct strata_use {
    uint32_t next; /* the next use of the block, or 0 */
    uint32_t user;
    strata_handle_t event; /* NULL if none was taken, or if the user's own event covers it */
    union {
        uint64_t capture; /* the only capture in which it was noted; 0 if none or several, or not determined yet */
        uint64_t reduced; /* of a use without a record: bytes that were reused before the free completed */
    };
    uint32_t next_of_user; /* while WAITING: the next use in the order of the stream */
    uint32_t head; /* of a freed block: its first use */
    uint8_t state; /* strata_use_state_t */
    bool owning; /* by the stream that was served the block, if the stack is not that stream's; only the free ends it */
    bool counted; /* of the first: the block's bytes are counted as pending */
    bool unobservable; /* of the first: a use of the block is lost */
    uint32_t unfinished; /* of the first: uses that have not passed, plus one while some are live */
    uint32_t next_waiting,
        prev_waiting; /* of the first: links of the blocks that wait, in free order, or of a list of done blocks */
    strata_record_t *record; /* of the first; NULL for bytes without a record */
    uint64_t bytes; /* of the first */
} strata_use_t;

enum { STRATA_USES = 1 << 20 };

/* Selects whether events are taken, when they are queried, and in which order. The modes include those of
 * reference allocators. */
typedef enum strata_uses_mode {
    STRATA_USES_BY_STREAM, /* the first waiting use of each stream is queried, and the next once it has passed */
    STRATA_USES_BY_SEARCH, /* as BY_STREAM, but a use that has passed proves that those before it in its stream have too */
    STRATA_USES_BY_BLOCK, /* the uses of each block are queried, up to the first that has not passed */
    STRATA_USES_ON_HOST /* no events: the host waits at the free */
} strata_uses_mode_t;

typedef struct strata_uses {
    strata_stack_t *stack; /* its lock guards the uses, and its metrics count them */
    strata_uses_mode_t mode;
    bool query_at_free; /* at a free, query the events that the block already has */
    bool reuse; /* in captures: a block is done once its owner has joined its borrowers */
    strata_users_t users;
    strata_nodes_t nodes; /* strata_use_t */
    uint32_t first, last; /* blocks that wait, in free order */
    uint32_t first_awaited, last_awaited; /* users that uses wait for */
    uint32_t captures, kept; /* captures in progress; blocks whose free waits for their end, the last one first */
    uint32_t joining, last_joining; /* blocks freed in a capture whose borrowers may be joined before its end */
    uint32_t on_host; /* uses that the host waits for with the locks released; they are in no queue */
    uint64_t pending_bytes; /* of the blocks that wait */
    uint64_t reduced_bytes; /* bytes reused while their free is pending; not part of the pending bytes */
} strata_uses_t;

/* Returns whether any blocks wait, so that a poll may complete one. */
static inline bool strata_uses_may_have_done(const strata_uses_t *uses) { return uses->first || uses->joining || uses->kept; }
static inline strata_use_t *strata_use_at(const strata_uses_t *uses, uint32_t node) { return strata_node(&uses->nodes, node); }

/* No lock is held. Returns E_HOST_MEMORY if there is no host memory. */
strata_status_t strata_uses_init(strata_uses_t *uses, strata_stack_t *stack, strata_uses_mode_t mode);
/* Moves uses without entries to an empty owner, in which captures may already have begun. */
void strata_uses_move(strata_uses_t *to, const strata_uses_t *from);
/* Returns E_STRATEGY if an option sets `reuse` in a place whose streams own nothing. */
strata_status_t strata_uses_check_reuse(bool reuse, strata_place_kind_t place);
/* Returns all events to their pool. The device has been waited for. */
void strata_uses_destroy(strata_uses_t *uses);

/* ---- live blocks ---- */

/* Returns the user of a stream, created if there is none. Returns 0 after E_LIMIT. */
uint32_t strata_uses_user(strata_uses_t *uses, strata_stream_t stream);
/* Adds a use to the list that begins at `list`, unless the user has one. With `owning`, only the free
 * ends the use. E_LIMIT. */
strata_status_t strata_uses_note(strata_uses_t *uses, uint32_t *list, uint32_t user, bool owning);
/* Like strata_uses_note(), but records the stream's event now, so work that is submitted later is not
 * covered. An owning use still gets its event at the free. Returns E_STALE if the block was freed while
 * the locks were released. Must not be used BY_SEARCH, because blocks are freed in another order than
 * their events are recorded. */
strata_status_t strata_uses_note_now(strata_uses_t *uses, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
/* Ends the stream's use. Does nothing if there is none, or if it is owning. */
void strata_uses_erase(strata_uses_t *uses, uint32_t *list, strata_stream_t stream);
/* Ends every use of the list. */
void strata_uses_drop_all(strata_uses_t *uses, uint32_t *list);

/* Returns an event of the domain's pool, or NULL if the device refuses. The locks are released while the
 * pool creates more. */
strata_handle_t strata_uses_acquire_event(strata_uses_t *uses, strata_call_t *call);

/* ---- freed blocks ---- */

typedef enum strata_freed { STRATA_FREED_DONE, STRATA_FREED_WAITS, STRATA_FREED_UNOBSERVABLE } strata_freed_t;

/* Frees a block, whose list begins in its record's `borrows`. Returns DONE if no use is left, WAITS if
 * the free is deferred, UNOBSERVABLE if the block is quarantined. */
strata_freed_t strata_uses_free(strata_uses_t *uses, strata_record_t *record, strata_call_t *call);
/* Waits on the host for a user's stream, or for all work if its handle is not valid here. Returns false
 * if neither is possible. The locks are released. */
bool strata_uses_wait_for_user(strata_uses_t *uses, uint32_t user, strata_call_t *call);
/* Adds bytes without a record that wait for all work submitted to a stream so far. Returns their use,
 * which strata_uses_poll() lists once that work is done. Returns 0 if the work cannot be marked. */
uint32_t strata_uses_append(strata_uses_t *uses, uint32_t user, uint64_t bytes, strata_call_t *call);
/* Removes a part of such bytes from the pending ones, because it was reused before its free completed. */
void strata_uses_reduce(strata_uses_t *uses, uint32_t head, uint64_t bytes);
/* Queries uses, and returns the blocks that are done as a list for strata_uses_pop_done(). The list
 * belongs to the caller. */
uint32_t strata_uses_poll(strata_uses_t *uses);
/* Like strata_uses_poll(), BY_SEARCH only, with at most one query per stream unless that query fails. It
 * queries the use that was last in the stream's queue at the previous glance. So a use that has passed is
 * found within two glances, and many uses share a query. */
uint32_t strata_uses_poll_brief(strata_uses_t *uses);
/* Like strata_uses_poll(), but waits on the host for all uses, stream by stream. Must not be used
 * BY_SEARCH, because it changes the order of a queue for a moment. */
uint32_t strata_uses_wait(strata_uses_t *uses, strata_call_t *call);
/* Removes the first block of such a list. Sets its bytes and its record, which has no uses any more.
 * Returns false if the list is empty. */
bool strata_uses_pop_done(strata_uses_t *uses, uint32_t *done, strata_record_t **record, uint64_t *bytes);

/* Adds the pending and the late bytes, and lowers `ready_at` to the time when the first pending block is done. */
void strata_uses_add_pending(const strata_uses_t *uses, strata_pending_t *pending);
void strata_uses_each_wait(const strata_uses_t *uses, strata_wait_fn wait, void *context);

/* ---- streams that end, captures ---- */

/* Must be called before a stream is destroyed. Marks all its work, and waits for the calls that use its
 * handle. */
void strata_uses_stream_destroyed(strata_uses_t *uses, strata_stream_t stream, strata_call_t *call);
/* Do the same in two steps for a user that the caller holds. The first returns whether the work is marked
 * or was waited for. The second gets that result as `completion_known`, waits for the calls that use the handle, and
 * drops the hold. */
bool strata_uses_mark_end(strata_uses_t *uses, uint32_t user, strata_call_t *call);
void strata_uses_detach(strata_uses_t *uses, uint32_t user, bool completion_known, strata_call_t *call);
/* Enclose code that uses a user's handle with the lock released, so that the handle stays valid. The
 * first returns false if the calling thread cannot use the handle. */
bool strata_uses_enter_handle(strata_uses_t *uses, uint32_t user);
void strata_uses_exit_handle(strata_uses_t *uses, uint32_t user);
void strata_uses_capture_begin(strata_uses_t *uses);
/* Begins the wait of kept blocks, except those with a user that is still being captured. Returns the
 * blocks that are done, like a poll. While blocks are kept, call it before each poll. */
uint32_t strata_uses_resume_kept(strata_uses_t *uses, strata_call_t *call);
/* Returns the blocks that are done, like a poll. */
uint32_t strata_uses_capture_end(strata_uses_t *uses, strata_call_t *call);

/* Returns E_CORRUPT with a message that begins with `layer`. */
strata_status_t strata_uses_validate(strata_uses_t *uses, const char *layer);

#endif
