/* How to write a layer. This header is all that a layer outside Strata's tree needs; those in the tree are written against it.
 *
 * WHAT A LAYER IS. An allocator of Strata is a stack of layers. Each layer is one of four kinds:
 *
 *     source      gets memory from a device: it stands at the bottom
 *     cache       gets chunks from the layer below and serves blocks of them
 *     decorator   changes how the one layer below it is used: it counts, bounds, fills, waits
 *     router      has several stacks below it and chooses one for each request
 *
 * A request goes down the stack until somebody serves it. What comes back up is a record: address, size, and the route, which
 * names the layers that took part. A free takes the same route in reverse. A cache ends the way: the record that it returns is
 * a block of its own, and the chunk in which the block lies is another record, which the cache got from below and keeps.
 *
 * HOW TO BEGIN. A decorator is four functions and a struct (examples/my_layer.c). A cache is a policy for free blocks on top of
 * strata_chunked_*() (examples/segregated_fit.c). End the file with a STRATA_LAYERS() line, build a shared object, check it:
 *
 *     cc -O2 -shared -fPIC mine.c $(pkg-config --cflags strata) -o libmine.so
 *     strata conform ./libmine.so              docs/conform.md
 *     strata torture --layers ./libmine.so     docs/torture.md
 *
 * A strategy names the object and the layer: `load: [./libmine.so]` and `stack: [stream_safe, mine, system]`.
 *
 * INSTANCES. The builder makes an instance of a layer for each stream, thread or device, by its scope. It is a struct of yours
 * that begins with strata_layer_t. It belongs to a stack, and its records lie in that stack's slab.
 *
 * LOCKS. Each stack has one lock. If the type says `guarded`, every operation runs with it held, unless its comment says
 * otherwise, and the instance needs no lock of its own. Two rules follow:
 *     - Never block under the lock. Device calls that are not marked quick, calls into the layer below a cache, and your own
 *       waits are made between strata_call_unlock() and strata_call_lock().
 *     - Every call into the layers below may open the lock. Leave nothing half done before such a call, and read your state
 *       anew after it.
 * A type that is not guarded locks for itself. It still must not block while a lock of the call is held.
 *
 * ERRORS. A function that fails returns the reason, made with strata_fail() (strata/status.h), and leaves everything as it was.
 * A request that cannot be served for want of memory is STRATA_E_NO_MEMORY, however large it is. The core then looks for memory
 * and asks the stack again, as the strategy says; a layer has nothing to do with that. `free` cannot fail.
 *
 * UNITS. Sizes are bytes, times are nanoseconds, addresses are uint64_t.
 * NULL. No pointer may be NULL unless a comment allows it. Functions of the hot path do not check their pointers (not checked).
 * VERSIONS. Structs grow at their end alone, and begin with their size where you fill them. Requests that you change are copies
 * with struct_size = sizeof(strata_request_t); records and calls are made by the core.
 */
#ifndef STRATA_LAYER_H
#define STRATA_LAYER_H

#include "strata/notice.h"
#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_layer strata_layer_t; /* an instance of a layer */
typedef struct strata_stack strata_stack_t; /* the instances that serve one (place, stream), or those that several stacks share */
typedef struct strata_domain strata_domain_t; /* all stacks over one physical memory */
typedef struct strata_record strata_record_t; /* one block, live or free */
typedef struct strata_outcome strata_outcome_t; /* what became of a request: the core's */

/* ---- requests: what a call is for -------------------------------------------------------------------------------------- */
typedef enum strata_purpose {
    STRATA_FOR_PROGRAM, /* the program asked for it */
    STRATA_FOR_CHUNK, /* a cache is growing, and other threads wait for it: call no callback, and do not wait for memory */
    STRATA_FOR_FIRST_USE /* record_stream of who was given another stream's block: its event is taken at free, erase_stream ends nothing */
} strata_purpose_t;

/* The call that is under way: which stack it serves, for whom, and which locks it holds. The core makes it, and it ends with the
 * call: pass it on, and keep no pointer to it. */
typedef struct strata_call {
    strata_stack_t *stack; /* whose layer numbers are in the route of the record */
    strata_stack_t *held[2]; /* the stacks whose locks are held now: [0] one of a stream or thread, [1] a shared one; NULL: none */
    strata_stream_t stream; /* whose request it is: not the stack's own stream if the program has forgotten that one */
    strata_purpose_t purpose;
} strata_call_t;

/* A flag of a request beside those of the program (STRATA_NO_RETRY, STRATA_NO_GROW, STRATA_ZERO). */
enum {
    STRATA_SMALL_GROWTH = 1u << 16 /* memory is short: a cache that must grow asks for the request alone, not for a whole chunk */
};

