/* caching_vmm: caching with segments that expand (PyTorch's expandable_segments).
 *
 * Blocks, streams, borrows and the steps at out of memory are those of caching. A segment is a range of
 * addresses that is larger than the device, usually one for each stream and kind of block. Handles of 2 MiB, or
 * 20 MiB for large blocks, are mapped where memory is needed. They are unmapped when they are free as a whole
 * (caching_vmm_segments.c). So a block can grow into the addresses after it. A request that does not fit leaves
 * no hole that only its own size can use.
 *
 * The peer creates and maps all handles of a growth, and then sets access to them in one call. Here each handle
 * gets access before the next is created. The device takes time per handle either way. */
#include "allocation/cache/policies/caching/caching_state.h"
#include "allocation/layers/sources/vmm.h"
#include "allocation/options/option.h"
#include "platform/arithmetic.h"

enum { RANGES = 1 << 17 };

static const strata_option_row_t options[] = {
    STRATA_CACHING_DIVISIONS_ROW,
    {"large_segment", STRATA_OPTION_SIZE, STRATA_CACHING_AT(large_segment), "20MiB", 10ull << 20, 2ull << 30, NULL,
     "handle size for blocks above 1 MiB; smaller blocks use handles of 2 MiB"},
    {"max_split_size", STRATA_OPTION_SIZE, STRATA_CACHING_AT(max_split_size), "unlimited", 20ull << 20, 0, NULL,
     "blocks of this size or more serve no smaller request"},
    STRATA_CACHING_NON_SPLIT_ROUNDING_ROW,
    STRATA_CACHING_MEMORY_FRACTION_ROW,
    STRATA_CACHING_RECLAIM_ROW,
    STRATA_CACHING_POOLS_ON_OOM_ROW,
    STRATA_CACHING_SEARCH_AFTER_EVENTS_ROW,
    STRATA_CACHING_REUSE_IN_CAPTURE_ROW,
    {0},
};

static const strata_option_dependency_t dependencies[] = {{"max_non_split_rounding", "max_split_size", "!unlimited"},
                                                          {"pools_on_oom", "reclaim", "own"},
                                                          {"search_after_events", "reclaim", "own"},
                                                          {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const caching_options_t *o = filled;
    uint32_t divisions[STRATA_CACHING_OCTAVES];
    if (place != STRATA_PLACE_GPU)
        return strata_fail(STRATA_E_STRATEGY, 0, "caching_vmm serves only gpu places; write caching here");
    *option = "roundup_power2_divisions";
    strata_status_t status = strata_caching_read_divisions(o->roundup_power2_divisions, divisions);
    return status == STRATA_OK ? strata_option_check_dependencies(options, dependencies, filled, option) : status;
}

/* ---- giving back ---- */

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    (void)strata_caching_poll_uses(self, call);
    return strata_caching_unmap_idle(self, 0, 0, UINT64_MAX, call);
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    uint64_t idle = caching_idle(self);
    return idle > keep ? strata_caching_unmap_idle(self, 0, 0, idle - keep, call) : 0;
}

/* ---- life ---- */

static void destroy(strata_layer_t *base) {
    caching_t *self = (caching_t *)base;
    strata_caching_destroy(base);
    for (uint32_t number = 1; number < self->ranges.used; number++) {
        const caching_range_t *range = caching_range_at(self, number);
        if (range->bank) strata_vmm_unreserve(self->vmm, range->base, range->size + self->handle[range->kind]);
    }
    strata_nodes_destroy(&self->ranges);
}

/* A segment has addresses for nine eighths of the device, as the peer's does. */
static strata_status_t read_sizes(caching_t *self) {
    const uint64_t sizes[] = {
        [STRATA_CACHING_SMALL] = 2ull << 20, [STRATA_CACHING_LARGE] = caching_options_of(self)->large_segment};
    uint64_t granularity = strata_vmm_granularity(self->vmm), available, total;
    for (uint32_t kind = 0; kind < STRATA_CACHING_KINDS; kind++) self->handle[kind] = strata_round_up_any(sizes[kind], granularity);
    strata_status_t status = strata_domain_memory(self->base.domain, &available, &total);
    self->range_bytes = total + total / 8;
    return status;
}

static strata_status_t create(strata_layer_t *base) {
    caching_t *self = (caching_t *)base;
    strata_layer_t *vmm;
    strata_status_t status = strata_vmm_find(base, &vmm);
    if (status == STRATA_OK) status = strata_caching_create(base);
    if (status != STRATA_OK) return status;
    self->vmm = vmm;
    strata_runs_init(&self->runs, &self->chunks);
    status = strata_nodes_init(&self->ranges, sizeof(caching_range_t), RANGES);
    if (status == STRATA_OK) status = read_sizes(self);
    if (status != STRATA_OK) destroy(base);
    return status;
}

const strata_layer_type_t strata_caching_vmm_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "caching_vmm",
    .doc = "best fit within each stream's segments, which expand as handles are mapped (PyTorch's expandable segments)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_DEVICE,
    .needs = STRATA_TRAIT_HANDLE_SOURCE,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_CROSS_STREAM_SAFE | STRATA_TRAIT_SUB_ALLOCATES,
    .guarded = true,
    .state_size = sizeof(caching_t),
    .options_size = sizeof(caching_options_t),
    .options = options,
    .stats = strata_caching_stats,
    .create = create,
    .destroy = destroy,
    .allocate = strata_caching_allocate,
    .free = strata_caching_free,
    .hit = strata_caching_hit,
    .quick_free = strata_caching_quick_free,
    .release = release,
    .poll = strata_caching_poll,
    .record_stream = strata_caching_record_stream,
    .erase_stream = strata_caching_erase_stream,
    .is_borrowed = strata_caching_is_borrowed,
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED | 1u << STRATA_NOTICE_CAPTURE_BEGIN | 1u << STRATA_NOTICE_CAPTURE_END |
               1u << STRATA_NOTICE_FIGURES,
    .notify = strata_caching_notify,
    .trim = trim,
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
