/* State that features keep in every stack. `struct strata_stack` has one member for each struct, so that its
 * lock and its cache lines stay together. The comment of a struct names the files that own it and the lock
 * that guards it. */
#ifndef STRATA_ALLOCATION_FEATURES_H
#define STRATA_ALLOCATION_FEATURES_H

#include <stdatomic.h>

#include "platform/device.h"
#include "platform/host/growing.h"
#include "strata/layer.h"

/* The waits of patience (docs/virtual-memory.md), by the device's clock. Owned by reclaim/patience.c, guarded by
 * the stack's lock. */
enum { STRATA_TIMED_OUT = 4 };
typedef struct strata_wait_history {
    uint64_t last_wait_at; /* when the last wait gave memory; 0 if never */
    uint64_t last_late_at; /* the same for the last wait that ended late */
    uint64_t budget_at, budget_ns; /* budget of waits with less work ahead than `depth`, at that time */
    uint32_t extra_depth; /* blocks that were added to `depth` */
    uint32_t next_timed_out;
    /* ring of the requests for which the stack has waited until its timeout, and when */
    uint64_t timed_out[STRATA_TIMED_OUT], timed_out_at[STRATA_TIMED_OUT];
} strata_wait_history_t;

/* Growth from memory at rest in other stacks. Owned by reclaim/rest.c, guarded by the stack's lock. */
typedef struct strata_rest_history {
    uint64_t peak_bytes; /* the most that the stack held with such a growth */
    uint64_t collected_bytes; /* from other stacks, in total */
    /* It grew by these beyond the need of the program, while its own memory waited for borrowers. Also read without the lock. */
    _Atomic uint64_t lent_bytes;
    uint64_t lent_at; /* when it last did, or was last looked at, by the device's clock */
} strata_rest_history_t;

/* Memory that idleness released from a stack, most of which is regrown when requests come again. */
typedef struct strata_trimmed {
    uint64_t bytes, regrow_bytes; /* bytes released, and the part that is still to be regrown */
    uint64_t idle_before; /* idle bytes of the layer before the release */
    uint8_t layer; /* number of the cache through which they are recalled */
} strata_trimmed_t;

/* The release of idle memory. Owned by reclaim/idle.c and reclaim/regrow.c, guarded by the stack's lock. */
typedef struct strata_idle_release {
    strata_trimmed_t trimmed;
    strata_handle_t event; /* recorded on its stream by the last look for idleness, or NULL */
} strata_idle_release_t;

/* A stack whose stream was forgotten, or whose group has ended. It serves no more requests. Once the work of
 * its stream is done, its memory goes to other streams. Owned by life/orphans.c, and by call/call.c for
 * `borrower_unknown`. Guarded by the stack's lock, except where a comment gives another rule. */
typedef struct strata_forgotten {
    _Atomic bool orphan; /* changed under the domain's lock */
    bool completion_known; /* orphans only. If false, no event and no wait shows when the stream's work is done, and the memory must
                              never be reused */
    bool borrower_unknown; /* orphans only. If true, the end of a borrower's work is unknown, with the same consequence */
    bool thread_exited; /* its stream's thread was seen to have exited; used only while building stacks */
    strata_handle_t last_event; /* orphans only: follows all work of the stream. NULL if that is done, provided completion_known */
} strata_forgotten_t;

/* Returns whether all work that used the memory of an orphan is known to be done. The stack's lock is held. */
static inline bool strata_forgotten_is_over(const strata_forgotten_t *orphan) {
    return orphan->last_event == NULL && orphan->completion_known && !orphan->borrower_unknown;
}

typedef struct strata_magazines strata_magazines_t;

/* The use of magazines. Owned by stack/magazines.c, guarded by the stack's lock. */
typedef struct strata_magazine_use {
    uint16_t occupied; /* one bit for each magazine that may contain a block */
    uint32_t contended; /* contended calls since the stack last had magazines */
    uint32_t extra_contended; /* how many more of these it needs than other stacks, because its magazines served too little */
    strata_magazines_t *storage; /* directly after the struct of the stack, in use or not; constant */
} strata_magazine_use_t;

/* The measures of live bytes: those that the program requested, and those of the blocks that serve it. */
enum { STRATA_REQUESTED, STRATA_ALLOCATED, STRATA_MEASURES };

/* The part in the peaks of a place. Owned by domain/peaks.c, guarded by the lock of the peaks. */
typedef struct strata_peak_share {
    uint64_t allowed[STRATA_MEASURES]; /* live bytes up to which other stacks need no look */
    strata_stack_t *next; /* in the list of stacks that have served a request */
    bool listed;
} strata_peak_share_t;

/* The lists of a domain. Owned by domain/stack_list.c, guarded by the domain's lock. */
typedef struct strata_stack_links {
    uint64_t serial; /* creation number within the domain */
    strata_stack_t *next, *prev; /* all stacks in creation order */
    strata_stack_t *next_of_group, *prev_of_group; /* in creation order too */
    strata_stack_t *next_orphan, *prev_orphan; /* orphans in creation order */
    strata_stack_t *next_of_chain;
    strata_stack_t *next_of_stream, **stream_link; /* stacks of one stream in any pool, and the pointer that points to this stack */
    uint32_t dependents; /* stacks that use this shared stack of a thread */
    uint32_t visitors; /* walks of the domain's list that are at this stack */
} strata_stack_links_t;

enum { STRATA_BORROWERS = 4, STRATA_BORROWER_CHAINS = 512 };
/* A stream that used blocks of another stream's stack. */
typedef struct strata_borrower {
    strata_stream_t stream; /* NULL if this entry is free */
    strata_stack_t *stack;
    struct strata_borrower *next, **link; /* the chain, and the pointer that points to this entry */
} strata_borrower_t;

/* The other streams that used blocks of the stack and are not forgotten. A stack with more such streams than
 * fit, or a shared stack, is in a list of its domain instead. Owned by domain/stack_list.c, guarded by the
 * domain's `borrowers_lock`. */
typedef struct strata_borrowers {
    strata_borrower_t entries[STRATA_BORROWERS];
    _Atomic(strata_stream_t) last; /* one of these streams, or NULL; also read without the lock */
    _Atomic bool many; /* more streams than fit in `entries`; also read without the lock */
    strata_stack_t *next_with_many, *prev_with_many;
} strata_borrowers_t;

/* These counts keep a stack without live blocks from being destroyed. Owned by call/; stack/stack.c and
 * graphs/live.c also count calls. Guarded by the stack's lock. */
typedef struct strata_holds {
    uint32_t calls; /* in progress in its layers */
    uint32_t sent_blocks; /* freed blocks that other processes still use (domain/sent.h) */
} strata_holds_t;

/* Live blocks that no cache has split. Owned by call/serve.c and call/free.c, guarded by the stack's lock. */
typedef struct strata_uncached {
    uint64_t bytes, peak_bytes; /* they are also reserved bytes */
} strata_uncached_t;

typedef struct strata_record_notes strata_record_notes_t;

/* The table of notes about records. Owned by uses/record_notes.c, guarded by the stack's lock. */
typedef struct strata_notes_table {
    strata_record_notes_t *entries; /* by slot; NULL until a record has a note or a second owner */
    strata_growing_t range; /* contains the entries */
    uint32_t count; /* slots that have an entry */
} strata_notes_table_t;

#endif