/* What is asked for. Read only: to ask for something else, pass on a changed copy. */
typedef struct strata_request {
    size_t struct_size;
    size_t size; /* bytes, never 0 */
    size_t alignment; /* a power of two. More than the place's only if this layer's `alignment` says that it serves it */
    strata_stream_t stream;
    uint64_t pool; /* 0: no named pool */
    uint64_t freed_before; /* serve only what was freed at this count or before (set_frontier); 0: anything */
    const char *tag; /* NULL: none */
    strata_call_t *call;
    uint32_t flags; /* STRATA_NO_GROW: serve from what is there; STRATA_NO_RETRY: do not wait */
    uint64_t at; /* of a cache above a source of handles: the address where it wants the memory; 0: anywhere */
    const char *operator_name; /* strata_annotate(); NULL: nothing was said. It lives as long as the facade */
    strata_outcome_t *outcome; /* shared by all copies of the request; the core's */
} strata_request_t;

/* ---- records ----------------------------------------------------------------------------------------------------------- */
typedef enum strata_record_state {
    STRATA_RECORD_UNUSED = 0, /* the slot is free */
    STRATA_RECORD_FREE = 1, /* a free block of a cache */
    STRATA_RECORD_LIVE = 2, /* the program has it */
    STRATA_RECORD_DEFERRED = 3, /* on its way back: freed by the program, perhaps waiting for other streams */
    STRATA_RECORD_CHUNK = 4 /* held by a layer above: a cache, or a decorator that made a record of its own */
} strata_record_state_t;

/* A slot whose record has this generation is used up. A cache that gets such a block back must not hand it out again. */
enum { STRATA_GENERATION_LAST = (1u << 28) - 1 };

/* One block, live or free: 64 bytes in the slab of its maker's stack, whose lock guards it. Slots are numbers into that slab. Whoever
 * holds it live may read ptr, size and slack without the lock. A layer writes only what the comments give it. */
struct strata_record {
    uint64_t ptr;
    uint64_t size; /* granted bytes */
    union {
        uint64_t route; /* held: numbers of the layers that took part, the top in the low byte: the core pushes and pops them */
        uint64_t free_word; /* FREE: the cache's own */
    };
    uint32_t generation; /* grows at every free, so that old refs are known to be stale; the core's */
    uint16_t stack; /* number of the stack whose layer numbers `route` uses */
    uint16_t attention; /* bits of the `idle` layers whose free must be called for this record */
    uint32_t prev, next; /* a block of a cache: slots of its neighbours in the chunk; 0: none */
    union {
        uint32_t bin_prev; /* FREE: links of the cache's index, this and bin_next */
        uint32_t held_slot; /* made by strata_record_wrap(): the slot of what it holds; the core's */
    };
    union {
        uint32_t bin_next;
        uint32_t held_home; /* and the stack of that slot */
        uint32_t user; /* of a cache or source that serves several streams: a number of its own for who has the block */
        uint32_t own_uses; /* of a cache that notes borrows where a layer above does too: its list */
    };
    uint32_t chunk; /* the cache's own number of the chunk; 0: this is no block of a cache */
    union {
        uint32_t slack; /* held: granted bytes less requested bytes */
        uint32_t mark_high; /* FREE: the cache's own, this and mark_low */
    };
    uint8_t state; /* strata_record_state_t */
    uint8_t pool; /* the layer's own */
    uint16_t home; /* number of the stack whose slab this is */
    union {
        uint32_t borrows; /* held: the list of the first layer that notes borrows, or else of the core; 0: none */
        uint32_t mark_low;
    };
};

static inline uint64_t strata_record_requested(const strata_record_t *record) { return record->size - record->slack; }

/* ---- options and figures of a layer -------------------------------------------------------------------------------------- */
typedef enum strata_option_kind {
    STRATA_OPTION_BOOL, /* bool:     true, false */
    STRATA_OPTION_COUNT, /* uint64_t: 12 */
    STRATA_OPTION_SIZE, /* uint64_t: 20MiB */
    STRATA_OPTION_TIME, /* uint64_t ns: 100ms */
    STRATA_OPTION_FRACTION, /* double:   0.8 */
    STRATA_OPTION_CHOICE, /* uint32_t: index of the word in `choices` */
    STRATA_OPTION_TEXT /* char[STRATA_OPTION_TEXT_BYTES]: a path, a name; UTF-8, no control characters or outer blanks */
} strata_option_kind_t;

enum { STRATA_OPTION_TEXT_BYTES = 256 /* with the closing zero */, STRATA_OPTION_CHOICES = 32 /* words of one option */ };

/* One option. From these rows come the reading of strategy files and of settings, `strata layers`, and the bounds that are
 * checked.
 *
 * A router whose branches have values of their own has options that end in the number of the branch: `most_1`, `most_2`, up to
 * `most_8`. A strategy writes `routes: [{most: 4, stack: [...]}, {most: 9, stack: [...]}, {stack: [...]}]`; the last branch
 * takes the rest and has no value. A router without such options is written `stacks: [[...], [...]]`. */
