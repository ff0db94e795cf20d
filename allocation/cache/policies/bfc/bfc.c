/* bfc: best fit with coalescing over regions that double (TensorFlow's BFCAllocator).
 *
 * The rules are those of XLA's, which TensorFlow uses. Sizes are multiples of 256 bytes. A request takes the
 * smallest free block that fits, the lowest among equals. The rest is split off if the block has twice the
 * requested size, or exceeds it by more than `fragmentation_fraction` allows. A freed block coalesces with its
 * free neighbors.
 *
 * If nothing fits, the cache requests a region, each twice as large as the one before. If that is refused, it
 * requests smaller and smaller ones, down to the size of the request. If these fail too, blocks that were kept
 * separate by their counts coalesce. Then regions without a live block go back, and a region is requested once
 * more.
 *
 * One instance serves all streams of a device, as the peer does. A block that another stream used is handed out
 * after a wait of the host. With `timestamps`, the program declares by counts which work is over. The other
 * files are bfc_regions.c, bfc_stamps.c, bfc_debug.c and bfc_check.c. Features that the peer lacks are options,
 * off by default. */
#include "allocation/cache/policies/bfc/bfc_state.h"
#include "allocation/options/option.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"
#include "platform/place.h"

/* The sum of two sizes never overflows. */
#define MAX_BYTES         (1ull << 61)
#define DEFAULT_SPLIT_CAP (128ull << 20)
#define ROW(name)         offsetof(bfc_options_t, name)
#define HOT               inline __attribute__((always_inline))

static const strata_option_row_t options[] = {
    {"memory_limit", STRATA_OPTION_SIZE, ROW(memory_limit), "unlimited", STRATA_BFC_UNIT, 0, NULL,
     "max bytes to reserve; beyond it requests fail without a device call"},
    {"memory_fraction", STRATA_OPTION_FRACTION, ROW(memory_fraction), "1", 0, 100000000, NULL,
     "max share of device memory to reserve, if that is less (XLA_CLIENT_MEM_FRACTION); above 1 only over managed memory"},
    {"allow_growth", STRATA_OPTION_BOOL, ROW(allow_growth), "true", 0, 0, NULL,
     "begin with initial_region and double; false for one region of the whole limit"},
    {"initial_region", STRATA_OPTION_SIZE, ROW(initial_region), "2MiB", STRATA_BFC_UNIT, 1ull << 40, NULL,
     "first region of a growing allocator"},
    {"max_region", STRATA_OPTION_SIZE, ROW(max_region), "unlimited", STRATA_BFC_UNIT, 0, NULL,
     "max region, unless a request is larger; unlimited doubling may reserve twice what is needed (TensorFlow #29635, #6111)"},
    {"fragmentation_fraction", STRATA_OPTION_FRACTION, ROW(fragmentation_fraction), "0", 0, 1000000, NULL,
     "share of the limit, up to 4 GiB, by which an unsplit block may exceed its request; 0 for 128 MiB"},
    {"garbage_collection", STRATA_OPTION_BOOL, ROW(garbage_collection), "true", 0, 0, NULL,
     "when out of memory, give back all regions without a live block and retry once (TF_ENABLE_GPU_GARBAGE_COLLECTION)"},
    {"coalesce_regions", STRATA_OPTION_BOOL, ROW(coalesce_regions), "false", 0, 0, NULL,
     "merge adjacent regions and blocks across them, over `vmm` or another contiguous source; merged regions go back "
     "together (SubAllocator::SupportsCoalescing of the peer)"},
    {"timestamps", STRATA_OPTION_BOOL, ROW(timestamps), "false", 0, 0, NULL,
     "freed blocks carry the program's count and merge once strata_set_safe_frontier() has passed it"},
    {"smaller_growth", STRATA_OPTION_BOOL, ROW(smaller_growth), "false", 0, 0, NULL,
     "after ever smaller regions fail, request exactly the needed bytes; the peer's last try may exceed them by a ninth"},
    {"reclaim", STRATA_OPTION_CHOICE, ROW(reclaim), "own", 0, 0, "own|ladder",
     "recovery from out-of-memory: `own` for TensorFlow's steps only; `ladder` for the domain's"},
    {"memory_debug", STRATA_OPTION_BOOL, ROW(memory_debug), "false", 0, 0, NULL,
     "number allocations and actions, and keep the bytes in use after the last 4096 actions, for reports"},
    {"memory_dump", STRATA_OPTION_TEXT, ROW(memory_dump), "none", 0, 0, NULL,
     "when out of memory, write a map of all blocks to a file with this name prefix (TF_BFC_MEMORY_DUMP)"},
    {"stable_addresses", STRATA_OPTION_BOOL, ROW(stable_addresses), "false", 0, 0, NULL, STRATA_STABLE_ADDRESSES},
    {0},
};

