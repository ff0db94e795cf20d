/* naive_best_fit: best fit over chunks that are a share of the memory (PaddlePaddle's naive_best_fit, a buddy
 * allocator).
 *
 * The rules are Paddle's: those for blocks are in allocation/mechanism/buddy.h, and those for chunks in
 * naive_best_fit_sizes.c. A request that is larger than the largest block of the pool is huge. It is allocated
 * from below on its own, and given back when it is freed. Idle chunks stay until a release.
 *
 * Three things differ from Paddle. The header follows the caller's bytes, so a block begins at a multiple of
 * 256, 64 bytes lower than there. Paddle's release leaves a stale entry for the chunk, and may later give back
 * memory in use; this one leaves none. When pinned memory is refused, the result is out of memory, not a block
 * without an address.
 *
 * Paddle's pool ignores streams. With `streams: ignored`, this one does too, and waits on the host before a
 * stream gets memory that another one used. */
#include "allocation/cache/policies/naive/naive_best_fit_state.h"

#include "allocation/stack/threads.h"
#include "platform/arithmetic.h"
#include "platform/place.h"

#define ROW(name) offsetof(naive_options_t, name)

const strata_option_row_t strata_naive_options[] = {
    {"streams", STRATA_OPTION_CHOICE, ROW(streams), "own", 0, 0, "own|ignored",
     "`own`: a pool for each stream; `ignored`: one pool, where blocks change streams after a host wait"},
    {"fraction", STRATA_OPTION_FRACTION, ROW(fraction), "0.92", 0, 1000000, NULL,
     "chunk size as a share of 95 % of available device memory, or of all host memory (`parts`)"},
    {"initial", STRATA_OPTION_SIZE, ROW(initial), "0", 0, 1ull << 44, NULL,
     "first chunk, or max chunk of host memory; 0 for `fraction`"},
    {"reallocate", STRATA_OPTION_SIZE, ROW(reallocate), "0", 0, 1ull << 44, NULL,
     "later chunks; 0 for `fraction` of the memory available then"},
    {"parts", STRATA_OPTION_COUNT, ROW(parts), "1", 1, 1ull << 20, NULL,
     "host memory: a chunk is `fraction` / `parts` of it; all pinned memory is at most `fraction` of it"},
    {"memory", STRATA_OPTION_SIZE, ROW(memory), "0", 0, 1ull << 50, NULL, "host memory: total size; 0 for that of the machine"},
    {"min_block", STRATA_OPTION_SIZE, ROW(min_block), "256", 64, 1ull << 21, NULL, "size granularity, a power of two"},
    {"header", STRATA_OPTION_SIZE, ROW(header), "64", 0, 4096, NULL,
     "bytes lost per block, and the max remainder that is not split off; 0 for none, better than the peer"},
    {"smaller_growth", STRATA_OPTION_BOOL, ROW(smaller_growth), "false", 0, 0, NULL,
     "if a whole chunk fails for memory, grow by the rounded request alone"},
    {"stable_addresses", STRATA_OPTION_BOOL, ROW(stable_addresses), "false", 0, 0, NULL, STRATA_STABLE_ADDRESSES},
    {0},
};

const strata_stat_row_t strata_naive_stats[] = {
    {"max_block", "bytes", offsetof(naive_t, max_block), "max block of the pool; larger ones are huge"},
    {"pool_used_bytes", "bytes", offsetof(naive_t, used_bytes), "pool blocks in use, without huge ones"},
    {"huge_bytes", "bytes", offsetof(naive_t, huge_bytes), "huge blocks in use"},
    {"huge_blocks", "", offsetof(naive_t, huge_blocks), "huge blocks served"},
    {"stream_waits", "", offsetof(naive_t, waits), "host waits for free memory that another stream had used"},
    {0},
};

/* ---- serving ---- */

static void hand_out(naive_t *self, strata_record_t *block, uint16_t server, size_t size, uint32_t user) {
    strata_block_hand_out(block, size);
    block->stack = server;
    block->user = user;
    strata_last_users_hold(&self->last, user);
}

