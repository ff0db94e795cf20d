/* caching: blocks cut from segments, free blocks by stream, size and address (PyTorch's CUDACachingAllocator).
 *
 * The rules are those of PyTorch. Small blocks (up to 1 MiB) and large ones have separate segments. A request
 * takes the low end of the smallest free block of its stream that fits. The rest stays free if the rules of
 * splitting allow it. A freed block coalesces with its free neighbors, but first waits for the streams that
 * borrowed it.
 *
 * If nothing fits, the steps are: free-memory callbacks, garbage collection, a segment from below. If that
 * fails, blocks that are too large to be split go back. Then, after a wait for all events, every idle segment
 * of every stream goes back. Finally the core serves the request from pools that lend (`pools_on_oom`), since
 * each pool is an instance of its own.
 *
 * If segments expand (caching_vmm.c), a segment is a range of addresses, and memory from below is mapped there,
 * handle by handle.
 *
 * One instance serves all streams of a device. The other files are caching_sizes.c, caching_banks.c,
 * caching_streams.c, caching_segments.c and caching_check.c. Features that the peer lacks are options, off by
 * default. */
#include "allocation/cache/policies/caching/caching_state.h"

#include "allocation/options/option.h"
#include "allocation/reclaim/callbacks.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"

#define HOT       inline __attribute__((always_inline))
#define ROW(name) STRATA_CACHING_AT(name)

static const strata_option_row_t options[] = {
    {"streams", STRATA_OPTION_CHOICE, ROW(streams), "own", 0, 0, "own|ignored",
     "`own`: a block serves only its own stream; `ignored`: any stream, after a host wait if others used it"},
    STRATA_CACHING_DIVISIONS_ROW,
    {"large_segment", STRATA_OPTION_SIZE, ROW(large_segment), "20MiB", 10ull << 20, 2ull << 30, NULL,
     "segment size for blocks above 1 MiB and below 10 MiB; smaller ones get 2 MiB, larger ones a multiple of 2 MiB"},
    {"max_split_size", STRATA_OPTION_SIZE, ROW(max_split_size), "unlimited", 20ull << 20, 0, NULL,
     "blocks of this size or more are not split and serve no smaller request"},
    STRATA_CACHING_NON_SPLIT_ROUNDING_ROW,
    {"garbage_collection_threshold", STRATA_OPTION_FRACTION, ROW(garbage_collection_threshold), "0", 0, 999999, NULL,
     "share of memory_fraction (below 1) above which idle large segments go back before growth, the older half first; 0 for "
     "never"},
    STRATA_CACHING_MEMORY_FRACTION_ROW,
    STRATA_CACHING_RECLAIM_ROW,
    {"pool_no_split", STRATA_OPTION_BOOL, ROW(pool_no_split), "false", 0, 0, NULL,
     "in a named pool's stack: one block per segment (no_split of PyTorch's MemPool)"},
    STRATA_CACHING_POOLS_ON_OOM_ROW,
    STRATA_CACHING_SEARCH_AFTER_EVENTS_ROW,
    {"smaller_growth", STRATA_OPTION_BOOL, ROW(smaller_growth), "false", 0, 0, NULL,
     "if a whole segment fails for memory, request only the block"},
    STRATA_CACHING_REUSE_IN_CAPTURE_ROW,
    {"stable_addresses", STRATA_OPTION_BOOL, ROW(stable_addresses), "false", 0, 0, NULL, STRATA_STABLE_ADDRESSES},
    {0},
};