static const strata_option_dependency_t dependencies[] = {
    {"initial_region", "allow_growth", "true"}, {"garbage_collection", "reclaim", "own"}, {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    (void)place;
    return strata_option_check_dependencies(options, dependencies, filled, option);
}

static const strata_stat_row_t stats[] = {
    {"limit_bytes", "bytes", offsetof(bfc_t, limit), "max bytes to reserve"},
    {"used_bytes", "bytes", offsetof(bfc_t, chunks.bytes), "regions"},
    {"next_region", "bytes", offsetof(bfc_t, next_region), "size of the next region"},
    {"largest_allocation", "bytes", offsetof(bfc_t, largest_allocation), "largest block served"},
    {"backpedals", "", offsetof(bfc_t, backpedals), "regions refused and requested again, smaller"},
    {"collections", "", offsetof(bfc_t, collections), "collections of regions without a live block, for lack of memory"},
    {"collected_bytes", "bytes", offsetof(bfc_t, collected_bytes), "bytes given back by collections"},
    {"forced_merges", "", offsetof(bfc_t, forced_merges), "merges of blocks before the frontier passed them"},
    {0},
};

typedef struct lookup {
    strata_lookup_t base;
    uint64_t alignment, freed_before;
    uint16_t server; /* the number of the requesting stack */
    strata_status_t waited; /* the result of the host's wait for users in the last search */
} lookup_t;

/* ---- search ---- */

/* Returns the bytes of a block before its first address with the requested alignment. */
static uint64_t padding(const strata_record_t *block, const lookup_t *lookup) { return -block->ptr & (lookup->alignment - 1); }

/* Returns true if the host must wait first. A request with freed_before vouches that the work on stamped blocks
 * is over. */
static bool is_in_use(const bfc_t *self, const strata_record_t *block, const lookup_t *lookup) {
    bool vouched = lookup->freed_before > 0 && bfc_stamp_of(block) != 0;
    return !vouched && strata_last_users_other_uses(&self->last, block, lookup->base.user);
}

static bool suits(const bfc_t *self, const strata_record_t *block, const lookup_t *lookup) {
    uint64_t before = lookup->freed_before;
    bool may_wait = self->captures == 0 && lookup->waited == STRATA_OK;
    if (before > 0 && before < bfc_freed_at(self, block)) return false;
    if (!may_wait && is_in_use(self, block, lookup)) return false;
    return block->size - lookup->base.rounded >= padding(block, lookup);
}

/* Returns the smallest free block that suits, or 0. */
static uint32_t fitting(const bfc_t *self, const lookup_t *lookup) {
    const strata_slab_t *slab = bfc_slab(self);
    uint32_t slot = strata_tree_quick_find(&self->idle, slab, lookup->base.rounded);
    while (slot && !suits(self, bfc_block(self, slot), lookup))
        slot = strata_tree_after(&self->idle, slab, bfc_block(self, slot)->size, bfc_block(self, slot)->ptr);
    return slot;
}

/* Splits a free block that is in no bin; neither part is in one. Returns the slot of the high part, or 0 if no
 * slot is left. */
static uint32_t split_block(bfc_t *self, uint32_t slot, uint64_t size) {
    strata_record_t *block = bfc_block(self, slot);
    uint32_t after = strata_block_list_split(bfc_slab(self), slot, size);
    if (after == 0) return 0;
    strata_record_t *rest = bfc_block(self, after);
    strata_mark(rest, strata_mark_count(block), strata_mark_stream(block));
    if (strata_bfc_stamp_rest(self, block, rest)) {
        strata_chunks_note_last(&self->chunks, after);
        return after;
    }
    strata_block_list_absorb(bfc_slab(self), slot);
    return 0;
}

static bool is_divisible(const bfc_t *self, const strata_record_t *block, uint64_t rounded) {
    return block->size >= 2 * rounded || block->size - rounded >= self->split_cap;
}

/* Splits the part to hand out off a free block that is in no bin, and indexes the remainders. Returns 0, with
 * nothing changed, if no slot is left. */
static uint32_t carve(bfc_t *self, uint32_t slot, const lookup_t *lookup) {
    uint64_t prefix = padding(bfc_block(self, slot), lookup);
    uint32_t own = prefix ? split_block(self, slot, prefix) : slot;
    uint32_t rest = own && is_divisible(self, bfc_block(self, own), lookup->base.rounded)
                        ? split_block(self, own, lookup->base.rounded)
                        : own;
    if (rest == 0) {
        if (own && prefix) {
            strata_bfc_unstamp(self, bfc_block(self, own));
            strata_block_list_absorb(bfc_slab(self), slot);
            strata_chunks_note_last(&self->chunks, slot);
        }
        return 0;
    }
    if (own != slot) strata_bfc_index(self, slot);
    if (rest != own) strata_bfc_index(self, rest);
    return own;
}

static HOT void hand_out(bfc_t *self, strata_record_t *block, const lookup_t *lookup) {
    strata_bfc_unstamp(self, block);
    block->user = lookup->base.user;
    strata_last_users_hold(&self->last, lookup->base.user);
    strata_block_hand_out(block, lookup->base.size);
    block->stack = lookup->server;
    self->used_bytes += block->size;
    if (self->used_bytes > self->peak_used) self->peak_used = self->used_bytes;
    bfc_region_at(self, block->chunk)->live++;
    if (block->size > self->largest_allocation) self->largest_allocation = block->size;
    self->ids++;
    if (self->history) strata_bfc_note(self, block, true);
}

/* Returns NULL if no slot is left to split the block. */
static strata_record_t *serve_block(bfc_t *self, uint32_t slot, const lookup_t *lookup) {
    strata_bfc_unindex(self, slot);
    uint32_t own = carve(self, slot, lookup);
    if (own == 0) {
        strata_bfc_index(self, slot);
        return NULL;
    }
    hand_out(self, bfc_block(self, own), lookup);
    return bfc_block(self, own);
}

/* Returns NULL if no block fits, or no slot is left to split one. Once a wait has failed, blocks in use are
 * skipped. */
static strata_record_t *find(bfc_t *self, lookup_t *lookup) {
    lookup->waited = STRATA_OK;
    uint32_t slot = fitting(self, lookup);
    while (slot && is_in_use(self, bfc_block(self, slot), lookup)) {
        if (!strata_last_users_wait(&self->last, self->base.domain, lookup->base.request->call))
            lookup->waited = strata_last_error()->status;
        slot = fitting(self, lookup);
    }
    return slot ? serve_block(self, slot, lookup) : NULL;
}

static strata_status_t search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    *record = find((bfc_t *)base, (lookup_t *)lookup);
    return *record ? STRATA_OK : STRATA_E_NO_MEMORY;
}

