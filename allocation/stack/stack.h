/* A stack: the layer instances that serve one (place, stream), with one lock and the records of their
 * blocks. Instances of wider scope are in shared stacks below it, one for each thread and one for the group.
 *
 *     stack of stream A   stream_safe > auto_growth  \
 *                                                      >  system   (shared stack of the group)
 *     stack of stream B   stream_safe > auto_growth  /
 *
 *  - plan.* has the layers that a stack is built from
 *  - features.h has the state that features keep in every stack
 *  - direct.* is the fast path of a hit and of its free
 *  - magazines.* keeps freed blocks for threads that share a stream, threads.* numbers the threads
 *  - handles.h has further operations of a source of handles
 *
 * Most functions declared here are in allocation/life (creation, destruction) and allocation/call.
 *
 * Stacks have process-wide numbers, which refs carry. The struct of a number is created once and never
 * freed, nor is its lock. So a stale ref or a cached pointer always finds a lock to take and a record to
 * check, even after the stack was destroyed. */
#ifndef STRATA_ALLOCATION_STACK_H
#define STRATA_ALLOCATION_STACK_H

#include <stdalign.h>

#include "allocation/stack/features.h"
#include "allocation/stack/plan.h"
#include "allocation/tables/directory.h"
#include "allocation/tables/nodes.h"
#include "allocation/tables/slab.h"
#include "platform/device.h"
#include "platform/lock.h"

enum {
    STRATA_STACKS = 4096, /* numbers; 0 means no stack */
    STRATA_ATTENTION_CORE = 1u << 15, /* in a stack's requests: no hit may serve; in a record: a magazine keeps it */
    STRATA_ATTENTION_NOTES = 1u << 14, /* in a record: it has an entry in the side table (allocation/uses/record_notes.h) */
    STRATA_ATTENTION_WAITER = 1u << 15, /* in a stack's frees: a thread waits for memory */
    STRATA_ATTENTION_LIMIT =
        1u << 14, /* in a stack's frees: its place is above its limit (allocation/reclaim/over_limit.h), a graph may
                                          use its block (allocation/graphs/graphs.h), or its group is paused */
    STRATA_ATTENTION_MAGAZINES = 1u, /* in a stack's frees: a magazine may keep the block (allocation/stack/magazines.h) */
    STRATA_ATTENTION_OWNERLESS = 1u << 14, /* in a stack's requests: a given stream is a borrower, not an owner */
    STRATA_ATTENTION_LAYERS = 14, /* bits below those, one per layer */
    STRATA_ATTENTION_ALL = 0xffffu
};

/* Returns true if the type has an operation. Types built for an older header may lack it. */
#define STRATA_LAYER_HAS(type, operation)                                                                                          \
    ((type)->struct_size >= offsetof(strata_layer_type_t, operation) + sizeof(type)->operation && (type)->operation)

static inline bool strata_layer_handles_notice(const strata_layer_type_t *type, strata_notice_kind_t kind) {
    return STRATA_LAYER_HAS(type, notify) && type->notices >> kind & 1;
}

/* Reasons why no hit of a stack may serve: the bits of `closed`. */
enum { STRATA_CLOSED_NO_HIT = 1, STRATA_CLOSED_ABOVE_LIMIT = 2, STRATA_CLOSED_BY_GRAPHS = 4, STRATA_CLOSED_PAUSED = 8 };

typedef struct strata_group strata_group_t;
typedef struct strata_graph_pool strata_graph_pool_t;
typedef struct strata_direct strata_direct_t;
typedef uint64_t strata_stack_handle_t;

