/* Stacks: the layer instances that serve one (place, stream), and below them shared stacks, whose instances a thread's stacks or all
 * stacks of a group share.
 *
 * Stacks have process-wide numbers, which refs carry. The struct of a number is made once and never freed, nor is its lock. So a
 * stale ref or a cached pointer always finds a lock to take and a record to check, whatever happened to the stack meanwhile. */
#ifndef STRATA_ALLOCATION_STACK_H
#define STRATA_ALLOCATION_STACK_H

#include <stdalign.h>

#include "allocation/stack/plan.h"
#include "allocation/tables/directory.h"
#include "allocation/tables/nodes.h"
#include "allocation/tables/slab.h"
#include "platform/device.h"
#include "platform/lock.h"

enum {
    STRATA_STACKS = 4096, /* numbers; 0 names none */
    STRATA_ATTENTION_CORE = 1u << 15, /* of a record: the core itself has something to do at its free */
    STRATA_ATTENTION_NOTES = 1u << 14, /* of a record: it has an entry in the side table (allocation/uses/record_notes.h) */
    STRATA_ATTENTION_WAITER = 1u << 15, /* of a stack's frees: somebody waits for memory */
    STRATA_ATTENTION_LIMIT = 1u << 14, /* of a stack's frees: its place is above its limit (allocation/reclaim/above.h), or its block
                                          may be one that a graph uses (allocation/graphs/graphs.h) */
    STRATA_ATTENTION_MAGAZINES = 1u, /* of a stack's frees: the core may keep what is freed (allocation/stack/magazines.h) */
    STRATA_ATTENTION_OWNERLESS = 1u << 14, /* of a stack's requests: a stream that is given is a borrower */
    STRATA_ATTENTION_LAYERS = 14, /* bits below those, one per layer */
    STRATA_ATTENTION_ALL = 0xffffu
};

/* True if the type has an operation that types built for an older header lack. */
#define STRATA_LAYER_HAS(type, operation)                                                                                          \
    ((type)->struct_size >= offsetof(strata_layer_type_t, operation) + sizeof(type)->operation && (type)->operation)

static inline bool strata_layer_takes(const strata_layer_type_t *type, strata_notice_kind_t kind) {
    return STRATA_LAYER_HAS(type, notify) && type->notices >> kind & 1;
}

/* Why no hit of a stack may serve. */
enum { STRATA_CLOSED_NO_HIT = 1, STRATA_CLOSED_ABOVE_LIMIT = 2, STRATA_CLOSED_BY_GRAPHS = 4, STRATA_CLOSED_PAUSED = 8 };

typedef struct strata_record_notes strata_record_notes_t;
typedef struct strata_group strata_group_t;
typedef struct strata_graph_pool strata_graph_pool_t;
typedef struct strata_direct strata_direct_t;
typedef struct strata_magazines strata_magazines_t;
typedef uint64_t strata_stack_handle_t;
typedef struct strata_uses strata_uses_t;

/* What idleness took from a stack (allocation/reclaim/idle.h). */
typedef struct strata_went {
    uint64_t all, left; /* bytes, and those of them that have not come back */
    uint64_t before; /* that the layer kept idle before it gave back */
    uint8_t layer; /* the cache through which they come back, by its number */
} strata_went_t;

/* A stream that used blocks of another stream's stack. */
enum { STRATA_MET = 4, STRATA_MET_CHAINS = 512 };
typedef struct strata_met {
    strata_stream_t stream; /* NULL: this entry is free */
    strata_stack_t *stack;
    struct strata_met *next, **link; /* the chain, and the pointer that points to this entry */
} strata_met_t;

/* What a stack has of the program's live blocks: what was asked for, and what serves it. */
enum { STRATA_REQUESTED, STRATA_ALLOCATED, STRATA_MEASURES };

