/* auto_growth: best fit over chunks from the layer below. A request that does not fit gets one more chunk.
 *
 * The rules are those of Paddle's auto_growth_best_fit (v1, 2025-01). A request takes the high end of the
 * smallest free block that fits, in (size, address) order. The rest, however small, stays at the low end. Freed
 * blocks coalesce with free neighbors of their chunk. A chunk has max(request, chunk_size) bytes. Features that
 * v1 lacks are options, off by default. So are pools and warm-up, which later versions have.
 *
 * The rest of a split and a coalesced block keep the lower block's slot. So the first slot of a chunk changes
 * only if its generations are exhausted. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"

#include "allocation/cache/serve.h"
#include "allocation/stack/direct.h"
#include "platform/arithmetic.h"

static const strata_option_row_t options[] = {
    {"chunk_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, chunk_size), "0", 0, 1ull << 44, NULL,
     "min bytes to request from the layer below; 0 for the rounded request"},
    {"alignment", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, alignment), "256", 64, 1ull << 21, NULL,
     "block alignment and size granularity, a power of two; device memory above 256 needs `aligned` below"},
    {"order", STRATA_OPTION_CHOICE, offsetof(auto_growth_options_t, order), "address", 0, 0, "address|any",
     "`address`: the smallest free block that fits, then the lowest address; `any`: a nearly smallest one, much faster"},
    {"reclaim", STRATA_OPTION_CHOICE, offsetof(auto_growth_options_t, reclaim), "own", 0, 0, "own|ladder",
     "recovery from out-of-memory: `own` to free this stack's idle chunks and retry once; `ladder` for the domain's steps"},
    {"free_idle_chunk", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, free_idle_chunk), "false", 0, 0, NULL,
     "give back a chunk as soon as it has no live block"},
    {"free_when_no_cache_hit", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, free_when_no_cache_hit), "false", 0, 0, NULL,
     "give back all idle chunks before growing"},
    {"smaller_growth", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, smaller_growth), "false", 0, 0, NULL,
     "if a whole chunk fails for memory, grow by the rounded request alone"},
    {"split_pools", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, split_pools), "false", 0, 0, NULL,
     "chunks above `chunk_size` serve smaller requests only if no other chunk can"},
    {"small_pool_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, small_pool_size), "0", 0, 1ull << 44, NULL,
     "rounded requests up to this size have chunks of their own; 0 for shared chunks"},
    {"small_chunk_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, small_chunk_size), "0", 0, 1ull << 44, NULL,
     "`chunk_size` of the small pool; 0 for the rounded request"},
    {"preallocate", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, preallocate), "0", 0, 1ull << 44, NULL,
     "size of a chunk allocated with the default stream's stack, without which strata_open fails; 0 for none"},
    {"small_preallocate", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, small_preallocate), "0", 0, 1ull << 44, NULL,
     "`preallocate` of the small pool"},
    {"warm_up_steps", STRATA_OPTION_COUNT, offsetof(auto_growth_options_t, warm_up_steps), "0", 0, 1ull << 32, NULL,
     "warm-up steps (strata_step): each miss grows by exactly the rounded request, and a free block serves only its own "
     "size. Then idle chunks go back and the other options apply. 0 for none"},
    {"padding", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, padding), "0", 0, 1ull << 30, NULL,
     "bytes added to each request before rounding (Paddle's extra_padding_size)"},
    {"stable_addresses", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, stable_addresses), "false", 0, 0, NULL,
     STRATA_STABLE_ADDRESSES},
    {0},
};

static strata_record_t *serve_at(strata_layer_t *base, const strata_extent_t *place, strata_lookup_t *lookup) {
    auto_growth_t *self = (auto_growth_t *)base;
    /* During the warm-up a free block serves only its own size, wherever it is. */
    return self->warming_up ? NULL : strata_auto_growth_serve_extent(self, place, lookup->rounded, lookup->size);
}

static const strata_cache_policy_t policy = {.search = strata_auto_growth_search,
                                             .serve_at = serve_at,
                                             .growth_size = strata_auto_growth_size,
                                             .wait = strata_cache_wait_for_pending,
                                             .grow = strata_auto_growth_grow};

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_lookup_t lookup = {.request = request, .size = request->size};
    strata_status_t status = strata_cache_round(&self->chunks, request, strata_auto_growth_options(self)->padding, &lookup.rounded);
    return status == STRATA_OK ? strata_cache_serve(&self->chunks, &policy, &self->chunks.growing, &lookup, record) : status;
}

/* ---- free ---- */

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_detached_t leaving = {0};
    uint32_t number = block->chunk;
    uint32_t slot = strata_auto_growth_free_block(self, block);
    if (slot == 0 || !self->frees_idle_chunks || !strata_chunks_may_release(&self->chunks, strata_chunk_at(&self->chunks, number)))
        return;
    strata_chunks_detach(&self->chunks, number, &leaving);
    (void)strata_chunks_give_back(&self->chunks, &leaving, call);
}

/* ---- operations that first coalesce the last-freed block ---- */

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    return strata_chunks_release(base, call);
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    return strata_chunks_trim(base, keep, call);
}

static strata_status_t validate(strata_layer_t *base) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    return strata_auto_growth_validate(base);
}

void strata_auto_growth_walk(strata_layer_t *base, strata_walk_fn visit, void *context) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    strata_chunks_walk(base, visit, context);
}

static const strata_record_t *find(strata_layer_t *base, uint64_t address) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    return strata_chunks_find(base, address);
}

/* ---- life ---- */

