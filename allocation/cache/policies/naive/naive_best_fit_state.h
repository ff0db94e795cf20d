/* The state of naive_best_fit and thread_local: Paddle's buddy, a pool of chunks that are shares of the memory. The type
 * naive_best_fit has a pool per device, and thread_local one per thread. With `streams: own` each stream of these has one.
 *
 *     naive_best_fit.c         options, allocate, free, the type; thread_local.c has the other type
 *     naive_best_fit_sizes.c   the sizes of chunks
 *     naive_best_fit_check.c   validates the whole structure */
#ifndef STRATA_ALLOCATION_LAYER_NAIVE_BEST_FIT_STATE_H
#define STRATA_ALLOCATION_LAYER_NAIVE_BEST_FIT_STATE_H

#include "allocation/cache/serve.h"
#include "allocation/mechanism/buddy.h"
#include "allocation/uses/last_users.h"

enum { STRATA_NAIVE_CHUNKS = 1 << 20 };

typedef struct naive_options {
    double fraction;
    uint64_t initial, reallocate, min_block, header, parts, memory;
    uint32_t streams;
    bool smaller_growth, stable_addresses;
} naive_options_t;

/* Values of `pool` in a block's record. A huge block is a chunk of its own. It was allocated for a request that
 * is larger than the pool's blocks, and is freed with it. */
enum { STRATA_NAIVE_POOLED, STRATA_NAIVE_HUGE };

typedef struct naive {
    union {
        strata_layer_t base;
        strata_chunks_t chunks;
    };
    strata_buddy_t buddy;
    uint64_t max_block; /* rounded requests above it are huge; set by the first request */
    bool sized; /* max_block is set */
    bool hits; /* max_block is set, and there are no stable addresses, so the fast path may serve */
    bool one_user; /* the instance serves one stream, or memory without owner streams, so it keeps no marks */
    strata_last_users_t last; /* used if the instance serves several streams; `user` of a live block is one of these */
    uint64_t huge_bytes;
    uint64_t used_bytes, waits, huge_blocks; /* statistics */
} naive_t;

static inline const naive_options_t *naive_options_of(const naive_t *self) { return self->base.options; }
static inline strata_slab_t *naive_slab(const naive_t *self) { return &self->base.stack->slab; }
static inline strata_record_t *naive_block(const naive_t *self, uint32_t slot) {
    return strata_slab_record(naive_slab(self), slot);
}
static inline uint64_t naive_idle(const naive_t *self) { return self->buddy.idle.bytes; }
/* Returns the bytes of the chunks that are not huge blocks. */
static inline uint64_t naive_pool_bytes(const naive_t *self) { return self->chunks.bytes - self->huge_bytes; }

/* ---- for both types (naive_best_fit.c) ---- */

extern const strata_option_row_t strata_naive_options[];
extern const strata_stat_row_t strata_naive_stats[];
strata_status_t strata_naive_check(const void *options, strata_place_kind_t place, const char **option);
strata_status_t strata_naive_create(strata_layer_t *base);
void strata_naive_destroy(strata_layer_t *base);
strata_status_t strata_naive_allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record);
void strata_naive_free(strata_layer_t *base, strata_record_t *block, strata_call_t *call);
strata_record_t *strata_naive_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_naive_quick_free(strata_layer_t *base, strata_record_t *block);
void strata_naive_notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call);
uint64_t strata_naive_idle_bytes(strata_layer_t *base);
strata_record_t *strata_naive_hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested, const strata_stack_t *stack);

/* The fields of both types, except name, doc and scope. */
#define STRATA_NAIVE_TYPE                                                                                                          \
    .role = STRATA_CACHE, .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,          \
    .guarded = true, .state_size = sizeof(naive_t), .options_size = sizeof(naive_options_t), .options = strata_naive_options,      \
    .stats = strata_naive_stats, .create = strata_naive_create, .destroy = strata_naive_destroy,                                   \
    .allocate = strata_naive_allocate, .free = strata_naive_free, .hit = strata_naive_hit, .quick_free = strata_naive_quick_free,  \
    .release = strata_chunks_release, .notify = strata_naive_notify, .trim = strata_chunks_trim, .walk = strata_chunks_walk,       \
    .find = strata_chunks_find, .chunk_of = strata_chunks_chunk_of, .idle_bytes = strata_naive_idle_bytes,                         \
    .validate = strata_naive_validate, .check = strata_naive_check,                                                                \
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED | 1u << STRATA_NOTICE_STEP | 1u << STRATA_NOTICE_FIGURES,                      \
    .hit_at = strata_naive_hit_at

/* ---- sizes; these functions open the locks ---- */

/* Sets max_block, once. */
strata_status_t strata_naive_size(naive_t *self, const strata_request_t *request);
/* Computes the bytes that the pool requests from below if no free block fits. Fails with E_NO_MEMORY if they
 * exceed its share. */
strata_status_t strata_naive_growth(naive_t *self, uint64_t rounded, const strata_request_t *request, uint64_t *size);

strata_status_t strata_naive_validate(strata_layer_t *base);

#endif
