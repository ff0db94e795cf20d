/* buffered: freed blocks are kept and served again as they are, neither cut nor merged: the smallest cache there is.
 *
 * The rules are those of Paddle's BufferedAllocator: the smallest kept block that fits, if it is smaller than twice the
 * request; when the layer below is out of memory kept blocks go back, the largest first, until as much as was asked is free,
 * and it is asked once more. Every block is a chunk of its own, so a thread that misses has nothing to hope for from another's growth.
 */
#include "allocation/mechanism/tree.h"
#include "allocation/stack/layer.h"

enum { CHUNKS = 1 << 22 };

typedef struct buffered_options {
    double reuse_below;
} buffered_options_t;

static const strata_option_row_t options[] = {
    {"reuse_below", STRATA_OPTION_FRACTION, offsetof(buffered_options_t, reuse_below), "2", 1000000, 1000000000, NULL,
     "a kept block serves a request if it is smaller than this many times the request; 1: of exactly its size"},
    {0},
};

/* An unused node begins with the number of the next. */
typedef struct chunk {
    uint32_t unused;
    uint32_t slot; /* of the block, which is the whole chunk */
    strata_record_t *below; /* NULL: nobody's node */
} chunk_t;

typedef struct buffered {
    strata_layer_t base;
    strata_tree_t kept;
    strata_nodes_t chunks;
    uint32_t count;
    uint64_t bytes, reserved_bytes;
} buffered_t;

static strata_slab_t *slab_of(buffered_t *self) { return &self->base.stack->slab; }

static chunk_t *chunk_at(buffered_t *self, uint32_t number) { return strata_node(&self->chunks, number); }

/* ---- hit ---- */

static bool is_near(const buffered_t *self, uint64_t kept, uint64_t size) {
    double below = ((const buffered_options_t *)self->base.options)->reuse_below * (double)size;
    return kept == size || ((double)kept < below && kept - size <= UINT32_MAX);
}

static strata_record_t *hit(strata_layer_t *base, size_t size, size_t alignment) {
    buffered_t *self = (buffered_t *)base;
    uint32_t slot = strata_tree_find(&self->kept, slab_of(self), size);
    strata_record_t *block = slot ? strata_slab_record(slab_of(self), slot) : NULL;
    if (!block || !is_near(self, block->size, size) || (block->ptr & (alignment - 1)) != 0) return NULL;
    strata_tree_remove(&self->kept, slab_of(self), slot);
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)(block->size - size);
    block->state = STRATA_RECORD_LIVE;
    block->borrows = 0;
    base->stack->figures.cache_hits++;
    return block;
}

/* ---- free ---- */

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    buffered_t *self = (buffered_t *)base;
    /* A slot without generations left can be kept for nobody. */
    if (block->generation >= STRATA_GENERATION_LAST) return false;
    block->state = STRATA_RECORD_FREE;
    block->slack = 0;
    strata_tree_insert(&self->kept, slab_of(self), strata_slab_slot(slab_of(self), block));
    return true;
}

/* Takes a block that is in no index out of the layer; its chunk is the caller's to give back once the lock is open. */
static strata_record_t *detach(buffered_t *self, strata_record_t *block) {
    uint32_t number = block->chunk;
    strata_record_t *below = chunk_at(self, number)->below;
    strata_statistics_t *f = &self->base.stack->figures;
    uint64_t reserved = strata_record_reserved(below);
    f->chunks--;
    f->reserved_bytes -= reserved;
    self->count--;
    self->bytes -= below->size;
    self->reserved_bytes -= reserved;
    chunk_at(self, number)->below = NULL;
    strata_nodes_give(&self->chunks, number);
    strata_slab_give(slab_of(self), strata_slab_slot(slab_of(self), block));
    return below;
}

static void give_back(strata_record_t *below, strata_call_t *call) {
    strata_opened_t opened = strata_call_unlock(call);
    strata_chunk_free(below);
    strata_call_lock(call, opened);
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    if (!quick_free(base, block)) give_back(detach((buffered_t *)base, block), call);
}

/* Gives kept blocks back, the largest first, until `wanted` bytes are free; the bytes. */
static uint64_t give_largest(buffered_t *self, uint64_t wanted, strata_call_t *call) {
    uint64_t given = 0;
    while (given < wanted && self->kept.count > 0) {
        uint32_t slot = strata_tree_find(&self->kept, slab_of(self), strata_tree_largest(&self->kept, slab_of(self)));
        strata_record_t *block = strata_slab_record(slab_of(self), slot);
        given += block->size;
        strata_tree_remove(&self->kept, slab_of(self), slot);
        give_back(detach(self, block), call);
    }
    return given;
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) { return give_largest((buffered_t *)base, UINT64_MAX, call); }

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    buffered_t *self = (buffered_t *)base;
    return self->kept.bytes > keep ? give_largest(self, self->kept.bytes - keep, call) : 0;
}

/* ---- growth ---- */