struct strata_stack {
    /* Read by every call and rarely written. Of these and of the figures, what may change while the stack is open is guarded by the
     * lock of `home`. The atomic words are read without it, by whoever has a handle or a ref. */
    alignas(128) uint64_t route; /* the route of a hit; 0: no layer may be skipped */
    strata_layer_t *cache; /* whose hit serves */
    strata_record_t *(*hit)(strata_layer_t *, size_t, const struct strata_stack *);
    bool (*quick_free)(strata_layer_t *, strata_record_t *);
    strata_t facade;
    _Atomic strata_stack_handle_t handle; /* names this life of the stack; 0: nobody can name it (forgotten, ended) */
    strata_stack_t *_Atomic home; /* the stack in whose slab a hit finds its record: itself, or one that it shares */
    uint16_t attention_allocate; /* bits of layers whose allocate must be called, OWNERLESS; CORE: no hit may serve */
    uint16_t attention_free;
    uint16_t number;
    uint8_t closed; /* STRATA_CLOSED_* */
    bool is_shared; /* holds instances that stacks share: of device scope, or (of_thread) of thread scope */
    strata_directory_t *directory; /* where blocks handed out are noted; NULL until somebody frees by pointer */
    uint64_t only_thread; /* the only thread served by handle: the stack is its own, or of its default stream; 0: any */
    const strata_direct_t *_Atomic direct; /* how calls go that need no long way: allocation/stack/direct.h */
    strata_magazines_t *_Atomic magazines; /* what its threads keep: allocation/stack/magazines.h; NULL: nothing */
    _Atomic uint64_t watched[STRATA_MEASURES]; /* what lives in it rises no higher without a call of strata_stack_note_peaks() */
    bool ownerless; /* pinned and host: no owner stream */
    bool open; /* false between two lives of this number, and while its layers are made or ended. Guarded by the lock */

    alignas(128) strata_lock_t lock;
    strata_slab_t slab;
    uint16_t keeps; /* a bit for each magazine in which there may be a block. Guarded by the lock, as the three after it */
    uint32_t meetings; /* of threads at the lock, since it had magazines last */
    uint32_t meetings_more; /* than elsewhere, before it has them again: they served too little */
    strata_magazines_t *ready_magazines; /* right after this struct, whether it has them now or not; constant */
    alignas(64) strata_statistics_t figures; /* plain words, live bytes by strata_word_write(); reserved belongs to the caches */
    uint64_t direct_bytes, peak_direct_bytes; /* of live blocks that no cache cut, reserved too. Guarded by the lock */
    uint64_t may[STRATA_MEASURES]; /* what may live in it before the other stacks are looked at: allocation/domain/peaks.h */
    strata_stack_t *next_measured; /* likewise, and guarded by its lock */
    bool measured;

    /* Constant while open, unless said otherwise. */
    alignas(128) strata_domain_t *domain;
    strata_group_t *group; /* from whose plan it is built */
    strata_layer_t *top;
    strata_layer_t **layers; /* by number, 0 .. plan->count; those of the shared stack included */
    uint64_t life; /* of this number: no other stack of the process has it, now or later */
    strata_stream_t stream;
    const char *name; /* that the program gave the stream; "": none. Outlives the domain */
    uint64_t thread; /* if it is the per-thread default stream, its thread; else 0 */
    uint64_t of_thread; /* the only thread that it serves; 0: any. A threaded plan has no others except its shared stack */
    strata_stack_t *thread_shared; /* the instances of thread scope that it shares; NULL: none */
    uint64_t at; /* creation number within the domain; this and the links below are guarded by the domain's lock */
    strata_stack_t *next_of_all, *prev_of_all; /* in creation order */
    strata_stack_t *next_of_chain;
    strata_stack_t *next_of_stream, **of_stream; /* stacks of one stream in any pool, and the pointer that points to this stack */
    strata_stack_t *next_orphan, *prev_orphan; /* the domain's list of orphans */
    uint32_t carried; /* stacks that use this one of a thread; guarded by the domain's lock */
    uint32_t visitors; /* walks of the domain's list that are here now; guarded by the domain's lock */
    _Atomic bool orphan; /* its stream was forgotten; changed under the domain's lock */
    strata_handle_t gone; /* of an orphan: the event after all work of its stream; NULL: passed, if `told`. Guarded by the lock */
    bool told; /* of an orphan: an event or a wait shows when that work is done; else nobody may have its memory. Guarded by the
                  lock */
    bool stranded; /* of an orphan: nothing shows when a guest's work is done, so nobody may have its memory. Guarded by the lock */
    bool left; /* its stream's thread was seen to have exited; used only while building stacks */
    uint64_t waited_at; /* when patience last waited for something, by the device's clock; 0: never. Guarded by the lock */
    uint64_t late_at; /* likewise, and was late */
    uint64_t earned_at, earned_ns; /* how long patience might wait with less work ahead than `depth`, at that time; the same */
    uint32_t deeper; /* by how many blocks patience has deepened its `depth`. Guarded by the lock */
    bool capturing; /* into the pool of graphs that it belongs to. Guarded by the lock */
    strata_went_t went; /* guarded by the lock */
    strata_handle_t quiet; /* the event after which its stream was idle when that was asked last; NULL: none. Guarded by the lock */
    uint32_t inside; /* calls under way in its layers, so it must not end. Guarded by the lock */
    uint32_t limbo; /* freed blocks that other processes still use; guarded by the lock */
    strata_record_notes_t *record_notes; /* by slot; NULL until something is noted or shared. Guarded by the lock */
    uint32_t record_notes_count; /* slots that have an entry. Guarded by the lock */
    strata_growing_t record_notes_range;
    /* Streams to wait for at the free, where no layer handles borrows; NULL: none so far. Guarded by the lock; anybody may see whether
     * there are some. */
    strata_uses_t *_Atomic host_uses;
    strata_condition_t host_waited; /* a call that used a stream's handle with the lock open is over */
    strata_stack_t *next_of_group, *prev_of_group; /* in order of making; guarded by the domain's lock */
    /* The other streams that used blocks of this stack and are not forgotten; guarded by the domain's `met_lock`. A stack with more such
     * streams than fit, or a shared stack, is in a list of its domain instead. */
    strata_met_t met[STRATA_MET];
    _Atomic(strata_stream_t) last_met; /* one of these streams; also read without the lock; NULL: none */
    _Atomic bool met_many; /* more streams than fit in `met`; also read without the lock */
    strata_stack_t *next_met_many, *prev_met_many;
};

