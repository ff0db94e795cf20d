/* How to write a layer. A layer outside Strata's tree needs no other header, and the layers in the tree use the same contract.
 *
 * WHAT A LAYER IS. An allocator of Strata is a stack of layers:
 *
 *     decorator   changes how the one layer below it is used: it counts, limits, fills or waits
 *     router      has several stacks below it and chooses one for each request
 *     cache       gets chunks from the layer below and serves blocks of them
 *     source      gets memory from a device, at the bottom
 *
 *     request |     decorator     ^ record {ptr, size, route}          free takes the route in reverse
 *             v       cache       |        chunk: a second record, which the cache keeps
 *                     source
 *
 * A request goes down the stack until a layer serves it. A record is returned: address, size and route. The route names the
 * layers that took part. A free takes the same route in reverse. A route ends at a cache: the record that a cache returns is a
 * block of its own. The chunk of that block is another record, which the cache got from below and keeps.
 *
 * HOW TO BEGIN. A decorator is four functions and a struct (examples/my_layer.c). A cache is a policy for free blocks on top of
 * strata_chunked_*() (examples/segregated_fit.c). End the file with a STRATA_LAYERS() line, build a shared object, check it:
 *
 *     cc -O2 -shared -fPIC mine.c $(pkg-config --cflags strata) -o libmine.so
 *     strata conform ./libmine.so              docs/conform.md
 *     strata torture --layers ./libmine.so     docs/testing.md
 *
 * A strategy names the object and the layer: `load: [./libmine.so]` and `stack: [stream_safe, mine, system]`.
 *
 * INSTANCES. The builder makes an instance of a layer for each stream, thread or device, depending on its scope. An instance is a
 * struct of yours that begins with strata_layer_t. It belongs to a stack, and its records are in that stack's slab.
 *
 * LOCKS. Each stack has one lock. If the type is `guarded`, every operation runs with that lock held unless its comment states
 * otherwise. The instance needs no lock of its own. Two rules follow:
 *     - Never block under the lock. Device calls that are not marked quick, calls into the layer below a cache, and your own
 *       waits are made between strata_call_unlock() and strata_call_lock().
 *     - Every call into the layers below may open the lock. Leave nothing half done before such a call, and read your state
 *       again after it.
 * A type that is not guarded does its own locking. It still must not block while a lock of the call is held.
 *
 * ERRORS. A function that fails returns the reason, made with strata_fail() (strata/status.h), and leaves everything as it was. A
 * request that fails for lack of memory returns STRATA_E_NO_MEMORY, however large it is. The core then looks for memory and asks
 * the stack again, as the strategy requires. A layer does nothing for that. `free` cannot fail.
 *
 * UNITS. Sizes are in bytes, times in nanoseconds, and addresses are uint64_t.
 * NULL. No pointer may be NULL unless a comment allows it. Functions of the hot path do not check their pointers (not checked).
 * VERSIONS. Structs grow at their end only, and begin with their size where you fill them. Requests that you change are copies
 * with struct_size = sizeof(strata_request_t). The core makes records and calls. */
#ifndef STRATA_LAYER_H
#define STRATA_LAYER_H

#include "strata/notice.h"
#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_layer strata_layer_t; /* an instance of a layer */
typedef struct strata_stack strata_stack_t; /* the instances that serve one (place, stream), or that several stacks share */
typedef struct strata_domain strata_domain_t; /* all stacks over one physical memory */
typedef struct strata_record strata_record_t; /* one block, live or free */
typedef struct strata_outcome strata_outcome_t; /* the result of a request; the core's */

/* ---- requests: what a call is for -------------------------------------------------------------------------------------- */
typedef enum strata_purpose {
    STRATA_FOR_PROGRAM, /* for the program itself */
    STRATA_FOR_CHUNK, /* for a cache that grows while other threads wait for it: call no callback, and do not wait for memory */
    /* record_stream for a stream that was given another stream's block. Its event is taken at the free, and erase_stream does not
     * end the use. */
    STRATA_FOR_FIRST_USE
} strata_purpose_t;

/* The call under way: the stack that it serves, its requester, and the locks that it holds. The core makes it, and it ends with
 * the call. Pass it on, and keep no pointer to it. */
typedef struct strata_call {
    strata_stack_t *stack; /* the stack that numbers the layers in the record's route */
    strata_stack_t *held[2]; /* stacks with locks held now: [0] of a stream or thread, [1] a shared one; NULL if none */
    strata_stream_t stream; /* that of the request: not the stack's own stream if the program has forgotten that one */
    strata_purpose_t purpose;
} strata_call_t;