typedef struct strata_option_row {
    const char *name;
    strata_option_kind_t kind;
    uint32_t offset; /* in the options struct */
    const char *default_text; /* as a strategy file would say it */
    uint64_t min, max; /* of COUNT, SIZE, TIME; of FRACTION in millionths; max 0: no bound */
    const char *choices; /* CHOICE: "address|any" */
    const char *doc;
} strata_option_row_t;

/* One figure: a uint64_t at `offset` in the instance. It is read under the lock, after `figures`. */
typedef struct strata_stat_row {
    const char *name;
    const char *unit;
    uint32_t offset;
    const char *doc;
} strata_stat_row_t;

/* ---- the type of a layer ----------------------------------------------------------------------------------------------- */
typedef enum strata_role { STRATA_SOURCE, STRATA_CACHE, STRATA_DECORATOR, STRATA_ROUTER } strata_role_t;
/* What has an instance of its own, within one facade: each stream, each thread, or each device. NONE: the layer keeps nothing,
 * so it does not matter. THREAD is for caches; every thread has stacks of its own above such a cache. */
typedef enum strata_scope { STRATA_SCOPE_NONE, STRATA_SCOPE_STREAM, STRATA_SCOPE_THREAD, STRATA_SCOPE_DEVICE } strata_scope_t;

/* What a layer needs of the layers below, and gives to those above. The builder refuses a stack in which a need is not met, and
 * names both layers. X(name, bit, meaning) */
#define STRATA_TRAIT_MAP(X)                                                                                                        \
    X(STREAM_ORDERED, 0, "memory freed may be served again to the same stream without a wait")                                     \
    X(CROSS_STREAM_SAFE, 1, "borrows are respected")                                                                               \
    X(OWNER_THREAD_ONLY, 2, "only the thread that allocated may free")                                                             \
    X(SUB_ALLOCATES, 3, "serves pieces of chunks")                                                                                 \
    X(WAITS, 4, "may wait: no layer with a lock may stand above")                                                                  \
    X(EXACT_SIZE, 5, "grants what was asked, rounded to the alignment at most")                                                    \
    X(ZEROED, 6, "memory comes zeroed")                                                                                            \
    X(HANDLE_SOURCE, 7, "serves mappable physical handles")                                                                        \
    X(SINGLE_STREAM, 8, "ignores streams: every stream gets an instance of its own, unless its option streams says ignored")       \
    X(ANY_MEMORY, 9, "the stacks below may serve another kind of memory than the place's")                                         \
    X(CONTIGUOUS, 10, "chunks whose addresses touch may be used as one")                                                           \
    X(TELLS_OWNERS, 11, "does what it does for the owner of a request: no cache may stand above, where owners change unseen")

enum {
#define STRATA_TRAIT_ENUM(name, bit, meaning) STRATA_TRAIT_##name = 1u << (bit),
    STRATA_TRAIT_MAP(STRATA_TRAIT_ENUM)
#undef STRATA_TRAIT_ENUM
};

/* What poll() finds. */
typedef struct strata_pending {
    uint64_t freed_bytes; /* whose frees this poll has finished */
    uint64_t pending_bytes; /* whose frees still wait for other streams */
    uint64_t ready_at; /* when the earliest of them can be finished, on the device's clock; UINT64_MAX: unknown */
} strata_pending_t;

/* A free of `bytes` bytes waits for a stream; `gone`: the stream has been destroyed. */
typedef void (*strata_wait_fn)(strata_stream_t stream, bool gone, uint64_t bytes, void *context);
typedef void (*strata_walk_fn)(const strata_record_t *record, void *context);
/* What keeps a free block from a request, for reports. X(name, bit, meaning) */
#define STRATA_REACH_MAP(X)                                                                                                        \
    X(STREAM, 0, "one stream alone is served from it")                                                                             \
    X(CAPTURED, 1, "it stays where it is while a stream is being captured")                                                        \
    X(COUNTED, 2, "free, under a count that no frontier has passed")                                                               \
    X(SIZES, 3, "it serves requests of other sizes")                                                                               \
    X(UNSPLIT, 4, "it is larger than what may be cut for the request")

enum {
#define STRATA_REACH_ENUM(name, bit, meaning) STRATA_REACH_##name = 1u << (bit),
    STRATA_REACH_MAP(STRATA_REACH_ENUM)
#undef STRATA_REACH_ENUM
};

