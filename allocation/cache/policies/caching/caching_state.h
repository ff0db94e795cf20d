/* The state of caching and caching_vmm: streams, banks of free blocks, and segments.
 *
 *     stream 1                          stream 2                      one bank for each stream
 *     bank                              bank
 *      |- small: |2 MiB| |2 MiB|         |- small: |2 MiB|            one tree of free blocks for each kind
 *      '- large: |20 MiB|                '- large: |20 MiB| |64 MiB|  each segment is a chunk of the layer below
 *
 * The blocks of a segment are of one kind, small or large, and belong to one bank. A pool of the facade is an instance of
 * its own. Everything is guarded by the lock of the shared stack. Comments mark the functions that may open it. */
#ifndef STRATA_ALLOCATION_LAYER_CACHING_STATE_H
#define STRATA_ALLOCATION_LAYER_CACHING_STATE_H

#include "allocation/cache/runs.h"
#include "allocation/cache/serve.h"
#include "allocation/mechanism/marks.h"
#include "allocation/mechanism/tree.h"
#include "allocation/uses/last_users.h"
#include "allocation/uses/uses.h"

enum { STRATA_CACHING_SMALL, STRATA_CACHING_LARGE, STRATA_CACHING_KINDS };
enum { STRATA_CACHING_OWN_STREAMS, STRATA_CACHING_NO_STREAMS };
enum { STRATA_CACHING_RECLAIM_OWN, STRATA_CACHING_RECLAIM_LADDER };
enum { STRATA_CACHING_UNIT = 512, STRATA_CACHING_ALIGNMENT = 256, STRATA_CACHING_OCTAVES = 16, STRATA_CACHING_SEGMENTS = 1 << 20 };
enum { STRATA_CACHING_CODED_BANKS = 256 / STRATA_CACHING_KINDS }; /* number 0 is unused */
#define STRATA_CACHING_SMALL_LIMIT (1ull << 20)

typedef struct caching_options {
    uint64_t large_segment;
    uint64_t max_split_size, max_non_split_rounding;
    double garbage_collection_threshold, memory_fraction;
    uint32_t streams, reclaim;
    bool pool_no_split, pools_on_oom;
    bool search_after_events, smaller_growth, stable_addresses;
    bool reuse_in_capture;
    char roundup_power2_divisions[STRATA_OPTION_TEXT_BYTES];
} caching_options_t;

typedef struct caching_bank {
    uint32_t unused;
    uint32_t stream; /* node; 0 for the bank of all streams */
    uint32_t segments; /* number of segments and of address ranges */
    uint32_t busy; /* calls in progress that use the bank. It must not end before they do. */
    /* a thread requests memory from below with the lock open, and other threads that miss wait for it */
    bool growing[STRATA_CACHING_KINDS];
    bool orphaned; /* its stream was destroyed. Remains set after the bank has ended, because a stale hint may still refer to it. */
    uint32_t unmapping[STRATA_CACHING_KINDS]; /* threads that are unmapping its memory, with the lock open */
    uint32_t ranges[STRATA_CACHING_KINDS]; /* the first of its address ranges, or 0 */
    uint32_t next_of_stream; /* next bank of the same stream */
    uint32_t next_orphan_bank, prev_orphan_bank;
    strata_order_link_t link;
    strata_tree_t idle[STRATA_CACHING_KINDS];
} caching_bank_t;

typedef struct caching_segment {
    union {
        strata_chunk_t chunk;
        strata_run_part_t part; /* used if segments expand; each physical handle is one */
    };
    uint32_t bank, kind;
} caching_segment_t;

/* The addresses of an expandable segment. Handles are mapped in it where memory is needed. */
typedef struct caching_range {
    uint32_t unused;
    uint32_t next; /* next range of the same bank and kind, by address, or 0 */
    uint32_t bank, kind;
    uint32_t parts; /* number of mapped handles */
    uint64_t base, size; /* one handle more is reserved, so that no two ranges touch */
} caching_range_t;