/* A flag of a request beside those of the program (STRATA_NO_RETRY, STRATA_NO_GROW, STRATA_ZERO). */
enum {
    STRATA_SMALL_GROWTH = 1u << 16 /* memory is short: a cache that must grow requests only these bytes, not a whole chunk */
};

/* The memory requested. It is read only: to request something else, pass on a changed copy. */
typedef struct strata_request {
    size_t struct_size;
    size_t size; /* bytes, never 0 */
    size_t alignment; /* a power of two. It exceeds the place's only if this layer's `alignment` allows it */
    strata_stream_t stream;
    uint64_t pool; /* a named pool, or 0 */
    uint64_t freed_before; /* serve only memory freed up to this count (strata_set_safe_frontier()); 0 allows all */
    const char *tag; /* may be NULL */
    strata_call_t *call;
    uint32_t flags; /* STRATA_NO_GROW: serve from free memory only; STRATA_NO_RETRY: do not wait */
    uint64_t at; /* for a cache above a source of handles: the address at which it needs the memory; 0 allows any */
    const char *operator_name; /* strata_annotate(), or NULL. It lives as long as the facade */
    strata_outcome_t *outcome; /* shared by all copies of the request; the core's */
} strata_request_t;

/* ---- records ----------------------------------------------------------------------------------------------------------- */
typedef enum strata_record_state {
    STRATA_RECORD_UNUSED = 0, /* the slot is free */
    STRATA_RECORD_FREE = 1, /* a free block of a cache */
    STRATA_RECORD_LIVE = 2, /* the program has it */
    STRATA_RECORD_DEFERRED = 3, /* being returned: freed by the program, perhaps waiting for other streams */
    STRATA_RECORD_CHUNK = 4 /* held by a layer above: a cache, or a decorator that made a record of its own */
} strata_record_state_t;

/* The last generation of a slot. A cache that gets a block with it back must not hand the block out again. */
enum { STRATA_GENERATION_LAST = (1u << 28) - 1 };

/* One block, live or free: 64 bytes in the slab of its maker's stack, guarded by that stack's lock. The holder of a live block
 * may read ptr, size and slack without the lock. A layer writes only the fields that the comments give it. */
struct strata_record {
    uint64_t ptr;
    uint64_t size; /* granted bytes */
    union {
        uint64_t route; /* held: numbers of the layers that took part, the top in the low bits: the core pushes and pops them */
        uint64_t free_word; /* FREE: the cache's own */
    };
    uint32_t generation; /* grows at every free, so that old refs are recognized as stale; the core's */
    uint16_t stack; /* number of the stack that numbers the layers in `route` */
    uint16_t attention; /* bits of the `idle` layers that must be called at this record's free */
    uint32_t prev, next; /* a block of a cache: slots of its neighbors in the chunk, or 0 */
    union {
        uint32_t bin_prev; /* FREE: links of the cache's index, this and bin_next */
        uint32_t wrapped_slot; /* made by strata_record_wrap(): the slot of the record inside; the core's */
    };
    union {
        uint32_t bin_next;
        uint32_t wrapped_home; /* and the stack of that slot */
        uint32_t user; /* for a cache or source that serves several streams: its own number for the stream that has the block */
        uint32_t own_uses; /* for a cache that records borrows where a layer above also does: its list */
    };
    uint32_t chunk; /* the cache's own number of the chunk, or 0 if this is not a block of a cache */
    union {
        uint32_t slack; /* held: granted bytes less requested bytes */
        uint32_t mark_high; /* FREE: the cache's own, this and mark_low */
    };
    uint8_t state; /* strata_record_state_t */
    uint8_t pool; /* the layer's own */
    uint16_t home; /* number of the stack that has this slab */
    union {
        uint32_t borrows; /* held: the list of the first layer that records borrows; 0 if empty */
        uint32_t mark_low;
    };
};

static inline uint64_t strata_record_requested(const strata_record_t *record) { return record->size - record->slack; }

/* ---- options and metrics of a layer -------------------------------------------------------------------------------------- */
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

/* One option. These rows define the reading of strategy files and of settings, `strata layers`, and the bounds that are checked.
 *
 * A router that has a value for each branch has options that end in the number of the branch: `most_1`, `most_2`, up to `most_8`.
 * A strategy writes `routes: [{most: 4, stack: [...]}, {most: 9, stack: [...]}, {stack: [...]}]`. The last branch takes the rest
 * and has no value. A router without such options is written `stacks: [[...], [...]]`. */
typedef struct strata_option_row {
    const char *name;
    strata_option_kind_t kind;
    uint32_t offset; /* in the options struct */
    const char *default_text; /* as in a strategy file */
    uint64_t min, max; /* for COUNT, SIZE, TIME; for FRACTION in millionths; max 0 is unbounded */
    const char *choices; /* CHOICE: "address|any" */
    const char *doc;
} strata_option_row_t;