/* If stacks share the instance, it must record the user of each block, so only allocate() serves them. */
strata_record_t *strata_naive_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    naive_t *self = (naive_t *)base;
    uint64_t rounded;
    if (!self->hits || base->stack != stack || !strata_buddy_round(&self->buddy, size, &rounded)) return NULL;
    uint32_t slot = rounded <= self->max_block ? strata_buddy_find(&self->buddy, naive_slab(self), rounded) : 0;
    if (slot == 0 || !strata_buddy_allocate(&self->buddy, naive_slab(self), slot, rounded)) return NULL;
    strata_record_t *block = naive_block(self, slot);
    hand_out(self, block, base->stack->number, size, 0);
    base->stack->figures.cache_hits++;
    return block;
}

/* Returns the best fit that no other user may still use, or 0. During a capture the host cannot wait, so other
 * blocks must not serve. */
static uint32_t without_wait(const naive_t *self, const strata_lookup_t *lookup) {
    const strata_slab_t *slab = naive_slab(self);
    uint32_t slot = strata_buddy_find(&self->buddy, slab, lookup->rounded);
    while (slot && strata_last_users_other_uses(&self->last, naive_block(self, slot), lookup->user))
        slot = strata_tree_after(&self->buddy.idle, slab, naive_block(self, slot)->size, naive_block(self, slot)->ptr);
    return slot;
}

static strata_status_t search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    naive_t *self = (naive_t *)base;
    uint32_t slot;
    while ((slot = strata_buddy_find(&self->buddy, naive_slab(self), lookup->rounded)) != 0) {
        if (strata_last_users_other_uses(&self->last, naive_block(self, slot), lookup->user)) {
            self->waits++;
            if (strata_last_users_wait(&self->last, self->base.domain, lookup->request->call)) continue;
            if (strata_last_error()->status != STRATA_E_CAPTURE) return strata_last_error()->status;
            slot = without_wait(self, lookup);
            if (slot == 0) return STRATA_E_NO_MEMORY;
        }
        if (!strata_buddy_allocate(&self->buddy, naive_slab(self), slot, lookup->rounded))
            return strata_fail(STRATA_E_LIMIT, 0, "%s has %u blocks, the maximum", self->base.type->name,
                               naive_slab(self)->capacity);
        *record = naive_block(self, slot);
        hand_out(self, *record, lookup->request->call->stack->number, lookup->request->size, lookup->user);
        return STRATA_OK;
    }
    return STRATA_E_NO_MEMORY;
}

/* Serves a request at a place, if that needs no wait. */
static strata_record_t *serve_at(strata_layer_t *base, const strata_extent_t *place, strata_lookup_t *lookup) {
    naive_t *self = (naive_t *)base;
    uint32_t slot = strata_chunks_free_at(&self->chunks, place);
    bool fits = slot != 0 && place->size >= lookup->rounded && place->size - lookup->request->size <= UINT32_MAX;
    if (!fits || strata_last_users_other_uses(&self->last, naive_block(self, slot), lookup->user)) return NULL;
    uint32_t own = strata_chunks_carve(&self->chunks, slot, place);
    if (own == 0) return NULL;
    hand_out(self, naive_block(self, own), lookup->request->call->stack->number, lookup->request->size, lookup->user);
    return naive_block(self, own);
}

/* An orphaned stack no longer records which stream owned it, so the block gets no user. */
strata_record_t *strata_naive_hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                     const strata_stack_t *stack) {
    naive_t *self = (naive_t *)base;
    const strata_extent_t place = strata_extent_of(at);
    uint32_t slot = strata_chunks_carve_at(&self->chunks, &place);
    if (slot == 0) return NULL;
    uint32_t user = self->one_user || stack->forgotten.orphan ? 0 : strata_last_users_of(&self->last, stack->stream);
    hand_out(self, naive_block(self, slot), stack->number, requested, user);
    base->stack->figures.cache_hits++;
    return naive_block(self, slot);
}