typedef struct strata_layer_type {
    size_t struct_size; /* sizeof(strata_layer_type_t) */
    const char *name; /* as in a strategy file: letters, digits and _ */
    const char *doc; /* one line, for `strata layers` */
    strata_role_t role;
    strata_scope_t scope;
    uint32_t needs, gives; /* STRATA_TRAIT_* */
    uint32_t passes; /* traits of the layers below that stay true above this one; ~0u: all */
    bool guarded; /* operations run under the lock of the instance's stack */
    bool idle; /* allocate may be skipped while strata_layer_wants_allocate() is off, and free for records whose attention bit
                  (strata_layer_t.attention) is clear: skipped, each must amount to a call of the layer below */
    size_t state_size; /* of an instance, which begins with strata_layer_t and is zero before create */
    size_t options_size; /* of the struct that the options rows fill */
    const strata_option_row_t *options; /* ended by a row without a name; NULL: none */
    const strata_stat_row_t *stats; /* likewise */

    /* Mandatory. No lock is held in create and destroy. destroy gives everything back, whatever is still live; it is called
     * only after a create that succeeded. */
    strata_status_t (*create)(strata_layer_t *self);
    void (*destroy)(strata_layer_t *self);
    /* Serves a request and sets *record, or fails and leaves it alone. A decorator calls strata_below_allocate(), a router
     * strata_layer_allocate(), a source strata_record_new(). */
    strata_status_t (*allocate)(strata_layer_t *self, const strata_request_t *request, strata_record_t **record);
    /* Takes a record back; cannot fail. Decorators and routers call strata_below_free(). */
    void (*free)(strata_layer_t *self, strata_record_t *record, strata_call_t *call);

    /* Optional. The core asks each layer of a stack that has the operation; NULL: this one has nothing to do. */
    /* A cache serves a request of `stack`, at the place's alignment, from what is there; no device call, no lock is opened.
     * NULL: allocate is called. The core writes the record's route and stack. An instance that several stacks share asks
     * strata_stack_stream() whose request it is. */
    strata_record_t *(*hit)(strata_layer_t *self, size_t size, const strata_stack_t *stack);
    /* Of a cache: takes back a record in which no other layer took part, as free does. False, and nothing has changed: the lock
     * would have to be opened, and free is called. */
    bool (*quick_free)(strata_layer_t *self, strata_record_t *record);
    /* Gives back all memory that is idle; returns the bytes. The lock is opened for the calls below. */
    uint64_t (*release)(strata_layer_t *self, strata_call_t *call);
    /* Finishes the frees that wait for no stream any more; adds to *pending. */
    void (*poll)(strata_layer_t *self, strata_call_t *call, strata_pending_t *pending);
    /* Another stream uses a live block, or no longer does. The topmost layer of the record's route that has record_stream is
     * called. If there is none, the free waits on the host for that stream. */
    strata_status_t (*record_stream)(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
    strata_status_t (*erase_stream)(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
    /* Called for the kinds of notices that `notices` names, and no others. */
    uint32_t notices; /* 1u << STRATA_NOTICE_* */
    void (*notify)(strata_layer_t *self, strata_notice_t *notice, strata_call_t *call);
    /* As release, until at most `keep` idle bytes are left. */
    uint64_t (*trim)(strata_layer_t *self, uint64_t keep, strata_call_t *call);
    /* Of a cache: shows every block, live or free, chunk by chunk, in the order of addresses within a chunk. */
    void (*walk)(strata_layer_t *self, strata_walk_fn block, void *context);
    /* Of a cache: the chunk in which a block lies; NULL: none. */
    const strata_record_t *(*chunk_of)(strata_layer_t *self, const strata_record_t *block);
    /* Bytes that the layer holds and nobody uses. */
    uint64_t (*idle_bytes)(strata_layer_t *self);
    /* Checks everything that must hold of the instance: E_CORRUPT, with what is wrong. No call is under way in it. */
    strata_status_t (*validate)(strata_layer_t *self);
    /* What the option rows cannot check: whether the options fit one another and the place. E_STRATEGY, with what is wrong and
     * what to write instead; set *option to the name of the option that is to blame. There is no instance yet, and no lock is
     * held. */
    strata_status_t (*check)(const void *options, strata_place_kind_t place, const char **option);
    /* Of a cache: the block, live or free, in which an address lies; NULL: none. Without it, walk is used. */
    const strata_record_t *(*find)(strata_layer_t *self, uint64_t address);
    /* Names each stream for which a free still waits, free by free. */
    void (*waits)(strata_layer_t *self, strata_wait_fn wait, void *context);
    /* The largest alignment that the layer serves with these options, if the layers below serve `below`; UINT64_MAX: any.
     * *wanted is what it needs of them itself, at first the place's: the builder refuses a stack that serves less. NULL:
     * decorators and routers serve `below`, sources and caches up to 256. There is no instance, and no lock is held. */
    uint64_t (*alignment)(const void *options, strata_place_kind_t place, uint64_t below, uint64_t *wanted);
    /* Of a layer that knows borrows and does not keep them in record->borrows: whether a live record has one. */
    bool (*is_borrowed)(const strata_layer_t *self, const strata_record_t *record);
    /* Of a cache: what keeps a free block from requests of `size` bytes, STRATA_REACH_*; with STREAM, *stream is whose it is.
     * NULL: nothing does, apart from whose stack it is. */
    uint32_t (*reach)(strata_layer_t *self, const strata_record_t *block, uint64_t size, strata_stream_t *stream);
    const struct strata_direct *direct; /* for layers of the tree; NULL elsewhere: the way of hit and quick_free (stack/direct.h) */
    /* Of a source: the driver's pool that it serves from; what lies idle there is nobody else's. NULL: none. No lock is held. */
    void *(*driver_pool)(strata_layer_t *self);
    /* A cache serves as in hit, but at this ptr and size; `ref` means nothing. NULL: something is there. */
    strata_record_t *(*take_at)(strata_layer_t *self, const strata_block_t *at, size_t requested, const strata_stack_t *stack);
    const struct strata_handles *handles; /* for sources of the tree that serve physical handles; NULL elsewhere */
} strata_layer_type_t;

/* The head of every instance. The builder fills it; it does not change. */
struct strata_layer {
    const strata_layer_type_t *type;
    strata_stack_t *stack; /* whose lock guards the instance, and whose slab has its records */
    strata_domain_t *domain;
    const void *options; /* the struct that the options rows filled */
    strata_layer_t **below; /* `below_count` layers: none below a source, several below a router */
    uint32_t below_count;
    uint16_t attention; /* of an `idle` layer: its bit in the attention of records; 0: it is always called */
    uint8_t number; /* in routes */
    uint64_t serial; /* no other instance of the process ever has it */
    strata_record_t *records; /* those of the stack, by slot. They never move */
};

/* A record by its slot, and back. Slot 0 is no block: links use it for "none". It may be written to; reading it means nothing. */
static inline strata_record_t *strata_record_at(const strata_layer_t *self, uint32_t slot) { return &self->records[slot]; }
static inline uint32_t strata_record_slot(const strata_layer_t *self, const strata_record_t *record) {
    return (uint32_t)(record - self->records);
}

/* ---- operations that do nothing; and the free of a layer that has only to pass it on: strata_below_free() ---------------- */
STRATA_API strata_status_t strata_layer_create_nothing(strata_layer_t *self);
STRATA_API void strata_layer_destroy_nothing(strata_layer_t *self);
/* (not checked) */
STRATA_API void strata_layer_free_below(strata_layer_t *self, strata_record_t *record, strata_call_t *call);

/* ---- calling the layers below ------------------------------------------------------------------------------------------- */
/* A router asks one of self->below[]. The lock may be opened during the call. *record is set on success alone (not checked). */
STRATA_API strata_status_t strata_layer_allocate(strata_layer_t *layer, const strata_request_t *request, strata_record_t **record);
/* Of a decorator: asks the layer below, likewise. */
static inline strata_status_t strata_below_allocate(strata_layer_t *self, const strata_request_t *request,
                                                    strata_record_t **record) {
    return strata_layer_allocate(self->below[0], request, record);
}
/* Gives a record that came from below back to where it came from: in free, and in an allocate that fails after the layer below
 * has served. The record is gone then. The lock may be opened during the call (not checked). */
STRATA_API void strata_below_free(strata_record_t *record, strata_call_t *call);
/* For a record_stream or erase_stream that only looks on: passes the call on to the next layer below that knows borrows.
 * E_UNSUPPORTED: there is none. */
STRATA_API strata_status_t strata_below_record_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                                      strata_call_t *call);
STRATA_API strata_status_t strata_below_erase_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                                     strata_call_t *call);