typedef struct caching {
    union {
        strata_layer_t base;
        strata_chunks_t chunks; /* its nodes are caching_segment_t */
    };
    bool plain_sizes; /* no size is rounded to a division */
    /* subdivisions per power of two, starting at 1 MiB; 0 or 1 rounds to multiples of 512 bytes only */
    uint32_t divisions[STRATA_CACHING_OCTAVES];
    uint64_t allowed; /* bytes of the memory fraction; UINT64_MAX is no limit */
    uint64_t collect_above; /* reserved bytes above which garbage is collected; UINT64_MAX is never */
    uint64_t used_bytes;
    uint64_t searches; /* number of searches for large blocks, the unit of ages */
    strata_uses_t uses; /* own_uses of a live block heads its list of uses, and a user's list has the banks of its stream */
    strata_last_users_t last; /* replaces `uses` with `streams: ignored`; `user` of a live block is one of these */
    strata_nodes_t banks;
    strata_order_t bank_order; /* by stream handle, which is the peer's order of streams, and then by node */
    uint32_t first_orphan; /* first bank of a destroyed stream */
    bool has_abandoned; /* set while memory of exited threads has not been waited for, so that no stream may use it */
    bool reaping; /* a thread is waiting for that, and the others do not */
    uint64_t retries, waits_for_all, collected_bytes, oversize_segments; /* statistics */
    uint64_t of_kind[STRATA_CACHING_KINDS], active[STRATA_CACHING_KINDS],
        split[STRATA_CACHING_KINDS]; /* statistics, computed when they are read */
    strata_tree_t *trees[256]; /* by the code of a bank and a kind: caching_code() */
    /* the layer that maps handles. If it is NULL, segments do not expand, and the fields up to `mapped` and
     * `unmapped` are unused. */
    strata_layer_t *vmm;
    strata_runs_t runs;
    strata_nodes_t ranges; /* caching_range_t */
    uint64_t range_bytes; /* bytes of addresses in a range, which limit the memory that can be mapped in it */
    uint64_t handle[STRATA_CACHING_KINDS]; /* bytes of a handle */
    uint64_t mapped, unmapped; /* statistics: handles */
    /* by stack number, the bank that the stack used last. It may have ended, so its users check it. */
    uint32_t hints[STRATA_STACKS];
} caching_t;

static inline const caching_options_t *caching_options_of(const caching_t *self) { return self->base.options; }
static inline strata_slab_t *caching_slab(const caching_t *self) { return &self->base.stack->slab; }
static inline strata_record_t *caching_block(const caching_t *self, uint32_t slot) {
    return strata_slab_record(caching_slab(self), slot);
}
static inline strata_user_t *caching_stream_at(const caching_t *self, uint32_t node) {
    return strata_user_at(&self->uses.users, node);
}
static inline caching_bank_t *caching_bank_at(const caching_t *self, uint32_t node) { return strata_node(&self->banks, node); }
static inline uint32_t caching_first_bank(const caching_t *self) { return self->bank_order.first[0]; }
static inline uint32_t caching_next_bank(const caching_t *self, uint32_t node) {
    return strata_order_next(&self->bank_order, node);
}
static inline caching_segment_t *caching_segment_at(const caching_t *self, uint32_t node) {
    return strata_node(&self->chunks.nodes, node);
}

/* Returns the code of a bank and a kind, which a block's record keeps. Among many segments, reading the
 * segment's node would be one more cache miss. Returns 0 if the number does not fit, and then the segment is
 * read. */
static inline uint8_t caching_code(uint32_t bank, uint32_t kind) {
    return bank < STRATA_CACHING_CODED_BANKS ? (uint8_t)(bank * STRATA_CACHING_KINDS + kind) : 0;
}
/* Drops const for a lookup, which changes only the order's counter. */
static inline strata_runs_t *caching_runs(const caching_t *self) { return (strata_runs_t *)&self->runs; }
/* Returns the segment of a block, if the block's record has no code. */
static inline const caching_segment_t *caching_segment_of(const caching_t *self, const strata_record_t *block) {
    return caching_segment_at(self, self->vmm ? strata_runs_find_part(caching_runs(self), block->ptr) : block->chunk);
}
static inline uint32_t caching_bank_of(const caching_t *self, const strata_record_t *block) {
    return block->pool ? block->pool / STRATA_CACHING_KINDS : caching_segment_of(self, block)->bank;
}
static inline uint32_t caching_kind_of(const caching_t *self, const strata_record_t *block) {
    return block->pool ? block->pool % STRATA_CACHING_KINDS : caching_segment_of(self, block)->kind;
}