/* Requests a chunk from below, with the locks open. *slot is set to that of its only block. */
static strata_status_t ask(naive_t *self, const strata_lookup_t *lookup, uint64_t size, uint32_t *slot) {
    uint32_t number;
    uint64_t alignment = strata_place_alignment(strata_place_kind(self->base.domain->place));
    strata_status_t status = strata_chunks_grow(&self->chunks, size, alignment, lookup->request, &number);
    if (status != STRATA_OK) return status;
    *slot = strata_chunk_at(&self->chunks, number)->first;
    if (lookup->rounded <= self->max_block) {
        strata_buddy_add(&self->buddy, naive_slab(self), *slot);
        return STRATA_OK;
    }
    naive_block(self, *slot)->pool = STRATA_NAIVE_HUGE;
    self->huge_bytes += naive_block(self, *slot)->size;
    self->huge_blocks++;
    return STRATA_OK;
}

/* Serves a huge request. No thread waits for another thread's growth here. */
static strata_status_t serve_huge(naive_t *self, const strata_lookup_t *lookup, strata_record_t **record) {
    uint32_t slot;
    if (lookup->request->flags & (STRATA_NO_GROW | STRATA_SMALL_GROWTH))
        return strata_fail(STRATA_E_NO_MEMORY, 0, "%s keeps no blocks above %llu bytes, and the request forbids growth",
                           self->base.type->name, (unsigned long long)self->max_block);
    uint64_t size;
    strata_status_t status = strata_naive_growth(self, lookup->rounded, lookup->request, &size);
    if (status == STRATA_OK) status = ask(self, lookup, size, &slot);
    if (status != STRATA_OK) return status;
    *record = naive_block(self, slot);
    hand_out(self, *record, lookup->request->call->stack->number, lookup->request->size, lookup->user);
    return STRATA_OK;
}

/* Requests a chunk. If that is refused and the available memory has shrunk in between, requests a smaller
 * share. */
static strata_status_t ask_for_chunk(naive_t *self, const strata_lookup_t *lookup, uint32_t *slot) {
    uint64_t size, refused = UINT64_MAX;
    for (;;) {
        strata_status_t status = strata_naive_growth(self, lookup->rounded, lookup->request, &size);
        if (status != STRATA_OK) return status;
        if (size >= refused) return STRATA_E_NO_MEMORY;
        status = ask(self, lookup, size, slot);
        if (status != STRATA_E_NO_MEMORY) return status;
        refused = size;
    }
}

static strata_status_t grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t rounded, strata_record_t **record) {
    naive_t *self = (naive_t *)base;
    uint32_t slot;
    bool small = (lookup->request->flags & STRATA_SMALL_GROWTH) != 0;
    (void)record;
    if (small && !naive_options_of(self)->smaller_growth)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "no free block of %llu bytes, and smaller growth is forbidden",
                           (unsigned long long)rounded);
    strata_status_t status = small ? ask(self, lookup, rounded, &slot) : ask_for_chunk(self, lookup, &slot);
    /* If memory below is stream-ordered, only the requester may use a new chunk at first. So the chunk carries the
     * requester's mark. */
    if (status == STRATA_OK && self->chunks.ordered && lookup->user)
        strata_mark(naive_block(self, slot), ++self->last.frees, lookup->user);
    return status;
}

static const strata_cache_policy_t cache_policy = {.search = search, .serve_at = serve_at, .grow = grow};

