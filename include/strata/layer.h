/* The layer contract: what a layer of a stack is, what it gets and what it owes. Every layer of Strata is written against this
 * contract, and this header is all that a layer outside the tree needs (examples/my_layer.c). It becomes known by
 * strata_register_layer(), or lies in a shared object that a strategy loads (STRATA_LAYERS below).
 *
 * A request goes down a stack, a record comes up. Each layer that took part is pushed onto the record on the way up; free pops
 * them in exactly the reverse order. A cache is a boundary: it makes the record that the caller gets (its block), and holds
 * the chunk, a record of its own with the layers below.
 *
 * Locks. A layer whose type says `guarded` runs with its stack's lock held, and finds everything it owns unchanged between
 * two of its calls into the layers below: those calls are the points where the lock may have been open, so it holds no
 * half-made state across them and reads its own again. Before it makes a call that can block (a device call that is not
 * quick, the layer below a cache) it opens the locks with strata_call_unlock() and takes them again with strata_call_lock().
 *
 * Versions. Structs grow at their end alone. A layer lets the core make records and paths; a request that it changes is a copy
 * with struct_size = sizeof(strata_request_t).
 */
#ifndef STRATA_LAYER_H
#define STRATA_LAYER_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_layer strata_layer_t; /* an instance */
typedef struct strata_stack strata_stack_t; /* the instances that serve one (place, stream), or one device */
typedef struct strata_domain strata_domain_t; /* all stacks over one physical memory */
typedef struct strata_record strata_record_t;

/* ---- the call that is under way ---------------------------------------------------------------------------------------- */

/* When a cache shall wait instead of growing (docs/patience.md). */
typedef struct strata_patience {
    uint64_t depth; /* blocks of the request's size that its own stack must have on the way */
    double slack; /* growth up to (1 + slack) x what the program needed so far never waits */
} strata_patience_t;

/* Which stack is served and which locks this call holds. On the C stack of whoever began the call. */
typedef struct strata_call {
    strata_stack_t *stack; /* whose layer numbers the record's decorator stack uses */
    strata_stack_t *held[2]; /* locks held now: [0] a stack of stream or thread scope, [1] a shared stack; NULL: open */
    const strata_patience_t *patience; /* NULL: growth never waits */
    bool held_back; /* a cache would have grown, and was told to wait */
    bool owning; /* record_stream: the borrower is the block's new owner, in want of one of its stack's own: the
                                event is taken at free whatever the options, and erase_stream does not end the borrow */
    bool for_chunk; /* a cache is growing, for which others wait: no callback of the program is asked meanwhile */
    const strata_layer_t *reclaimed_by; /* has failed after out-of-memory steps of its own: of the core's only those are wanted
                                           that other layers of the stack have something to give for; NULL: nobody */
    bool climbed_for; /* what was refused came from a layer that climbs the ladder itself (STRATA_TRAIT_WAITS): a router
                                that asks several layers says whether it did for each that refused */
    bool turn_due; /* such a layer was refused, and kept from climbing by STRATA_NO_RETRY alone */
    uint64_t turns; /* such layers of the stack that have climbed for this request, by their numbers: bit N & 63. Each
                                has one turn */
    const strata_stream_t *guest; /* the stream that a forgotten one's stack serves, which owns none of it; NULL: the stack's own */
} strata_call_t;

/* Internal flags of a request, beside STRATA_NO_RETRY, STRATA_NO_GROW, STRATA_ZERO. */
enum {
    STRATA_SMALL_GROWTH = 1u << 16 /* a cache that must grow asks for the rounded request alone */
};

typedef struct strata_request {
    size_t struct_size;
    size_t size; /* bytes, never 0 */
    size_t
        alignment; /* a power of two; more than the place's where this layer's `alignment` says that it serves it, or one above asks so */
    strata_stream_t stream;
    uint64_t pool;
    uint64_t freed_before; /* of memory whose free carries a count, only what was freed up to this one may be served; 0: any */
    const char *tag;
    strata_call_t *call;
    uint32_t flags;
} strata_request_t;

/* ---- the record -------------------------------------------------------------------------------------------------------- */