const strata_stat_row_t strata_caching_stats[] = {
    {"limit_bytes", "bytes", offsetof(caching_t, allowed), "max bytes to reserve"},
    {"used_bytes", "bytes", offsetof(caching_t, chunks.held), "segments, including those being requested"},
    {"retries", "", offsetof(caching_t, retries), "segments requested again after all idle ones went back"},
    {"waits_for_all", "", offsetof(caching_t, waits_for_all), "host waits for all borrows"},
    {"collected_bytes", "bytes", offsetof(caching_t, collected_bytes), "segments given back as garbage"},
    {"handles_mapped", "count", offsetof(caching_t, mapped), "handles mapped, with expandable segments"},
    {"handles_unmapped", "count", offsetof(caching_t, unmapped), "handles unmapped"},
    {"oversize_segments", "", offsetof(caching_t, oversize_segments), "unsplittable segments allocated"},
    {"pending_bytes", "bytes", offsetof(caching_t, uses.pending_bytes), "freed blocks whose borrowers are not done"},
    {"small_segment_bytes", "bytes", offsetof(caching_t, of_kind[STRATA_CACHING_SMALL]), "segments of small blocks"},
    {"small_active_bytes", "bytes", offsetof(caching_t, active[STRATA_CACHING_SMALL]), "small blocks in use or pending"},
    {"small_inactive_split_bytes", "bytes", offsetof(caching_t, split[STRATA_CACHING_SMALL]),
     "free small parts of segments, which go back only whole"},
    {"large_segment_bytes", "bytes", offsetof(caching_t, of_kind[STRATA_CACHING_LARGE]), "segments of large blocks"},
    {"large_active_bytes", "bytes", offsetof(caching_t, active[STRATA_CACHING_LARGE]), "large blocks in use or pending"},
    {"large_inactive_split_bytes", "bytes", offsetof(caching_t, split[STRATA_CACHING_LARGE]), "free large parts of segments"},
    {0},
};

typedef struct lookup {
    strata_lookup_t base; /* its user is the bank */
    strata_stream_t stream;
    uint32_t kind;
    uint16_t server; /* the number of the requesting stack */
    bool reaped, asked; /* exited threads were waited for; the program's callbacks were called */
} lookup_t;

/* ---- serving from a free block ---- */

static bool is_of_named_pool(const caching_t *self) {
    const strata_group_t *group = self->base.stack->group;
    return group->pool != 0 && !group->graph;
}

static HOT bool is_divisible(const caching_t *self, const strata_record_t *block, const lookup_t *lookup) {
    const caching_options_t *o = caching_options_of(self);
    uint64_t rest = block->size - lookup->base.rounded;
    if (o->pool_no_split && is_of_named_pool(self)) return false;
    if (self->vmm || caching_kind_of(self, block) == STRATA_CACHING_SMALL) return rest >= STRATA_CACHING_UNIT;
    return lookup->base.rounded < o->max_split_size && rest > STRATA_CACHING_SMALL_LIMIT;
}

/* Splits the rest off a block and inserts it into the block's tree. Returns false if the slab is full. */
static HOT bool split_block(caching_t *self, strata_tree_t *idle, uint32_t slot, uint64_t size) {
    uint32_t after = strata_block_list_split(caching_slab(self), slot, size);
    if (after == 0) return false;
    const strata_record_t *block = caching_block(self, slot);
    strata_record_t *rest = caching_block(self, after);
    rest->pool = block->pool;
    if (caching_ignores_streams(self)) strata_mark(rest, strata_mark_count(block), strata_mark_stream(block));
    else strata_mark(rest, self->searches, 0);
    strata_tree_quick_insert(idle, caching_slab(self), after);
    return true;
}

static HOT void hand_out_whole(caching_t *self, strata_record_t *block, const lookup_t *lookup) {
    block->own_uses = 0;
    if (caching_ignores_streams(self)) strata_caching_begin_use(self, block, lookup->stream);
    strata_block_hand_out(block, lookup->base.size);
    block->stack = lookup->server;
    self->used_bytes += block->size;
}

/* Hands out a free block that is out of its tree. Returns NULL, with the block unchanged, if that is not
 * possible. */
static HOT strata_record_t *hand_out(caching_t *self, strata_tree_t *idle, uint32_t slot, const lookup_t *lookup) {
    strata_record_t *block = caching_block(self, slot);
    if (is_divisible(self, block, lookup) && !split_block(self, idle, slot, lookup->base.rounded)) return NULL;
    if (block->size - lookup->base.size > UINT32_MAX) return NULL;
    hand_out_whole(self, block, lookup);
    return block;
}

/* ---- search ---- */

/* Returns the smallest block of a tree that fits, or 0 if there is none or it is too large by the rules of
 * splitting. */