/* One metric: a uint64_t at `offset` in the instance. It is read under the lock, after the notice FIGURES. */
typedef struct strata_stat_row {
    const char *name;
    const char *unit;
    uint32_t offset;
    const char *doc;
} strata_stat_row_t;

/* ---- the type of a layer ----------------------------------------------------------------------------------------------- */
typedef enum strata_role { STRATA_SOURCE, STRATA_CACHE, STRATA_DECORATOR, STRATA_ROUTER } strata_role_t;
/* The unit that has an instance of its own, within one facade: each stream, each thread, or each device. NONE: the layer keeps no
 * state, so it does not matter. THREAD is for caches. Every thread has stacks of its own above such a cache. */
typedef enum strata_scope { STRATA_SCOPE_NONE, STRATA_SCOPE_STREAM, STRATA_SCOPE_THREAD, STRATA_SCOPE_DEVICE } strata_scope_t;

/* The requirements of a layer on the layers below, and its promises to those above. The builder refuses a stack that does not
 * meet a requirement, and names both layers. X(name, bit, meaning) */
#define STRATA_TRAIT_MAP(X)                                                                                                        \
    X(STREAM_ORDERED, 0, "the same stream may reuse freed memory without a wait")                                                  \
    X(CROSS_STREAM_SAFE, 1, "reuse waits for borrowers")                                                                           \
    X(OWNER_THREAD_ONLY, 2, "only the allocating thread may free")                                                                 \
    X(SUB_ALLOCATES, 3, "splits chunks into blocks")                                                                               \
    X(WAITS, 4, "may wait, so no layer with a lock may be above")                                                                  \
    X(EXACT_SIZE, 5, "rounds requests to the alignment at most")                                                                   \
    X(ZEROED, 6, "memory is zeroed")                                                                                               \
    X(HANDLE_SOURCE, 7, "serves mappable physical handles")                                                                        \
    X(SINGLE_STREAM, 8, "ignores streams; each stream has its own instance, except with `streams: ignored`")                       \
    X(ANY_MEMORY, 9, "the stacks below may serve memory of another kind than the place's")                                         \
    X(CONTIGUOUS, 10, "chunks with adjacent addresses may be used as one")                                                         \
    X(TELLS_OWNERS, 11, "depends on the owner of a request, so it must not be below a cache, where owners change")

enum {
#define STRATA_TRAIT_ENUM(name, bit, meaning) STRATA_TRAIT_##name = 1u << (bit),
    STRATA_TRAIT_MAP(STRATA_TRAIT_ENUM)
#undef STRATA_TRAIT_ENUM
};

/* The result of poll(). Times are on the device's clock. */
typedef struct strata_pending {
    uint64_t freed_bytes; /* finished by this poll */
    uint64_t pending_bytes; /* still waiting for other streams */
    uint64_t ready_at; /* when the earliest of them can be finished; UINT64_MAX if unknown */
    uint64_t deadline; /* set by the caller; 0 if there is none */
    uint64_t late_bytes; /* pending bytes that the device predicts to be finished only after the deadline */
} strata_pending_t;

/* A free of `bytes` bytes waits for a stream. `destroyed` is true if the stream has been destroyed. */
typedef void (*strata_wait_fn)(strata_stream_t stream, bool destroyed, uint64_t bytes, void *context);
typedef void (*strata_walk_fn)(const strata_record_t *record, void *context);
/* Reasons that keep a free block from a request, for reports. X(name, bit, meaning) */
#define STRATA_UNAVAILABLE_MAP(X)                                                                                                  \
    X(STREAM, 0, "it serves only one stream")                                                                                      \
    X(CAPTURED, 1, "it is kept while a stream is being captured")                                                                  \
    X(COUNTED, 2, "freed with a count that no frontier has passed")                                                                \
    X(SIZES, 3, "it serves requests of other sizes")                                                                               \
    X(UNSPLIT, 4, "it is too large to be split for the request")

enum {
#define STRATA_UNAVAILABLE_ENUM(name, bit, meaning) STRATA_UNAVAILABLE_##name = 1u << (bit),
    STRATA_UNAVAILABLE_MAP(STRATA_UNAVAILABLE_ENUM)
#undef STRATA_UNAVAILABLE_ENUM
};