typedef enum strata_record_state {
    STRATA_RECORD_UNUSED = 0, /* a slot nobody has */
    STRATA_RECORD_FREE = 1, /* a free block of a cache */
    STRATA_RECORD_LIVE = 2, /* somebody holds it */
    STRATA_RECORD_DEFERRED = 3, /* freed by its holder, waiting for other streams */
    STRATA_RECORD_CHUNK = 4 /* a layer above holds it, a cache or a decorator with a record of its own: no ref names it */
} strata_record_state_t;

/* The generation of a record whose slot is used up: a cache that gets such a block back does not hand it out again. */
enum { STRATA_GENERATION_LAST = (1u << 28) - 1 };

/* One 64-byte line per block, live or free; slots are 32-bit indices into the slab of the stack that made it (slot 0 is a
 * sentinel that is never free). Guarded by that stack's lock, except that a live record's holder may read ptr, size, slack. */
struct strata_record {
    uint64_t ptr;
    uint64_t size; /* granted bytes */
    uint64_t route; /* decorator stack: layer numbers, the top in the low byte */
    uint32_t generation; /* grows at every free; 28 bits are the ref's */
    uint16_t stack; /* number of the stack whose layer numbers `route` uses */
    uint16_t attention; /* bits of the layers whose free must not be left out */
    uint32_t prev, next; /* neighbours in the chunk, 0: none */
    uint32_t bin_prev; /* free: links of the index; of a decorator's own record: slot and stack of the one that it holds */
    uint32_t bin_next;
    uint32_t chunk; /* the cache's number of the chunk; 0: not a block of a cache */
    uint32_t slack; /* granted - requested */
    uint8_t state; /* strata_record_state_t */
    uint8_t pool; /* the layer's own */
    uint16_t home; /* number of the stack whose slab this is */
    uint32_t borrows; /* stream_safe's list; 0: none */
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

enum { STRATA_OPTION_TEXT_BYTES = 256 /* with the closing zero */, STRATA_OPTION_CHOICES = 32 /* words of one row */ };

/* One row an option: from it come the options struct's checking, environment names, `strata layers` and the docs.
 * A router's values of one branch are options whose names end in the branch's number: `most_1`, `most_2` (up to 8 branches) are
 * written `routes: [{most: 4, stack: [...]}, {most: 9, stack: [...]}, {stack: [...]}]`; the last branch takes what is left and has
 * none. A router without such options has `stacks: [[...], [...]]`. */
typedef struct strata_option_row {
    const char *name;
    strata_option_kind_t kind;
    uint32_t offset; /* in the options struct */
    const char *default_text; /* as a strategy file would say it */
    uint64_t min, max; /* of COUNT, SIZE, TIME; of FRACTION in millionths; max 0: no bound */
    const char *choices; /* CHOICE: "address|any" */
    const char *doc;
} strata_option_row_t;

/* One row a figure of the layer's own, a uint64_t at `offset` of its state (see `figures`). */
typedef struct strata_stat_row {
    const char *name;
    const char *unit;
    uint32_t offset;
    const char *doc;
} strata_stat_row_t;

/* ---- the layer --------------------------------------------------------------------------------------------------------- */

typedef enum strata_role { STRATA_SOURCE, STRATA_CACHE, STRATA_DECORATOR, STRATA_ROUTER } strata_role_t;
/* How widely an instance is shared, within one facade. THREAD is for caches; every thread has stacks of its own above such a
 * cache. */
typedef enum strata_scope { STRATA_SCOPE_NONE, STRATA_SCOPE_STREAM, STRATA_SCOPE_THREAD, STRATA_SCOPE_DEVICE } strata_scope_t;

/* What a layer needs of the one below and gives to the one above. X(name, bit, meaning) */
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

/* What poll() finds: frees that still wait for other streams. */
typedef struct strata_pending {
    uint64_t freed_bytes; /* finished by this poll */
    uint64_t pending_bytes; /* still waiting */
    uint64_t ready_at; /* when the earliest passes, on the device's clock; UINT64_MAX: nobody knows */
} strata_pending_t;

/* A free of `bytes` waits for a stream; `gone`: it was destroyed. */
typedef void (*strata_wait_fn)(strata_stream_t stream, bool gone, uint64_t bytes, void *context);
typedef void (*strata_walk_fn)(const strata_record_t *record, void *context);
/* A request has failed for memory, and a person will read why. Filled by the core. */
typedef struct strata_telling {
    size_t struct_size;
    size_t size; /* bytes asked */
    const char *layer; /* as the strategy names it */
    void (*say)(const struct strata_telling *telling, const char *text); /* goes into the report, as far as there is room */
    /* What strata_annotate() said when a live block was asked for ("": nothing), and the steps before. The lock of the block's home
     * is held. */
    const char *(*noted)(const struct strata_telling *telling, const strata_record_t *record, uint64_t *step);
    void *context;
} strata_telling_t;

/* Of whom a cache keeps the memory of a block, for reports. X(name, bit, meaning) */
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
    size_t struct_size; /* a shorter struct is an older layer: what it lacks takes its default */
    const char *name; /* as in a strategy file */
    const char *doc; /* one line */
    strata_role_t role;
    strata_scope_t scope;
    uint32_t needs, gives; /* STRATA_TRAIT_* */
    uint32_t passes; /* traits of the layer below that stay true above this one */
    bool guarded; /* its functions run under its stack's lock */
    bool idle; /* while its attention bit is clear in the stack (in the record), its allocate (free) is the one of
                              the layer below, and its state starts as zero: it may be left out of the walk */
    size_t state_size; /* of the instance; begins with strata_layer_t; zeroed before create */
    size_t options_size;
    const strata_option_row_t *options; /* closed by a NULL name; NULL: none */
    const strata_stat_row_t *stats; /* likewise */