static HOT uint32_t fitting(const caching_t *self, const strata_tree_t *idle, const lookup_t *lookup) {
    const caching_options_t *o = caching_options_of(self);
    uint32_t slot = strata_tree_quick_find(idle, caching_slab(self), lookup->base.rounded);
    if (slot == 0) return 0;
    if (__builtin_expect(self->vmm != NULL, 0)) slot = strata_caching_least_room(self, idle, slot);
    uint64_t size = caching_block(self, slot)->size;
    if (lookup->base.rounded < o->max_split_size) return size < o->max_split_size ? slot : 0;
    return size - lookup->base.rounded < o->max_non_split_rounding ? slot : 0;
}

static HOT strata_record_t *serve_from_tree(caching_t *self, strata_tree_t *idle, uint32_t slot, const lookup_t *lookup) {
    strata_tree_quick_remove(idle, caching_slab(self), slot);
    strata_record_t *block = hand_out(self, idle, slot, lookup);
    if (!block) strata_tree_quick_insert(idle, caching_slab(self), slot);
    return block;
}

static strata_record_t *serve_block(caching_t *self, uint32_t slot, const lookup_t *lookup) {
    return serve_from_tree(self, caching_tree_of(self, caching_block(self, slot)), slot, lookup);
}

/* Takes a block from another bank. The request's stream becomes a borrower. */
static strata_record_t *serve_borrowed(caching_t *self, uint32_t slot, const lookup_t *lookup) {
    uint32_t user = strata_caching_stream(self, lookup->stream);
    strata_record_t *block = user ? serve_block(self, slot, lookup) : NULL;
    if (!block || strata_uses_note(&self->uses, &block->own_uses, user, true) == STRATA_OK) return block;
    strata_caching_free_block(self, block);
    return NULL;
}

/* Searches the banks of destroyed streams. */
static strata_record_t *search_orphans(caching_t *self, const lookup_t *lookup) {
    for (uint32_t node = self->first_orphan; node; node = caching_bank_at(self, node)->next_orphan_bank) {
        const caching_bank_t *bank = caching_bank_at(self, node);
        uint32_t slot = fitting(self, &bank->idle[lookup->kind], lookup);
        if (!slot || !strata_caching_bank_is_unowned(self, bank)) continue;
        strata_record_t *block = serve_borrowed(self, slot, lookup);
        if (block) return block;
    }
    return NULL;
}

/* Returns true if a search for this kind increases the age of idle blocks. */
static bool ages(const lookup_t *lookup) { return lookup->kind == STRATA_CACHING_LARGE; }

static strata_record_t *find(caching_t *self, const lookup_t *lookup) {
    const caching_bank_t *bank = caching_bank_at(self, lookup->base.user);
    self->searches += ages(lookup);
    uint32_t slot = fitting(self, &bank->idle[lookup->kind], lookup);
    while (slot && strata_caching_is_in_use(self, caching_block(self, slot), lookup->stream)) {
        if (!strata_last_users_wait(&self->last, self->base.domain, lookup->base.request->call)) return NULL;
        slot = fitting(self, &bank->idle[lookup->kind], lookup);
    }
    return slot ? serve_block(self, slot, lookup) : search_orphans(self, lookup);
}

static strata_status_t search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    *record = find((caching_t *)base, (const lookup_t *)lookup);
    return *record ? STRATA_OK : STRATA_E_NO_MEMORY;
}

/* ---- at a given address ---- */

/* Returns true if the request may have `size` bytes of a free block. The block must be of its own bank, and
 * need no wait. If it must stay whole, only all of it serves. */
static bool may_have(caching_t *self, const strata_record_t *block, uint64_t size, const lookup_t *lookup) {
    const caching_options_t *o = caching_options_of(self);
    bool own = caching_bank_of(self, block) == lookup->base.user && caching_kind_of(self, block) == lookup->kind;
    bool whole = block->size >= o->max_split_size || (o->pool_no_split && is_of_named_pool(self));
    return own && size >= lookup->base.rounded && size - lookup->base.size <= UINT32_MAX && (size == block->size || !whole) &&
           !strata_caching_is_in_use(self, block, lookup->stream);
}

