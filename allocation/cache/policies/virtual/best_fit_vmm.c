/* best_fit_vmm: best fit over one range of addresses, in which handles of one size are mapped and unmapped
 * (Paddle's second virtual-memory allocator).
 *
 * A request takes the low end of the smallest mapped free block that fits. If none fits, handles are mapped
 * into the smallest gap that is large enough for the whole request. If there is no such gap, they are mapped at
 * the end, and a free last block is extended. A release unmaps the handles that are free as a whole, which
 * leaves gaps. When the device has no more memory, `remap_on_oom` moves free handles to the end, where they
 * form one block. All work on them must be done.
 *
 * An instance has the blocks of one stream. The peer sets access once for each range. Here each handle gets
 * access on its own. The peer unmaps a handle before it maps it elsewhere. Here it is mapped at its new place
 * first, so that no failure loses it. */
#include "allocation/cache/runs.h"
#include "allocation/cache/serve.h"
#include "allocation/layers/sources/vmm.h"
#include "allocation/mechanism/tree.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"

enum { ALIGNMENT = 256, PARTS = 1 << 20, BATCH_HANDLES = 1024 };

typedef struct best_fit_vmm_options {
    uint64_t handle, addresses;
    bool remap_on_oom;
} best_fit_vmm_options_t;

typedef struct best_fit_vmm {
    union {
        strata_layer_t base;
        strata_chunks_t chunks; /* strata_run_part_t */
    };
    strata_runs_t runs;
    strata_layer_t *vmm;
    strata_tree_t idle;
    uint64_t used_bytes, handle;
    uint64_t frees; /* number of frees. If it changed while the lock was open, a block was freed, and its work may still run. */
    uint64_t addresses, begin; /* size and start of the range; begin is 0 until it is reserved */
    uint32_t unmapping; /* threads that are unmapping handles with the lock open; the addresses of these handles look like a gap */
    uint64_t remapped; /* statistic */
} best_fit_vmm_t;

#define ROW(name) offsetof(best_fit_vmm_options_t, name)
static const strata_option_row_t options[] = {
    {"handle", STRATA_OPTION_SIZE, ROW(handle), "16MiB", 2ull << 20, 2ull << 30, NULL, "size of a physical handle"},
    {"addresses", STRATA_OPTION_COUNT, ROW(addresses), "4", 1, 64, NULL,
     "size of the range of addresses, in multiples of the device's memory; 1 is enough if no handle is unmapped"},
    {"remap_on_oom", STRATA_OPTION_BOOL, ROW(remap_on_oom), "false", 0, 0, NULL,
     "if the device is out of memory, move free handles whose work is done to the end of the range"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"remapped", "count", offsetof(best_fit_vmm_t, remapped), "handles moved to the end"},
    {0},
};

static const best_fit_vmm_options_t *options_of(const best_fit_vmm_t *self) { return self->base.options; }
static strata_slab_t *slab_of(const best_fit_vmm_t *self) { return &self->base.stack->slab; }
static strata_record_t *block_at(const best_fit_vmm_t *self, uint32_t slot) { return strata_slab_record(slab_of(self), slot); }

/* ---- blocks ---- */

static inline void remove_free(void *owner, uint32_t slot) {
    best_fit_vmm_t *self = owner;
    strata_tree_quick_remove(&self->idle, slab_of(self), slot);
}

static const strata_coalesce_t coalesce = {.remove = remove_free};

/* Frees a block that is in no tree and counts as used. */
static void insert_coalesced(best_fit_vmm_t *self, uint32_t slot) {
    strata_record_t *block = block_at(self, slot);
    uint64_t size = block->size;
    uint32_t free = strata_block_list_coalesce(slab_of(self), slot, self, &coalesce);
    if (free == slot && block->generation >= STRATA_GENERATION_LAST &&
        (free = strata_chunks_move_block(&self->chunks, slot)) == 0) {
        block->state = STRATA_RECORD_DEFERRED;
        self->used_bytes += block->size - size;
        return;
    }
    self->used_bytes -= size;
    block_at(self, free)->state = STRATA_RECORD_FREE;
    strata_tree_quick_insert(&self->idle, slab_of(self), free);
}