    /* Mandatory. No lock is held in create and destroy. */
    strata_status_t (*create)(strata_layer_t *self);
    void (*destroy)(strata_layer_t *self);
    /* *record is set on success alone. A decorator calls strata_below_allocate(). */
    strata_status_t (*allocate)(strata_layer_t *self, const strata_request_t *request, strata_record_t **record);
    /* Cannot fail. The layer has been popped from the record; a decorator calls strata_below_free(). */
    void (*free)(strata_layer_t *self, strata_record_t *record, strata_call_t *call);

    /* Optional; NULL passes on to the layers below, which the core asks each in turn. */
    /* A cache's hit for a request of `stack`, at the place's own alignment: serves from what it has, or answers NULL having changed
     * nothing; no device call, no lock opened. The core writes the record's route and stack. An instance that several stacks share
     * asks strata_stack_stream() whose request it is. Without it, or where a layer above has something to do, allocate() is called. */
    strata_record_t *(*hit)(strata_layer_t *self, size_t size, const strata_stack_t *stack);
    /* A cache's free when no other layer took part: as free(), but answers false, having changed nothing, if it would have to
     * open the lock. */
    bool (*quick_free)(strata_layer_t *self, strata_record_t *record);
    /* Gives idle chunks back; the bytes. */
    uint64_t (*release)(strata_layer_t *self, strata_call_t *call);
    /* Finishes deferred frees whose streams have passed; adds to *pending. */
    void (*poll)(strata_layer_t *self, strata_call_t *call, strata_pending_t *pending);
    /* E_UNSUPPORTED from all layers: the core waits on the host at free, and the caller is told OK. */
    strata_status_t (*record_stream)(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
    strata_status_t (*erase_stream)(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call);
    /* The stack's own stream will be destroyed. */
    void (*stream_gone)(strata_layer_t *self, strata_stream_t stream, strata_call_t *call);
    void (*capture_begin)(strata_layer_t *self, uint64_t pool, strata_call_t *call);
    void (*capture_end)(strata_layer_t *self, uint64_t pool, strata_call_t *call);
    void (*step)(strata_layer_t *self, strata_call_t *call);
    /* Releases until at most `keep` idle bytes stay; the bytes. A layer without idle_bytes is asked whatever it may hold. */
    uint64_t (*trim)(strata_layer_t *self, uint64_t keep, strata_call_t *call);
    /* Every block of the layer, chunk by chunk in address order. */
    void (*walk)(strata_layer_t *self, strata_walk_fn block, void *context);
    /* The chunk that a block of this cache lies in, NULL: none. */
    const strata_record_t *(*chunk_of)(strata_layer_t *self, const strata_record_t *block);
    /* Bytes that the layer holds idle. */
    uint64_t (*idle_bytes)(strata_layer_t *self);
    /* E_CORRUPT with what is wrong. Called under the lock, with nothing under way. */
    strata_status_t (*validate)(strata_layer_t *self);
    /* What the option rows cannot say: whether these options fit one another and the place. E_STRATEGY with what is wrong and
     * what to write; *option then names the row, whose place in the file is told. Called before there is an instance. */
    strata_status_t (*check)(const void *options, strata_place_kind_t place, const char **option);
    /* Brings the figures of `stats` up to date before they are read; under the lock. NULL: they always are. */
    void (*figures)(strata_layer_t *self);
    /* The block of this layer, live or free, that holds an address; NULL: none. Without it every block is walked. */
    const strata_record_t *(*find)(strata_layer_t *self, uint64_t address);
    /* Each stream that a deferred free still waits for, free by free. */
    void (*waits)(strata_layer_t *self, strata_wait_fn wait, void *context);
    /* Of a cache whose frees carry a count: the work behind what was freed at smaller counts is over. A frontier below the last one
     * is ignored. False: the frees of this instance carry none. */
    bool (*set_frontier)(strata_layer_t *self, uint64_t count);
    /* Says what the layer knows of a request that failed. No lock is held; it takes its own. */
    void (*tell)(strata_layer_t *self, const strata_telling_t *telling);
    /* The largest alignment that a layer of these options serves on layers that serve `below` (a router: the least of them; a
     * source: the place's); UINT64_MAX: any. *wanted, the place's before, is what it needs of them: the builder refuses a stack
     * that has less. NULL: decorators and routers serve `below`, sources and caches what the request says, up to 256. */
    uint64_t (*alignment)(const void *options, strata_place_kind_t place, uint64_t below, uint64_t *wanted);
    /* Of a layer that notes borrows elsewhere than in the record's `borrows`: whether there is one of this live record. The lock of
     * the record's stack is held, under which borrows come and go. */
    bool (*is_borrowed)(const strata_layer_t *self, const strata_record_t *record);
    /* The peaks among its figures begin at what is now. The lock of its stack is held; layers without one change atomically. */
    void (*reset_peaks)(strata_layer_t *self);
    /* Of a block of this cache: what keeps it from requests of `size` bytes, STRATA_REACH_*; with STREAM, *stream is whose it is.
     * Under the lock. NULL: nothing does, but whose stack the layer stands in. */
    uint32_t (*reach)(strata_layer_t *self, const strata_record_t *block, uint64_t size, strata_stream_t *stream);
    /* For caches of the tree: hit and quick_free compiled into the core's own way (allocation/stack/direct.h). NULL elsewhere. */
    const struct strata_direct *direct;
} strata_layer_type_t;

/* The head of every instance. Filled by the builder, constant afterwards. */
struct strata_layer {
    const strata_layer_type_t *type;
    strata_stack_t *stack; /* whose lock guards it and whose slab its records come from */
    strata_domain_t *domain;
    const void *options; /* the type's options struct */
    strata_layer_t **below; /* `below_count` instances; a source has none, a router several */
    uint32_t below_count;
    uint16_t attention; /* its bit in stack and record; 0: it may not be left out */
    uint8_t number; /* in the decorator stack, 1 .. 255 */
    uint64_t serial; /* of the instance: no other one of the process ever has it */
    strata_record_t *records; /* of the stack's slab, by slot; they never move */
};

/* A record by its slot, and back. Slot 0 is no block: what links use for "none"; its record may be written, and means nothing. */
static inline strata_record_t *strata_record_at(const strata_layer_t *self, uint32_t slot) { return &self->records[slot]; }
static inline uint32_t strata_record_slot(const strata_layer_t *self, const strata_record_t *record) {
    return (uint32_t)(record - self->records);
}

/* ---- for layers that have nothing to do there ------------------------------------------------------------------------- */

STRATA_API strata_status_t strata_layer_create_nothing(strata_layer_t *self);
STRATA_API void strata_layer_destroy_nothing(strata_layer_t *self);
/* strata_below_free(). */
STRATA_API void strata_layer_free_below(strata_layer_t *self, strata_record_t *record, strata_call_t *call);

/* ---- what the core offers a layer: ways down --------------------------------------------------------------------------- */

/* Calls a layer's allocate under its lock and pushes it onto the record: one branch of a router. */
STRATA_API strata_status_t strata_layer_allocate(strata_layer_t *layer, const strata_request_t *request, strata_record_t **record);
/* The layer below a decorator. */
static inline strata_status_t strata_below_allocate(strata_layer_t *self, const strata_request_t *request,
                                                    strata_record_t **record) {
    return strata_layer_allocate(self->below[0], request, record);
}
/* Pops the next layer off the record and calls its free under its lock: what a layer's free does with what came from below, and its
 * allocate where it fails behind that. */
STRATA_API void strata_below_free(strata_record_t *record, strata_call_t *call);
/* The next layer below that knows borrows: what the record_stream and erase_stream of a layer do that only looks on. The lock is
 * as it was. E_UNSUPPORTED: none knows them. */
STRATA_API strata_status_t strata_below_record_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                                      strata_call_t *call);
STRATA_API strata_status_t strata_below_erase_stream(strata_layer_t *self, strata_record_t *record, strata_stream_t stream,
                                                     strata_call_t *call);