static strata_record_t *serve_at(strata_layer_t *base, const strata_extent_t *place, strata_lookup_t *base_lookup) {
    caching_t *self = (caching_t *)base;
    const lookup_t *lookup = (const lookup_t *)base_lookup;
    uint32_t slot = strata_chunks_free_at(&self->chunks, place);
    if (slot == 0 || !may_have(self, caching_block(self, slot), place->size, lookup)) return NULL;
    uint32_t own = strata_chunks_carve(&self->chunks, slot, place);
    if (own == 0) return NULL;
    hand_out_whole(self, caching_block(self, own), lookup);
    self->searches += ages(lookup);
    return caching_block(self, own);
}

/* The block returns to the bank that it belonged to. An orphaned stack no longer records which stream owned it. */
strata_record_t *strata_caching_hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                       const strata_stack_t *stack) {
    caching_t *self = (caching_t *)base;
    const strata_extent_t place = strata_extent_of(at);
    uint32_t slot = strata_chunks_carve_at(&self->chunks, &place);
    if (slot == 0) return NULL;
    strata_record_t *block = caching_block(self, slot);
    block->own_uses = 0;
    if (caching_ignores_streams(self) && !stack->forgotten.orphan) strata_caching_begin_use(self, block, stack->stream);
    strata_block_hand_out(block, requested);
    block->stack = stack->number;
    self->used_bytes += place.size;
    base->stack->figures.cache_hits++;
    return block;
}

/* ---- hit ---- */

/* Serves the block that allocate() would find first, in the bank of the stack's stream. Does nothing if uses
 * must be polled or waited for. */
strata_record_t *strata_caching_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    caching_t *self = (caching_t *)base;
    lookup_t lookup = {
        .base = {.size = size, .user = strata_caching_known_bank(self, stack)}, .stream = stack->stream, .server = stack->number};
    if (lookup.base.user == 0 || self->uses.first_awaited || self->uses.joining || self->uses.kept) return NULL;
    lookup.base.rounded = strata_caching_round(self, size);
    lookup.kind = strata_caching_kind(lookup.base.rounded);
    strata_tree_t *idle = caching_tree(self, lookup.base.user, lookup.kind);
    uint32_t slot = fitting(self, idle, &lookup);
    if (slot == 0 || strata_caching_is_in_use(self, caching_block(self, slot), lookup.stream)) return NULL;
    self->searches += ages(&lookup);
    strata_record_t *block = serve_from_tree(self, idle, slot, &lookup);
    if (block) base->stack->figures.cache_hits++;
    else self->searches -= ages(&lookup);
    return block;
}

/* ---- growth ---- */

/* Hands out memory from below to its own request, even if other threads wait for memory. It is a free block in
 * no tree. Returns NULL with E_LIMIT if no slot is left to split it. */
static strata_record_t *hand_out_fresh(caching_t *self, uint32_t slot, const lookup_t *lookup) {
    strata_tree_t *idle = caching_tree_of(self, caching_block(self, slot));
    strata_record_t *block = hand_out(self, idle, slot, lookup);
    if (block) return block;
    strata_tree_quick_insert(idle, caching_slab(self), slot);
    strata_fail(STRATA_E_LIMIT, 0, "too many blocks: this device has %u, the maximum; free some", caching_slab(self)->capacity);
    return NULL;
}

static strata_record_t *adopt_segment(caching_t *self, uint32_t number, const lookup_t *lookup) {
    caching_segment_t *segment = caching_segment_at(self, number);
    uint32_t slot = segment->chunk.first;
    segment->bank = lookup->base.user;
    segment->kind = lookup->kind;
    caching_bank_at(self, lookup->base.user)->segments++;
    caching_block(self, slot)->pool = caching_code(lookup->base.user, lookup->kind);
    /* With `streams: ignored`, memory of a pool below is valid in the requesting stream's order, and a layer may
     * have filled it there. So other streams get it only after a wait of the host. Any stream may use memory of
     * the device itself. */
    strata_record_t *block = caching_block(self, slot);
    if (self->chunks.ordered) strata_mark(block, ++self->last.frees, strata_last_users_of(&self->last, lookup->stream));
    else strata_mark(block, 0, 0);
    self->oversize_segments += lookup->base.rounded >= caching_options_of(self)->max_split_size;
    return hand_out_fresh(self, slot, lookup);
}