static strata_record_t *serve(best_fit_vmm_t *self, uint64_t rounded, size_t size) {
    uint32_t slot = strata_tree_quick_find(&self->idle, slab_of(self), rounded);
    if (slot == 0) return NULL;
    strata_record_t *block = block_at(self, slot);
    strata_tree_quick_remove(&self->idle, slab_of(self), slot);
    uint32_t rest = block->size > rounded ? strata_block_list_split(slab_of(self), slot, rounded) : 0;
    if (rest) strata_tree_quick_insert(&self->idle, slab_of(self), rest);
    if (block->size - size > UINT32_MAX) {
        strata_tree_quick_insert(&self->idle, slab_of(self), slot);
        return NULL;
    }
    strata_block_hand_out(block, size);
    self->used_bytes += block->size;
    return block;
}

/* ---- places ---- */

static uint64_t tail_of(const best_fit_vmm_t *self) {
    const strata_chunk_t *last = strata_chunk_at(&self->chunks, self->chunks.last);
    return self->chunks.last ? last->base + last->size : self->begin;
}

/* Returns the free block that ends at the tail, or 0. */
static uint32_t last_free(const best_fit_vmm_t *self) {
    uint32_t slot = self->chunks.last ? strata_runs_last_block(&self->runs, self->chunks.last) : 0;
    return strata_slab_is_idle(slab_of(self), slot) ? slot : 0;
}

/* Returns the smallest gap before the tail of at least `bytes` bytes, the lowest among equals, or 0 if there is
 * none. */
static uint64_t gap_for(best_fit_vmm_t *self, uint64_t bytes) {
    strata_gap_t gap = {.end = self->begin}, best = {.end = UINT64_MAX};
    while (strata_runs_next_gap(&self->runs, self->begin + self->addresses, &gap) && gap.next) {
        uint64_t width = gap.end - gap.begin;
        if (width >= bytes && width < best.end - best.begin) best = gap;
    }
    return best.begin;
}

/* ---- handles ---- */

/* Inserts the block of a handle that was just mapped. */
static void insert_fresh(best_fit_vmm_t *self, uint32_t slot) {
    self->used_bytes += block_at(self, slot)->size;
    insert_coalesced(self, slot);
}

/* Adds a handle at the address where it is mapped. Returns false if no slot is left. */
static bool insert_handle(best_fit_vmm_t *self, strata_record_t *below) {
    uint32_t slot = strata_runs_add(&self->runs, below);
    if (slot) insert_fresh(self, slot);
    return slot != 0;
}

/* How a handle that left the cache can be freed. */
typedef enum work_state {
    WORK_DONE, /* no work uses it */
    WORK_UNKNOWN, /* the stream is gone or the device fails, and the source decides */
    WORK_CAPTURED /* the stream is being captured and cannot be waited for */
} work_state_t;

/* Waits for the stream. No lock is held. */
static work_state_t work_state_of(best_fit_vmm_t *self) {
    strata_stream_t stream;
    if (!strata_layer_owner(&self->base, &stream)) return WORK_UNKNOWN;
    if (strata_domain_wait_for(self->base.domain, stream)) return WORK_DONE;
    return strata_last_error()->status == STRATA_E_CAPTURE ? WORK_CAPTURED : WORK_UNKNOWN;
}

/* Puts a handle back into the cache. If it were freed, the source would keep it mapped, and its addresses must
 * not look like a gap. */
static void reinsert_handle(best_fit_vmm_t *self, strata_record_t *below, strata_call_t *call) {
    if (insert_handle(self, below)) return;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_chunk_free(below);
    strata_call_lock(call, opened);
}

/* Frees a handle. `unused` is true if no work can use it. */
static void free_below(best_fit_vmm_t *self, strata_record_t *below, bool unused, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    work_state_t work_state = unused ? WORK_DONE : work_state_of(self);
    if (work_state != WORK_CAPTURED) strata_vmm_free_chunks(self->vmm, &below, 1, work_state == WORK_DONE);
    strata_call_lock(call, opened);
    if (work_state == WORK_CAPTURED) reinsert_handle(self, below, call);
}

/* Maps handles of `bytes` bytes, all or nothing. With `keeps`, those that the device gave before it ran out of
 * memory stay. */