static inline uint64_t caching_idle(const caching_t *self) { return self->chunks.bytes - self->used_bytes; }
static inline bool caching_is_split(const strata_record_t *block) { return block->prev != 0 || block->next != 0; }

/* ---- sizes (caching_sizes.c) ---- */

/* Reads `roundup_power2_divisions`. Fails with E_STRATEGY and a text that explains the format. */
strata_status_t strata_caching_read_divisions(const char *text, uint32_t divisions[STRATA_CACHING_OCTAVES]);
/* Returns the size of the block that serves a request. */
uint64_t strata_caching_round_to_division(const caching_t *self, uint64_t size);
static inline uint64_t strata_caching_round(const caching_t *self, uint64_t size) {
    uint64_t multiple = (size + STRATA_CACHING_UNIT - 1) & ~(uint64_t)(STRATA_CACHING_UNIT - 1);
    return __builtin_expect(self->plain_sizes, 1) ? multiple : strata_caching_round_to_division(self, size);
}
/* Returns true if no division rounds a size. */
bool strata_caching_has_plain_sizes(const uint32_t divisions[STRATA_CACHING_OCTAVES]);
static inline uint32_t strata_caching_kind(uint64_t rounded) {
    return rounded <= STRATA_CACHING_SMALL_LIMIT ? STRATA_CACHING_SMALL : STRATA_CACHING_LARGE;
}
/* Returns the bytes to request from below for a block of that size. */
uint64_t strata_caching_segment_size(const caching_options_t *o, uint64_t rounded);

/* ---- streams and borrows (caching_streams.c) ---- */

/* Frees the blocks that no use holds any more. Returns their bytes. */
uint64_t strata_caching_poll_uses(caching_t *self, strata_call_t *call);
/* Makes the host wait for every use. Opens the lock. */
void strata_caching_wait_for_uses(caching_t *self, strata_call_t *call);
/* Makes the memory of the default streams of exited threads usable by any stream. The host waits for the
 * device, with the lock open. Returns true if there was such memory. */
bool strata_caching_reap_threads(caching_t *self, strata_call_t *call);

strata_status_t strata_caching_record_stream(strata_layer_t *base, strata_record_t *block, strata_stream_t stream,
                                             strata_call_t *call);
bool strata_caching_is_borrowed(const strata_layer_t *base, const strata_record_t *block);
strata_status_t strata_caching_erase_stream(strata_layer_t *base, strata_record_t *block, strata_stream_t stream,
                                            strata_call_t *call);
void strata_caching_notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call);
void strata_caching_poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending);
void strata_caching_waits(strata_layer_t *base, strata_wait_fn wait, void *context);

/* ---- without streams: the last user of a block (caching_streams.c) ---- */

static inline bool caching_ignores_streams(const caching_t *self) {
    return caching_options_of(self)->streams == STRATA_CACHING_NO_STREAMS;
}
/* Records that the stream uses a block until it is freed. */
void strata_caching_begin_use(caching_t *self, strata_record_t *block, strata_stream_t stream);
/* Returns true if the host must wait before the stream gets the free block. */
static inline bool strata_caching_is_in_use(caching_t *self, const strata_record_t *block, strata_stream_t stream) {
    return caching_ignores_streams(self) && strata_last_users_uses(&self->last, block) &&
           strata_last_users_other_uses(&self->last, block, strata_last_users_of(&self->last, stream));
}

/* ---- banks (caching_banks.c) ---- */

/* Returns the node of a stream, or 0 with E_LIMIT. */
uint32_t strata_caching_stream(caching_t *self, strata_stream_t stream);
/* Forgets the handle of a stream, given by its node. Any stream may use the memory of its banks once the
 * stream's work is done. */
void strata_caching_orphan_banks(caching_t *self, uint32_t node, strata_user_state_t state);
/* Gives up the default streams of exited threads. Their memory is unusable until strata_caching_reap_threads(),
 * and banks without memory end. */