static strata_status_t add_segment(caching_t *self, const lookup_t *lookup, uint64_t size, strata_record_t **record) {
    uint64_t held = self->chunks.held;
    uint32_t slot, number;
    if (held > self->allowed || size > self->allowed - held)
        return strata_refuse_by_bound(&self->base, lookup->base.request, "memory_fraction", size, held, self->allowed);
    strata_status_t status = self->vmm
                                 ? strata_caching_expand(self, lookup->base.user, lookup->kind, lookup->base.rounded,
                                                         lookup->base.request, &slot)
                                 : strata_chunks_grow(&self->chunks, size, STRATA_CACHING_ALIGNMENT, lookup->base.request, &number);
    if (status != STRATA_OK) return status;
    *record = self->vmm ? hand_out_fresh(self, slot, lookup) : adopt_segment(self, number, lookup);
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

/* ---- out of memory: the peer's steps ---- */

/* Waits for every event, gives every idle segment back, and requests a segment once more. */
static strata_status_t give_all_and_grow(caching_t *self, lookup_t *lookup, uint64_t size, strata_record_t **record) {
    strata_call_t *call = lookup->base.request->call;
    strata_caching_wait_for_uses(self, call);
    if (caching_options_of(self)->search_after_events && (*record = find(self, lookup)) != NULL) {
        lookup->base.grown = false;
        return STRATA_OK;
    }
    if (self->vmm) (void)strata_caching_unmap_idle(self, lookup->base.user, lookup->kind, UINT64_MAX, call);
    else (void)strata_caching_release_all(self, call);
    self->retries++;
    return add_segment(self, lookup, size, record);
}

static strata_status_t grow_at_need(caching_t *self, lookup_t *lookup, uint64_t size, strata_record_t **record) {
    const caching_options_t *o = caching_options_of(self);
    strata_call_t *call = lookup->base.request->call;
    strata_status_t status = STRATA_E_NO_MEMORY;
    if (o->max_split_size != UINT64_MAX &&
        strata_caching_release_oversize(self, lookup->base.user, lookup->kind, lookup->base.rounded, call))
        status = add_segment(self, lookup, size, record);
    if (status == STRATA_E_NO_MEMORY && self->uses.captures == 0) status = give_all_and_grow(self, lookup, size, record);
    if (status == STRATA_E_NO_MEMORY && o->smaller_growth && lookup->base.rounded < size)
        status = add_segment(self, lookup, lookup->base.rounded, record);
    if (status == STRATA_E_NO_MEMORY) strata_layer_note_reclaimed(&self->base, lookup->base.request);
    return status;
}

static strata_status_t grow(strata_layer_t *base, strata_lookup_t *base_lookup, uint64_t rounded, strata_record_t **record) {
    caching_t *self = (caching_t *)base;
    lookup_t *lookup = (lookup_t *)base_lookup;
    const caching_options_t *o = caching_options_of(self);
    uint64_t size = strata_caching_segment_size(o, rounded);
    bool small = (base_lookup->request->flags & STRATA_SMALL_GROWTH) != 0;
    if (small && o->smaller_growth && o->reclaim == STRATA_CACHING_RECLAIM_LADDER) size = rounded;
    if (o->reclaim == STRATA_CACHING_RECLAIM_LADDER) return add_segment(self, lookup, size, record);
    strata_caching_collect(self, base_lookup->request->call);
    strata_status_t status = add_segment(self, lookup, size, record);
    return status == STRATA_E_NO_MEMORY ? grow_at_need(self, lookup, size, record) : status;
}

/* Calls the program's callbacks, with the locks open. They may free memory of this layer, and other threads may
 * grow it. Returns true if there is more memory than before. */
static bool ask_callbacks(caching_t *self, const strata_request_t *request) {
    strata_domain_t *domain = self->base.domain;
    if (!domain->free_memory || caching_options_of(self)->reclaim != STRATA_CACHING_RECLAIM_OWN) return false;
    /* This call may be the growth of a cache above. If a callback allocated from that cache, it would wait for
     * the growth in its own thread. The core calls the callbacks if the growth fails. */
    if (request->call->purpose == STRATA_FOR_CHUNK) return false;
    uint64_t growths = self->base.stack->figures.growths;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    uint64_t freed = strata_callbacks_call(domain, request->size);
    strata_call_lock(request->call, opened);
    return freed > 0 || self->base.stack->figures.growths != growths;
}

/* Waits for the memory of exited threads, then calls the program's callbacks, each once for a request. Returns
 * true if that may have freed a block. */
static bool wait(strata_layer_t *base, strata_lookup_t *base_lookup, uint64_t growth_size, strata_patience_t *patience) {
    caching_t *self = (caching_t *)base;
    lookup_t *lookup = (lookup_t *)base_lookup;
    bool first = !lookup->reaped;
    (void)growth_size, (void)patience;
    lookup->reaped = true;
    if (first && strata_caching_reap_threads(self, base_lookup->request->call)) return true;
    first = !lookup->asked;
    lookup->asked = true;
    return first && ask_callbacks(self, base_lookup->request);
}

static const strata_cache_policy_t policy = {.search = search, .serve_at = serve_at, .wait = wait, .grow = grow};

strata_status_t strata_caching_allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    caching_t *self = (caching_t *)base;
    if (request->alignment > STRATA_CACHING_ALIGNMENT)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "caching serves alignments up to %d", STRATA_CACHING_ALIGNMENT);
    if (request->size > UINT64_MAX / 4) return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    (void)strata_caching_poll_uses(self, request->call);
    lookup_t lookup = {.base = {.request = request, .size = request->size, .rounded = strata_caching_round(self, request->size)},
                       .stream = request->stream,
                       .server = request->call->stack->number};
    lookup.kind = strata_caching_kind(lookup.base.rounded);
    lookup.base.user = strata_caching_bank(self, request);
    if (lookup.base.user == 0) return STRATA_E_LIMIT;
    caching_bank_at(self, lookup.base.user)->busy++;
    bool *growing = &caching_bank_at(self, lookup.base.user)->growing[lookup.kind];
    strata_status_t status = strata_cache_serve(&self->chunks, &policy, growing, &lookup.base, record);
    caching_bank_at(self, lookup.base.user)->busy--;
    strata_caching_bank_end_if_empty(self, lookup.base.user);
    return status;
}