/* ---- at a given address ---- */

/* Serves a request at a place, if that needs no wait. */
static strata_record_t *serve_at(strata_layer_t *base, const strata_extent_t *place, strata_lookup_t *base_lookup) {
    bfc_t *self = (bfc_t *)base;
    const lookup_t *lookup = (const lookup_t *)base_lookup;
    uint32_t slot = strata_chunks_free_at(&self->chunks, place);
    const strata_record_t *block = bfc_block(self, slot);
    bool fits = place->size >= lookup->base.rounded && place->size - lookup->base.size <= UINT32_MAX &&
                (place->ptr & (lookup->alignment - 1)) == 0;
    bool before = lookup->freed_before == 0 || lookup->freed_before >= bfc_freed_at(self, block);
    if (slot == 0 || !fits || !before || is_in_use(self, block, lookup)) return NULL;
    uint32_t own = strata_chunks_carve(&self->chunks, slot, place);
    if (own == 0) return NULL;
    hand_out(self, bfc_block(self, own), lookup);
    return bfc_block(self, own);
}

/* An orphaned stack no longer records which stream owned it. */
static strata_record_t *hit_at(strata_layer_t *base, const strata_block_t *at, size_t requested, const strata_stack_t *stack) {
    bfc_t *self = (bfc_t *)base;
    const strata_extent_t place = strata_extent_of(at);
    strata_bfc_merge_at(self, &place);
    uint32_t slot = strata_chunks_carve_at(&self->chunks, &place);
    if (slot == 0) return NULL;
    uint32_t user = stack->forgotten.orphan ? 0 : strata_last_users_of(&self->last, stack->stream);
    hand_out(self, bfc_block(self, slot), &(lookup_t){.base = {.size = requested, .user = user}, .server = stack->number});
    base->stack->figures.cache_hits++;
    return bfc_block(self, slot);
}

