/* buffered: keeps freed blocks and serves them again whole, neither split nor coalesced. It is the smallest
 * cache.
 *
 * The rules are those of Paddle's BufferedAllocator. The smallest kept block that fits serves a request if it
 * is smaller than twice the request. When the layer below is out of memory, kept blocks go back, the largest
 * first, until they make up the requested bytes. Then the layer below is asked once more. Every block is a
 * chunk of its own, so a thread that misses gains nothing from another's growth. */
#include "allocation/cache/chunks.h"
#include "allocation/mechanism/tree.h"

enum { CHUNKS = 1 << 22 };

typedef struct buffered_options {
    double reuse_below;
} buffered_options_t;

static const strata_option_row_t options[] = {
    {"reuse_below", STRATA_OPTION_FRACTION, offsetof(buffered_options_t, reuse_below), "2", 1000000, 1000000000, NULL,
     "a kept block serves requests if smaller than this multiple of their size; 1 for exactly its size"},
    {0},
};

typedef struct buffered {
    union {
        strata_layer_t base;
        strata_chunks_t chunks; /* a block is a whole chunk */
    };
    strata_tree_t kept;
} buffered_t;

static strata_slab_t *slab_of(buffered_t *self) { return &self->base.stack->slab; }

/* ---- hit ---- */

static bool is_near(const buffered_t *self, uint64_t kept, uint64_t size) {
    double below = ((const buffered_options_t *)self->base.options)->reuse_below * (double)size;
    return kept == size || ((double)kept < below && kept - size <= UINT32_MAX);
}

static strata_record_t *serve_kept(strata_layer_t *base, size_t size, size_t alignment) {
    buffered_t *self = (buffered_t *)base;
    uint32_t slot = strata_tree_find(&self->kept, slab_of(self), size);
    strata_record_t *block = slot ? strata_slab_record(slab_of(self), slot) : NULL;
    if (!block || !is_near(self, block->size, size) || (block->ptr & (alignment - 1)) != 0) return NULL;
    strata_tree_remove(&self->kept, slab_of(self), slot);
    strata_block_hand_out(block, size);
    base->stack->figures.cache_hits++;
    return block;
}

static strata_record_t *hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    (void)stack;
    return serve_kept(base, size, 1);
}

/* ---- free ---- */

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    buffered_t *self = (buffered_t *)base;
    /* A slot with exhausted generations cannot serve another block. */
    if (block->generation >= STRATA_GENERATION_LAST) return false;
    block->state = STRATA_RECORD_FREE;
    block->slack = 0;
    strata_tree_insert(&self->kept, slab_of(self), strata_slab_slot(slab_of(self), block));
    return true;
}

/* A block is not in the index if its slot's generations are exhausted. */
static void unindex_chunk(strata_layer_t *base, const strata_chunk_t *chunk) {
    buffered_t *self = (buffered_t *)base;
    if (strata_slab_is_idle(slab_of(self), chunk->first)) strata_tree_remove(&self->kept, slab_of(self), chunk->first);
}

static void index_remove(strata_layer_t *base, uint32_t slot) {
    buffered_t *self = (buffered_t *)base;
    strata_tree_remove(&self->kept, slab_of(self), slot);
}

static const strata_chunk_policy_t policy = {.unindex_chunk = unindex_chunk, .index_remove = index_remove};

static strata_record_t *hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested, const strata_stack_t *stack) {
    buffered_t *self = (buffered_t *)base;
    const strata_extent_t place = strata_extent_of(at);
    uint32_t slot = strata_chunks_carve_at(&self->chunks, &place);
    if (slot == 0) return NULL;
    strata_record_t *block = strata_slab_record(slab_of(self), slot);
    strata_block_hand_out(block, requested);
    block->stack = stack->number;
    base->stack->figures.cache_hits++;
    return block;
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    buffered_t *self = (buffered_t *)base;
    strata_detached_t leaving = {0};
    if (quick_free(base, block)) return;
    strata_chunks_detach(&self->chunks, block->chunk, &leaving);
    (void)strata_chunks_give_back(&self->chunks, &leaving, call);
}