/* ---- free ---- */

void strata_caching_free(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    /* The layers above have released the block. */
    if (!caching_ignores_streams(self)) {
        block->borrows = block->own_uses;
        block->own_uses = 0;
        if (block->borrows && strata_uses_free(&self->uses, block, call) != STRATA_FREED_DONE) return;
    }
    strata_caching_free_block(self, block);
}

/* Returns false for a borrowed block, which waits for its events first. */
bool strata_caching_quick_free(strata_layer_t *base, strata_record_t *block) {
    caching_t *self = (caching_t *)base;
    if (!caching_ignores_streams(self) && block->own_uses) return false;
    strata_caching_free_block(self, block);
    return true;
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    (void)strata_caching_poll_uses(self, call);
    return strata_caching_release_all(self, call);
}

/* ---- life ---- */

static const strata_option_dependency_t dependencies[] = {{"max_non_split_rounding", "max_split_size", "!unlimited"},
                                                          {"pools_on_oom", "reclaim", "own"},
                                                          {"search_after_events", "reclaim", "own"},
                                                          {"reuse_in_capture", "streams", "own"},
                                                          {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const caching_options_t *o = filled;
    uint32_t divisions[STRATA_CACHING_OCTAVES];
    *option = "roundup_power2_divisions";
    strata_status_t status = strata_caching_read_divisions(o->roundup_power2_divisions, divisions);
    if (status != STRATA_OK) return status;
    *option = "garbage_collection_threshold";
    if (o->garbage_collection_threshold > 0 && o->memory_fraction >= 1)
        return strata_fail(STRATA_E_STRATEGY, 0, "garbage collection needs a memory_fraction below 1; write one, such as 0.9");
    if (o->garbage_collection_threshold > 0 && o->streams == STRATA_CACHING_NO_STREAMS)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "ages are not tracked with streams: ignored; write streams: own, or no "
                           "threshold");
    *option = "reuse_in_capture";
    status = strata_uses_check_reuse(o->reuse_in_capture, place);
    if (status != STRATA_OK) return status;
    return strata_option_check_dependencies(options, dependencies, filled, option);
}