struct strata_stack {
    /* Every call reads these fields, and they are rarely written. The lock of `home` guards those of them, and of `figures`, that
     * may change while the stack is open. Threads with a handle or a ref read the atomic words without it. */
    alignas(128) uint64_t route; /* the route of a hit, or 0 if no layer may be skipped */
    strata_layer_t *cache; /* its hits serve; NULL if the route is 0 */
    strata_record_t *(*hit)(strata_layer_t *, size_t, const struct strata_stack *);
    bool (*quick_free)(strata_layer_t *, strata_record_t *);
    strata_t facade;
    _Atomic strata_stack_handle_t handle; /* names this life of the stack; 0 if it has none (shared, forgotten, ended) */
    strata_stack_t *_Atomic home; /* the stack with the records of hits in its slab: itself, or one that it shares */
    uint16_t attention_allocate; /* bits of layers whose allocate must be called, OWNERLESS, and CORE if no hit may serve */
    uint16_t attention_free;
    uint16_t number;
    uint8_t closed; /* STRATA_CLOSED_* */
    bool is_shared; /* holds instances that stacks share: of device scope, or (of_thread) of thread scope */
    strata_directory_t *directory; /* notes the blocks handed out; NULL until the program frees by pointer */
    uint64_t only_thread; /* the only thread served by handle (`of_thread`, or else `thread`), or 0 for any */
    const strata_direct_t *_Atomic direct; /* the fast path of its calls: allocation/stack/direct.h */
    strata_magazines_t *_Atomic magazines; /* freed blocks kept for its threads: allocation/stack/magazines.h; may be NULL */
    _Atomic uint64_t peak_bound[STRATA_MEASURES]; /* a bound of live bytes; above it strata_stack_note_peaks() is due */
    bool ownerless; /* it has no owner stream: pinned and host places */
    bool open; /* false between two lives of this number, and while its layers are created or destroyed. Guarded by the lock */

    alignas(128) strata_lock_t lock;
    strata_slab_t slab;
    strata_magazine_use_t magazine_use;
    alignas(64) strata_statistics_t figures; /* plain words; strata_word_write() sets live bytes, and caches count reserved bytes */
    _Atomic uint64_t host_waits; /* added to `figures`; a shared layer waits for a block without the lock of its stack */
    strata_uncached_t uncached;
    strata_peak_share_t peak_share;

    /* Fields are constant while the stack is open, unless a comment gives another rule. */
    alignas(128) strata_domain_t *domain;
    strata_group_t *group; /* the stack is built from its plan */
    strata_layer_t *top;
    strata_layer_t **layers; /* by number, 0 .. plan->count, including those of shared stacks */
    uint64_t life; /* identifies this life of the number, uniquely in the process */
    strata_stream_t stream; /* of a graph pool's stack: changes as in strata_stack_list_rekey() */
    const char *name; /* given to the stream by the program, or "". Outlives the domain. Changes like `stream` */
    uint64_t thread; /* if the stream is a per-thread default stream, its thread; otherwise 0 */
    uint64_t of_thread; /* the only thread that it serves, or 0 for any. In a threaded plan only the group's shared stack has 0 */
    strata_stack_t *thread_shared; /* has the instances of thread scope that this stack uses; may be NULL */
    strata_condition_t host_waited; /* signals the end of a call that used a stream's handle with the lock released */

    /* State of features. Their header names the owner and the lock of each. */
    strata_stack_links_t links;
    strata_borrowers_t borrowers;
    strata_forgotten_t forgotten;
    strata_wait_history_t wait_history;
    strata_rest_history_t rest_history;
    strata_idle_release_t idle;
    strata_holds_t holds;
    strata_notes_table_t notes;
};

/* A handle is {stack number 12 bits, serial 52}. The serial is unique in the process, so it names one life of the number. */
static inline uint16_t strata_stack_handle_number(strata_stack_handle_t handle) { return (uint16_t)(handle >> 52); }

/* Make a ref from its parts, and return a part of it. The bits are those of strata_slab_ref(). */
static inline strata_ref_t strata_ref_make(uint16_t home, uint32_t slot, uint32_t generation) {
    return ((uint64_t)home << 52) | ((uint64_t)slot << STRATA_REF_GENERATION_BITS) | generation;
}
static inline uint16_t strata_ref_home(strata_ref_t ref) { return (uint16_t)(ref >> 52); }
static inline uint32_t strata_ref_slot(strata_ref_t ref) {
    return (uint32_t)(ref >> STRATA_REF_GENERATION_BITS) & (STRATA_SLAB_SLOTS - 1);
}
static inline uint32_t strata_ref_generation(strata_ref_t ref) { return (uint32_t)ref & STRATA_GENERATION_LAST; }

/* Stacks by number, created once and never freed. */
extern strata_stack_t *_Atomic strata_stacks[STRATA_STACKS];

