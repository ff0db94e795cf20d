/* The layer type of auto_growth_vmm. A request is served from a free block, as in auto_growth. If none fits,
 * the cache maps free pieces of handles a second time next to each other, or it creates handles. See the
 * picture in auto_growth_vmm_state.h.
 *
 * Each instance has ranges of its own and belongs to one stream. Blocks freed on that stream are ordered by it,
 * so they are reusable at once, at any address. A handle moves to another stream only through the vmm source,
 * after a wait for this stream. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"

#include "platform/arithmetic.h"

/* Requests up to 1/SMALL of the smallest handle are small, and have a pool of their own. */
enum { ALIGNMENT = 256, SMALL = 8 };
/* This part of the peak use is in handles for small blocks before these use idle memory of large ones. */
enum { PARTS_SMALL = 64 };

static const strata_option_row_t options[] = {
    {"slack", STRATA_OPTION_FRACTION, offsetof(auto_growth_vmm_options_t, slack), "0.027", 0, 1000000, NULL,
     "a miss creates handles up to this share above peak use; beyond it, idle memory is reused first"},
    {"slack_least", STRATA_OPTION_SIZE, offsetof(auto_growth_vmm_options_t, slack_least), "40MiB", 0, 1ull << 40, NULL,
     "min bytes that `slack` allows, but at most 1/28 of peak use"},
    {"views", STRATA_OPTION_BOOL, offsetof(auto_growth_vmm_options_t, views), "true", 0, 0, NULL,
     "map idle parts of handles a second time as one block; false to only create and give back handles"},
    {"moves", STRATA_OPTION_BOOL, offsetof(auto_growth_vmm_options_t, moves), "true", 0, 0, NULL,
     "with `views`: once blocks keep being replaced by slightly larger ones, move idle handles beside a free block"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"views", "count", offsetof(auto_growth_vmm_t, views), "current views: second mappings of handles as one block"},
    {"viewed", "count", offsetof(auto_growth_vmm_t, mapped), "mappings in these views"},
    {"joins", "count", offsetof(auto_growth_vmm_t, joins), "requests that views served"},
    {"moves", "count", offsetof(auto_growth_vmm_t, moves), "handles moved beside a free block"},
    {"creations", "count", offsetof(auto_growth_vmm_t, creations), "handles created"},
    {0},
};

/* ---- allocate ---- */

bool strata_growth_vmm_may_mix(auto_growth_vmm_t *self, vmm_kind_t pool, uint64_t rounded) {
    uint64_t peak = strata_max(self->peak_used, self->growth.used_bytes + rounded);
    if (pool != STRATA_VMM_SMALL || self->small_bytes + self->granularity <= peak / PARTS_SMALL) return false;
    if (strata_auto_growth_idle(&self->growth) < self->granularity) return false;
    return strata_bins_find_any(strata_growth_vmm_bins(self, STRATA_VMM_LARGE), strata_growth_vmm_slab(self), rounded) != 0;
}

static strata_status_t search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    strata_status_t status = strata_auto_growth_search(base, lookup, record);
    vmm_kind_t pool = strata_auto_growth_pool_for(&self->growth, lookup->rounded);
    if (status != STRATA_E_NO_MEMORY || !strata_growth_vmm_may_mix(self, pool, lookup->rounded)) return status;
    *record = strata_auto_growth_serve_from_pool(&self->growth, lookup->rounded, lookup->size, STRATA_VMM_LARGE);
    if (!*record) return status;
    self->peak_used = strata_max(self->peak_used, self->growth.used_bytes);
    return STRATA_OK;
}

/* Free pieces can become one block, so a wait is only for the bytes that they lack. */
static bool wait_for_pending(strata_layer_t *base, strata_lookup_t *lookup, uint64_t growth_size, strata_patience_t *patience) {
    const auto_growth_t *self = (const auto_growth_t *)base;
    const strata_growth_asked_t asked = {growth_size, strata_min(growth_size, strata_auto_growth_idle(self))};
    return !self->chunks.growing && strata_patience_waited(patience, base, lookup->request, &asked);
}

static const strata_cache_policy_t policy = {.search = search, .wait = wait_for_pending, .grow = strata_growth_vmm_grow};

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    strata_chunks_t *chunks = (strata_chunks_t *)base;
    strata_lookup_t lookup = {.request = request, .size = request->size};
    strata_status_t status = strata_cache_round(chunks, request, 0, &lookup.rounded);
    return status == STRATA_OK ? strata_cache_serve(chunks, &policy, &chunks->growing, &lookup, record) : status;
}

static bool is_viewed(const strata_record_t *block) { return block->chunk == STRATA_VMM_VIEW_NUMBER; }

/* The fast path does not free the blocks of views, because their attention bit is set. They are freed here. */
static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    (void)call;
    if (is_viewed(block)) strata_growth_vmm_free_viewed((auto_growth_vmm_t *)base, block);
    else (void)strata_auto_growth_free_block((auto_growth_t *)base, block);
}

/* ---- giving back ---- */

enum { BATCH_HANDLES = 256 };