static strata_status_t read_limits(caching_t *self) {
    const caching_options_t *o = caching_options_of(self);
    self->allowed = self->collect_above = UINT64_MAX;
    if (o->memory_fraction >= 1) return STRATA_OK;
    uint64_t available, total;
    strata_status_t status = strata_device_mem_info(self->base.domain->device, &available, &total);
    if (status != STRATA_OK) return status;
    self->allowed = strata_share(total, o->memory_fraction);
    if (o->garbage_collection_threshold > 0) self->collect_above = strata_share(self->allowed, o->garbage_collection_threshold);
    return STRATA_OK;
}

/* Gives every segment back, even if blocks in it are live. */
void strata_caching_destroy(strata_layer_t *base) {
    caching_t *self = (caching_t *)base;
    strata_chunks_destroy(base);
    strata_uses_destroy(&self->uses);
    strata_last_users_destroy(&self->last);
    strata_nodes_destroy(&self->banks);
}

strata_status_t strata_caching_create(strata_layer_t *base) {
    caching_t *self = (caching_t *)base;
    strata_status_t status = strata_chunks_init(base, &strata_caching_policy, sizeof(caching_segment_t), STRATA_CACHING_SEGMENTS);
    if (status != STRATA_OK) return status;
    self->chunks.ordered = self->chunks.ordered && caching_ignores_streams(self);
    status = strata_caching_read_divisions(caching_options_of(self)->roundup_power2_divisions, self->divisions);
    self->plain_sizes = strata_caching_has_plain_sizes(self->divisions);
    if (status == STRATA_OK) status = read_limits(self);
    bool ignores = caching_ignores_streams(self);
    if (status == STRATA_OK && ignores) status = strata_last_users_init(&self->last, base->domain);
    if (status == STRATA_OK && !ignores) status = strata_uses_init(&self->uses, base->stack, STRATA_USES_BY_STREAM);
    self->uses.reuse = caching_options_of(self)->reuse_in_capture;
    if (status == STRATA_OK) status = strata_nodes_init(&self->banks, sizeof(caching_bank_t), 1 << 16);
    if (status == STRATA_OK) strata_order_init(&self->bank_order, &self->banks, offsetof(caching_bank_t, link));
    if (status == STRATA_OK && caching_options_of(self)->stable_addresses) status = strata_repeats_init(&self->chunks.repeats);
    if (status != STRATA_OK) strata_caching_destroy(base);
    return status;
}

uint64_t strata_caching_idle_bytes(strata_layer_t *base) { return caching_idle((const caching_t *)base); }

const strata_layer_type_t strata_caching_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "caching",
    .doc = "best fit within each stream's segments, separately for small and large blocks (PyTorch's caching allocator)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_CROSS_STREAM_SAFE | STRATA_TRAIT_SUB_ALLOCATES,
    .guarded = true,
    .state_size = sizeof(caching_t),
    .options_size = sizeof(caching_options_t),
    .options = options,
    .stats = strata_caching_stats,
    .create = strata_caching_create,
    .destroy = strata_caching_destroy,
    .allocate = strata_caching_allocate,
    .free = strata_caching_free,
    .hit = strata_caching_hit,
    .quick_free = strata_caching_quick_free,
    .release = release,
    .poll = strata_caching_poll,
    .record_stream = strata_caching_record_stream,
    .erase_stream = strata_caching_erase_stream,
    .is_borrowed = strata_caching_is_borrowed,
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED | 1u << STRATA_NOTICE_STEP | 1u << STRATA_NOTICE_CAPTURE_BEGIN |
               1u << STRATA_NOTICE_CAPTURE_END | 1u << STRATA_NOTICE_FIGURES,
    .notify = strata_caching_notify,
    .trim = strata_chunks_trim,
    .find = strata_chunks_find,
    .walk = strata_chunks_walk,
    .chunk_of = strata_chunks_chunk_of,
    .idle_bytes = strata_caching_idle_bytes,
    .waits = strata_caching_waits,
    .validate = strata_caching_validate,
    .check = check,
    .unavailable = strata_caching_unavailable,
    .hit_at = strata_caching_hit_at,
};