/* {stack number 12 bits, serial 52}: the serial belongs to one life of the number, and to no other one in the process. */
static inline uint16_t strata_stack_handle_number(strata_stack_handle_t handle) { return (uint16_t)(handle >> 52); }

/* The parts of a ref: strata_slab_ref(). */
static inline strata_ref_t strata_ref_make(uint16_t home, uint32_t slot, uint32_t generation) {
    return ((uint64_t)home << 52) | ((uint64_t)slot << STRATA_REF_GENERATION_BITS) | generation;
}
static inline uint16_t strata_ref_home(strata_ref_t ref) { return (uint16_t)(ref >> 52); }
static inline uint32_t strata_ref_slot(strata_ref_t ref) {
    return (uint32_t)(ref >> STRATA_REF_GENERATION_BITS) & (STRATA_SLAB_SLOTS - 1);
}
static inline uint32_t strata_ref_generation(strata_ref_t ref) { return (uint32_t)ref & STRATA_GENERATION_LAST; }

/* Stacks by number: made once, never freed. */
extern strata_stack_t *_Atomic strata_stacks[STRATA_STACKS];

/* The stack of a number, dead or alive; NULL if there never was one. Any thread. */
static inline strata_stack_t *strata_stack_of(uint16_t number) {
    return atomic_load_explicit(&strata_stacks[number & (STRATA_STACKS - 1)], memory_order_acquire);
}
/* Owner's ref of a live record. */
static inline strata_ref_t strata_ref_of(const strata_record_t *record) {
    return strata_slab_ref(&strata_stack_of(record->home)->slab, record);
}

/* ---- life ---- */

/* A number with its slab, without layers and not open. The rank of its lock: a stack, the shared stack of a thread, or a shared
 * stack. E_LIMIT, E_HOST_MEMORY. */
strata_status_t strata_stack_begin(strata_group_t *group, strata_lock_rank_t rank, strata_stack_t **stack);
/* Whom a stack serves. */
typedef struct strata_stack_for {
    strata_stream_t stream;
    const char *name; /* of the stream; NULL: none */
    uint64_t thread; /* of the per-thread default stream, else 0 */
} strata_stack_for_t;
/* Makes the instances of the group's plan, sharing the group's shared stack. No lock is held. */
strata_status_t strata_stack_create(strata_group_t *group, const strata_stack_for_t *whose, strata_stack_t **stack);
/* The shared stack: the instances of device scope, shared by all stacks of the group. strata_stack_create() makes those of
 * threads. */
strata_status_t strata_shared_stack_create(strata_group_t *group, strata_stack_t **shared);
/* Ends the layers, whose chunks go back, and the life of the number: refs into it are stale. No lock is held. */
void strata_stack_destroy(strata_stack_t *stack);
/* Earlier handles no longer name it; it gets a new one, or none. No lock of a stack is held. */
void strata_stack_rename(strata_stack_t *stack);
void strata_stack_unname(strata_stack_t *stack);