/* A cache's chunk from the layer below: a new path begins. No lock is held. No ref names the record. */
STRATA_API strata_status_t strata_chunk_allocate(strata_layer_t *self, uint64_t size, const strata_request_t *request,
                                                 strata_record_t **chunk);
STRATA_API void strata_chunk_free(strata_record_t *chunk);

/* Whether all ways down from a layer give these traits (STRATA_TRAIT_*), through layers that pass them on. */
STRATA_API bool strata_below_gives(const strata_layer_t *self, uint32_t traits);

/* ---- locks ---- */

/* What strata_call_unlock() opened, to be taken again. */
typedef struct strata_opened {
    strata_stack_t *held[2];
} strata_opened_t;

/* Opens every lock of the path, the shared stack's first. */
STRATA_API strata_opened_t strata_call_unlock(strata_call_t *call);
STRATA_API void strata_call_lock(strata_call_t *call, strata_opened_t opened);

/* ---- records, for sources and caches; under the lock of the layer's stack (a `guarded` layer runs under it) ---- */

/* A live record in the layer's slab; NULL when the slab is full (E_LIMIT is set). */
STRATA_API strata_record_t *strata_record_new(strata_layer_t *self, const strata_request_t *request, uint64_t ptr, uint64_t size);
STRATA_API void strata_record_delete(strata_layer_t *self, strata_record_t *record);
/* Every record of a source that its last holder left behind: for its destroy, which gives the memory back and deletes none. */
STRATA_API void strata_layer_each_left(strata_layer_t *self, strata_walk_fn record, void *context);