typedef struct strata_layer_type {
    size_t struct_size; /* sizeof(strata_layer_type_t) */
    const char *name; /* as in a strategy file: letters, digits and _ */
    const char *doc; /* one line, for `strata layers` */
    strata_role_t role;
    strata_scope_t scope;
    uint32_t needs, gives; /* STRATA_TRAIT_* */
    uint32_t passes; /* traits of the layers below that remain true above this one; ~0u is all */
    bool guarded; /* operations run under the lock of the instance's stack */
    /* The core may skip allocate while strata_layer_enable_allocate() is off. It may skip free for records in which the layer's
     * attention bit (strata_layer_t.attention) is clear. A skipped operation must do nothing but call the layer below. */
    bool idle;
    size_t state_size; /* bytes of an instance, which begins with strata_layer_t and is zero before create */
    size_t options_size; /* bytes of the struct that the options rows fill */
    const strata_option_row_t *options; /* ended by a row without a name; may be NULL */
    const strata_stat_row_t *stats; /* ended in the same way; may be NULL */

    /* Mandatory. No lock is held in create and destroy. destroy gives all memory back, including live memory. It is called only
     * after a create that succeeded. */
    strata_status_t (*create)(strata_layer_t *self);
    void (*destroy)(strata_layer_t *self);
    /* Serves a request and sets *record, or fails and leaves it unchanged. A decorator calls strata_below_allocate(), a router
     * strata_layer_allocate(), a source strata_record_new(). */
    strata_status_t (*allocate)(strata_layer_t *self, const strata_request_t *request, strata_record_t **record);
    /* Takes a record back. It cannot fail. Decorators and routers call strata_below_free(). */
    void (*free)(strata_layer_t *self, strata_record_t *record, strata_call_t *call);

    /* Optional. The core calls each layer of a stack that has the operation, and skips a layer that has NULL. */
    /* A cache serves a request of `stack` from its free memory, at the place's alignment. It makes no device call and opens no
     * lock. If it returns NULL, allocate is called. The core writes the record's route and stack. An instance that several stacks
     * share gets the stream from strata_stack_stream(). */
    strata_record_t *(*hit)(strata_layer_t *self, size_t size, const strata_stack_t *stack);
    /* A cache takes back a record in which no other layer took part, as free does. Returns false, and changes nothing, if the
     * lock would have to be opened. Then free is called. */
    bool (*quick_free)(strata_layer_t *self, strata_record_t *record);
    /* Gives back all idle memory and returns the bytes. The lock is opened for the calls below. */
    uint64_t (*release)(strata_layer_t *self, strata_call_t *call);
    /* Finishes the frees that no longer wait for a stream, and adds to *pending. */
    void (*poll)(strata_layer_t *self, strata_call_t *call, strata_pending_t *pending);
    /* Another stream begins, or ends, a use of a live block. The core calls the topmost layer of the record's route that has
     * record_stream. If no layer gives CROSS_STREAM_SAFE, the builder adds a stream_safe. Its record_stream notes the borrow and
     * returns E_UNSUPPORTED, because the free waits on the host for that stream. */
    strata_status_t (*record_stream)(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
    strata_status_t (*erase_stream)(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
    /* Called only for the kinds of notices in `notices`. */
    uint32_t notices; /* 1u << STRATA_NOTICE_* */
    void (*notify)(strata_layer_t *self, strata_notice_t *notice, strata_call_t *call);
    /* Like release, until at most `keep` idle bytes are left. */
    uint64_t (*trim)(strata_layer_t *self, uint64_t keep, strata_call_t *call);
    /* A cache visits every block, live or free, chunk by chunk, in the order of addresses within a chunk. */
    void (*walk)(strata_layer_t *self, strata_walk_fn block, void *context);
    /* A cache returns the chunk of a block, or NULL if it has none. */
    const strata_record_t *(*chunk_of)(strata_layer_t *self, const strata_record_t *block);
    /* Returns the bytes that the layer holds and that no block uses. */
    uint64_t (*idle_bytes)(strata_layer_t *self);
    /* Checks every invariant of the instance. Returns E_CORRUPT with the fault in the text. No call is under way in it. */
    strata_status_t (*validate)(strata_layer_t *self);
    /* Checks the options beyond the option rows: they must fit one another and the place. Returns E_STRATEGY with the fault and
     * the remedy, and sets *option to the name of the option at fault. There is no instance yet, and no lock is held. */
    strata_status_t (*check)(const void *options, strata_place_kind_t place, const char **option);
    /* A cache returns the block, live or free, that contains an address, or NULL. Without this operation walk is used. */
    const strata_record_t *(*find)(strata_layer_t *self, uint64_t address);
    /* Calls `wait` for each free that still waits for a stream. */
    void (*waits)(strata_layer_t *self, strata_wait_fn wait, void *context);
    /* Returns the largest alignment that the layer serves with these options, if the layers below serve `below`. UINT64_MAX is
     * any. `*wanted`, at first the place's, is the alignment that the layer needs below it. The builder refuses a stack that
     * serves less. If NULL, decorators and routers serve `below`, and sources and caches up to 256. There is no instance, and no
     * lock is held. */
    uint64_t (*alignment)(const void *options, strata_place_kind_t place, uint64_t below, uint64_t *wanted);
    /* For a layer that records borrows, but not in record->borrows. Returns true if a live record has one. */
    bool (*is_borrowed)(const strata_layer_t *self, const strata_record_t *record);
    /* A cache returns STRATA_UNAVAILABLE_*, the reasons that keep a free block from requests of `size` bytes. With STREAM it sets
     * *stream to the stream that owns it. If the operation is NULL, only the stack that owns the block matters. */
    uint32_t (*unavailable)(strata_layer_t *self, const strata_record_t *block, uint64_t size, strata_stream_t *stream);
    const struct strata_direct *direct; /* in the tree, else NULL: fast path of hit and quick_free (allocation/stack/direct.h) */
    /* A source returns the driver's pool that it serves from, or NULL. Idle memory there has no other user. No lock is held. */
    void *(*driver_pool)(strata_layer_t *self);
    /* A cache serves as in hit, but at this ptr and size. `ref` has no meaning. Returns NULL if the memory is not free. */
    strata_record_t *(*hit_at)(strata_layer_t *self, const strata_block_t *at, size_t requested, const strata_stack_t *stack);
    const struct strata_handles *handles; /* for sources in the tree that serve physical handles; NULL elsewhere */
} strata_layer_type_t;

/* The head of every instance. The builder fills it, and it does not change. */
struct strata_layer {
    const strata_layer_type_t *type;
    strata_stack_t *stack; /* the stack that guards the instance by its lock and has its records in its slab */
    strata_domain_t *domain;
    const void *options; /* the struct that the options rows filled */
    strata_layer_t **below; /* `below_count` layers: none below a source, several below a router */
    uint32_t below_count;
    uint16_t attention; /* of an `idle` layer: its bit in the attention of records, or 0 if it is always called */
    uint8_t number; /* its number in routes */
    uint64_t serial; /* unique in the process, never reused */
    strata_record_t *records; /* those of the stack, by slot. They never move */
};

/* A record by its slot, and back. Links use slot 0 for "none". That slot may be written to, but its contents have no meaning. */
static inline strata_record_t *strata_record_at(const strata_layer_t *self, uint32_t slot) { return &self->records[slot]; }
static inline uint32_t strata_record_slot(const strata_layer_t *self, const strata_record_t *record) {
    return (uint32_t)(record - self->records);
}

/* ---- operations that do nothing, and a free that only passes the record on by strata_below_free() ------------------------ */
STRATA_API strata_status_t strata_layer_create_nothing(strata_layer_t *self);
STRATA_API void strata_layer_destroy_nothing(strata_layer_t *self);
/* (not checked) */
STRATA_API void strata_layer_free_below(strata_layer_t *self, strata_record_t *record, strata_call_t *call);

/* ---- calling the layers below ------------------------------------------------------------------------------------------- */
/* A router calls one of self->below[]. The lock may be opened during the call. *record is set only on success (not checked). */
STRATA_API strata_status_t strata_layer_allocate(strata_layer_t *layer, const strata_request_t *request, strata_record_t **record);
/* A decorator calls the layer below in the same way. */
static inline strata_status_t strata_below_allocate(strata_layer_t *self, const strata_request_t *request,
                                                    strata_record_t **record) {
    return strata_layer_allocate(self->below[0], request, record);
}
/* Returns a record to the layer below that served it. Call it in free, and in an allocate that fails after the layer below has
 * served. The record ends then. The lock may be opened during the call (not checked). */
STRATA_API void strata_below_free(strata_record_t *record, strata_call_t *call);
/* Pass a call on to the next layer below that handles borrows, for a record_stream or erase_stream that only observes. Return
 * E_UNSUPPORTED if the borrow is noted and the free waits on the host. */
STRATA_API strata_status_t strata_below_record_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                                      strata_call_t *call);
STRATA_API strata_status_t strata_below_erase_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                                     strata_call_t *call);