/* ---- hit ---- */

/* Serves the block that allocate() would find first. Does nothing if blocks must be coalesced first, or a user
 * waited for. */
static strata_record_t *hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    bfc_t *self = (bfc_t *)base;
    lookup_t lookup = {.base = {.size = size, .user = strata_bfc_known_user(self, stack)}, .alignment = 1, .server = stack->number};
    if (lookup.base.user == 0 || self->frontier_moved) return NULL;
    lookup.base.rounded = (size + STRATA_BFC_UNIT - 1) & ~(uint64_t)(STRATA_BFC_UNIT - 1);
    uint32_t slot = fitting(self, &lookup);
    strata_record_t *block = slot && !is_in_use(self, bfc_block(self, slot), &lookup) ? serve_block(self, slot, &lookup) : NULL;
    if (block) base->stack->figures.cache_hits++;
    return block;
}

/* ---- growth ---- */

/* Returns nine tenths as the peer computes them: in single precision, rounded up to a multiple of 256, and
 * always less than `size`. */
static uint64_t backpedal(uint64_t size) {
    uint64_t less = (uint64_t)((float)size * 0.9f);
    less = (less + STRATA_BFC_UNIT - 1) & ~(uint64_t)(STRATA_BFC_UNIT - 1);
    return less < size ? less : size - STRATA_BFC_UNIT;
}

/* Requests a region of `size` bytes, then smaller ones down to `least`. Opens the lock. */
static strata_status_t grow_with_backpedal(bfc_t *self, uint64_t size, uint64_t least, const strata_request_t *request,
                                           uint32_t *region) {
    strata_status_t status = strata_chunks_grow(&self->chunks, size, STRATA_BFC_UNIT, request, region);
    while (status == STRATA_E_NO_MEMORY && (size = backpedal(size)) >= least) {
        self->backpedals++;
        status = strata_chunks_grow(&self->chunks, size, STRATA_BFC_UNIT, request, region);
    }
    if (status != STRATA_E_NO_MEMORY || !bfc_options_of(self)->smaller_growth) return status;
    self->backpedals++;
    return strata_chunks_grow(&self->chunks, least, STRATA_BFC_UNIT, request, region);
}