/* ---- records of decorators that change the address or the size; under the lock of the layer's stack ---- */

/* The record that goes up instead of `inner`, which came from strata_below_allocate() for this request: `size` bytes at `ptr`
 * inside it. `inner` stays as its maker wrote it, except that no ref names it any more; borrows find their way to it. Of the
 * record made `next`, `prev` and `pool` are the layer's own. NULL, and `inner` is as it was, when the slab is full (E_LIMIT is
 * set): the layer frees `inner` and fails. */
STRATA_API strata_record_t *strata_record_wrap(strata_layer_t *self, const strata_request_t *request, strata_record_t *inner,
                                               uint64_t ptr, uint64_t size);
/* What a record that strata_record_wrap() made holds: for the layer that made it. */
STRATA_API strata_record_t *strata_record_held(const strata_record_t *record);
/* The end of such a record, in the layer's free or whenever it lets go of one that it kept: what it held goes to
 * strata_below_free(). A layer that wraps some requests alone tells its own by record->route, which is 0 in its free. */
STRATA_API strata_record_t *strata_record_unwrap(strata_layer_t *self, strata_record_t *record);
/* Whether other streams have borrowed what such a record holds: a layer below will wait for them at its free, and until then its
 * bytes are theirs. */
STRATA_API bool strata_record_borrowed_below(const strata_record_t *record);

/* ---- attention of an `idle` layer; under the lock of the layer's stack. That of a record is its own word ---- */

STRATA_API void strata_layer_wants_allocate(strata_layer_t *self, bool wants);

/* ---- caches: chunks cut into blocks, for one stream; under the lock of the layer's stack -------------------------------------
 *
 * A cache gets chunks from the layer below and serves blocks of them. What every such cache does is done here: chunks come (one thread
 * asks, others that miss wait for it), are cut into blocks, merged again and given back; the figures (cache_hits, growths, chunks,
 * reserved bytes) are kept; blocks are walked and found. The author keeps the index of the free blocks: where they are put, and which one
 * serves a request (examples/segregated_fit.c).
 *
 * A free block is a record in state FREE. `ptr` and `size` say where it lies, `prev` and `next` are the slots of its neighbours in the
 * chunk. Its index may use `bin_prev`, `bin_next`, `pool` and `borrows` as it likes, and nothing else of it.
 */