/* Under the domain's lock too. 0: it has none. */
strata_stack_handle_t strata_stack_handle_of(strata_stack_t *stack);
/* Whether requests for a stream (and thread, for the per-thread default stream) come to this stack. The domain's lock is held. */
static inline bool strata_stack_serves(const strata_stack_t *stack, strata_stream_t stream, uint64_t thread) {
    return !stack->is_shared && !stack->orphan && stack->stream == stream && stack->thread == thread;
}

/* The stack that a handle names, kept from ending until strata_stack_leave(); NULL: it names none any more. Any thread. */
strata_stack_t *strata_stack_enter(strata_stack_handle_t handle);
void strata_stack_leave(strata_stack_t *stack);

/* ---- serving ---- */

/* Serves a request: the way down the stack, recovery included. The record is booked and noted. The caller fills what it asks for; `call`
 * is the core's. A caller that gives an `outcome`, and the struct's size with it, finds there what became of the request. */
strata_status_t strata_stack_serve(strata_stack_t *stack, const strata_request_t *request, strata_record_t **record);
/* A request failed after a growth (docs/contracts.md §7): if more is reserved now than `reserved` before it, idle chunks go back,
 * of the stack and then of what it shares. The reason of the failure stays. */
void strata_stack_undo_growth(strata_stack_t *stack, uint64_t reserved);
/* A record of 0 bytes, at no address. */
strata_status_t strata_stack_serve_nothing(strata_stack_t *stack, strata_record_t **record);

/* Finds the live record of a ref of this facade and takes the lock of the stack that served it; call->held says which. The caller
 * releases it. E_STALE. */
strata_status_t strata_record_find(strata_t facade, strata_ref_t ref, strata_call_t *call, strata_record_t **record);
/* Frees a record from strata_record_find(), with that call, and releases its locks. Cannot fail. */
void strata_record_free(strata_call_t *call, strata_record_t *record);
/* The same, but nobody has the block again: nothing shows when its last use is over. */
void strata_record_quarantine(strata_call_t *call, strata_record_t *record);
/* The same; the last use was on `stream`. */
void strata_record_free_on(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
/* A borrow, with that call, whose locks stay held. E_UNSUPPORTED as docs/contracts.md §4 says. */
strata_status_t strata_record_borrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream);
strata_status_t strata_record_unborrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream);

/* A block that was kept since its free, by strata_sent_keep(): goes on with that free. `known` as said then. No lock is held. */
void strata_record_return(strata_record_t *record, bool known);
/* The entry of a record in allocation/domain/sent.h; 0: none. The call's lock is held. To mark, the record has notes: made by
 * strata_record_ready_notes(), during which the lock may be open. E_LIMIT, E_HOST_MEMORY, E_STALE. */
uint32_t strata_record_sent_number(const strata_call_t *call, const strata_record_t *record);
strata_status_t strata_record_ready_notes(strata_call_t *call, strata_record_t *record);
void strata_record_mark_sent(const strata_call_t *call, strata_record_t *record, uint32_t number);

/* The stack's lock, for all but the direct ways: afterwards no block of it is in a magazine. */
void strata_stack_settle(strata_stack_t *stack);
static inline void strata_stack_take(strata_stack_t *stack) {
    strata_lock(&stack->lock);
    if (__builtin_expect(stack->keeps, 0)) strata_stack_settle(stack);
}
/* The stack's lock, and its home's if that is another one: for what both guard. */
void strata_stack_lock(strata_stack_t *stack);
void strata_stack_unlock(strata_stack_t *stack);
/* Whose lock guards what a hit of the stack changes. */
static inline strata_stack_t *strata_stack_home(strata_stack_t *stack) {
    return atomic_load_explicit(&stack->home, memory_order_relaxed);
}

/* Opens or closes hits for a reason, and the direct way of frees with them, unless there was never one. The stack's lock and its
 * home's are held. */
static inline void strata_stack_close(strata_stack_t *stack, uint8_t reason, bool closed) {
    stack->closed = (uint8_t)(closed ? stack->closed | reason : stack->closed & ~reason);
    uint16_t requests = stack->closed ? STRATA_ATTENTION_CORE : 0;
    uint16_t frees = stack->closed & ~STRATA_CLOSED_NO_HIT ? STRATA_ATTENTION_LIMIT : 0;
    stack->attention_allocate = (uint16_t)((stack->attention_allocate & ~STRATA_ATTENTION_CORE) | requests);
    stack->attention_free = (uint16_t)((stack->attention_free & ~STRATA_ATTENTION_LIMIT) | frees);
}