/* Of a cache: a chunk from the layer below, and its way back. `size` takes the place of the request's; everything else is as in
 * the request. No lock may be held: strata_call_unlock() first. The chunk is the cache's until it gives it back. */
STRATA_API strata_status_t strata_chunk_allocate(strata_layer_t *self, uint64_t size, const strata_request_t *request,
                                                 strata_record_t **chunk);
STRATA_API void strata_chunk_free(strata_record_t *chunk);

/* Whether whatever stands below gives all of these traits (STRATA_TRAIT_*), itself or by passing them on. */
STRATA_API bool strata_below_gives(const strata_layer_t *self, uint32_t traits);

/* A cache calls this if its own steps found no memory for the request. If no other layer keeps any, only a `retry` looks again. */
STRATA_API void strata_layer_has_reclaimed(const strata_layer_t *self, const strata_request_t *request);

/* ---- locks ---- */
/* The locks that strata_call_unlock() has opened. */
typedef struct strata_opened {
    strata_stack_t *held[2];
} strata_opened_t;

/* Open all locks of the call, and take the same ones again (not checked). */
STRATA_API strata_opened_t strata_call_unlock(strata_call_t *call);
STRATA_API void strata_call_lock(strata_call_t *call, strata_opened_t opened);

/* ---- records of sources; under the lock of the layer's stack ---- */
/* A live record for a request, of memory that the source has got. NULL: the stack has as many records as it may have; E_LIMIT
 * is set, and allocate returns it. And its end; both (not checked). */