/* The author's index of free blocks. Every operation runs under the lock, changes nothing but the index, and opens no lock. */
typedef struct strata_chunked_policy {
    size_t struct_size;
    uint64_t
        unit; /* bytes: blocks begin at multiples of it and have multiples of it; a power of two, the place's alignment at least */
    bool joins_chunks; /* chunks that touch become one, where the layers below allow it (STRATA_TRAIT_CONTIGUOUS) */
    /* A free block comes into the index, or leaves it. Its size does not change while it is there. */
    void (*insert)(strata_layer_t *self, strata_record_t *block);
    void (*remove)(strata_layer_t *self, strata_record_t *block);
    /* A free block of at least `size` bytes, a multiple of the unit; it stays in the index. NULL: none is found, and the cache grows. */
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

/* For the type's create, before anything else: `policy` stays as it is until the layer ends. No lock is held. E_INVALID: an operation is
 * missing or the unit is none; E_HOST_MEMORY. */
STRATA_API strata_status_t strata_chunked_create(strata_layer_t *self, const strata_chunked_policy_t *policy);
/* Operations of the type, as the struct below describes each; an author who does more in one calls it from there. */
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
STRATA_API strata_status_t strata_chunked_validate(strata_layer_t *self);

/* All of them, in the initializer of a type whose state begins with strata_chunked_t. */
#define STRATA_CHUNKED_OPERATIONS                                                                                                  \
    .role = STRATA_CACHE, .scope = STRATA_SCOPE_STREAM,                                                                            \
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM, .guarded = true,               \
    .destroy = strata_chunked_destroy, .allocate = strata_chunked_allocate, .free = strata_chunked_free,                           \
    .hit = strata_chunked_hit, .quick_free = strata_chunked_quick_free, .release = strata_chunked_release,                         \
    .trim = strata_chunked_trim, .walk = strata_chunked_walk, .find = strata_chunked_find, .chunk_of = strata_chunked_chunk_of,    \
    .idle_bytes = strata_chunked_idle_bytes, .validate = strata_chunked_validate

/* For a cache that keeps its chunks itself, with strata_chunk_allocate() and strata_chunk_free(). A free block in the layer's slab, of the
 * cache's chunk number `chunk` (not 0); links are 0. strata_record_delete() ends it. NULL: the slab is full (E_LIMIT is set). */
STRATA_API strata_record_t *strata_block_new(strata_layer_t *self, uint32_t chunk, uint64_t ptr, uint64_t size);
/* It is handed out for a request of `requested` bytes: live, nothing borrowed, its route empty. */
static inline void strata_block_hand_out(strata_record_t *block, uint64_t requested) {
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)(block->size - requested);
    block->borrows = 0;
    block->state = STRATA_RECORD_LIVE;
}
/* Bytes that a chunk's record stands for in `reserved_bytes`; 0: a cache further down cut it from one of its own, which counts them. */
STRATA_API uint64_t strata_record_reserved(const strata_record_t *record);
/* The figures of its stack that are a cache's to keep, plain words under the lock: cache_hits, growths, chunks, reserved_bytes and its
 * peak. Those of live blocks are the core's. */
STRATA_API strata_statistics_t *strata_layer_stack_figures(strata_layer_t *self);

/* ---- the device. Quick calls may be made under the locks; round all others they are open ---- */

STRATA_API strata_place_t strata_layer_place(const strata_layer_t *self);
/* A source's memory: of the place's kind, booked as reserved. What a failing get_memory cannot give back is the core's. What the
 * device refuses of give_memory stays booked and the layer's: it must not be served again. */
STRATA_API strata_status_t strata_layer_get_memory(strata_layer_t *self, size_t size, size_t alignment, uint64_t *address);
STRATA_API strata_status_t strata_layer_give_memory(strata_layer_t *self, uint64_t address, size_t size);
/* ---- memory that others made, as blocks of a source ---- */

/* Called once with the bytes that were adopted, when their last holder has freed them and nothing uses them any more, or when the layer
 * ends. No lock is held; it may call any facade but this one. */
