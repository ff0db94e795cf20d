/* The list of chunks, and the chunk of an address. */
#include "allocation/cache/chunks.h"

#include <string.h>

#include "allocation/stack/handles.h"
#include "platform/arithmetic.h"

static strata_slab_t *slab_of(const strata_layer_t *base) { return &base->stack->slab; }

bool strata_chunks_are_stream_ordered(const strata_layer_t *below) {
    if (below->type->role == STRATA_DECORATOR || (below->type->gives & STRATA_TRAIT_STREAM_ORDERED)) return true;
    for (uint32_t i = 0; i < below->below_count; i++)
        if (strata_chunks_are_stream_ordered(below->below[i])) return true;
    return false;
}

strata_status_t strata_chunks_init(strata_layer_t *base, const strata_chunk_policy_t *policy, size_t node_size, uint32_t capacity) {
    strata_chunks_t *self = (strata_chunks_t *)base;
    self->policy = policy;
    self->unit = 1;
    const strata_plan_t *plan = base->stack->group->plan;
    uint32_t caches = 0;
    for (uint32_t n = 1; n <= plan->count; n++) caches += plan->nodes[n].type->role == STRATA_CACHE;
    self->sole = caches == 1;
    self->ordered = policy->is_in_use && strata_chunks_are_stream_ordered(base->below[0]);
    strata_status_t status = strata_nodes_init(&self->nodes, node_size, capacity);
    if (status != STRATA_OK) return status;
    strata_order_init(&self->by_address, &self->nodes, offsetof(strata_chunk_t, by_address));
    strata_condition_init(&self->grown);
    return STRATA_OK;
}

/* Nothing is joined below a router: its branches have separate sources, and their chunks must stay separate. */
strata_status_t strata_chunks_enable_joining(strata_chunks_t *self) {
    const strata_layer_t *above = &self->base;
    strata_layer_t *layer = above->below[0];
    while (layer->type->role == STRATA_DECORATOR && layer->below_count == 1) layer = layer->below[0];
    if (layer->below_count > 1 || !strata_below_gives(above, STRATA_TRAIT_CONTIGUOUS)) return STRATA_OK;
    const strata_handles_t *handles = STRATA_LAYER_HAS(layer->type, handles) ? layer->type->handles : NULL;
    strata_status_t status = handles ? handles->place_adjacent(layer) : STRATA_OK;
    self->joins = status == STRATA_OK;
    return status == STRATA_E_UNSUPPORTED ? STRATA_OK : status;
}

void strata_chunks_destroy(strata_layer_t *base) {
    strata_chunks_t *self = (strata_chunks_t *)base;
    STRATA_EACH_CHUNK(self, number)
        for (uint32_t part = number; part; part = strata_chunk_at(self, part)->part)
            strata_chunk_free(strata_chunk_at(self, part)->below);
    strata_condition_destroy(&self->grown);
    strata_repeats_destroy(&self->repeats);
    strata_nodes_destroy(&self->nodes);
}

bool strata_chunk_is_idle(const strata_layer_t *self, const strata_chunk_t *chunk) {
    const strata_slab_t *slab = slab_of(self);
    return strata_slab_is_idle(slab, chunk->first) && strata_slab_record(slab, chunk->first)->size == chunk->size;
}

/* ---- adding ---- */

void strata_chunks_list(strata_chunks_t *self, uint32_t number) {
    strata_chunk_t *chunk = strata_chunk_at(self, number);
    const strata_order_key_t key = {chunk->base, number, 0};
    strata_order_add(&self->by_address, number, &key);
    uint32_t prev = self->sorted ? strata_order_before(&self->by_address, &key) : self->last;
    uint32_t next = prev ? strata_chunk_at(self, prev)->next : self->first;
    chunk->prev = prev;
    chunk->next = next;
    *(prev ? &strata_chunk_at(self, prev)->next : &self->first) = number;
    *(next ? &strata_chunk_at(self, next)->prev : &self->last) = number;
    self->count++;
}

/* Returns the chunk that ends at an address, or 0 if there is none. */
static uint32_t chunk_before(strata_chunks_t *self, uint64_t address) {
    const strata_order_key_t key = {address, 0, 0};
    uint32_t number = self->joins ? strata_order_before(&self->by_address, &key) : 0;
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    return number && chunk->base + chunk->size == address ? number : 0;
}

static void append_chunk(strata_chunks_t *self, uint32_t number, uint32_t part) {
    strata_chunk_t *chunk = strata_chunk_at(self, number);
    const strata_chunk_t *other = strata_chunk_at(self, part);
    strata_slab_record(slab_of(&self->base), chunk->last)->next = other->first;
    strata_slab_record(slab_of(&self->base), other->first)->prev = chunk->last;
    strata_chunk_at(self, chunk->last_part ? chunk->last_part : number)->part = part;
    chunk->last_part = part;
    chunk->last = other->first;
    chunk->size += other->size;
}