STRATA_API strata_record_t *strata_record_new(strata_layer_t *self, const strata_request_t *request, uint64_t ptr, uint64_t size);
STRATA_API void strata_record_delete(strata_layer_t *self, strata_record_t *record);
/* For the destroy of a source: shows every record that somebody still has. Give its memory back, and delete no record. */
STRATA_API void strata_layer_each_left(strata_layer_t *self, strata_walk_fn record, void *context);

/* ---- decorators that change the address or the size; under the lock of the layer's stack ---- */
/* The record that goes up in place of `inner`, which came from strata_below_allocate() for this request: `size` bytes at `ptr`,
 * inside those of `inner`. Of the new record `next`, `prev` and `pool` are the layer's own. Borrows of it reach the layers that
 * took part in `inner`. NULL: as strata_record_new(); `inner` is as it was, and the layer frees it and fails (not checked). */
STRATA_API strata_record_t *strata_record_wrap(strata_layer_t *self, const strata_request_t *request, strata_record_t *inner,
                                               uint64_t ptr, uint64_t size);
/* Returns the record inside one that strata_record_wrap() made. Only the layer that made it may ask (not checked). */
STRATA_API strata_record_t *strata_record_held(const strata_record_t *record);
/* Ends such a record and returns what it held, which goes to strata_below_free(): in the layer's free, or later if the layer
 * keeps it for a while. A layer that wraps only some requests knows its own records in free by record->route == 0 (not checked). */
STRATA_API strata_record_t *strata_record_unwrap(strata_layer_t *self, strata_record_t *record);
/* Whether other streams have borrowed what such a record holds: they may use the bytes until a layer below has waited. */
STRATA_API bool strata_record_borrowed_below(const strata_record_t *record);

/* ---- `idle` layers; under the lock of the layer's stack ---- */
/* Whether allocate is to be called from now on. Free is called for the records in whose `attention` the layer sets its bit. */
STRATA_API void strata_layer_wants_allocate(strata_layer_t *self, bool wants);

/* ---- caches: chunks cut into blocks, for one stream; under the lock of the layer's stack ---- */
/* A cache gets chunks from the layer below and serves blocks of them. What every such cache does is done here: chunks come (one
 * thread asks, others that miss wait for it), are cut into blocks, merged again and given back; the figures (cache_hits,
 * growths, chunks, reserved bytes) are kept; blocks are walked and found. The author keeps the index of the free blocks: where
 * they are put, and which one serves a request (examples/segregated_fit.c).
 *
 * A free block is a record in state FREE. `ptr` and `size` say where it lies, `prev` and `next` are the slots of its neighbours
 * in the chunk. Its index may use `bin_prev`, `bin_next`, `pool`, `mark_high` and `mark_low` as it likes, and nothing else. */

/* The author's index of free blocks. Every operation runs under the lock, changes nothing but the index, and opens no lock. */
typedef struct strata_chunked_policy {
    size_t struct_size;
    /* Addresses and sizes of blocks are multiples of it: a power of two, at least the place's alignment. For more than 256 the
     * type's `alignment` must want as much of the layers below. */
    uint64_t unit;
    bool joins_chunks; /* chunks that touch become one, where the layers below allow it (STRATA_TRAIT_CONTIGUOUS) */
    /* A free block comes into the index, or leaves it. Its size does not change while it is there. */
    void (*insert)(strata_layer_t *self, strata_record_t *block);
    void (*remove)(strata_layer_t *self, strata_record_t *block);
    /* A free block of at least `size` bytes, a multiple of the unit; it stays in the index. NULL: none; the cache grows. */
    strata_record_t *(*find)(strata_layer_t *self, uint64_t size);
    /* Bytes to ask from below where nothing serves `size` bytes. NULL, or less than `size`: `size`. */
    uint64_t (*growth)(strata_layer_t *self, uint64_t size);
    /* E_CORRUPT, with what is wrong, if the index is not of so many blocks and bytes. NULL: nothing is checked. */
    strata_status_t (*validate)(strata_layer_t *self, uint32_t blocks, uint64_t bytes);
} strata_chunked_policy_t;

/* What the state of such a cache begins with. */
typedef struct strata_chunked {
    strata_layer_t base;
    uint64_t own[64]; /* the mechanism's */
} strata_chunked_t;

/* For the type's create, before anything else: `policy` stays as it is until the layer ends. No lock is held. E_INVALID: an
 * operation is missing or the unit is none; E_HOST_MEMORY. */