typedef void (*strata_deleter_fn)(uint64_t address, size_t size, void *context);
typedef struct strata_adopted {
    uint64_t address;
    size_t size;
    strata_deleter_fn deleter; /* NULL: nobody wants it back */
    void *context;
} strata_adopted_t;

/* For the allocate of a guarded source: memory of the place's kind that the layer did not get from the device becomes a live record. It
 * counts as reserved, within the place's limit, and can be freed by pointer. The locks are opened. E_INVALID: it is smaller or aligned to
 * less than the request wants; E_NO_MEMORY: above the limit; E_LIMIT, E_HOST_MEMORY. After an error the memory is the caller's as before. */
STRATA_API strata_status_t strata_record_adopt(strata_layer_t *self, const strata_request_t *request,
                                               const strata_adopted_t *memory, strata_record_t **record);
/* The free and the destroy of such a source: the deleter takes the memory. The locks are opened. */
STRATA_API void strata_layer_free_adopted(strata_layer_t *self, strata_record_t *record, strata_call_t *call);
STRATA_API void strata_layer_destroy_adopted(strata_layer_t *self);

/* ---- streams and contents ---- */

/* E_CAPTURE: the stream is being captured, and what the layer did on it would be a part of the program's graph. Quick. */
STRATA_API strata_status_t strata_layer_refuse_captured(const strata_layer_t *self, strata_stream_t stream);
/* Sets bytes, in the order of the stream. E_CAPTURE: the stream is being captured, and nothing was set. */
STRATA_API strata_status_t strata_layer_fill(strata_layer_t *self, uint64_t address, uint8_t byte, size_t size,
                                             strata_stream_t stream);

/* The stream whose requests a stack serves; NULL: the legacy stream, and in pinned and host places any. */
STRATA_API strata_stream_t strata_stack_stream(const strata_stack_t *stack);
/* The stream that owns what the layer's stack serves, where it has one that this thread can name. False: pinned and host memory,
 * what a forgotten stream left, another thread's own default stream. */
STRATA_API bool strata_layer_owner(const strata_layer_t *self, strata_stream_t *stream);
/* The host waits for the work submitted to a stream; where that fails, for all of it. False: not even that can be known. */
STRATA_API bool strata_layer_wait_for(strata_layer_t *self, strata_stream_t stream);
/* Where the host sees the bytes of an address; NULL: it cannot (a GPU's memory, a simulated device without contents). */
STRATA_API void *strata_layer_host_view(strata_layer_t *self, uint64_t address, size_t size);

typedef void *strata_event_t;
/* An event of the place's pool, for as long as the layer wants it. */
STRATA_API strata_status_t strata_layer_take_event(strata_layer_t *self, strata_event_t *event);
/* Quick, as all that follow. */
STRATA_API void strata_layer_give_event(strata_layer_t *self, strata_event_t event);
/* Marks the end of all work submitted to the stream so far. E_UNSUPPORTED: a default stream in a pinned or host place of several
 * open devices, each of which has one of that name. */
STRATA_API strata_status_t strata_layer_record_event(strata_layer_t *self, strata_event_t event, strata_stream_t stream);
/* E_NOT_READY: the work is not done yet. */
STRATA_API strata_status_t strata_layer_query_event(strata_layer_t *self, strata_event_t event);
/* Later work of the stream waits for the event, on the device. */
STRATA_API strata_status_t strata_layer_await_event(strata_layer_t *self, strata_stream_t stream, strata_event_t event);

/* ---- how a layer becomes known ------------------------------------------------------------------------------------------- */

/* Strategies read from now on may name the layer. Any thread. The type is copied; the texts and rows that it points to stay the
 * caller's and must stay as they are until the process ends. A shorter struct is an older layer: what it lacks is NULL.
 * E_INVALID, and nothing is registered: the name is taken or no name, a mandatory operation is missing, a row does not fit its
 * struct; E_UNSUPPORTED: a longer struct whose tail is not 0 wants a newer Strata; E_LIMIT: 128 layers. */
STRATA_API strata_status_t strata_register_layer(const strata_layer_type_t *type);

/* A shared object with layers says STRATA_LAYERS(&mine_type, &other_type); once. A strategy names it (`load: [./libmine.so]`)
 * where its reader allows code: STRATA_OPEN_ALLOW_CODE, strata --allow-code. The object is linked with libstrata.so, or with
 * nothing where the program is; it stays loaded until the process ends. `strata conform ./libmine.so` checks its layers. */
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