/* A cache gets a chunk from the layer below, and gives it back. `size` replaces the request's. Everything else is as in the
 * request. No lock may be held, so call strata_call_unlock() first. The cache owns the chunk until it gives it back. */
STRATA_API strata_status_t strata_chunk_allocate(strata_layer_t *self, uint64_t size, const strata_request_t *request,
                                                 strata_record_t **chunk);
STRATA_API void strata_chunk_free(strata_record_t *chunk);

/* Returns true if the layers below give all of these traits (STRATA_TRAIT_*), themselves or by passing them on. */
STRATA_API bool strata_below_gives(const strata_layer_t *self, uint32_t traits);

/* A cache calls this if its own steps found no memory for the request. If no other layer keeps any, only a `retry` searches
 * again. */
STRATA_API void strata_layer_note_reclaimed(const strata_layer_t *self, const strata_request_t *request);

/* ---- locks ---- */
/* The locks that strata_call_unlock() has opened. */
typedef struct strata_unlocked {
    strata_stack_t *held[2];
} strata_unlocked_t;

/* Open all locks of the call, and take the same locks again (not checked). */
STRATA_API strata_unlocked_t strata_call_unlock(strata_call_t *call);
STRATA_API void strata_call_lock(strata_call_t *call, strata_unlocked_t opened);

