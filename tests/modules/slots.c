/* A cache that keeps its chunks itself, by the public header alone: chunks of 64 KiB cut into slots of one size, a size for
 * each of the first eight powers of two from 256 bytes; what is larger is a chunk of its own. */
#include "tests/modules/pass.h"

enum { CLASSES = 8, UNIT = 256, CHUNK = 64 << 10, CHUNKS = 4096 };

typedef struct slots_chunk {
    strata_record_t *below;
    uint32_t first; /* slot of its first block, linked by `next` */
    uint32_t live;
    uint8_t kind; /* class of its blocks */
} slots_chunk_t;

typedef struct slots {
    strata_layer_t base;
    uint32_t idle[CLASSES]; /* free blocks of a class, linked by bin_next and bin_prev */
    uint64_t idle_bytes;
    slots_chunk_t chunks[CHUNKS]; /* by number; 0 is none */
} slots_t;

static uint32_t class_of(uint64_t size) {
    uint32_t kind = 0;
    while (kind < CLASSES && (uint64_t)UNIT << kind < size) kind++;
    return kind;
}

static void keep(slots_t *self, strata_record_t *block) {
    uint32_t kind = self->chunks[block->chunk].kind, slot = strata_record_slot(&self->base, block);
    block->state = STRATA_RECORD_FREE;
    block->slack = 0;
    block->bin_prev = 0;
    block->bin_next = self->idle[kind];
    strata_record_at(&self->base, block->bin_next)->bin_prev = slot;
    self->idle[kind] = slot;
    self->idle_bytes += block->size;
}

static void take(slots_t *self, strata_record_t *block) {
    strata_record_at(&self->base, block->bin_next)->bin_prev = block->bin_prev;
    if (block->bin_prev) strata_record_at(&self->base, block->bin_prev)->bin_next = block->bin_next;
    else self->idle[self->chunks[block->chunk].kind] = block->bin_next;
    self->idle_bytes -= block->size;
}

static strata_record_t *hand_out(slots_t *self, strata_record_t *block, uint64_t size) {
    self->chunks[block->chunk].live++;
    strata_block_hand_out(block, size);
    return block;
}

static strata_record_t *serve(slots_t *self, uint64_t size) {
    uint32_t kind = class_of(size), slot = kind < CLASSES ? self->idle[kind] : 0;
    if (!slot) return NULL;
    take(self, strata_record_at(&self->base, slot));
    strata_layer_stack_figures(&self->base)->cache_hits++;
    return hand_out(self, strata_record_at(&self->base, slot), size);
}

/* ---- chunks ---- */

static void count(slots_t *self, const strata_record_t *below, bool comes) {
    strata_statistics_t *figures = strata_layer_stack_figures(&self->base);
    figures->growths += comes;
    figures->chunks += comes ? 1 : UINT64_MAX;
    figures->reserved_bytes += comes ? strata_record_reserved(below) : 0 - strata_record_reserved(below);
    if (figures->reserved_bytes > figures->peak_reserved_bytes) figures->peak_reserved_bytes = figures->reserved_bytes;
}

static uint64_t drop(slots_t *self, uint32_t number, strata_call_t *call) {
    slots_chunk_t chunk = self->chunks[number];
    for (uint32_t slot = chunk.first, next; slot; slot = next) {
        strata_record_t *block = strata_record_at(&self->base, slot);
        next = block->next;
        if (block->state == STRATA_RECORD_FREE) take(self, block);
        strata_record_delete(&self->base, block);
    }
    count(self, chunk.below, false);
    self->chunks[number].first = 0;
    uint64_t bytes = chunk.below->size;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_chunk_free(chunk.below);
    strata_call_lock(call, opened);
    self->chunks[number].below = NULL;
    return bytes;
}