/* Returns the stack of a number, open or not, or NULL if there never was one. Any thread. */
static inline strata_stack_t *strata_stack_of(uint16_t number) {
    return atomic_load_explicit(&strata_stacks[number & (STRATA_STACKS - 1)], memory_order_acquire);
}
/* Returns the owner's ref of a live record. */
static inline strata_ref_t strata_ref_of(const strata_record_t *record) {
    return strata_slab_ref(&strata_stack_of(record->home)->slab, record);
}

/* ---- life ---- */

/* Takes a number and creates its slab. The stack has no layers and is not open. `rank` is the lock's: STACK, THREAD for the shared
 * stack of a thread, or SHARED. E_LIMIT, E_HOST_MEMORY. */
strata_status_t strata_stack_begin(strata_group_t *group, strata_lock_rank_t rank, strata_stack_t **stack);
/* Identifies the requests that a stack serves. */
typedef struct strata_stack_for {
    strata_stream_t stream;
    const char *name; /* of the stream, or NULL */
    uint64_t thread; /* of the per-thread default stream, otherwise 0 */
} strata_stack_for_t;
/* Creates the instances of the group's plan, over the group's shared stack. No lock is held. */
strata_status_t strata_stack_create(strata_group_t *group, const strata_stack_for_t *whose, strata_stack_t **stack);
/* Creates the shared stack: the instances of device scope, which all stacks of the group share. strata_stack_create() creates
 * those of threads. */
strata_status_t strata_shared_stack_create(strata_group_t *group, strata_stack_t **shared);
/* Destroys the layers, which return their chunks, and ends this life of the number. Its refs become stale. No lock is held. */
void strata_stack_destroy(strata_stack_t *stack);
/* Revoke the stack's earlier handles. The first gives it a new one, the second leaves none. No lock of a stack is held. */
void strata_stack_rename(strata_stack_t *stack);
void strata_stack_unname(strata_stack_t *stack);

/* Returns the handle, or 0 if the stack has none. The domain's lock may be held. */
strata_stack_handle_t strata_stack_handle_of(strata_stack_t *stack);
/* Returns whether this stack serves requests of a stream, and of `thread` for the per-thread default stream. The domain's lock is
 * held. */
static inline bool strata_stack_serves(const strata_stack_t *stack, strata_stream_t stream, uint64_t thread) {
    return !stack->is_shared && !stack->forgotten.orphan && stack->stream == stream && stack->thread == thread;
}

/* Returns the stack that a handle names, or NULL if it is stale. It is not destroyed before strata_stack_exit(). Any thread. */
strata_stack_t *strata_stack_enter(strata_stack_handle_t handle);
void strata_stack_exit(strata_stack_t *stack);

/* ---- serving ---- */

/* Serves a request through the layers of the stack, recovery included. The record is booked, and noted for free by pointer. The
 * caller sets the fields of its request, but not `call`, which is the core's. A caller that sets `outcome`, and `struct_size` with
 * it, finds the result there. */
strata_status_t strata_stack_serve(strata_stack_t *stack, const strata_request_t *request, strata_record_t **record);
/* Undoes the growth of a request that failed (docs/contracts.md §7). If more is reserved now than `reserved`, the bytes before the
 * request, it releases idle chunks of the stack and then of its shared stacks. The reason of the failure stays. */
void strata_stack_undo_growth(strata_stack_t *stack, uint64_t reserved);
/* Serves a record of 0 bytes, which has no address. E_LIMIT. */
strata_status_t strata_stack_serve_nothing(strata_stack_t *stack, strata_record_t **record);

/* Finds the live record of a ref of this facade. Takes the lock of the stack that served it, and of its home if that is another
 * stack. Both are in call->held, and the caller releases them. E_STALE. */
strata_status_t strata_record_find(strata_t facade, strata_ref_t ref, strata_call_t *call, strata_record_t **record);
/* Frees a record from strata_record_find(), with that call, and releases its locks. Cannot fail. */
void strata_record_free(strata_call_t *call, strata_record_t *record);
/* Like strata_record_free(), but the block is never reused, because the end of its last use is unknown. */
void strata_record_quarantine(strata_call_t *call, strata_record_t *record);
/* Like strata_record_free(), for a block that was last used on `stream`. */
void strata_record_free_on(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
/* Record or erase a borrow with that call. Its locks may be released in between, and are held on return. E_UNSUPPORTED as in
 * docs/contracts.md §4. */
strata_status_t strata_record_borrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
strata_status_t strata_record_unborrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream);