/* Figures that others read without the lock; who holds it writes them. */
static inline uint64_t strata_word_read(const uint64_t *word) {
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)word, memory_order_relaxed);
}
static inline void strata_word_write(uint64_t *word, uint64_t value) {
    atomic_store_explicit((_Atomic uint64_t *)(void *)word, value, memory_order_relaxed);
}

/* What lives in the stack has passed a bound: brings peaks up to date, its own and that of the place. Its home's lock is held. */
void strata_stack_note_peaks(strata_stack_t *stack);

/* Called with the home's lock held, these four. */

/* `size` bytes serve `requested` of the program from now on. True: more lives than was looked at, strata_stack_note_peaks() is due. */
static inline bool strata_stack_count(strata_stack_t *stack, uint64_t size, uint64_t requested) {
    strata_statistics_t *f = &stack->figures;
    requested += f->requested_bytes;
    size += f->allocated_bytes;
    strata_word_write(&f->requested_bytes, requested);
    strata_word_write(&f->allocated_bytes, size);
    f->allocations++;
    return requested > atomic_load_explicit(&stack->watched[STRATA_REQUESTED], memory_order_relaxed) ||
           size > atomic_load_explicit(&stack->watched[STRATA_ALLOCATED], memory_order_relaxed);
}

/* Books a record that was handed out, and one that was taken back. */
static inline void strata_stack_book(strata_stack_t *stack, const strata_record_t *record) {
    bool passed = strata_stack_count(stack, record->size, strata_record_requested(record));
    if (__builtin_expect(passed, 0)) strata_stack_note_peaks(stack);
}

/* The program has given them back. */
static inline void strata_stack_uncount(strata_stack_t *stack, uint64_t size, uint64_t requested) {
    strata_statistics_t *f = &stack->figures;
    strata_word_write(&f->requested_bytes, f->requested_bytes - requested);
    strata_word_write(&f->allocated_bytes, f->allocated_bytes - size);
    f->frees++;
}

static inline void strata_stack_unbook(strata_stack_t *stack, const strata_record_t *record) {
    strata_stack_uncount(stack, record->size, strata_record_requested(record));
}

/* From now on blocks that are handed out are noted for free by pointer; what is live is noted now. */
void strata_stack_note_pointers(strata_stack_t *stack, strata_directory_t *directory);

/* ---- what the domain asks of each stack; no lock is held ---- */

uint64_t strata_stack_release(strata_stack_t *stack);
/* Gives back until at most `keep` idle bytes stay, as far as whole chunks are idle; returns the bytes. */
uint64_t strata_stack_trim(strata_stack_t *stack, uint64_t keep);
void strata_stack_poll(strata_stack_t *stack, strata_pending_t *pending);
/* Notifies each layer of the stack. Also with the lock of a stack held, by `call`. */
void strata_stack_notify_by(strata_stack_t *stack, strata_notice_t *notice, strata_call_t *call);
void strata_stack_notify(strata_stack_t *stack, strata_notice_t *notice);
/* A stream will be destroyed: layers take the events that they need from it while they can. */
void strata_stack_stream_gone(strata_stack_t *stack, strata_stream_t stream);
/* False: no layer of it has frees that carry counts. */
bool strata_stack_set_frontier(strata_stack_t *stack, uint64_t count);
/* A capture into a pool of graphs of the place begins or ends. */
void strata_stack_tell_capture(strata_stack_t *stack, uint64_t pool, bool begins);
/* Whether all work of a forgotten stack's stream is done: only then anybody may have what it caches. */
bool strata_stack_has_passed(strata_stack_t *stack);
/* Whether nothing is live, deferred or cached. */
bool strata_stack_is_empty(strata_stack_t *stack);
uint64_t strata_stack_idle_bytes(strata_stack_t *stack);
strata_status_t strata_stack_validate(strata_stack_t *stack);
/* Every live record that a caller holds, under the lock. */
void strata_stack_walk_live(strata_stack_t *stack, strata_walk_fn live, void *context);
/* "retry > stream_safe > auto_growth": the layers of a route (`call`), by the numbers of the stack. */
void strata_route_text(const strata_stack_t *stack, uint64_t call, char *text, size_t capacity);

#endif
