/* A request takes the high end of the block that the author's index finds. The rest, however small, remains at
 * the low end. A freed block coalesces with its free neighbors. */
#include "allocation/cache/chunked.h"

#include "allocation/cache/serve.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"

enum { CHUNKS = 1 << 20 };

static strata_slab_t *slab_of(const chunked_t *self) { return &self->base.stack->slab; }

/* ---- the author's index ---- */

static void insert(chunked_t *self, strata_record_t *block) {
    strata_slab_note_idle(slab_of(self), strata_slab_slot(slab_of(self), block));
    self->policy->insert(&self->base, block);
}

static void index_remove(chunked_t *self, strata_record_t *block) {
    strata_slab_note_used(slab_of(self), strata_slab_slot(slab_of(self), block));
    self->policy->remove(&self->base, block);
}

/* ---- hit ---- */

/* Splits off the high end of a block that is in no index. The caller inserts the rest. Returns NULL, with
 * nothing changed, if there is no slot. */
static strata_record_t *split_block(chunked_t *self, strata_record_t *rest, uint64_t size) {
    strata_slab_t *slab = slab_of(self);
    uint32_t slot = strata_slab_acquire(slab), next = rest->next;
    if (__builtin_expect(slot == 0, 0)) return NULL;
    strata_record_t *block = strata_slab_record(slab, slot);
    rest->size -= size;
    rest->next = slot;
    block->ptr = rest->ptr + rest->size;
    block->size = size;
    block->stack = slab->home;
    block->prev = strata_slab_slot(slab, rest);
    block->next = next;
    block->chunk = rest->chunk;
    strata_slab_record(slab, next)->prev = slot; /* the sentinel's `prev` is never read */
    if (next == 0) strata_chunks_note_last(&self->chunks, slot);
    return block;
}

/* Serves a request from a free block that fits. Returns NULL if there is no slot for the rest. */
static strata_record_t *serve(chunked_t *self, strata_record_t *block, uint64_t rounded, uint64_t size) {
    strata_record_t *rest = block;
    index_remove(self, rest);
    if (rest->size > rounded) {
        block = split_block(self, rest, rounded);
        insert(self, rest);
        if (__builtin_expect(!block, 0)) return NULL;
    }
    self->used_bytes += rounded;
    strata_block_hand_out(block, size);
    return block;
}

static strata_record_t *find(chunked_t *self, uint64_t rounded, uint64_t size) {
    strata_record_t *block = self->policy->find(&self->base, rounded);
    return block ? serve(self, block, rounded, size) : NULL;
}

strata_record_t *strata_chunked_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    STRATA_REFUSE_NULL_AS(base, "self", NULL);
    STRATA_REFUSE_NULL_AS(stack, "stack", NULL);
    chunked_t *self = (chunked_t *)base;
    uint64_t unit = self->chunks.unit;
    strata_record_t *block = find(self, (size + unit - 1) & ~(unit - 1), size);
    (void)stack;
    if (block) base->stack->figures.cache_hits++;
    return block;
}

strata_record_t *strata_chunked_hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                       const strata_stack_t *stack) {
    STRATA_REFUSE_NULL_AS(stack, "stack", NULL);
    STRATA_REFUSE_NULL_AS(base, "self", NULL);
    STRATA_REFUSE_NULL_AS(at, "at", NULL);
    chunked_t *self = (chunked_t *)base;
    const strata_extent_t place = strata_extent_of(at);
    uint32_t slot = strata_chunks_carve_at(&self->chunks, &place);
    if (slot == 0) return NULL;
    strata_record_t *block = strata_slab_record(slab_of(self), slot);
    self->used_bytes += place.size;
    strata_block_hand_out(block, requested);
    block->stack = stack->number;
    base->stack->figures.cache_hits++;
    return block;
}

/* ---- free ---- */

/* Moves the block to another slot if the generations of its own are exhausted. Returns NULL if no other slot is
 * free. The block then stays unused until its chunk is freed. */
static strata_record_t *with_generations(chunked_t *self, strata_record_t *block) {
    if (__builtin_expect(block->generation < STRATA_GENERATION_LAST, 1)) return block;
    uint32_t slot = strata_chunks_move_block(&self->chunks, strata_slab_slot(slab_of(self), block));
    if (slot) return strata_slab_record(slab_of(self), slot);
    block->state = STRATA_RECORD_DEFERRED;
    self->used_bytes += block->size;
    return NULL;
}