/* Completes the free of a block that strata_sent_defer() has kept, with the `known` of that call. No lock is held. */
void strata_record_return(strata_record_t *record, bool known);
/* Return or set the number of a record's entry in allocation/domain/sent.h, 0 if it has none. The call's lock is held. Before
 * marking, strata_record_ready_notes() makes the record's notes, and may release the lock in between. It fails with E_LIMIT,
 * E_HOST_MEMORY or E_STALE. */
uint32_t strata_record_sent_number(const strata_call_t *call, const strata_record_t *record);
strata_status_t strata_record_ready_notes(strata_call_t *call, strata_record_t *record);
void strata_record_mark_sent(const strata_call_t *call, strata_record_t *record, uint32_t number);

/* Settling empties the stack's magazines, under its lock. Every path but the fast paths takes the lock with strata_stack_lock_own(). */
void strata_stack_flush_magazines(strata_stack_t *stack);
static inline void strata_stack_lock_own(strata_stack_t *stack) {
    strata_lock(&stack->lock);
    if (__builtin_expect(stack->magazine_use.occupied, 0)) strata_stack_flush_magazines(stack);
}
/* Take and release the stack's lock, and its home's if that is another stack, for the fields that both guard. */
void strata_stack_lock(strata_stack_t *stack);
void strata_stack_unlock(strata_stack_t *stack);
/* Returns the stack whose lock guards the fields that a hit changes. */
static inline strata_stack_t *strata_stack_home(strata_stack_t *stack) {
    return atomic_load_explicit(&stack->home, memory_order_relaxed);
}

/* Closes hits for a reason, or removes that reason. Every reason except NO_HIT also closes the fast path of frees. The stack's lock
 * and its home's are held. */
static inline void strata_stack_close(strata_stack_t *stack, uint8_t reason, bool closed) {
    stack->closed = (uint8_t)(closed ? stack->closed | reason : stack->closed & ~reason);
    uint16_t requests = stack->closed ? STRATA_ATTENTION_CORE : 0;
    uint16_t frees = stack->closed & ~STRATA_CLOSED_NO_HIT ? STRATA_ATTENTION_LIMIT : 0;
    stack->attention_allocate = (uint16_t)((stack->attention_allocate & ~STRATA_ATTENTION_CORE) | requests);
    stack->attention_free = (uint16_t)((stack->attention_free & ~STRATA_ATTENTION_LIMIT) | frees);
}

/* Read and write metrics that other threads read without the lock. Only the holder of the lock writes them. */
static inline uint64_t strata_word_read(const uint64_t *word) {
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)word, memory_order_relaxed);
}
static inline void strata_word_write(uint64_t *word, uint64_t value) {
    atomic_store_explicit((_Atomic uint64_t *)(void *)word, value, memory_order_relaxed);
}

/* Called when live bytes have passed their bound. Updates the peaks of the stack and of the place. Its home's lock is held. */
void strata_stack_note_peaks(strata_stack_t *stack);

/* The next four functions are called with the home's lock held. */

/* Counts `size` bytes that now serve `requested` bytes of the program. Returns true if live bytes have passed their bound, so that
 * strata_stack_note_peaks() must be called. */
static inline bool strata_stack_count(strata_stack_t *stack, uint64_t size, uint64_t requested) {
    strata_statistics_t *f = &stack->figures;
    requested += f->requested_bytes;
    size += f->allocated_bytes;
    strata_word_write(&f->requested_bytes, requested);
    strata_word_write(&f->allocated_bytes, size);
    f->allocations++;
    return requested > atomic_load_explicit(&stack->peak_bound[STRATA_REQUESTED], memory_order_relaxed) ||
           size > atomic_load_explicit(&stack->peak_bound[STRATA_ALLOCATED], memory_order_relaxed);
}