/* ---- records of sources; under the lock of the layer's stack ---- */
/* Make a live record for a request, of memory that the source has got, and end it. The first returns NULL and sets E_LIMIT, which
 * allocate returns, if the stack has its maximum of records (not checked). */
STRATA_API strata_record_t *strata_record_new(strata_layer_t *self, const strata_request_t *request, uint64_t ptr, uint64_t size);
STRATA_API void strata_record_delete(strata_layer_t *self, strata_record_t *record);
/* For the destroy of a source: visits every record still in use. Give its memory back, and delete no record. */
STRATA_API void strata_layer_each_remaining(strata_layer_t *self, strata_walk_fn record, void *context);

/* ---- decorators that change the address or the size; under the lock of the layer's stack ---- */
/* Returns the record that goes up in place of `inner`, which came from strata_below_allocate() for this request. It has `size`
 * bytes at `ptr`, inside those of `inner`. The layer may use `next`, `prev` and `pool` of the new record. Borrows of it reach the
 * layers that took part in `inner`. Returns NULL as strata_record_new() does. In that case `inner` is unchanged, and the layer
 * frees it and fails (not checked). */
STRATA_API strata_record_t *strata_record_wrap(strata_layer_t *self, const strata_request_t *request, strata_record_t *inner,
                                               uint64_t ptr, uint64_t size);
/* Returns the record inside one that strata_record_wrap() made. Only the layer that made it may call this (not checked). */
STRATA_API strata_record_t *strata_record_wrapped(const strata_record_t *record);
/* Ends such a record and returns the record inside. Pass that one to strata_below_free(), in the layer's free or later if the
 * layer keeps it for a while. A layer that wraps only some requests recognizes its own records in free by record->route == 0 (not
 * checked). */
STRATA_API strata_record_t *strata_record_unwrap(strata_layer_t *self, strata_record_t *record);
/* Returns true if other streams have borrowed the record inside. They may use the bytes until a layer below has waited. */
STRATA_API bool strata_record_borrowed_below(const strata_record_t *record);

/* ---- `idle` layers; under the lock of the layer's stack ---- */
/* Turns the calls of allocate on or off. Free is called for records in which the layer sets its bit of `attention`. */
STRATA_API void strata_layer_enable_allocate(strata_layer_t *self, bool enabled);

/* ---- caches: chunks split into blocks, for one stream; under the lock of the layer's stack ---- */
/* A cache gets chunks from the layer below and serves blocks of them. The part that every such cache shares is here. On a miss
 * one thread gets a chunk, and others that miss wait for it. Chunks are split into blocks, coalesced and given back. The metrics
 * cache_hits, growths, chunks and reserved bytes are kept, and blocks are walked and found. The author keeps the index of the
 * free blocks. It decides where they are put, and which one serves a request (examples/segregated_fit.c).
 *
 * A free block is a record in state FREE with its `ptr` and `size`. `prev` and `next` are the slots of its neighbors in the
 * chunk. Its index may use `bin_prev`, `bin_next`, `pool`, `mark_high` and `mark_low` freely, and nothing else. */

/* The author's index of free blocks. Every operation runs under the lock, changes nothing but the index, and opens no lock. */
typedef struct strata_chunked_policy {
    size_t struct_size;
    /* Addresses and sizes of blocks are multiples of it. It is a power of two, at least the place's alignment. Above 256 the
     * type's `alignment` must require as much of the layers below. */
    uint64_t unit;
    bool joins_chunks; /* coalesces adjacent chunks where the layers below allow it (STRATA_TRAIT_CONTIGUOUS) */
    /* Adds a free block to the index, or removes it. Its size does not change while it is there. */
    void (*insert)(strata_layer_t *self, strata_record_t *block);
    void (*remove)(strata_layer_t *self, strata_record_t *block);
    /* Returns a free block of at least `size` bytes, a multiple of the unit. It stays in the index. If it returns NULL, the cache
     * grows. */
    strata_record_t *(*find)(strata_layer_t *self, uint64_t size);
    /* Returns the bytes to request from below if no block serves `size` bytes. If it is NULL or returns less, `size` bytes are
     * requested. */
    uint64_t (*growth)(strata_layer_t *self, uint64_t size);
    /* Returns E_CORRUPT, with the fault, unless the index has this number of blocks and bytes. May be NULL. */
    strata_status_t (*validate)(strata_layer_t *self, uint32_t blocks, uint64_t bytes);
} strata_chunked_policy_t;