static void remove_free(void *owner, uint32_t slot) {
    chunked_t *self = owner;
    index_remove(self, strata_slab_record(slab_of(self), slot));
}

static void pass_last(void *owner, uint32_t low, uint32_t high) {
    chunked_t *self = owner;
    strata_chunks_pass_last(&self->chunks, low, high);
}

static const strata_coalesce_t coalesce = {.remove = remove_free, .on_merge = pass_last};

/* Coalesces a block that is in no index with its free neighbors, and inserts the result. */
static void insert_coalesced(chunked_t *self, strata_record_t *block) {
    strata_slab_t *slab = slab_of(self);
    uint32_t slot = strata_block_list_coalesce(slab, strata_slab_slot(slab, block), self, &coalesce);
    block = with_generations(self, strata_slab_record(slab, slot));
    if (!block) return;
    block->state = STRATA_RECORD_FREE;
    insert(self, block);
}

bool strata_chunked_quick_free(strata_layer_t *base, strata_record_t *block) {
    STRATA_REFUSE_NULL_AS(base, "self", false);
    STRATA_REFUSE_NULL_AS(block, "block", false);
    chunked_t *self = (chunked_t *)base;
    self->used_bytes -= block->size;
    insert_coalesced(self, block);
    return true;
}

void strata_chunked_free(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    STRATA_REFUSE_NULL_AS(base, "self", );
    STRATA_REFUSE_NULL_AS(block, "block", );
    STRATA_REFUSE_NULL_AS(call, "call", );
    (void)call;
    (void)strata_chunked_quick_free(base, block);
}

/* ---- growth ---- */

static uint64_t growth_size(const strata_layer_t *base, const strata_lookup_t *lookup) {
    const chunked_t *self = (const chunked_t *)base;
    uint64_t full = self->policy->growth ? self->policy->growth((strata_layer_t *)base, lookup->rounded) : lookup->rounded;
    full = strata_max(lookup->rounded, full);
    if (!(lookup->request->flags & STRATA_SMALL_GROWTH)) return full;
    return lookup->rounded < full ? lookup->rounded : 0;
}

/* The new chunk serves the request, even if the author's index would find another block. */
static strata_status_t grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t size, strata_record_t **record) {
    chunked_t *self = (chunked_t *)base;
    uint32_t number;
    strata_status_t status = strata_chunks_grow(&self->chunks, size, self->chunks.unit, lookup->request, &number);
    if (status != STRATA_OK) return status;
    const strata_chunk_t *chunk = strata_chunk_at(&self->chunks, number);
    strata_record_t *fresh = strata_slab_record(slab_of(self), chunk->last);
    uint32_t before = fresh->prev, slot = strata_slab_is_idle(slab_of(self), before) ? before : chunk->last;
    insert_coalesced(self, fresh);
    *record = serve(self, strata_slab_record(slab_of(self), slot), lookup->rounded, lookup->size);
    return *record ? STRATA_OK
                   : strata_fail(STRATA_E_LIMIT, 0,
                                 "too many blocks: this stack has %u, the maximum; free some, or use more streams or pools",
                                 slab_of(self)->capacity);
}

static strata_status_t search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    *record = find((chunked_t *)base, lookup->rounded, lookup->size);
    return *record ? STRATA_OK : STRATA_E_NO_MEMORY;
}

static const strata_cache_policy_t cache_policy = {
    .search = search, .growth_size = growth_size, .wait = strata_cache_wait_for_pending, .grow = grow};

strata_status_t strata_chunked_allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    STRATA_REFUSE_NULL_AS(base, "self", STRATA_E_INVALID);
    STRATA_REFUSE_NULL(request);
    STRATA_REFUSE_NULL(record);
    strata_chunks_t *chunks = (strata_chunks_t *)base;
    strata_lookup_t lookup = {.request = request, .size = request->size};
    strata_status_t status = strata_cache_round(chunks, request, 0, &lookup.rounded);
    return status == STRATA_OK ? strata_cache_serve(chunks, &cache_policy, &chunks->growing, &lookup, record) : status;
}

/* ---- chunks ---- */

uint64_t strata_chunked_release(strata_layer_t *base, strata_call_t *call) {
    STRATA_REFUSE_NULL_AS(call, "call", 0);
    STRATA_REFUSE_NULL_AS(base, "self", 0);
    return strata_chunks_release(base, call);
}