/* Counts a record that was handed out. strata_stack_unbook() reverses it when the record is freed. */
static inline void strata_stack_book(strata_stack_t *stack, const strata_record_t *record) {
    bool passed = strata_stack_count(stack, record->size, strata_record_requested(record));
    if (__builtin_expect(passed, 0)) strata_stack_note_peaks(stack);
}

/* Reverses strata_stack_count() when the program has freed the bytes. */
static inline void strata_stack_uncount(strata_stack_t *stack, uint64_t size, uint64_t requested) {
    strata_statistics_t *f = &stack->figures;
    strata_word_write(&f->requested_bytes, f->requested_bytes - requested);
    strata_word_write(&f->allocated_bytes, f->allocated_bytes - size);
    f->frees++;
}

static inline void strata_stack_unbook(strata_stack_t *stack, const strata_record_t *record) {
    strata_stack_uncount(stack, record->size, strata_record_requested(record));
}

static inline void strata_statistics_add(strata_statistics_t *sum, const strata_statistics_t *part) {
#define STRATA_STATISTICS_ADD(name, unit, kind, meaning) sum->name += part->name;
    STRATA_STATISTICS_MAP(STRATA_STATISTICS_ADD)
#undef STRATA_STATISTICS_ADD
}

/* Adds the metrics of a stack to `sum`. Its lock is held, or the stack has ended. */
static inline void strata_stack_add_figures(const strata_stack_t *stack, strata_statistics_t *sum) {
    strata_statistics_add(sum, &stack->figures);
    sum->host_waits += atomic_load_explicit(&stack->host_waits, memory_order_relaxed);
}

/* Makes the stack note the blocks that it hands out, for free by pointer. Notes its live blocks now. */
void strata_stack_note_pointers(strata_stack_t *stack, strata_directory_t *directory);

/* ---- calls of the domain to each stack; no lock is held ---- */

uint64_t strata_stack_release(strata_stack_t *stack);
/* Releases whole idle chunks until at most `keep` idle bytes are left, if possible. Returns the bytes. */
uint64_t strata_stack_trim(strata_stack_t *stack, uint64_t keep);
void strata_stack_poll(strata_stack_t *stack, strata_pending_t *pending);
/* Notify each layer of the stack. In the first function `call` may hold the lock of a stack. */
void strata_stack_notify_by(strata_stack_t *stack, strata_notice_t *notice, strata_call_t *call);
void strata_stack_notify(strata_stack_t *stack, strata_notice_t *notice);
/* Called before a stream is destroyed, while layers can still record the events that they need on it. */
void strata_stack_stream_destroyed(strata_stack_t *stack, strata_stream_t stream);
/* Returns false if no layer of the stack has frees that carry counts. */
bool strata_stack_set_frontier(strata_stack_t *stack, uint64_t count);
/* Called when a capture into a graph pool of the place begins or ends. */
void strata_stack_notify_capture(strata_stack_t *stack, uint64_t pool, bool begins);
/* Returns whether all work of a forgotten stack's stream is done. Before that, its cached memory must not be reused. */
bool strata_stack_is_done(strata_stack_t *stack);
/* Returns whether all work submitted to the stack's stream is done, as far as a few queries show. False if the stream is captured,
 * or if this thread cannot name it. */
bool strata_stack_is_at_rest(strata_stack_t *stack);
/* Returns whether no block is live, deferred or cached, and no call is in progress. */
bool strata_stack_is_empty(strata_stack_t *stack);
uint64_t strata_stack_idle_bytes(strata_stack_t *stack);
/* Returns whether the stack serves one stream that this thread can name. Another thread's own default stream cannot be
 * named here. The work of a forgotten stream already has an event. */
static inline bool strata_stack_names_stream(const strata_stack_t *stack) {
    return stack->open && !stack->is_shared && !stack->ownerless && !stack->forgotten.orphan && stack->thread == 0;
}
strata_status_t strata_stack_validate(strata_stack_t *stack);
/* Calls `live` for every live record that a caller holds, under the lock. */
void strata_stack_walk_live(strata_stack_t *stack, strata_walk_fn live, void *context);
/* Writes the layers of a route (`call`), by their numbers in the stack: "retry > stream_safe > auto_growth". */
void strata_route_text(const strata_stack_t *stack, uint64_t call, char *text, size_t capacity);

#endif