strata_status_t strata_naive_allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    naive_t *self = (naive_t *)base;
    strata_lookup_t lookup = {.request = request, .size = request->size};
    uint64_t unit = self->buddy.unit;
    if (request->alignment > unit)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s serves alignments up to %llu", base->type->name, (unsigned long long)unit);
    if (!strata_buddy_round(&self->buddy, request->size, &lookup.rounded))
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    strata_status_t status = strata_naive_size(self, request);
    if (status != STRATA_OK) return status;
    lookup.user = self->one_user ? 0 : strata_last_users_of(&self->last, request->stream);
    if (lookup.user == 0 && !self->one_user) return STRATA_E_LIMIT;
    /* The user's entry must not end before it holds a block. */
    strata_last_users_hold(&self->last, lookup.user);
    strata_record_t *block = NULL;
    bool huge = lookup.rounded > self->max_block;
    /* While a graph may use free memory, freed huge blocks stay in the pool, so they are searched there. */
    if (huge && strata_chunks_are_pinned(&self->chunks)) {
        status = search(base, &lookup, &block);
        base->stack->figures.cache_hits += status == STRATA_OK;
    } else {
        status = huge ? STRATA_E_NO_MEMORY
                      : strata_cache_serve(&self->chunks, &cache_policy, &self->chunks.growing, &lookup, &block);
    }
    if (huge && status == STRATA_E_NO_MEMORY) status = serve_huge(self, &lookup, &block);
    strata_last_users_release(&self->last, lookup.user);
    if (status != STRATA_OK) return status;
    *record = block;
    return STRATA_OK;
}

/* ---- free ---- */

/* Frees a block and drops its user's reference. The block is lost if its slot's generations are exhausted and
 * no other slot is free. */
static void free_block(naive_t *self, strata_record_t *block) {
    uint32_t user = block->user;
    uint32_t node = block->chunk, slot = strata_slab_slot(naive_slab(self), block);
    block->user = 0;
    strata_last_users_mark(&self->last, block, user);
    slot = strata_buddy_free(&self->buddy, naive_slab(self), slot, self->last.waited);
    if (slot && naive_block(self, slot)->prev == 0) strata_chunk_at(&self->chunks, node)->first = slot;
}

void strata_naive_free(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    naive_t *self = (naive_t *)base;
    strata_detached_t leaving = {0};
    bool huge = block->pool == STRATA_NAIVE_HUGE;
    if (huge && strata_chunks_are_pinned(&self->chunks)) {
        self->huge_bytes -= block->size;
        block->pool = STRATA_NAIVE_POOLED;
        free_block(self, block);
    } else if (huge) {
        strata_last_users_release(&self->last, block->user);
        strata_chunks_detach(&self->chunks, block->chunk, &leaving);
        (void)strata_chunks_give_back(&self->chunks, &leaving, call);
    } else {
        free_block(self, block);
    }
    /* If the pool's thread has exited and no block of the pool is live, the chunks go back. */
    uint64_t thread = base->stack->of_thread;
    if (thread != 0 && naive_pool_bytes(self) == naive_idle(self) && thread != strata_threads_self() &&
        !strata_threads_is_alive(thread))
        (void)strata_chunks_release(base, call);
}

bool strata_naive_quick_free(strata_layer_t *base, strata_record_t *block) {
    uint64_t thread = base->stack->of_thread;
    if (block->pool == STRATA_NAIVE_HUGE || (thread && thread != strata_threads_self())) return false;
    free_block((naive_t *)base, block);
    return true;
}

/* ---- chunks that go ---- */

static void unindex_chunk(strata_layer_t *base, const strata_chunk_t *chunk) {
    naive_t *self = (naive_t *)base;
    if (naive_block(self, chunk->first)->pool == STRATA_NAIVE_HUGE) self->huge_bytes -= chunk->size;
    else strata_buddy_remove(&self->buddy, naive_slab(self), chunk->first);
}

/* Called only for idle chunks. A huge block is given back in the order of its only user, and its borrowers were
 * waited for before its free. */
static bool is_in_use(const strata_layer_t *base, const strata_chunk_t *chunk) {
    const naive_t *self = (const naive_t *)base;
    return strata_last_users_uses(&self->last, naive_block(self, chunk->first));
}

static void wait_for_users(strata_layer_t *base, strata_call_t *call) {
    naive_t *self = (naive_t *)base;
    self->waits++;
    (void)strata_last_users_wait(&self->last, base->domain, call);
}