static strata_status_t map_some(best_fit_vmm_t *self, uint64_t at, uint64_t bytes, bool keeps, const strata_request_t *request) {
    uint64_t end = at + bytes, next = at, frees = self->frees;
    strata_status_t status = STRATA_OK;
    for (uint32_t slot; next < end && status == STRATA_OK; next += self->handle) {
        status = strata_runs_map(&self->runs, next, self->handle, request, &slot);
        if (status == STRATA_OK) insert_fresh(self, slot);
    }
    if (status == STRATA_E_NO_MEMORY) strata_refused_piece(request, bytes, next - at - self->handle);
    if (status == STRATA_OK || (keeps && status == STRATA_E_NO_MEMORY)) return status;
    strata_error_t reason = *strata_last_error();
    for (uint64_t mapped = at; mapped + self->handle < next; mapped += self->handle) {
        uint32_t part = strata_runs_find_part(&self->runs, mapped);
        strata_record_t *below = part ? strata_runs_remove(&self->runs, part, 0, 0) : NULL;
        if (below) free_below(self, below, frees == self->frees && strata_runs_is_untouched(below), request->call);
    }
    return strata_fail_again(&reason);
}

/* ---- moving handles to the end ---- */

/* Returns true if an event shows that all work of the stream on the blocks freed so far is done. */
static bool is_done(best_fit_vmm_t *self, strata_call_t *call) {
    strata_domain_t *domain = self->base.domain;
    strata_stream_t stream;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool there = strata_events_ensure(&domain->events, 1) == STRATA_OK;
    strata_call_lock(call, opened);
    if (!there || !strata_layer_owner(&self->base, &stream) || strata_domain_refuse_captured(domain, stream) != STRATA_OK)
        return false;
    strata_handle_t event = strata_events_acquire(&domain->events);
    bool done = event && strata_domain_record_event(domain, event, stream) == STRATA_OK &&
                strata_device_event_query(domain->device, event) == STRATA_OK;
    if (event) strata_events_release(&domain->events, event);
    return done;
}

/* Returns the first idle handle from `from` on that ends at or before `below`, or 0 if there is none. */
static uint32_t next_idle(best_fit_vmm_t *self, uint64_t from, uint64_t below) {
    for (uint32_t part = strata_runs_part_from(&self->runs, from); part; part = strata_runs_next_part(&self->runs, part)) {
        const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
        if (p->at + p->size > below) return 0;
        const strata_extent_t place = {.ptr = p->at, .size = p->size};
        if (strata_vmm_may_move(self->vmm, p->chunk.below) && strata_chunks_free_at(&self->chunks, &place)) return part;
    }
    return 0;
}

/* Moves a handle to the tail. Returns false if it stays. */
static bool move_one(best_fit_vmm_t *self, uint32_t part, strata_call_t *call) {
    strata_record_t *below = strata_runs_remove(&self->runs, part, 0, 0);
    if (!below) return false;
    uint64_t from = below->ptr, to = tail_of(self);
    self->unmapping++;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool moved = strata_vmm_move(self->vmm, below, to) == STRATA_OK;
    if (moved && !strata_vmm_unmap(self->vmm, from, self->handle)) strata_vmm_defer_unmap(self->vmm, from, self->handle);
    strata_call_lock(call, opened);
    strata_runs_end_unmapping(&self->runs, &self->unmapping);
    self->remapped += moved;
    if (!insert_handle(self, below)) free_below(self, below, true, call);
    return moved;
}

/* Moves free handles from below the tail to the tail, as many as a block of `size` bytes lacks there. Returns
 * true if that block exists now. */
static bool remap(best_fit_vmm_t *self, uint64_t size, strata_call_t *call) {
    if (strata_chunks_are_pinned(&self->chunks) || !is_done(self, call)) return false;
    uint64_t frees = self->frees;
    uint32_t last = last_free(self);
    uint64_t from = 0, limit = last ? block_at(self, last)->ptr : tail_of(self), have = last ? block_at(self, last)->size : 0,
             idle = 0;
    for (uint32_t part; (part = next_idle(self, from, limit)) != 0; idle += self->handle)
        from = strata_run_part_at(&self->runs, part)->at + self->handle;
    if (have + idle < size || tail_of(self) + size > self->begin + self->addresses) return false;
    for (uint32_t part; have < size && (part = next_idle(self, self->begin, limit)) != 0; have += self->handle)
        if (frees != self->frees || !move_one(self, part, call)) return false;
    return have >= size;
}

/* ---- growth ---- */

static strata_status_t ensure_range(best_fit_vmm_t *self, strata_call_t *call) {
    uint64_t base = 0;
    if (self->begin) return STRATA_OK;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_vmm_reserve(self->vmm, self->addresses, &base);
    strata_call_lock(call, opened);
    if (status == STRATA_OK) self->begin = base;
    return status;
}