typedef struct batch {
    uint64_t bytes, most; /* bytes taken, and the max to take */
    uint32_t count;
    uint32_t parts[BATCH_HANDLES], slots[BATCH_HANDLES], shadows[BATCH_HANDLES];
    strata_record_t *below[BATCH_HANDLES];
} batch_t;

static bool add_to_batch(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context) {
    batch_t *batch = context;
    const vmm_part_t *p = strata_growth_vmm_part(self, part);
    if (p->views > 0 || !strata_vmm_may_free(self->vmm, p->run.chunk.below)) return true;
    batch->parts[batch->count] = part;
    batch->slots[batch->count++] = slot;
    return batch->count < BATCH_HANDLES;
}

static void detach_batch(auto_growth_vmm_t *self, batch_t *batch) {
    uint32_t taken = 0;
    strata_growth_vmm_each_idle(self, add_to_batch, batch);
    for (uint32_t i = 0; i < batch->count && batch->bytes < batch->most; i++) {
        const strata_run_part_t *part = strata_run_part_at(&self->runs, batch->parts[i]);
        uint32_t shadow = strata_growth_vmm_block(self, part->at, part->size);
        bool small = strata_growth_vmm_kind_at(self, part->at) == STRATA_VMM_SMALL;
        strata_record_t *below = shadow ? strata_runs_remove(&self->runs, batch->parts[i], 0, batch->slots[i]) : NULL;
        if (shadow && !below) strata_growth_vmm_unblock(self, shadow);
        if (!below) break;
        batch->bytes += below->size;
        if (small) self->small_bytes -= below->size;
        batch->shadows[taken] = shadow;
        batch->below[taken++] = below;
    }
    batch->count = taken;
}

/* Gives back idle handles until at least `bytes` bytes are given back or none is left. Returns the bytes. */
static uint64_t give_back(auto_growth_vmm_t *self, uint64_t bytes, strata_call_t *call) {
    uint64_t given = 0;
    if (strata_chunks_are_pinned(&self->growth.chunks)) return 0;
    strata_growth_vmm_drop_views(self, call);
    strata_growth_vmm_drop_shadows(self, true, call);
    /* Most stacks have nothing idle when all stacks are asked. Then not even the list is cleared. */
    while (strata_auto_growth_idle_bytes(&self->growth.base) > 0) {
        (void)strata_growth_vmm_ensure_event(self, call);
        batch_t batch;
        batch.bytes = batch.count = 0;
        batch.most = bytes - given;
        detach_batch(self, &batch);
        if (batch.count == 0) break;
        /* The parts go back after a wait for the stream's work. If that is not possible, each unmapping waits for
         * the device. */
        strata_handle_t event = strata_growth_vmm_mark_stream(self);
        strata_unlocked_t opened = strata_call_unlock(call);
        bool done = event && strata_device_event_synchronise(self->growth.base.domain->device, event) == STRATA_OK;
        strata_vmm_free_chunks(self->vmm, batch.below, batch.count, done);
        strata_call_lock(call, opened);
        for (uint32_t i = 0; i < batch.count; i++) strata_growth_vmm_unblock(self, batch.shadows[i]);
        if (event) strata_events_release(&self->growth.base.domain->events, event);
        given += batch.bytes;
        if (given >= bytes) break;
    }
    strata_growth_vmm_end_ranges(self, call);
    return given;
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    return give_back((auto_growth_vmm_t *)base, UINT64_MAX, call);
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    uint64_t idle = strata_auto_growth_idle_bytes(base);
    return idle > keep ? give_back((auto_growth_vmm_t *)base, idle - keep, call) : 0;
}

/* ---- chunk_of, find, walk ---- */

/* Returns the chunk of the view's first part for a block that a view serves. */
static const strata_record_t *chunk_of(strata_layer_t *base, const strata_record_t *block) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    if (is_viewed(block)) return strata_chunk_at(&self->growth.chunks, strata_growth_vmm_viewed_part(self, block))->below;
    return strata_chunks_chunk_of(base, block);
}

static const strata_record_t *find(strata_layer_t *base, uint64_t address) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    const strata_record_t *block = strata_growth_vmm_viewed_at((auto_growth_vmm_t *)base, address);
    return block ? block : strata_chunks_find(base, address);
}

typedef struct walk {
    strata_walk_fn block;
    void *context;
} walk_t;

/* Skips the blocks of handles that a view uses, since the view's own block covers them. */
static void pass_on(const strata_record_t *block, void *context) {
    const walk_t *walk = context;
    if (block->state != STRATA_RECORD_CHUNK || block->pool != STRATA_VMM_IN_A_VIEW) walk->block(block, walk->context);
}

static void walk_blocks(strata_layer_t *base, strata_walk_fn block, void *context) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    walk_t walk = {block, context};
    strata_auto_growth_walk(base, pass_on, &walk);
    for (uint32_t view = self->oldest; view; view = strata_growth_vmm_view_at(self, view)->newer) {
        uint32_t slot = strata_growth_vmm_view_at(self, view)->slot;
        if (slot) block(strata_slab_record(&base->stack->slab, slot), context);
    }
}