/* The head of the state of such a cache. */
typedef struct strata_chunked {
    strata_layer_t base;
    uint64_t own[64]; /* the mechanism's */
} strata_chunked_t;

/* For the type's create, before anything else. `policy` must not change until the layer ends. No lock is held. Returns E_INVALID
 * if an operation is missing or the unit is invalid, or E_HOST_MEMORY. */
STRATA_API strata_status_t strata_chunked_create(strata_layer_t *self, const strata_chunked_policy_t *policy);
/* The operations of the type. To add to one, call it from an operation of your own. */
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
STRATA_API strata_record_t *strata_chunked_hit_at(strata_layer_t *self, const strata_block_t *at, size_t requested,
                                                  const strata_stack_t *stack);
STRATA_API strata_status_t strata_chunked_validate(strata_layer_t *self);
/* Sets all of them, in the initializer of a type with a state that begins with strata_chunked_t. */
#define STRATA_CHUNKED_OPERATIONS                                                                                                  \
    .role = STRATA_CACHE, .scope = STRATA_SCOPE_STREAM,                                                                            \
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM, .guarded = true,               \
    .destroy = strata_chunked_destroy, .allocate = strata_chunked_allocate, .free = strata_chunked_free,                           \
    .hit = strata_chunked_hit, .quick_free = strata_chunked_quick_free, .release = strata_chunked_release,                         \
    .trim = strata_chunked_trim, .walk = strata_chunked_walk, .find = strata_chunked_find, .chunk_of = strata_chunked_chunk_of,    \
    .idle_bytes = strata_chunked_idle_bytes, .validate = strata_chunked_validate, .hit_at = strata_chunked_hit_at

/* ---- caches that keep their chunks themselves; under the lock of the layer's stack ---- */
/* Makes a free block of the chunk that the cache calls `chunk`, any number but 0. Its links are 0. strata_record_delete() ends
 * it. Returns NULL and sets E_LIMIT if the stack has its maximum of records. */
STRATA_API strata_record_t *strata_block_new(strata_layer_t *self, uint32_t chunk, uint64_t ptr, uint64_t size);
/* Serves the block to a request of `requested` bytes. */
static inline void strata_block_hand_out(strata_record_t *block, uint64_t requested) {
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)(block->size - requested);
    block->borrows = 0;
    block->state = STRATA_RECORD_LIVE;
}
/* Returns a chunk's part of `reserved_bytes`: its bytes, or 0 if a cache below split it from a chunk of its own (not checked). */
STRATA_API uint64_t strata_record_reserved(const strata_record_t *record);
/* Returns the statistics of the layer's stack. A cache adds to cache_hits, growths, chunks, reserved_bytes and
 * peak_reserved_bytes. The core keeps the others. */
STRATA_API strata_statistics_t *strata_layer_stack_figures(strata_layer_t *self);

/* ---- the device ----------------------------------------------------------------------------------------------------------
 *
 * Functions marked quick may be called under the locks. Call strata_call_unlock() before all others. */

/* Quick. */
STRATA_API strata_place_t strata_layer_place(const strata_layer_t *self);
/* A source gets memory of the place's kind from the device, aligned at least as the place, and gives it back. The memory counts
 * as reserved. Returns E_NO_MEMORY if it would exceed the place's limit. The outcome of the request keeps a refusal for the
 * report, so a source that allocates for itself passes an empty request. If the device refuses to take memory back, that memory
 * still counts and remains the layer's. It must not be served again. */
STRATA_API strata_status_t strata_layer_allocate_memory(strata_layer_t *self, const strata_request_t *request, size_t size,
                                                        size_t alignment, uint64_t *address);
STRATA_API strata_status_t strata_layer_free_memory(strata_layer_t *self, uint64_t address, size_t size);

/* ---- sources of memory that others made ---- */
/* Called once with the adopted memory, when its last holder has freed it and no stream uses it any more, or when the layer ends.
 * No lock is held. It may call any facade but this one. */