STRATA_API strata_status_t strata_chunked_create(strata_layer_t *self, const strata_chunked_policy_t *policy);
/* The operations of the type. An author who wants more of one calls it from an operation of their own. */
STRATA_API void strata_chunked_destroy(strata_layer_t *self);
STRATA_API strata_status_t strata_chunked_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record);
STRATA_API void strata_chunked_free(strata_layer_t *self, strata_record_t *block, strata_call_t *call);
STRATA_API strata_record_t *strata_chunked_hit(strata_layer_t *self, size_t size, const strata_stack_t *stack);
STRATA_API bool strata_chunked_quick_free(strata_layer_t *self, strata_record_t *block);
STRATA_API uint64_t strata_chunked_release(strata_layer_t *self, strata_call_t *call);
STRATA_API uint64_t strata_chunked_trim(strata_layer_t *self, uint64_t keep, strata_call_t *call);
STRATA_API void strata_chunked_walk(strata_layer_t *self, strata_walk_fn block, void *context);
STRATA_API const strata_record_t *strata_chunked_find(strata_layer_t *self, uint64_t address);
STRATA_API const strata_record_t *strata_chunked_chunk_of(strata_layer_t *self, const strata_record_t *block);
STRATA_API uint64_t strata_chunked_idle_bytes(strata_layer_t *self);
STRATA_API strata_record_t *strata_chunked_take_at(strata_layer_t *self, const strata_block_t *at, size_t requested,
                                                   const strata_stack_t *stack);
STRATA_API strata_status_t strata_chunked_validate(strata_layer_t *self);
/* All of them, in the initializer of a type whose state begins with strata_chunked_t. */
#define STRATA_CHUNKED_OPERATIONS                                                                                                  \
    .role = STRATA_CACHE, .scope = STRATA_SCOPE_STREAM,                                                                            \
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM, .guarded = true,               \
    .destroy = strata_chunked_destroy, .allocate = strata_chunked_allocate, .free = strata_chunked_free,                           \
    .hit = strata_chunked_hit, .quick_free = strata_chunked_quick_free, .release = strata_chunked_release,                         \
    .trim = strata_chunked_trim, .walk = strata_chunked_walk, .find = strata_chunked_find, .chunk_of = strata_chunked_chunk_of,    \
    .idle_bytes = strata_chunked_idle_bytes, .validate = strata_chunked_validate, .take_at = strata_chunked_take_at

/* ---- caches that keep their chunks themselves; under the lock of the layer's stack ---- */
/* A free block of the chunk that the cache calls `chunk`, any number but 0; its links are 0. strata_record_delete() ends it.
 * NULL: the stack has as many records as it may have, and E_LIMIT is set. */
STRATA_API strata_record_t *strata_block_new(strata_layer_t *self, uint32_t chunk, uint64_t ptr, uint64_t size);
/* The block is served to a request of `requested` bytes. */
static inline void strata_block_hand_out(strata_record_t *block, uint64_t requested) {
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)(block->size - requested);
    block->borrows = 0;
    block->state = STRATA_RECORD_LIVE;
}
/* Returns what a chunk adds to `reserved_bytes`: its bytes, or 0 if a cache below cut it from a chunk of its own (not checked). */
STRATA_API uint64_t strata_record_reserved(const strata_record_t *record);
/* The figures of the layer's stack. A cache keeps cache_hits, growths, chunks, reserved_bytes and peak_reserved_bytes, by
 * adding to them; the core keeps the others. */
STRATA_API strata_statistics_t *strata_layer_stack_figures(strata_layer_t *self);

/* ---- the device ----------------------------------------------------------------------------------------------------------
 *
 * Functions marked quick may be called under the locks. Before all others, strata_call_unlock(). */

/* Quick. */
STRATA_API strata_place_t strata_layer_place(const strata_layer_t *self);
/* Of a source: memory of the place's kind, aligned at least as the place, from the device and back. It counts as reserved, and
 * E_NO_MEMORY is returned where the place's limit would be exceeded. The request that it is for notes a refusal,
 * for the report; a source that asks on its own account passes an empty one. If the device refuses to take memory back, it still counts
 * and is still the layer's; it must not be served again. */
STRATA_API strata_status_t strata_layer_get_memory(strata_layer_t *self, const strata_request_t *request, size_t size,
                                                   size_t alignment, uint64_t *address);
STRATA_API strata_status_t strata_layer_give_memory(strata_layer_t *self, uint64_t address, size_t size);

/* ---- sources of memory that others made ---- */
/* Called once with what was adopted: when its last holder has freed it and no stream uses it any more, or when the layer ends.
 * No lock is held. It may call any facade but this one. */
typedef void (*strata_deleter_fn)(uint64_t address, size_t size, void *context);
typedef struct strata_adopted {
    uint64_t address;
    size_t size;
    strata_deleter_fn deleter; /* NULL: nobody wants it back */
    void *context;
} strata_adopted_t;

