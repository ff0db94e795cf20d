/* Who uses a block, and until when: the one state machine for it, for every layer and for the core's own waits.
 *
 * A use is of one block by one user (allocation/uses/users.h), and goes through these states:
 *
 *     live      the block is held; the use ends when it is erased, unless its user owns the block
 *     waiting   the block was freed: an event, in the order of the user's stream, tells when the use is over
 *     passed    it is over: the event has passed, or the host has waited
 *     lost      nothing shows: neither an event nor a wait could be had, or the event was recorded in a capture, whose graph may be
 *               launched again
 *
 * A freed block whose uses have all passed is done; one with a lost use is quarantined: counted, never done, given back with its
 * owner's memory. A stream that is destroyed marks all its work by one event of its own, which stands for the uses that have none.
 * While captures are under way that the owner was told of, frees are kept, and no event is taken for them before the last one has
 * ended. With `reuse`, those whose borrowers the owner has joined in the capture are done at once.
 *
 * uses.c: live blocks, and frees; waiting.c: what waits; joined.c: joins in captures; ends.c: streams that are destroyed; check.c.
 *
 * The uses of a block are a list that begins in a word of its record. Everything is guarded by the lock of the stack that the uses
 * stand in; functions that take the call may open its locks while they wait or while events are made. */
#ifndef STRATA_ALLOCATION_USES_USES_H
#define STRATA_ALLOCATION_USES_USES_H

#include "allocation/uses/users.h"
#include "strata/layer.h"

typedef enum strata_use_state { STRATA_USE_LIVE, STRATA_USE_WAITING, STRATA_USE_PASSED, STRATA_USE_LOST } strata_use_state_t;

/* The first use of a freed block stands for the block. */
typedef struct strata_use {
    uint32_t next; /* of the block; 0: the last */
    uint32_t user;
    strata_handle_t event; /* NULL: none is taken, or the user's own stands for it */
    union {
        uint64_t capture; /* the only capture in which it was noted; 0: no capture, several captures, or not determined yet */
        uint64_t reduced; /* uses without a record: bytes that were reused before the free completed */
    };
    uint32_t next_of_user; /* WAITING: the use after it in the order of the stream */
    uint32_t head; /* of a freed block: its first use */
    uint8_t state; /* strata_use_state_t */
    bool owning; /* by the block's owner, which its stack has not: it ends at free alone */
    bool counted; /* of the first: the block's bytes are among those that wait */
    bool lost; /* of the first: a use of the block is lost */
    uint32_t left; /* of the first: uses that have not passed, and one while more are made */
    uint32_t later, earlier; /* of the first: the blocks that wait, in the order of their frees; or those that are done */
    strata_record_t *record; /* of the first; NULL: bytes of no record */
    uint64_t bytes; /* of the first */
} strata_use_t;

enum { STRATA_USES = 1 << 20 };

/* Whether events are taken at all, when they are asked, and in which order: a peer's ways. */
typedef enum strata_uses_mode {
    STRATA_USES_BY_STREAM, /* the first waiting use of each stream is asked, those after it once it has passed */
    STRATA_USES_BY_SEARCH, /* likewise, but one that has passed stands for those of its stream before it */
    STRATA_USES_BY_BLOCK, /* the uses of each block are asked, up to the first that has not passed */
    STRATA_USES_ON_HOST /* no events: the host waits at the free */
} strata_uses_mode_t;

typedef struct strata_uses {
    strata_stack_t *stack; /* whose lock guards them and whose figures tell of them */
    strata_uses_mode_t mode;
    bool ask_at_free; /* events that a block has before its free are asked there */
    bool reuse; /* inside captures: a block is done once its owner has joined those who use it */
    strata_users_t users;
    strata_nodes_t nodes; /* strata_use_t */
    uint32_t first, last; /* blocks that wait, in the order of their frees */
    uint32_t first_awaited, last_awaited; /* users that uses wait for */
    uint32_t captures, kept; /* under way; the blocks freed meanwhile, the last one first */
    uint32_t joining, last_joining; /* those of them that may be joined before the end */
    uint32_t on_host; /* uses that the host waits for with the locks open: they are in no queue meanwhile */
    uint64_t pending_bytes; /* of the blocks that wait */
    uint64_t reduced_bytes; /* reused while their free is pending; not part of the pending bytes */
} strata_uses_t;

/* Whether a poll may find a block that is done, by the blocks that wait. */
static inline bool strata_uses_may_have_done(const strata_uses_t *uses) { return uses->first || uses->joining || uses->kept; }
static inline strata_use_t *strata_use_at(const strata_uses_t *uses, uint32_t node) { return strata_node(&uses->nodes, node); }

/* No lock is held. E_HOST_MEMORY. */
strata_status_t strata_uses_init(strata_uses_t *uses, strata_stack_t *stack, strata_uses_mode_t mode);
/* E_STRATEGY where an option sets `reuse` in a place whose streams own nothing. */
strata_status_t strata_uses_check_reuse(bool reuse, strata_place_kind_t place);
/* The device has been waited for: events go home. */
void strata_uses_destroy(strata_uses_t *uses);