/* Adds a region, which is one free block. Returns E_NO_MEMORY if the device or the limit permits none. */
static strata_status_t extend(bfc_t *self, const lookup_t *lookup, uint32_t *region) {
    /* A region of this size fits the request at any start address. */
    uint64_t alignment = lookup->alignment, reserved = self->chunks.bytes;
    uint64_t least = lookup->base.rounded + (alignment > STRATA_BFC_UNIT ? alignment - STRATA_BFC_UNIT : 0);
    uint64_t available = (self->limit - strata_min(self->limit, reserved)) & ~(uint64_t)(STRATA_BFC_UNIT - 1);
    if (least > available)
        return strata_refuse_by_bound(&self->base, lookup->base.request, strata_bfc_bound(self), least, reserved, self->limit);
    /* During a capture, a region is requested because the host must not wait, not because the program grew. So
     * nothing doubles. */
    bool grew = lookup->waited != STRATA_E_CAPTURE, doubled = least > self->next_region;
    while (grew && least > self->next_region) self->next_region *= 2;
    uint64_t size = grew ? strata_min(self->next_region, strata_max(bfc_options_of(self)->max_region, least)) : least;
    /* Any stream may use a region, and a region has room in front of a block. So neither the alignment nor the
     * count is passed down. */
    strata_request_t asked = *lookup->base.request;
    asked.alignment = STRATA_BFC_UNIT;
    asked.freed_before = 0;
    strata_status_t status = grow_with_backpedal(self, strata_min(size, available), least, &asked, region);
    if (status != STRATA_OK) return status;
    if (grew && !doubled && self->next_region < MAX_BYTES) self->next_region *= 2;
    return STRATA_OK;
}

static void merge_if_free(bfc_t *self, uint32_t slot) {
    if (!bfc_is_free(self, slot)) return;
    strata_bfc_unindex(self, slot);
    strata_bfc_index(self, strata_bfc_coalesce(self, slot, false));
}

/* Cuts the request from a new region before the region is coalesced with the free block before it. During a
 * capture, the host must not wait for the users of that block. Returns NULL if no slot is left. */
static strata_record_t *serve_uncoalesced(bfc_t *self, uint32_t slot, const lookup_t *lookup) {
    strata_bfc_index(self, slot);
    strata_record_t *record = serve_block(self, slot, lookup);
    if (!record) {
        strata_bfc_unindex(self, slot);
        return NULL;
    }
    merge_if_free(self, record->prev);
    merge_if_free(self, record->next);
    return record;
}

/* Adds a region and searches again. While the host waits for users, other requests may take the region, and
 * then another one is added. If the wait fails, none is added. A region that was coalesced with a block in use
 * is no more available than that block, and neither would be the next region. */
static strata_status_t extend_and_search(bfc_t *self, lookup_t *lookup, strata_record_t **record) {
    for (;;) {
        uint32_t region;
        strata_status_t status = extend(self, lookup, &region);
        if (status != STRATA_OK) return status;
        uint32_t slot = strata_bfc_mark_region(self, region, lookup->base.user);
        if (lookup->waited == STRATA_E_CAPTURE && (*record = serve_uncoalesced(self, slot, lookup)) != NULL) return STRATA_OK;
        strata_bfc_index(self, strata_bfc_coalesce(self, slot, false));
        uint32_t slots = bfc_slab(self)->unused + bfc_slab(self)->capacity - bfc_slab(self)->used;
        if ((*record = find(self, lookup)) != NULL) return STRATA_OK;
        if (lookup->waited != STRATA_OK) return lookup->waited;
        if (slots < 2)
            return strata_fail(STRATA_E_LIMIT, 0, "too many blocks: this device has %u, the maximum; free some",
                               bfc_slab(self)->capacity);
    }
}

/* ---- out of memory: the peer's steps ---- */

static bool may_collect(const bfc_t *self, const lookup_t *lookup) {
    uint64_t releasable = strata_bfc_releasable(self), free_bytes = self->limit - strata_min(self->limit, self->chunks.bytes);
    return bfc_options_of(self)->garbage_collection && self->captures == 0 && releasable > 0 &&
           lookup->base.rounded <= free_bytes + releasable;
}