uint64_t strata_chunked_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    STRATA_REFUSE_NULL_AS(base, "self", 0);
    STRATA_REFUSE_NULL_AS(call, "call", 0);
    return strata_chunks_trim(base, keep, call);
}

void strata_chunked_walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    STRATA_REFUSE_NULL_AS(block, "block", );
    STRATA_REFUSE_NULL_AS(base, "self", );
    strata_chunks_walk(base, block, context);
}

const strata_record_t *strata_chunked_find(strata_layer_t *base, uint64_t address) {
    STRATA_REFUSE_NULL_AS(base, "self", NULL);
    return strata_chunks_find(base, address);
}

const strata_record_t *strata_chunked_chunk_of(strata_layer_t *base, const strata_record_t *block) {
    STRATA_REFUSE_NULL_AS(base, "self", NULL);
    STRATA_REFUSE_NULL_AS(block, "block", NULL);
    return strata_chunks_chunk_of(base, block);
}

uint64_t strata_chunked_idle_bytes(strata_layer_t *base) {
    STRATA_REFUSE_NULL_AS(base, "self", 0);
    const chunked_t *self = (const chunked_t *)base;
    return self->chunks.bytes - self->used_bytes;
}

/* ---- life ---- */

/* An idle chunk is one block. */
static void unindex_chunk(strata_layer_t *base, const strata_chunk_t *chunk) {
    chunked_t *self = (chunked_t *)base;
    index_remove(self, strata_slab_record(slab_of(self), chunk->first));
}

static void index_remove_slot(strata_layer_t *base, uint32_t slot) {
    chunked_t *self = (chunked_t *)base;
    index_remove(self, strata_slab_record(slab_of(self), slot));
}

static void index_insert_slot(strata_layer_t *base, uint32_t slot) {
    chunked_t *self = (chunked_t *)base;
    insert(self, strata_slab_record(slab_of(self), slot));
}

static bool on_split(strata_layer_t *base, const strata_record_t *block, strata_record_t *rest) {
    (void)base, (void)block, (void)rest;
    return true;
}

static const strata_chunk_policy_t chunk_policy = {
    .unindex_chunk = unindex_chunk, .index_remove = index_remove_slot, .index_insert = index_insert_slot, .on_split = on_split};

strata_status_t strata_chunked_create(strata_layer_t *base, const strata_chunked_policy_t *policy) {
    STRATA_REFUSE_NULL_AS(base, "self", STRATA_E_INVALID);
    STRATA_REFUSE_NULL(policy);
    chunked_t *self = (chunked_t *)base;
    bool whole = policy->struct_size >= sizeof *policy && policy->insert && policy->remove && policy->find;
    if (!whole || !strata_is_power_of_two(policy->unit) ||
        policy->unit < strata_place_alignment(strata_place_kind(base->domain->place)))
        return strata_fail(STRATA_E_INVALID, 0,
                           "%s: strata_chunked_create: an operation is missing, or the unit is not a power of two of at least "
                           "the place's alignment",
                           base->type->name);
    strata_status_t status = strata_chunks_init(base, &chunk_policy, sizeof(strata_chunk_t), CHUNKS);
    if (status != STRATA_OK) return status;
    self->policy = policy;
    self->chunks.unit = policy->unit;
    status = policy->joins_chunks ? strata_chunks_enable_joining(&self->chunks) : STRATA_OK;
    if (status != STRATA_OK) strata_chunks_destroy(base);
    return status;
}

void strata_chunked_destroy(strata_layer_t *base) {
    STRATA_REFUSE_NULL_AS(base, "self", );
    strata_chunks_destroy(base);
}

strata_status_t strata_chunked_validate(strata_layer_t *base) {
    STRATA_REFUSE_NULL_AS(base, "self", STRATA_E_INVALID);
    const chunked_t *self = (const chunked_t *)base;
    strata_block_list_tally_t pieces = {0};
    strata_status_t status = strata_chunks_validate(&self->chunks, &pieces);
    if (status != STRATA_OK) return status;
    if (pieces.free_bytes != strata_chunked_idle_bytes(base))
        return strata_fail(STRATA_E_CORRUPT, 0, "%s: the sum of free blocks is wrong", base->type->name);
    return self->policy->validate ? self->policy->validate(base, pieces.free_blocks, pieces.free_bytes) : STRATA_OK;
}