/* The lock is held; NULL: no slot or node is left (E_LIMIT). */
static strata_record_t *take_in(buffered_t *self, strata_record_t *below, size_t size) {
    strata_slab_t *slab = slab_of(self);
    uint32_t number = strata_nodes_take(&self->chunks), slot = number ? strata_slab_take(slab) : 0;
    if (slot == 0) {
        if (number) strata_nodes_give(&self->chunks, number);
        strata_fail(STRATA_E_LIMIT, 0, "a stack holds %u blocks, its most", slab->capacity);
        return NULL;
    }
    *chunk_at(self, number) = (chunk_t){.slot = slot, .below = below};
    strata_record_t *block = strata_slab_record(slab, slot);
    *block = (strata_record_t){.ptr = below->ptr,
                               .size = below->size,
                               .generation = block->generation,
                               .home = slab->home,
                               .stack = slab->home,
                               .chunk = number,
                               .state = STRATA_RECORD_LIVE,
                               .slack = (uint32_t)(below->size - size)};
    strata_statistics_t *f = &self->base.stack->figures;
    uint64_t reserved = strata_record_reserved(below);
    self->count++;
    self->bytes += below->size;
    self->reserved_bytes += reserved;
    f->growths++;
    f->chunks++;
    f->reserved_bytes += reserved;
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
    return block;
}

/* Asks below, with the locks open. */
static strata_status_t grow(buffered_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_record_t *below;
    strata_opened_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_chunk_allocate(&self->base, request->size, request, &below);
    strata_call_lock(request->call, opened);
    if (status != STRATA_OK) return status;
    *record = take_in(self, below, request->size);
    if (*record) return STRATA_OK;
    give_back(below, request->call);
    return STRATA_E_LIMIT;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    buffered_t *self = (buffered_t *)base;
    *record = hit(base, request->size, request->alignment);
    if (*record) return STRATA_OK;
    if (request->flags & STRATA_NO_GROW)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "no kept block is near %zu bytes, and no growth is allowed", request->size);
    strata_status_t status = grow(self, request, record);
    if (status != STRATA_E_NO_MEMORY || give_largest(self, request->size, request->call) == 0) return status;
    return grow(self, request, record);
}

/* A kept block serves a request only where it lies as that asks. */
static uint64_t alignment(const void *filled, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)filled, (void)place, (void)wanted;
    return below;
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    return strata_nodes_init(&((buffered_t *)base)->chunks, sizeof(chunk_t), CHUNKS);
}

/* Every chunk goes back, whatever is still live. */
static void destroy(strata_layer_t *base) {
    buffered_t *self = (buffered_t *)base;
    for (uint32_t number = 1; number < self->chunks.used; number++)
        if (chunk_at(self, number)->below) strata_chunk_free(chunk_at(self, number)->below);
    strata_nodes_destroy(&self->chunks);
}

static void walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    buffered_t *self = (buffered_t *)base;
    for (uint32_t number = 1; number < self->chunks.used; number++)
        if (chunk_at(self, number)->below) block(strata_slab_record(slab_of(self), chunk_at(self, number)->slot), context);
}

static const strata_record_t *chunk_of(strata_layer_t *base, const strata_record_t *block) {
    return chunk_at((buffered_t *)base, block->chunk)->below;
}

static uint64_t idle_bytes(strata_layer_t *base) { return ((buffered_t *)base)->kept.bytes; }

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "buffered: %s (slot %u)", what, slot);
}

static strata_status_t validate(strata_layer_t *base) {
    buffered_t *self = (buffered_t *)base;
    const strata_statistics_t *f = &base->stack->figures;
    uint32_t count = 0, kept = 0;
    uint64_t bytes = 0;
    for (uint32_t number = 1; number < self->chunks.used; number++) {
        const chunk_t *chunk = chunk_at(self, number);
        if (!chunk->below) continue;
        if (chunk->slot >= slab_of(self)->used) return corrupt("a chunk names a slot outside of the slab", chunk->slot);
        const strata_record_t *block = strata_slab_record(slab_of(self), chunk->slot);
        if (block->chunk != number) return corrupt("a block names another chunk", chunk->slot);
        if (block->ptr != chunk->below->ptr || block->size != chunk->below->size)
            return corrupt("a block is not its chunk", chunk->slot);
        if (block->state == STRATA_RECORD_UNUSED) return corrupt("a chunk has an unused slot", chunk->slot);
        kept += block->state == STRATA_RECORD_FREE;
        bytes += block->size;
        count++;
    }
    if (count != self->count || bytes != self->bytes || f->chunks < count || f->reserved_bytes < self->reserved_bytes)
        return corrupt("the sum of chunks is wrong", 0);
    if (kept != self->kept.count) return corrupt("the number of kept blocks is wrong", 0);
    return strata_tree_validate(&self->kept, slab_of(self));
}

const strata_layer_type_t strata_buffered_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "buffered",
    .doc = "keeps freed blocks and serves them again as they are (Paddle's BufferedAllocator)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(buffered_t),
    .options_size = sizeof(buffered_options_t),
    .options = options,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = hit,
    .quick_free = quick_free,
    .release = release,
    .trim = trim,
    .walk = walk,
    .chunk_of = chunk_of,
    .idle_bytes = idle_bytes,
    .alignment = alignment,
    .validate = validate,
};