static strata_status_t grow(strata_layer_t *base, strata_lookup_t *base_lookup, uint64_t rounded, strata_record_t **record) {
    bfc_t *self = (bfc_t *)base;
    lookup_t *lookup = (lookup_t *)base_lookup;
    const bfc_options_t *o = bfc_options_of(self);
    strata_status_t status = extend_and_search(self, lookup, record);
    if (status != STRATA_E_NO_MEMORY) return status;
    if (lookup->freed_before == 0 && self->stamp_count > 0 && strata_bfc_merge_by_force(self, rounded) &&
        (*record = find(self, lookup)) != NULL)
        return STRATA_OK;
    if (o->reclaim == STRATA_BFC_RECLAIM_LADDER) return status;
    if (may_collect(self, lookup)) {
        self->collections++;
        self->collected_bytes += strata_chunks_release(&self->base, lookup->base.request->call);
        status = extend_and_search(self, lookup, record);
    }
    /* The core takes no further steps after the peer's. */
    if (status == STRATA_E_NO_MEMORY) strata_layer_note_reclaimed(&self->base, lookup->base.request);
    return status;
}

static const strata_cache_policy_t policy = {.search = search, .serve_at = serve_at, .grow = grow};

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    bfc_t *self = (bfc_t *)base;
    if (request->size > MAX_BYTES || request->alignment > MAX_BYTES)
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    lookup_t lookup = {.base = {.request = request,
                                .size = request->size,
                                .rounded = (request->size + STRATA_BFC_UNIT - 1) & ~(uint64_t)(STRATA_BFC_UNIT - 1),
                                .user = strata_last_users_of(&self->last, request->stream)},
                       .alignment = request->alignment,
                       .freed_before = request->freed_before,
                       .server = request->call->stack->number};
    /* With stable addresses no hint is kept. So no hit serves, and each request tries the place of the last
     * step. */
    if (!strata_repeats_are_on(&self->chunks.repeats)) self->hints[lookup.server] = lookup.base.user;
    /* The user's entry must not end before it holds a block. */
    strata_last_users_hold(&self->last, lookup.base.user);
    if (self->frontier_moved) strata_bfc_merge_safe(self);
    strata_status_t status = strata_cache_serve(&self->chunks, &policy, &self->chunks.growing, &lookup.base, record);
    strata_last_users_release(&self->last, lookup.base.user);
    return status;
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    bfc_t *self = (bfc_t *)base;
    (void)call;
    strata_bfc_free_block(self, block);
}

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    strata_bfc_free_block((bfc_t *)base, block);
    return true;
}

/* ---- destroyed streams, captures ---- */

/* Sets the size of the first region, which later ones double. */
static void begin_doubling(bfc_t *self) {
    const bfc_options_t *o = bfc_options_of(self);
    uint64_t first = o->allow_growth ? strata_min(self->limit, o->initial_region) : self->limit;
    self->next_region = strata_max((first + STRATA_BFC_UNIT - 1) & ~(uint64_t)(STRATA_BFC_UNIT - 1), STRATA_BFC_UNIT);
}

static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    bfc_t *self = (bfc_t *)base;
    switch (notice->kind) {
    case STRATA_NOTICE_STREAM_DESTROYED: strata_last_users_stream_destroyed(&self->last, base->domain, notice->stream, call); break;
    case STRATA_NOTICE_CAPTURE_BEGIN:
        /* One instance serves several pools in turn, and each starts with small regions. */
        if (self->chunks.count == 0) begin_doubling(self);
        self->captures++;
        break;
    case STRATA_NOTICE_CAPTURE_END: self->captures--; break;
    case STRATA_NOTICE_STEP: strata_repeats_step(&self->chunks.repeats); break;
    case STRATA_NOTICE_FRONTIER: notice->handled |= strata_bfc_set_frontier(self, notice->count); break;
    case STRATA_NOTICE_REPORT: strata_bfc_print(self, notice->sink); break;
    case STRATA_NOTICE_PEAKS: self->peak_used = self->used_bytes; break;
    default: break;
    }
}