void strata_chunks_count_in(strata_chunks_t *self, const strata_record_t *below, uint64_t size) {
    strata_statistics_t *f = &self->base.stack->figures;
    f->growths++;
    f->chunks++;
    f->reserved_bytes += strata_record_reserved(below);
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
    self->bytes += size;
    self->held += size;
}

uint32_t strata_chunks_add(strata_chunks_t *self, strata_record_t *below) {
    uint64_t size = strata_round_down(below->size, self->unit);
    uint32_t number = strata_nodes_acquire(&self->nodes), joined = chunk_before(self, below->ptr);
    uint32_t slot = number ? strata_block_list_begin(slab_of(&self->base), joined ? joined : number, below->ptr, size) : 0;
    if (slot == 0) {
        if (number) strata_nodes_release(&self->nodes, number);
        return 0;
    }
    strata_chunk_t *chunk = memset(strata_chunk_at(self, number), 0, self->nodes.node_size);
    *chunk = (strata_chunk_t){.first = slot, .last = slot, .base = below->ptr, .size = size, .below = below};
    if (joined) append_chunk(self, joined, number);
    else strata_chunks_list(self, number);
    strata_chunks_count_in(self, below, size);
    return joined ? joined : number;
}

uint32_t strata_chunks_move_block(strata_chunks_t *self, uint32_t slot) {
    strata_slab_t *slab = slab_of(&self->base);
    strata_chunk_t *chunk = strata_chunk_at(self, strata_slab_record(slab, slot)->chunk);
    uint32_t fresh = strata_block_list_move(slab, slot);
    if (fresh && chunk->first == slot) chunk->first = fresh;
    if (fresh && chunk->last == slot) chunk->last = fresh;
    return fresh;
}

/* ---- removing ---- */

void strata_chunks_unlist(strata_chunks_t *self, uint32_t number) {
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    *(chunk->prev ? &strata_chunk_at(self, chunk->prev)->next : &self->first) = chunk->next;
    *(chunk->next ? &strata_chunk_at(self, chunk->next)->prev : &self->last) = chunk->prev;
    strata_order_remove(&self->by_address, number);
    self->count--;
}

void strata_chunks_count_out(strata_chunks_t *self, const strata_record_t *below, uint64_t size) {
    strata_statistics_t *f = &self->base.stack->figures;
    f->chunks--;
    f->reserved_bytes -= strata_record_reserved(below);
    self->bytes -= size;
    self->held -= size;
}

void strata_chunks_detach(strata_chunks_t *self, uint32_t number, strata_detached_t *detached) {
    strata_chunk_t *chunk = strata_chunk_at(self, number);
    self->policy->unindex_chunk(&self->base, chunk);
    for (uint32_t slot = chunk->first, next; slot; slot = next) {
        next = strata_slab_record(slab_of(&self->base), slot)->next;
        strata_slab_release(slab_of(&self->base), slot);
    }
    strata_chunks_unlist(self, number);
    for (uint32_t part = number; part; part = strata_chunk_at(self, part)->part) {
        const strata_record_t *below = strata_chunk_at(self, part)->below;
        strata_chunks_count_out(self, below, strata_round_down(below->size, self->unit));
    }
    chunk->chain = 0;
    *(detached->last ? &strata_chunk_at(self, detached->last)->chain : &detached->first) = number;
    detached->last = number;
    detached->bytes += chunk->size;
}

/* ---- walk and find ---- */

void strata_chunks_walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    const strata_chunks_t *self = (const strata_chunks_t *)base;
    STRATA_EACH_CHUNK(self, number)
        STRATA_EACH_BLOCK(self, number, slot)
            if (strata_slab_record(slab_of(base), slot)->size) block(strata_slab_record(slab_of(base), slot), context);
}

const strata_record_t *strata_chunks_find(strata_layer_t *base, uint64_t address) {
    strata_chunks_t *self = (strata_chunks_t *)base;
    uint32_t number = strata_chunks_number_at(self, address);
    if (number == 0) return NULL;
    const strata_record_t *block = strata_slab_record(slab_of(base), strata_chunk_at(self, number)->first);
    while (address - block->ptr >= block->size) block = strata_slab_record(slab_of(base), block->next);
    return block;
}

const strata_record_t *strata_chunks_chunk_of(strata_layer_t *base, const strata_record_t *block) {
    strata_chunks_t *self = (strata_chunks_t *)base;
    return strata_chunk_at(self, self->one_number ? strata_chunks_number_at(self, block->ptr) : block->chunk)->below;
}