static strata_status_t grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t size, strata_record_t **record) {
    best_fit_vmm_t *self = (best_fit_vmm_t *)base;
    const strata_request_t *request = lookup->request;
    (void)record;
    bool remaps = options_of(self)->remap_on_oom;
    if (size > self->addresses)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "the range is smaller than %llu bytes", (unsigned long long)size);
    strata_status_t status = ensure_range(self, request->call);
    if (status != STRATA_OK) return status;
    strata_runs_wait_for_gaps(&self->runs, &self->unmapping, request->call);
    uint64_t bytes = strata_round_up_any(size, self->handle);
    uint64_t gap = gap_for(self, bytes), at = gap ? gap : tail_of(self);
    uint32_t last = gap ? 0 : last_free(self);
    if (last) bytes = strata_round_up_any(size - block_at(self, last)->size, self->handle);
    if (at + bytes > self->begin + self->addresses) return strata_fail(STRATA_E_NO_MEMORY, 0, "the range is full");
    status = map_some(self, at, bytes, remaps, request);
    if (status == STRATA_E_NO_MEMORY && remaps && remap(self, size, request->call)) return STRATA_OK;
    return status;
}

static strata_status_t search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    *record = serve((best_fit_vmm_t *)base, lookup->rounded, lookup->size);
    return *record ? STRATA_OK : STRATA_E_NO_MEMORY;
}

static const strata_cache_policy_t cache_policy = {.search = search, .grow = grow};

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    strata_chunks_t *chunks = (strata_chunks_t *)base;
    strata_lookup_t lookup = {.request = request, .size = request->size};
    strata_status_t status = strata_cache_round(chunks, request, 0, &lookup.rounded);
    return status == STRATA_OK ? strata_cache_serve(chunks, &cache_policy, &chunks->growing, &lookup, record) : status;
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    (void)call;
    ((best_fit_vmm_t *)base)->frees++;
    insert_coalesced((best_fit_vmm_t *)base, strata_slab_slot(&base->stack->slab, block));
}

/* ---- fast path ---- */

static strata_record_t *hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    uint64_t rounded;
    strata_record_t *block = strata_round_up(size, ALIGNMENT, &rounded) ? serve((best_fit_vmm_t *)base, rounded, size) : NULL;
    if (!block) return NULL;
    block->stack = stack->number;
    base->stack->figures.cache_hits++;
    return block;
}

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    free_block(base, block, NULL);
    return true;
}

/* ---- giving back ---- */

/* Waits for the stream, and unmaps idle handles of at least `most` bytes, or all of them. Returns the bytes. */
static uint64_t unmap_idle(best_fit_vmm_t *self, uint64_t most, strata_call_t *call) {
    strata_record_t *below[BATCH_HANDLES];
    uint32_t count = 0;
    uint64_t bytes = 0, at = self->begin;
    for (uint32_t part; count < BATCH_HANDLES && bytes < most && (part = next_idle(self, at, UINT64_MAX)) != 0;) {
        at = strata_run_part_at(&self->runs, part)->at + self->handle;
        if ((below[count] = strata_runs_remove(&self->runs, part, 0, 0)) == NULL) break;
        bytes += self->handle;
        count++;
    }
    if (count == 0) return 0;
    self->unmapping++;
    strata_unlocked_t opened = strata_call_unlock(call);
    work_state_t work_state = work_state_of(self);
    if (work_state != WORK_CAPTURED) strata_vmm_free_chunks(self->vmm, below, count, work_state == WORK_DONE);
    strata_call_lock(call, opened);
    for (uint32_t i = 0; i < count && work_state == WORK_CAPTURED; i++) reinsert_handle(self, below[i], call);
    strata_runs_end_unmapping(&self->runs, &self->unmapping);
    return work_state == WORK_CAPTURED ? 0 : bytes;
}

static uint64_t give_back(best_fit_vmm_t *self, uint64_t most, strata_call_t *call) {
    uint64_t given = 0;
    if (strata_chunks_are_pinned(&self->chunks)) return 0;
    for (uint64_t now = 1; now > 0 && given < most; given += now) now = unmap_idle(self, most - given, call);
    return given;
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) { return give_back((best_fit_vmm_t *)base, UINT64_MAX, call); }