/* ---- check ---- */

typedef struct tally {
    uint64_t bytes;
    uint32_t blocks;
} tally_t;

/* Sums the free blocks of each pool. All blocks of a run must have the same pool, except those that views use. */
static strata_status_t sum_pools(auto_growth_vmm_t *self, tally_t free[STRATA_AUTO_GROWTH_POOLS]) {
    STRATA_EACH_CHUNK(&self->growth.chunks, run) {
        uint8_t pool = strata_slab_record(strata_growth_vmm_slab(self), strata_runs_last_block(&self->runs, run))->pool;
        bool known = false;
        STRATA_EACH_BLOCK(&self->growth.chunks, run, slot) {
            const strata_record_t *block = strata_slab_record(strata_growth_vmm_slab(self), slot);
            if (block->state == STRATA_RECORD_CHUNK || block->size == 0) continue;
            if (known && block->pool != pool) return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth_vmm: a run has two pools");
            pool = block->pool;
            known = true;
            free[pool].bytes += block->state == STRATA_RECORD_FREE ? block->size : 0;
            free[pool].blocks += block->state == STRATA_RECORD_FREE;
        }
    }
    return STRATA_OK;
}

static strata_status_t validate(strata_layer_t *base) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    tally_t free[STRATA_AUTO_GROWTH_POOLS] = {0};
    strata_block_list_tally_t pieces = {0};
    strata_auto_growth_flush_last_freed(&self->growth);
    strata_status_t status = strata_chunks_validate(&self->growth.chunks, &pieces);
    if (status == STRATA_OK) status = strata_runs_validate(&self->runs);
    if (status == STRATA_OK) status = sum_pools(self, free);
    if (status == STRATA_OK) status = strata_order_validate(&self->shadows);
    if (status == STRATA_OK) status = strata_growth_vmm_validate_views(self);
    for (uint32_t pool = 0; pool < STRATA_AUTO_GROWTH_POOLS && status == STRATA_OK; pool++)
        status = strata_bins_validate(strata_growth_vmm_bins(self, pool), &base->stack->slab, free[pool].blocks, free[pool].bytes);
    if (status != STRATA_OK) return status;
    uint64_t small_bytes = 0;
    for (uint32_t part = strata_runs_part_from(&self->runs, 0); part; part = strata_runs_next_part(&self->runs, part)) {
        const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
        if (strata_growth_vmm_kind_at(self, p->at) == STRATA_VMM_SMALL) small_bytes += p->size;
    }
    if (small_bytes != self->small_bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth_vmm: the sum of small handles is wrong");
    if (pieces.free_bytes == strata_auto_growth_idle(&self->growth)) return STRATA_OK;
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth_vmm: the sum of free blocks is wrong");
}

/* ---- life ---- */

static void destroy(strata_layer_t *base) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    strata_growth_vmm_end_shadows(self);
    strata_nodes_destroy(&self->view_nodes);
    strata_chunks_destroy(base);
    for (uint32_t i = 0; i < self->range_count; i++) strata_vmm_unreserve(self->vmm, self->ranges[i].base, self->ranges[i].size);
}

static strata_status_t create(strata_layer_t *base) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    strata_status_t status = strata_vmm_find(base, &self->vmm);
    if (status != STRATA_OK) return status;
    self->granularity = strata_vmm_granularity(self->vmm);
    status = strata_chunks_init(base, &strata_auto_growth_policy, sizeof(vmm_part_t), STRATA_VMM_PARTS);
    if (status != STRATA_OK) return status;
    strata_runs_init(&self->runs, &self->growth.chunks);
    strata_auto_growth_init_low(&self->growth, ALIGNMENT, self->granularity / SMALL);
    status = strata_growth_vmm_init_shadows(self);
    if (status == STRATA_OK && (status = strata_growth_vmm_init_views(self)) != STRATA_OK) strata_growth_vmm_end_shadows(self);
    if (status != STRATA_OK) strata_chunks_destroy(base);
    return status;
}

static strata_status_t check(const void *options_given, strata_place_kind_t place, const char **option) {
    (void)options_given, (void)option;
    if (place == STRATA_PLACE_GPU) return STRATA_OK;
    return strata_fail(STRATA_E_STRATEGY, 0, "auto_growth_vmm serves only gpu places; write auto_growth here");
}

const strata_layer_type_t strata_auto_growth_vmm_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "auto_growth_vmm",
    .doc = "best fit over contiguous addresses; a miss maps idle parts of handles as one block, or creates handles",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .needs = STRATA_TRAIT_HANDLE_SOURCE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(auto_growth_vmm_t),
    .options_size = sizeof(auto_growth_vmm_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = strata_auto_growth_hit_low,
    .quick_free = strata_auto_growth_quick_free_low,
    .direct = &strata_auto_growth_direct_low,
    .release = release,
    .trim = trim,
    .find = find,
    .walk = walk_blocks,
    .chunk_of = chunk_of,
    .idle_bytes = strata_auto_growth_idle_bytes,
    .validate = validate,
    .check = check,
    .hit_at = strata_auto_growth_serve_at,
};