/* ---- of live blocks ---- */

/* The user that a stream is here, made if need be; 0: E_LIMIT. */
uint32_t strata_uses_user(strata_uses_t *uses, strata_stream_t stream);
/* A user uses the block whose list begins at `list`; `owning`: until its free. E_LIMIT. */
strata_status_t strata_uses_note(strata_uses_t *uses, uint32_t *list, uint32_t user, bool owning);
/* Likewise the stream, and its event is taken now: what it is given later is not covered. Of an owner it is taken at the free all
 * the same. E_STALE: the block was freed meanwhile. Not BY_SEARCH: blocks are freed in another order than their events are taken. */
strata_status_t strata_uses_note_now(strata_uses_t *uses, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
/* A use is over; none is no error. */
void strata_uses_erase(strata_uses_t *uses, uint32_t *list, strata_stream_t stream);
/* All of them are over. */
void strata_uses_drop_all(strata_uses_t *uses, uint32_t *list);

/* An event of the domain's pool; the locks are open while the pool makes more. NULL: the device refuses. */
strata_handle_t strata_uses_take_event(strata_uses_t *uses, strata_call_t *call);

/* ---- of freed blocks ---- */

typedef enum strata_freed { STRATA_FREED_DONE, STRATA_FREED_WAITS, STRATA_FREED_LOST } strata_freed_t;

/* A block is freed whose list begins in its record's `borrows`. DONE: it has no uses any more. WAITS: it will be done. */
strata_freed_t strata_uses_free(strata_uses_t *uses, strata_record_t *record, strata_call_t *call);
/* The host waits for a user, or for all work where the user cannot be named. False: neither can be. */
bool strata_uses_wait_for_user(strata_uses_t *uses, uint32_t user, strata_call_t *call);
/* Adds bytes without a record that wait for all work submitted to a stream so far. Returns their use, which strata_uses_poll() lists once
 * that work is done, or 0 if the work cannot be marked. */
uint32_t strata_uses_append(strata_uses_t *uses, uint32_t user, uint64_t bytes, strata_call_t *call);
/* Removes a part of such bytes from the pending ones, because it was reused before its free completed. */
void strata_uses_reduce(strata_uses_t *uses, uint32_t head, uint64_t bytes);
/* Asks for uses that have passed: the blocks that are done by that, as a list which is the caller's: nobody else finds them. */
uint32_t strata_uses_poll(strata_uses_t *uses);
/* Likewise BY_SEARCH, by one question a stream at most: of what was the last to wait at the glance before. So what waits for two
 * glances is found if it has passed, and many uses share a question. */
uint32_t strata_uses_glance(strata_uses_t *uses);
/* The host waits for all uses, in the order of the streams; likewise. Not BY_SEARCH, whose order it would change for a moment. */
uint32_t strata_uses_wait(strata_uses_t *uses, strata_call_t *call);
/* Takes the first off such a list: its bytes, and its record, whose list is empty. False: there is none. */
bool strata_uses_take_done(strata_uses_t *uses, uint32_t *done, strata_record_t **record, uint64_t *bytes);

/* What is pending, and when the first block of it is done. */
void strata_uses_tell_pending(const strata_uses_t *uses, strata_pending_t *pending);
void strata_uses_each_wait(const strata_uses_t *uses, strata_wait_fn wait, void *context);

/* ---- streams that end, captures ---- */

/* A stream will be destroyed: all its work is marked, and frees that wait for it on the host are let finish. */
void strata_uses_stream_gone(strata_uses_t *uses, strata_stream_t stream, strata_call_t *call);
/* The same in two steps, of a user that is held for it: whether its work is marked, or was waited for; then (`told`: it is) frees
 * that have its handle are let finish, and the hold goes. */
bool strata_uses_mark_end(strata_uses_t *uses, uint32_t user, strata_call_t *call);
void strata_uses_leave(strata_uses_t *uses, uint32_t user, bool told, strata_call_t *call);
/* The handle of a user is used with the lock open: it stays good meanwhile. False: it is not good here. */
bool strata_uses_enter_handle(strata_uses_t *uses, uint32_t user);
void strata_uses_leave_handle(strata_uses_t *uses, uint32_t user);
void strata_uses_capture_begin(strata_uses_t *uses);
/* Blocks that were kept wait from now on, unless a user of theirs is still being captured. Those that are done at once, as of a
 * poll. Before each poll where there are some. */
uint32_t strata_uses_take_up(strata_uses_t *uses, strata_call_t *call);
/* The blocks that are done by it, as of a poll. */
uint32_t strata_uses_capture_end(strata_uses_t *uses, strata_call_t *call);

/* E_CORRUPT, beginning with `layer`. */
strata_status_t strata_uses_validate(strata_uses_t *uses, const char *layer);

#endif