static uint64_t idle_bytes(strata_layer_t *base) { return ((const best_fit_vmm_t *)base)->idle.bytes; }

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    uint64_t idle = idle_bytes(base);
    return idle > keep ? give_back((best_fit_vmm_t *)base, idle - keep, call) : 0;
}

/* ---- at a given address ---- */

static void index_remove(strata_layer_t *base, uint32_t slot) {
    strata_tree_quick_remove(&((best_fit_vmm_t *)base)->idle, &base->stack->slab, slot);
}

static void index_insert(strata_layer_t *base, uint32_t slot) {
    strata_tree_quick_insert(&((best_fit_vmm_t *)base)->idle, &base->stack->slab, slot);
}

static bool on_split(strata_layer_t *base, const strata_record_t *block, strata_record_t *rest) {
    (void)base, (void)block, (void)rest;
    return true;
}

static strata_record_t *hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested, const strata_stack_t *stack) {
    best_fit_vmm_t *self = (best_fit_vmm_t *)base;
    const strata_extent_t place = strata_extent_of(at);
    uint32_t slot = strata_chunks_carve_at(&self->chunks, &place);
    if (slot == 0) return NULL;
    strata_record_t *block = block_at(self, slot);
    strata_block_hand_out(block, requested);
    self->used_bytes += block->size;
    block->stack = stack->number;
    base->stack->figures.cache_hits++;
    return block;
}

static const strata_chunk_policy_t policy = {.index_remove = index_remove, .index_insert = index_insert, .on_split = on_split};

/* ---- life ---- */

static strata_status_t validate(strata_layer_t *base) {
    best_fit_vmm_t *self = (best_fit_vmm_t *)base;
    strata_block_list_tally_t pieces = {0};
    strata_status_t status = strata_chunks_validate(&self->chunks, &pieces);
    if (status == STRATA_OK) status = strata_runs_validate(&self->runs);
    if (status == STRATA_OK) status = strata_tree_validate(&self->idle, slab_of(self));
    bool whole = pieces.free_bytes == self->idle.bytes && pieces.free_blocks == self->idle.count &&
                 pieces.free_bytes == self->chunks.bytes - self->used_bytes;
    if (status != STRATA_OK || whole) return status;
    return strata_fail(STRATA_E_CORRUPT, 0, "best_fit_vmm: the index does not match the free blocks");
}

static void destroy(strata_layer_t *base) {
    best_fit_vmm_t *self = (best_fit_vmm_t *)base;
    strata_chunks_destroy(base);
    if (self->begin) strata_vmm_unreserve(self->vmm, self->begin, self->addresses);
}

static strata_status_t create(strata_layer_t *base) {
    best_fit_vmm_t *self = (best_fit_vmm_t *)base;
    uint64_t available, total;
    strata_status_t status = strata_vmm_find(base, &self->vmm);
    if (status != STRATA_OK) return status;
    self->handle = strata_round_up_any(options_of(self)->handle, strata_vmm_granularity(self->vmm));
    status = strata_domain_memory(base->domain, &available, &total);
    if (status != STRATA_OK) return status;
    self->addresses = strata_round_up_any(total, self->handle) * options_of(self)->addresses;
    status = strata_chunks_init(base, &policy, sizeof(strata_run_part_t), PARTS);
    if (status != STRATA_OK) return status;
    self->chunks.unit = ALIGNMENT;
    strata_runs_init(&self->runs, &self->chunks);
    return STRATA_OK;
}

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    (void)filled, (void)option;
    if (place == STRATA_PLACE_GPU) return STRATA_OK;
    return strata_fail(STRATA_E_STRATEGY, 0, "best_fit_vmm serves only gpu places; write auto_growth here");
}

const strata_layer_type_t strata_best_fit_vmm_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "best_fit_vmm",
    .doc = "best fit over a range with mapped handles of one size (Paddle's second virtual-memory allocator)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .needs = STRATA_TRAIT_HANDLE_SOURCE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(best_fit_vmm_t),
    .options_size = sizeof(best_fit_vmm_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = hit,
    .quick_free = quick_free,
    .release = release,
    .trim = trim,
    .find = strata_chunks_find,
    .walk = strata_chunks_walk,
    .chunk_of = strata_chunks_chunk_of,
    .idle_bytes = idle_bytes,
    .validate = validate,
    .check = check,
    .hit_at = hit_at,
};