typedef void (*strata_deleter_fn)(uint64_t address, size_t size, void *context);
typedef struct strata_adopted {
    uint64_t address;
    size_t size;
    strata_deleter_fn deleter; /* may be NULL: the memory is not given back */
    void *context;
} strata_adopted_t;

/* Makes a live record of a foreign pointer, in the allocate of a guarded source. Its memory is of the place's kind but not from
 * the device. It counts as reserved, within the place's limit, and can be freed by pointer. The lock is opened during the call.
 * Returns E_INVALID if the memory is smaller, or less aligned, than the request requires. Returns E_NO_MEMORY if it would exceed
 * the limit, E_LIMIT or E_HOST_MEMORY. After an error the memory is the caller's as before. */
STRATA_API strata_status_t strata_record_adopt(strata_layer_t *self, const strata_request_t *request,
                                               const strata_adopted_t *memory, strata_record_t **record);
/* The free and the destroy of such a source pass the memory to the deleter. free opens the lock during the call. */
STRATA_API void strata_layer_free_adopted(strata_layer_t *self, strata_record_t *record, strata_call_t *call);
STRATA_API void strata_layer_destroy_adopted(strata_layer_t *self);

/* ---- streams and contents ---- */
/* Returns E_CAPTURE if the stream is being captured: the layer's work on it would be a part of the program's graph. Quick. */
STRATA_API strata_status_t strata_layer_refuse_captured(const strata_layer_t *self, strata_stream_t stream);
/* Sets bytes, in the order of the stream. Returns E_CAPTURE, and sets nothing, if the stream is being captured. */
STRATA_API strata_status_t strata_layer_fill(strata_layer_t *self, uint64_t address, uint8_t byte, size_t size,
                                             strata_stream_t stream);

/* Returns the stream that a stack serves. NULL is the legacy stream, or any stream in pinned and host places. Quick. */
STRATA_API strata_stream_t strata_stack_stream(const strata_stack_t *stack);
/* Sets *stream to the owner of the memory that the layer's stack serves. Returns false in pinned and host places and for the
 * memory of a forgotten stream. Also returns false for another thread's own default stream, because this thread cannot name it.
 * Quick. */
STRATA_API bool strata_layer_owner(const strata_layer_t *self, strata_stream_t *stream);
/* Waits on the host for the work submitted to a stream or, if that fails, for all work of the device. If both fail, it returns
 * false, and the memory that the stream used must not be served again. */
STRATA_API bool strata_layer_wait_for(strata_layer_t *self, strata_stream_t stream);
/* Returns the address of the same bytes for the host, or NULL if there is none (a GPU, a simulated device without contents).
 * Quick. */
STRATA_API void *strata_layer_host_view(strata_layer_t *self, uint64_t address, size_t size);

typedef void *strata_event_t;
/* Takes an event from the place's pool. The layer owns it until it gives it back. */
STRATA_API strata_status_t strata_layer_acquire_event(strata_layer_t *self, strata_event_t *event);
/* Gives it back. Quick, like the functions that follow. */
STRATA_API void strata_layer_release_event(strata_layer_t *self, strata_event_t event);
/* Makes the event cover all work submitted to the stream so far. Returns E_UNSUPPORTED for a default stream in a pinned or host
 * place while several devices are open, since each has one of that name. */
STRATA_API strata_status_t strata_layer_record_event(strata_layer_t *self, strata_event_t event, strata_stream_t stream);
/* Returns STRATA_OK if the work is done, and E_NOT_READY if not. */
STRATA_API strata_status_t strata_layer_query_event(strata_layer_t *self, strata_event_t event);
/* Makes later work of the stream wait for the event, on the device. */
STRATA_API strata_status_t strata_layer_await_event(strata_layer_t *self, strata_stream_t stream, strata_event_t event);

/* ---- how a layer becomes known ------------------------------------------------------------------------------------------- */
/* Registers a layer, for strategies that are read from now on. Any thread. The type is copied. The strings, rows and functions
 * that it points to must stay until the process ends. After an error nothing is registered. Returns E_INVALID if the name is
 * taken or invalid, a mandatory operation is missing, or a row does not fit its struct. Returns E_UNSUPPORTED if the struct is
 * longer than this Strata's and its tail is not zero. Returns E_LIMIT above 128 layers. */
STRATA_API strata_status_t strata_register_layer(const strata_layer_type_t *type);

/* Names the layers of a shared object, once in it: STRATA_LAYERS(&mine_type, &other_type); The object is loaded if a strategy
 * names it (`load: [./libmine.so]`) and the reader allows code (STRATA_OPEN_ALLOW_CODE, strata --allow-code). It stays loaded
 * until the process ends. Link it with libstrata.so, or with nothing if the program that loads it contains the library. */
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