static strata_status_t check(const void *options_given, strata_place_kind_t place, const char **option) {
    const auto_growth_options_t *o = options_given;
    unsigned least = (unsigned)strata_place_alignment(place);
    if (!strata_is_power_of_two(o->alignment) || o->alignment < least) {
        *option = "alignment";
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "this place does not support the alignment %llu; write a power of two of at least "
                           "%u",
                           (unsigned long long)o->alignment, least);
    }
    if (o->small_pool_size > 0 && o->split_pools) {
        *option = "split_pools";
        return strata_fail(STRATA_E_STRATEGY, 0, "split_pools and small_pool_size both divide the chunks; write only one");
    }
    if (o->small_pool_size > 0 || (o->small_chunk_size == 0 && o->small_preallocate == 0)) return STRATA_OK;
    *option = o->small_chunk_size > 0 ? "small_chunk_size" : "small_preallocate";
    return strata_fail(STRATA_E_STRATEGY, 0, "there is no small pool; add small_pool_size: 1MiB, for requests up to that size");
}

/* Blocks are at multiples of the unit from the start of their chunk, so the chunk needs the same alignment. */
static uint64_t alignment(const void *options_given, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)place, (void)below;
    return *wanted = ((const auto_growth_options_t *)options_given)->alignment;
}

static uint64_t rounded_up(const auto_growth_t *self, uint64_t size) {
    return strata_round_down(size + self->chunks.unit - 1, self->chunks.unit);
}

/* Derives the rules from the options and the number of steps that have ended. */
static void set_rules(auto_growth_t *self) {
    self->warming_up = self->steps < strata_auto_growth_options(self)->warm_up_steps;
    self->hit_mode = strata_auto_growth_hit_mode(self);
    strata_chunks_enable_last_freed(&self->chunks, self->hit_mode == STRATA_AUTO_GROWTH_PLAIN && !self->frees_idle_chunks);
}

void strata_auto_growth_init_low(auto_growth_t *self, uint64_t alignment, uint64_t first_up_to) {
    self->chunks.unit = alignment;
    self->first_up_to = first_up_to;
    self->splits_low = true;
    strata_chunks_enable_last_freed(&self->chunks, true);
    self->hit_mode = STRATA_AUTO_GROWTH_GENERAL;
    for (uint32_t pool = 0; pool < STRATA_AUTO_GROWTH_POOLS; pool++)
        strata_bins_init(&self->pools[pool].bins, (uint32_t)__builtin_ctzll(alignment));
}

static strata_status_t create(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    const auto_growth_options_t *o = base->options;
    strata_status_t status = strata_chunks_init(base, &strata_auto_growth_policy, sizeof(strata_chunk_t),
                                                STRATA_AUTO_GROWTH_CHUNKS);
    if (status != STRATA_OK) return status;
    self->chunks.unit = o->alignment;
    /* With stable addresses, the same free memory gives the same address even if no place is known yet. */
    self->by_address = o->order == STRATA_AUTO_GROWTH_BY_ADDRESS || o->stable_addresses;
    self->frees_idle_chunks = o->free_idle_chunk;
    /* With split_pools, requests above chunk_size get chunks of their own size. Smaller requests may use free
     * blocks of these. */
    uint64_t chunk_size = rounded_up(self, o->chunk_size);
    bool has_small = o->small_pool_size > 0;
    self->spills = o->split_pools;
    self->first_up_to = has_small ? o->small_pool_size : o->split_pools ? chunk_size : UINT64_MAX;
    self->pools[0].growth = has_small ? rounded_up(self, o->small_chunk_size) : chunk_size;
    self->pools[1].growth = chunk_size;
    for (uint32_t pool = 0; pool < strata_auto_growth_pools(self); pool++)
        strata_bins_init(&self->pools[pool].bins, (uint32_t)__builtin_ctzll(self->chunks.unit));
    if (o->stable_addresses) status = strata_repeats_init(&self->chunks.repeats);
    set_rules(self);
    if (status == STRATA_OK) status = strata_auto_growth_preallocate(self);
    if (status != STRATA_OK) strata_chunks_destroy(base);
    return status;
}

/* A step of the program has ended, and with it perhaps the warm-up. */
static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    (void)notice;
    auto_growth_t *self = (auto_growth_t *)base;
    strata_repeats_step(&self->chunks.repeats);
    if (!self->warming_up) return;
    self->steps++;
    set_rules(self);
    if (!self->warming_up) (void)release(base, call);
}

uint64_t strata_auto_growth_idle_bytes(strata_layer_t *base) {
    strata_auto_growth_flush_last_freed((auto_growth_t *)base);
    return strata_auto_growth_idle((auto_growth_t *)base);
}

const strata_layer_type_t strata_auto_growth_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "auto_growth",
    .doc = "best fit over chunks; a miss adds a chunk (Paddle's auto_growth_best_fit)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(auto_growth_t),
    .options_size = sizeof(auto_growth_options_t),
    .options = options,
    .create = create,
    .destroy = strata_chunks_destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = strata_auto_growth_hit,
    .quick_free = strata_auto_growth_quick_free,
    .direct = &strata_auto_growth_direct,
    .release = release,
    .notices = 1u << STRATA_NOTICE_STEP,
    .notify = notify,
    .trim = trim,
    .find = find,
    .walk = strata_auto_growth_walk,
    .chunk_of = strata_chunks_chunk_of,
    .idle_bytes = strata_auto_growth_idle_bytes,
    .validate = validate,
    .check = check,
    .alignment = alignment,
    .hit_at = strata_auto_growth_serve_at,
};
