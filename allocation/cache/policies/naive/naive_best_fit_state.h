/* What naive_best_fit and thread_local share: Paddle's buddy, a pool of chunks whose sizes are shares of the memory. The one has a
 * pool for a device, the other one for each thread; with `streams: own` there is one for each stream of these.
 *
 *     naive_best_fit.c         options, allocate, free, the type; thread_local.c has the other type
 *     naive_best_fit_sizes.c   how large chunks are
 *     naive_best_fit_check.c   the check of the whole structure */
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

/* In `pool` of a block's record. A huge block is a chunk of its own: it came for a request that is larger than the pool serves, and
 * goes with it. */
enum { STRATA_NAIVE_POOLED, STRATA_NAIVE_HUGE };

typedef struct naive {
    union {
        strata_layer_t base;
        strata_chunks_t chunks;
    };
    strata_buddy_t buddy;
    uint64_t max_block; /* rounded requests above it are huge; set by the first request */
    bool sized; /* max_block is told */
    bool hits; /* so it is, and no request asks for the place of the last step */
    bool one_user; /* one stream's own, or memory without owner streams: no marks are kept */
    strata_last_users_t last; /* if it has several; in `bin_prev` of a live block its user */
    uint64_t huge_bytes;
    uint64_t used_bytes, waits, huge_blocks; /* figures */
} naive_t;

static inline const naive_options_t *naive_options_of(const naive_t *self) { return self->base.options; }
static inline strata_slab_t *naive_slab(const naive_t *self) { return &self->base.stack->slab; }
static inline strata_record_t *naive_block(const naive_t *self, uint32_t slot) {
    return strata_slab_record(naive_slab(self), slot);
}
static inline uint64_t naive_idle(const naive_t *self) { return self->buddy.idle.bytes; }
/* Bytes of the chunks that are not huge blocks. */
static inline uint64_t naive_pool_bytes(const naive_t *self) { return self->chunks.bytes - self->huge_bytes; }

/* ---- both types' (naive_best_fit.c) ---- */

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
strata_record_t *strata_naive_take_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                      const strata_stack_t *stack);

/* What the two types have in common: everything except name, doc and scope. */
#define STRATA_NAIVE_TYPE                                                                                                          \
    .role = STRATA_CACHE, .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,          \
    .guarded = true, .state_size = sizeof(naive_t), .options_size = sizeof(naive_options_t), .options = strata_naive_options,      \
    .stats = strata_naive_stats, .create = strata_naive_create, .destroy = strata_naive_destroy,                                   \
    .allocate = strata_naive_allocate, .free = strata_naive_free, .hit = strata_naive_hit, .quick_free = strata_naive_quick_free,  \
    .release = strata_chunks_release, .notify = strata_naive_notify, .trim = strata_chunks_trim, .walk = strata_chunks_walk,       \
    .find = strata_chunks_find, .chunk_of = strata_chunks_chunk_of, .idle_bytes = strata_naive_idle_bytes,                         \
    .validate = strata_naive_validate, .check = strata_naive_check,                                                                \
    .notices = 1u << STRATA_NOTICE_STREAM_GONE | 1u << STRATA_NOTICE_STEP | 1u << STRATA_NOTICE_FIGURES,                           \
    .take_at = strata_naive_take_at

/* ---- sizes; the locks are opened ---- */

/* Tells max_block, once. */
strata_status_t strata_naive_size(naive_t *self, const strata_request_t *request);
/* What the pool asks from below for a request that no free block serves. E_NO_MEMORY: more than its share. */
strata_status_t strata_naive_growth(naive_t *self, uint64_t rounded, const strata_request_t *request, uint64_t *size);

strata_status_t strata_naive_validate(strata_layer_t *base);

#endif