/* Gives kept blocks back, the largest first, until they have at least `wanted` bytes. Returns the bytes. */
static uint64_t give_largest(buffered_t *self, uint64_t wanted, strata_call_t *call) {
    strata_detached_t leaving = {0};
    while (leaving.bytes < wanted && self->kept.count > 0 && !strata_chunks_are_pinned(&self->chunks)) {
        uint32_t slot = strata_tree_find(&self->kept, slab_of(self), strata_tree_largest(&self->kept, slab_of(self)));
        strata_chunks_detach(&self->chunks, strata_slab_record(slab_of(self), slot)->chunk, &leaving);
    }
    return strata_chunks_give_back(&self->chunks, &leaving, call);
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) { return give_largest((buffered_t *)base, UINT64_MAX, call); }

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    buffered_t *self = (buffered_t *)base;
    return self->kept.bytes > keep ? give_largest(self, self->kept.bytes - keep, call) : 0;
}

/* ---- growth ---- */

static strata_status_t grow(buffered_t *self, const strata_request_t *request, strata_record_t **record) {
    uint32_t number;
    strata_status_t status = strata_chunks_grow(&self->chunks, request->size, 1, request, &number);
    if (status != STRATA_OK) return status;
    *record = strata_slab_record(slab_of(self), strata_chunk_at(&self->chunks, number)->first);
    strata_block_hand_out(*record, request->size);
    return STRATA_OK;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    buffered_t *self = (buffered_t *)base;
    strata_record_t *kept = serve_kept(base, request->size, request->alignment);
    if (kept) {
        *record = kept;
        return STRATA_OK;
    }
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "no kept block is close to %zu bytes, and growth is forbidden", request->size);
    strata_status_t status = grow(self, request, record);
    if (status != STRATA_E_NO_MEMORY || give_largest(self, request->size, request->call) == 0) return status;
    return grow(self, request, record);
}

/* A kept block serves a request only if its alignment is sufficient. */
static uint64_t alignment(const void *filled, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)filled, (void)place, (void)wanted;
    return below;
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) { return strata_chunks_init(base, &policy, sizeof(strata_chunk_t), CHUNKS); }

static uint64_t idle_bytes(strata_layer_t *base) { return ((buffered_t *)base)->kept.bytes; }

static strata_status_t corrupt(const char *what) { return strata_fail(STRATA_E_CORRUPT, 0, "buffered: %s", what); }

static strata_status_t validate(strata_layer_t *base) {
    buffered_t *self = (buffered_t *)base;
    strata_block_list_tally_t pieces = {0};
    strata_status_t status = strata_chunks_validate(&self->chunks, &pieces);
    for (uint32_t number = self->chunks.first; number && status == STRATA_OK; number = strata_chunk_at(&self->chunks, number)->next)
        if (strata_slab_record(slab_of(self), strata_chunk_at(&self->chunks, number)->first)->next)
            status = corrupt("a block does not span its chunk");
    if (status != STRATA_OK) return status;
    if (pieces.free_blocks != self->kept.count) return corrupt("the number of kept blocks is wrong");
    return strata_tree_validate(&self->kept, slab_of(self));
}

const strata_layer_type_t strata_buffered_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "buffered",
    .doc = "keeps freed blocks whole and serves them again (Paddle's BufferedAllocator)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(buffered_t),
    .options_size = sizeof(buffered_options_t),
    .options = options,
    .create = create,
    .destroy = strata_chunks_destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = hit,
    .quick_free = quick_free,
    .release = release,
    .trim = trim,
    .walk = strata_chunks_walk,
    .find = strata_chunks_find,
    .chunk_of = strata_chunks_chunk_of,
    .idle_bytes = idle_bytes,
    .alignment = alignment,
    .validate = validate,
    .hit_at = hit_at,
};