/* Blocks of `each` bytes; the first is handed out. */
static strata_status_t cut(slots_t *self, uint32_t number, uint64_t each, uint64_t size, strata_record_t **record) {
    slots_chunk_t *chunk = &self->chunks[number];
    uint32_t last = 0;
    *record = NULL;
    for (uint64_t at = 0; at + each <= chunk->below->size; at += each) {
        strata_record_t *block = strata_block_new(&self->base, number, chunk->below->ptr + at, each);
        if (!block) return STRATA_E_LIMIT;
        uint32_t slot = strata_record_slot(&self->base, block);
        block->prev = last;
        if (last) strata_record_at(&self->base, last)->next = slot;
        else chunk->first = slot;
        last = slot;
        if (at) keep(self, block);
        else *record = hand_out(self, block, size);
    }
    return STRATA_OK;
}

static strata_status_t grow(slots_t *self, const strata_request_t *request, strata_record_t **record) {
    uint32_t kind = class_of(request->size), number = 1;
    uint64_t each = kind < CLASSES ? (uint64_t)UNIT << kind : (request->size + UNIT - 1) / UNIT * UNIT;
    strata_record_t *below;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_chunk_allocate(&self->base, kind < CLASSES ? CHUNK : each, request, &below);
    strata_call_lock(request->call, opened);
    if (status != STRATA_OK) return status;
    while (number < CHUNKS && self->chunks[number].below) number++;
    if (number == CHUNKS) {
        opened = strata_call_unlock(request->call);
        strata_chunk_free(below);
        strata_call_lock(request->call, opened);
        return strata_fail(STRATA_E_LIMIT, 0, "slots holds %d chunks, the maximum", CHUNKS - 1);
    }
    self->chunks[number] = (slots_chunk_t){.below = below, .kind = (uint8_t)kind};
    count(self, below, true);
    /* A source may grant more than was asked: a large block has all of its chunk. */
    status = cut(self, number, kind < CLASSES ? each : below->size, request->size, record);
    if (status != STRATA_OK) (void)drop(self, number, request->call);
    return status;
}

/* ---- the type ---- */

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    slots_t *self = (slots_t *)base;
    *record = serve(self, request->size);
    if (*record) return STRATA_OK;
    if (request->flags & (STRATA_NO_GROW | STRATA_SMALL_GROWTH))
        return strata_fail(STRATA_E_NO_MEMORY, 0, "slots: nothing is free, and growth is forbidden");
    return grow(self, request, record);
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    slots_t *self = (slots_t *)base;
    slots_chunk_t *chunk = &self->chunks[block->chunk];
    if (block->generation >= STRATA_GENERATION_LAST) return; /* it stays as if it were live */
    chunk->live--;
    if (chunk->kind < CLASSES) keep(self, block);
    else (void)drop(self, block->chunk, call);
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    slots_t *self = (slots_t *)base;
    uint64_t bytes = 0;
    for (uint32_t number = 1; number < CHUNKS; number++)
        if (self->chunks[number].first && self->chunks[number].live == 0) bytes += drop(self, number, call);
    return bytes;
}

static void walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    slots_t *self = (slots_t *)base;
    for (uint32_t number = 1; number < CHUNKS; number++)
        for (uint32_t slot = self->chunks[number].first; slot; slot = strata_record_at(base, slot)->next)
            block(strata_record_at(base, slot), context);
}

static const strata_record_t *chunk_of(strata_layer_t *base, const strata_record_t *block) {
    return ((slots_t *)base)->chunks[block->chunk].below;
}

static uint64_t idle_bytes(strata_layer_t *base) { return ((slots_t *)base)->idle_bytes; }

static void destroy(strata_layer_t *base) {
    slots_t *self = (slots_t *)base;
    for (uint32_t number = 1; number < CHUNKS; number++)
        if (self->chunks[number].below) strata_chunk_free(self->chunks[number].below);
}

static const strata_layer_type_t slots_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "slots",
    .doc = "for tests",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(slots_t),
    .create = strata_layer_create_nothing,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .release = release,
    .walk = walk,
    .chunk_of = chunk_of,
    .idle_bytes = idle_bytes,
};

STRATA_LAYERS(&slots_type);