void strata_caching_abandon_threads(caching_t *self);
/* Returns the position of a bank in the order of banks. `stream` is its stream's node, or 0. */
strata_order_key_t strata_caching_bank_key(const caching_t *self, uint32_t stream);
/* Returns the bank of a request, which is made if necessary, or 0 with E_LIMIT. */
uint32_t strata_caching_bank(caching_t *self, const strata_request_t *request);
/* Returns the bank of a stack's own stream if the stack's hint has it. If it returns 0, strata_caching_bank()
 * finds the bank. A bank that has ended is empty. */
static inline uint32_t strata_caching_known_bank(const caching_t *self, const strata_stack_t *stack) {
    uint32_t hint = self->hints[stack->number];
    const caching_bank_t *bank = caching_bank_at(self, hint);
    if (hint == 0) return 0;
    if (bank->stream == 0) return hint;
    const strata_user_t *user = caching_stream_at(self, bank->stream);
    bool own = user->state == STRATA_USER_NAMED && user->stream == stack->stream && user->thread == stack->thread;
    return own ? hint : 0;
}
void strata_caching_bank_end_if_empty(caching_t *self, uint32_t node);
/* Returns true if any stream may use the memory of a bank. Its stream must be gone and its work done, and no
 * graph may use the memory. */
bool strata_caching_bank_is_unowned(caching_t *self, const caching_bank_t *bank);
uint32_t strata_caching_unavailable(strata_layer_t *base, const strata_record_t *block, uint64_t size, strata_stream_t *stream);

/* ---- segments (caching_segments.c) ---- */

extern const strata_chunk_policy_t strata_caching_policy;

/* Frees a block, coalesces it with its free neighbors and inserts it into its bank. */
void strata_caching_free_block(caching_t *self, strata_record_t *block);
/* Returns the tree of a bank's free blocks of a kind. All blocks of a segment are in one tree. */
static inline strata_tree_t *caching_tree(const caching_t *self, uint32_t bank, uint32_t kind) {
    uint8_t code = caching_code(bank, kind);
    return code ? self->trees[code] : &caching_bank_at(self, bank)->idle[kind];
}
static inline strata_tree_t *caching_tree_of(const caching_t *self, const strata_record_t *block) {
    if (block->pool) return self->trees[block->pool];
    return caching_tree(self, caching_bank_of(self, block), caching_kind_of(self, block));
}
/* The position in a walk of the idle blocks of a kind, by stream, size and address. It is kept by value,
 * because a bank may end with its last segment. */
typedef struct strata_caching_walk {
    strata_order_key_t bank;
    uint32_t kind;
    uint64_t size, ptr;
} strata_caching_walk_t;
/* Returns the next block for which `wanted` returns true, or 0. */
uint32_t strata_caching_next_idle(caching_t *self, strata_caching_walk_t *walk,
                                  bool (*wanted)(caching_t *self, const strata_record_t *block));
/* Gives back all idle segments, and returns their bytes. This function and the next two open the lock, and keep
 * every segment with a split block. */
uint64_t strata_caching_release_all(caching_t *self, strata_call_t *call);
/* Gives back blocks of a bank that are too large to be split: one that is large enough, or several. Returns
 * true if they were enough. */
bool strata_caching_release_oversize(caching_t *self, uint32_t bank, uint32_t kind, uint64_t rounded, strata_call_t *call);
/* Gives back large blocks of at least the mean age, until the reserved bytes are at most the threshold. */
void strata_caching_collect(caching_t *self, strata_call_t *call);

/* ---- segments that expand (caching_vmm_segments.c) ---- */

static inline caching_range_t *caching_range_at(const caching_t *self, uint32_t range) { return strata_node(&self->ranges, range); }
/* Returns the free block with the least room, in the manner of the peer's best fit. It walks the tree from
 * `slot` on as long as the next block has less room. The room of a block is its size and the unmapped addresses
 * after it. */
uint32_t strata_caching_least_room(const caching_t *self, const strata_tree_t *idle, uint32_t slot);
/* Maps handles for a block of `size` bytes at the lowest place that is wide enough. The caller grows the bank
 * and kind. *slot is set to a free block of at least that size, which is in no tree. Opens the locks. */
strata_status_t strata_caching_expand(caching_t *self, uint32_t bank, uint32_t kind, uint64_t size, const strata_request_t *request,
                                      uint32_t *slot);
/* Unmaps handles that are free as a whole, up to `most` bytes rounded up, after the host has waited for their
 * streams. Returns the bytes. `bank` and `kind` are those that the caller grows, or 0. Opens the locks. */