/* For the allocate of a guarded source: memory of the place's kind that did not come from the device, a foreign pointer,
 * becomes a live record. It counts as reserved, within the place's limit, and can be freed by pointer. The lock is opened
 * meanwhile. E_INVALID: it is smaller, or aligned to less, than the request wants; E_NO_MEMORY: the limit would be exceeded;
 * E_LIMIT, E_HOST_MEMORY. After an error the memory is the caller's as before. */
STRATA_API strata_status_t strata_record_adopt(strata_layer_t *self, const strata_request_t *request,
                                               const strata_adopted_t *memory, strata_record_t **record);
/* The free and the destroy of such a source: the deleter gets the memory. free opens the lock meanwhile. */
STRATA_API void strata_layer_free_adopted(strata_layer_t *self, strata_record_t *record, strata_call_t *call);
STRATA_API void strata_layer_destroy_adopted(strata_layer_t *self);

/* ---- streams and contents ---- */
/* E_CAPTURE: the stream is being captured, and what the layer did on it would be a part of the program's graph. Quick. */
STRATA_API strata_status_t strata_layer_refuse_captured(const strata_layer_t *self, strata_stream_t stream);
/* Sets bytes, in the order of the stream. E_CAPTURE: the stream is being captured, and nothing was set. */
STRATA_API strata_status_t strata_layer_fill(strata_layer_t *self, uint64_t address, uint8_t byte, size_t size,
                                             strata_stream_t stream);

/* The stream whose requests a stack serves; NULL: the legacy stream, or any stream in pinned and host places. Quick. */
STRATA_API strata_stream_t strata_stack_stream(const strata_stack_t *stack);
/* The stream that owns what the layer's stack serves, if this thread can name it. False in pinned and host places, for what a
 * forgotten stream left, and for another thread's own default stream. Quick. */
STRATA_API bool strata_layer_owner(const strata_layer_t *self, strata_stream_t *stream);
/* The host waits until the work submitted to a stream is done, or where that fails until all work of the device is. False:
 * neither could be had, and the memory that the stream used must not be served again. */
STRATA_API bool strata_layer_wait_for(strata_layer_t *self, strata_stream_t stream);
/* The same bytes as the host sees them; NULL: it cannot see them (a GPU's memory, a simulated device without contents). Quick. */
STRATA_API void *strata_layer_host_view(strata_layer_t *self, uint64_t address, size_t size);

typedef void *strata_event_t;
/* Takes an event from the place's pool. It is the layer's until it gives it back. */
STRATA_API strata_status_t strata_layer_take_event(strata_layer_t *self, strata_event_t *event);
/* Quick, like the functions that follow. */
STRATA_API void strata_layer_give_event(strata_layer_t *self, strata_event_t event);
/* The event stands for all work submitted to the stream so far. E_UNSUPPORTED: a default stream in a pinned or host place while
 * several devices are open, each of which has one of that name. */
STRATA_API strata_status_t strata_layer_record_event(strata_layer_t *self, strata_event_t event, strata_stream_t stream);
/* STRATA_OK: the work is done. E_NOT_READY: not yet. */
STRATA_API strata_status_t strata_layer_query_event(strata_layer_t *self, strata_event_t event);
/* Work that the stream is given from now on waits for the event, on the device. */
STRATA_API strata_status_t strata_layer_await_event(strata_layer_t *self, strata_stream_t stream, strata_event_t event);

/* ---- how a layer becomes known ------------------------------------------------------------------------------------------- */
/* Strategies that are read from now on may name the layer. Any thread. The type is copied; the strings, rows and functions that
 * it points to must stay until the process ends. If it fails, nothing is registered: E_INVALID, the name is taken or is none, a
 * mandatory operation is missing, or a row does not fit its struct; E_UNSUPPORTED, the struct is longer than this Strata's and
 * its tail is not zero; E_LIMIT, 128 layers are registered already. */
STRATA_API strata_status_t strata_register_layer(const strata_layer_type_t *type);

/* The layers of a shared object, once in it: STRATA_LAYERS(&mine_type, &other_type); It is loaded where a strategy names it
 * (`load: [./libmine.so]`) and the reader allows code (STRATA_OPEN_ALLOW_CODE, strata --allow-code), and stays loaded until the
 * process ends. Link it with libstrata.so, or with nothing if the program that loads it has the library in itself. */
#if defined(__cplusplus)
#define STRATA_LAYERS_TABLE extern "C" STRATA_API
#else
#define STRATA_LAYERS_TABLE extern STRATA_API
#endif
#define STRATA_LAYERS(...)                                                                                                         \
    STRATA_LAYERS_TABLE const strata_layer_type_t *const strata_layers[];                                                          \
    const strata_layer_type_t *const strata_layers[] = {__VA_ARGS__, NULL}

#ifdef __cplusplus
}
#endif
#endif