/* ---- life ---- */

static strata_status_t read_limits(bfc_t *self) {
    const bfc_options_t *o = bfc_options_of(self);
    uint64_t available, total;
    strata_status_t status = strata_device_mem_info(self->base.domain->device, &available, &total);
    if (status != STRATA_OK) return status;
    self->limit = strata_min(strata_min(o->memory_limit, strata_share(total, o->memory_fraction)), MAX_BYTES);
    begin_doubling(self);
    self->split_cap = o->fragmentation_fraction > 0 ? strata_share(self->limit, o->fragmentation_fraction) : DEFAULT_SPLIT_CAP;
    self->split_cap = strata_min(self->split_cap, UINT32_MAX - STRATA_BFC_UNIT);
    return STRATA_OK;
}

/* Gives every region back, even if blocks in it are live. */
static void destroy(strata_layer_t *base) {
    bfc_t *self = (bfc_t *)base;
    strata_chunks_destroy(base);
    strata_bfc_debug_destroy(self);
    strata_last_users_destroy(&self->last);
    strata_nodes_destroy(&self->stamps);
}

static strata_status_t create(strata_layer_t *base) {
    bfc_t *self = (bfc_t *)base;
    uint32_t stamps = bfc_options_of(self)->timestamps ? STRATA_SLAB_SLOTS : 1;
    strata_status_t status = strata_chunks_init(base, &strata_bfc_policy, sizeof(bfc_region_t), STRATA_BFC_REGIONS);
    if (status != STRATA_OK) return status;
    self->chunks.sorted = true;
    /* Blocks of such a place have no stream, and their free waits for every use. */
    if (base->stack->ownerless) self->last.waited = UINT64_MAX;
    status = bfc_options_of(self)->coalesce_regions ? strata_chunks_enable_joining(&self->chunks) : STRATA_OK;
    if (status == STRATA_OK) status = read_limits(self);
    if (status == STRATA_OK) status = strata_last_users_init(&self->last, base->domain);
    if (status == STRATA_OK) status = strata_nodes_init(&self->stamps, sizeof(bfc_stamp_t), stamps);
    if (status == STRATA_OK) status = strata_bfc_debug_init(self);
    if (status == STRATA_OK && bfc_options_of(self)->stable_addresses) status = strata_repeats_init(&self->chunks.repeats);
    if (status != STRATA_OK) destroy(base);
    return status;
}

static uint64_t idle_bytes(strata_layer_t *base) { return bfc_idle((const bfc_t *)base); }

/* Any alignment is possible, because a block may leave room in front of it. */
static uint64_t alignment(const void *filled, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)filled, (void)place, (void)below, (void)wanted;
    return MAX_BYTES;
}

const strata_layer_type_t strata_bfc_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "bfc",
    .doc = "best fit with coalescing over regions of doubling size, shared by all streams (TensorFlow's allocator)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES,
    .guarded = true,
    .state_size = sizeof(bfc_t),
    .options_size = sizeof(bfc_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = hit,
    .quick_free = quick_free,
    .check = check,
    .release = strata_chunks_release,
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED | 1u << STRATA_NOTICE_STEP | 1u << STRATA_NOTICE_CAPTURE_BEGIN |
               1u << STRATA_NOTICE_CAPTURE_END | 1u << STRATA_NOTICE_FRONTIER | 1u << STRATA_NOTICE_REPORT |
               1u << STRATA_NOTICE_PEAKS,
    .notify = notify,
    .trim = strata_chunks_trim,
    .find = strata_chunks_find,
    .walk = strata_chunks_walk,
    .chunk_of = strata_chunks_chunk_of,
    .idle_bytes = idle_bytes,
    .validate = strata_bfc_validate,
    .alignment = alignment,
    .unavailable = strata_bfc_unavailable,
    .hit_at = hit_at,
};