static void index_remove(strata_layer_t *base, uint32_t slot) {
    strata_buddy_remove(&((naive_t *)base)->buddy, &base->stack->slab, slot);
}

static void index_insert(strata_layer_t *base, uint32_t slot) {
    strata_buddy_add(&((naive_t *)base)->buddy, &base->stack->slab, slot);
}

static bool on_split(strata_layer_t *base, const strata_record_t *block, strata_record_t *rest) {
    (void)base;
    strata_mark(rest, strata_mark_count(block), strata_mark_stream(block));
    return true;
}

static const strata_chunk_policy_t policy = {.unindex_chunk = unindex_chunk,
                                             .is_in_use = is_in_use,
                                             .wait = wait_for_users,
                                             .index_remove = index_remove,
                                             .index_insert = index_insert,
                                             .on_split = on_split};

/* ---- life ---- */

strata_status_t strata_naive_check(const void *filled, strata_place_kind_t place, const char **option) {
    const naive_options_t *o = filled;
    bool host = strata_place_is_ownerless(place);
    unsigned least = (unsigned)strata_place_alignment(place);
    *option = "min_block";
    if (!strata_is_power_of_two(o->min_block) || o->min_block < least)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "blocks of this place cannot be multiples of %llu; write a power of two of at least %u",
                           (unsigned long long)o->min_block, least);
    *option = o->parts != 1 ? "parts" : "memory";
    if (!host && (o->parts != 1 || o->memory != 0))
        return strata_fail(STRATA_E_STRATEGY, 0, "this option is only for pinned and host memory; remove it here");
    *option = "reallocate";
    if (host && o->reallocate != 0)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "all chunks of pinned and host memory have one size; write initial for the "
                           "largest, or remove it");
    return STRATA_OK;
}

void strata_naive_destroy(strata_layer_t *base) {
    strata_chunks_destroy(base);
    strata_last_users_destroy(&((naive_t *)base)->last);
}

strata_status_t strata_naive_create(strata_layer_t *base) {
    naive_t *self = (naive_t *)base;
    const naive_options_t *o = naive_options_of(self);
    strata_buddy_init(&self->buddy, o->min_block, o->header);
    /* A shared instance serves several streams. It is shared by its own option, or because it is below a layer
     * that all streams share. */
    self->one_user = !base->stack->is_shared || base->stack->ownerless;
    strata_status_t status = strata_chunks_init(base, &policy, sizeof(strata_chunk_t), STRATA_NAIVE_CHUNKS);
    if (self->one_user) self->last.waited = UINT64_MAX;
    if (status != STRATA_OK) return status;
    if (o->stable_addresses) status = strata_repeats_init(&self->chunks.repeats);
    if (status == STRATA_OK && !self->one_user) status = strata_last_users_init(&self->last, base->domain);
    if (status != STRATA_OK) strata_naive_destroy(base);
    return status;
}

void strata_naive_notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    naive_t *self = (naive_t *)base;
    switch (notice->kind) {
    case STRATA_NOTICE_STREAM_DESTROYED:
        /* From now on, memory that the stream used is served only after a wait. */
        if (!self->one_user) strata_last_users_stream_destroyed(&self->last, base->domain, notice->stream, call);
        break;
    case STRATA_NOTICE_STEP: strata_repeats_step(&self->chunks.repeats); break;
    case STRATA_NOTICE_FIGURES: self->used_bytes = naive_pool_bytes(self) - naive_idle(self); break;
    default: break;
    }
}

uint64_t strata_naive_idle_bytes(strata_layer_t *base) { return naive_idle((naive_t *)base); }

const strata_layer_type_t strata_naive_best_fit_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "naive_best_fit",
    .doc = "best fit over chunks that are a share of the memory (Paddle's naive_best_fit, a buddy allocator)",
    .scope = STRATA_SCOPE_DEVICE,
    STRATA_NAIVE_TYPE,
};