uint64_t strata_caching_unmap_idle(caching_t *self, uint32_t bank, uint32_t kind, uint64_t most, strata_call_t *call);
/* Returns true if the free block contains a whole handle. */
bool strata_caching_has_idle_handle(caching_t *self, const strata_record_t *block);
strata_status_t strata_caching_validate_ranges(const caching_t *self);

/* ---- shared by the types (caching.c) ---- */

extern const strata_stat_row_t strata_caching_stats[];
strata_status_t strata_caching_create(strata_layer_t *base);
void strata_caching_destroy(strata_layer_t *base);
strata_status_t strata_caching_allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record);
void strata_caching_free(strata_layer_t *base, strata_record_t *block, strata_call_t *call);
strata_record_t *strata_caching_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_caching_quick_free(strata_layer_t *base, strata_record_t *block);
strata_record_t *strata_caching_hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                       const strata_stack_t *stack);
uint64_t strata_caching_idle_bytes(strata_layer_t *base);

/* Option rows that have the same meaning in each type. */
#define STRATA_CACHING_AT(name) offsetof(caching_options_t, name)
#define STRATA_CACHING_DIVISIONS_ROW                                                                                               \
    {                                                                                                                              \
        "roundup_power2_divisions", STRATA_OPTION_TEXT, STRATA_CACHING_AT(roundup_power2_divisions), "0", 0, 0, NULL,              \
            "rounding steps between powers of two for larger requests: 4, or by size in MiB: \"[256:1,512:2,>:8]\"; 0 and "        \
            "1 for multiples of 512 bytes"                                                                                         \
    }
#define STRATA_CACHING_NON_SPLIT_ROUNDING_ROW                                                                                      \
    {                                                                                                                              \
        "max_non_split_rounding", STRATA_OPTION_SIZE, STRATA_CACHING_AT(max_non_split_rounding), "20MiB", 20ull << 20, 2ull << 30, \
            NULL, "max bytes by which an unsplit block may exceed its request"                                                     \
    }
#define STRATA_CACHING_MEMORY_FRACTION_ROW                                                                                         \
    {                                                                                                                              \
        "memory_fraction", STRATA_OPTION_FRACTION, STRATA_CACHING_AT(memory_fraction), "1", 0, 1000000, NULL,                      \
            "max share of device memory for all streams; beyond it requests fail without a device call"                            \
    }
#define STRATA_CACHING_RECLAIM_ROW                                                                                                 \
    {                                                                                                                              \
        "reclaim", STRATA_OPTION_CHOICE, STRATA_CACHING_AT(reclaim), "own", 0, 0, "own|ladder",                                    \
            "recovery from out-of-memory: `own` for PyTorch's steps only; `ladder` for the domain's"                               \
    }
#define STRATA_CACHING_POOLS_ON_OOM_ROW                                                                                            \
    {                                                                                                                              \
        "pools_on_oom", STRATA_OPTION_BOOL, STRATA_CACHING_AT(pools_on_oom), "false", 0, 0, NULL,                                  \
            "in a named pool's stack: serve failing requests outside pools from free blocks of their stream (use_on_oom "          \
            "of PyTorch's MemPool)"                                                                                                \
    }
#define STRATA_CACHING_SEARCH_AFTER_EVENTS_ROW                                                                                     \
    {                                                                                                                              \
        "search_after_events", STRATA_OPTION_BOOL, STRATA_CACHING_AT(search_after_events), "false", 0, 0, NULL,                    \
            "when out of memory, search again after waiting for all events, before free blocks go back (PyTorch #189504 "          \
            "fails here)"                                                                                                          \
    }
#define STRATA_CACHING_REUSE_IN_CAPTURE_ROW                                                                                        \
    {                                                                                                                              \
        "reuse_in_capture", STRATA_OPTION_BOOL, STRATA_CACHING_AT(reuse_in_capture), "false", 0, 0, NULL,                          \
            "reuse a block borrowed and freed in a capture once its stream has joined the borrowers, before the capture "          \
            "ends (graph_capture_record_stream_reuse of PyTorch)"                                                                  \
    }

strata_status_t strata_caching_validate(strata_layer_t *base);
void strata_caching_figures(caching_t *self);

#endif
