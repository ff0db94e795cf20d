/* Table of Paddle's FLAGS_*, by the dates of its develop branch. */
#include <string.h>

#include "config/import/rows.h"

#define VMM                                                                                                                        \
    "Strata does not reproduce the first virtual-memory allocator. FLAGS_use_vmm_auto_growth_best_fit_allocator_v2 selects the "   \
    "second"
#define BUDDY(option)  "naive_best_fit." option " thread_local." option
#define GROWTH(option) "auto_growth." option " pinned.auto_growth." option
#define PINNED_GROWTH                                                                                                              \
    "pinned.naive_best_fit auto_growth pinned.auto_growth.alignment=64KiB pinned.auto_growth.chunk_size=0 "                        \
    "pinned.auto_growth.order=address pinned.auto_growth.reclaim=own"
#define REPORTS "use strata_snapshot(), `strata stats --blocks` or the out-of-memory report"
#define OFF                                                                                                                        \
    { "false", IMPORT_NOTHING, NULL }
#define ZERO                                                                                                                       \
    { "0", IMPORT_NOTHING, NULL }
#define NEVER(why)                                                                                                                 \
    { NULL, IMPORT_NONE, why }
#define MANAGED "system.memory=managed"
#define TENSORS "it controls when the program frees its tensors, and does not affect the allocator"

/* clang-format off */
static const import_row_t rows[] = {
    {"FLAGS_allocator_strategy", NULL, NULL, IMPORT_WORD, false,
     {{"auto_growth", IMPORT_PRESET, "paddle"},
      {"naive_best_fit", IMPORT_PRESET, "naive_best_fit"},
      {"thread_local", IMPORT_PRESET, "thread_local"}}, NULL},
    {"FLAGS_use_cuda_malloc_async_allocator", NULL, NULL, IMPORT_BOOL, false,
     {{"true", IMPORT_PRESET, "cuda_malloc_async"}, OFF}, NULL},
    {"FLAGS_use_system_allocator", NULL, NULL, IMPORT_BOOL, false, {{"true", IMPORT_PRESET, "system"}, OFF}, NULL},
    {"FLAGS_gpu_allocator_retry_time", NULL, NULL, IMPORT_MS, false,
     {{"0", IMPORT_DROP, "retry"}, {"-1", IMPORT_DROP, "retry"}, {NULL, IMPORT_SET, "retry.timeout"}}, NULL},
    {"FLAGS_use_stream_safe_cuda_allocator", NULL, NULL, IMPORT_BOOL, false,
     {{"true", IMPORT_NOTHING, NULL}, {"false", IMPORT_DROP, "stream_safe"}},
     "Without the layer, a block that another stream used is freed after a wait on the host. Paddle does not wait"},
    {"FLAGS_use_auto_growth_pinned_allocator", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_EXCHANGE, PINNED_GROWTH}},
     "The flags of auto_growth in the next rows also apply to pinned memory, except those of preallocation"},
    {"FLAGS_auto_growth_chunk_size_in_mb", NULL, NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, GROWTH("chunk_size")}},
     "It is ignored if FLAGS_small_pool_size_in_mb divides the pool, as in Paddle"},
    {"FLAGS_free_idle_chunk", NULL, NULL, IMPORT_BOOL, false, {{NULL, IMPORT_SET, GROWTH("free_idle_chunk")}}, NULL},
    {"FLAGS_free_when_no_cache_hit", NULL, NULL, IMPORT_BOOL, false, {{NULL, IMPORT_SET, GROWTH("free_when_no_cache_hit")}},
     NULL},
    {"FLAGS_small_pool_size_in_mb", "2025-08", NULL, IMPORT_MIB, false,
     {ZERO, {NULL, IMPORT_SET, GROWTH("small_pool_size")}},
     NULL},
    {"FLAGS_small_pool_auto_growth_chunk_size_in_mb", "2025-08", NULL, IMPORT_MIB, false,
     {{NULL, IMPORT_SET, GROWTH("small_chunk_size")}},
     "It applies only if FLAGS_small_pool_size_in_mb is above 0, as do the next three rows"},
    {"FLAGS_large_pool_auto_growth_chunk_size_in_mb", "2025-08", NULL, IMPORT_MIB, false,
     {{NULL, IMPORT_SET, GROWTH("chunk_size")}}, NULL},
    {"FLAGS_small_pool_pre_alloc_in_mb", "2025-08", NULL, IMPORT_MIB, false,
     {{NULL, IMPORT_SET, "auto_growth.small_preallocate"}},
     NULL},
    {"FLAGS_large_pool_pre_alloc_in_mb", "2025-08", NULL, IMPORT_MIB, false,
     {{NULL, IMPORT_SET, "auto_growth.preallocate"}}, NULL},
    {"FLAGS_use_auto_growth_v2", NULL, NULL, IMPORT_BOOL, false, {OFF, {"true", IMPORT_FIX, "auto_growth.warm_up_steps=1"}},
     "The warm-up ends with the program's first strata_step()"},
    {"FLAGS_alignment_size", "2025-01", NULL, IMPORT_BYTES, false,
     {{NULL, IMPORT_NOTHING, "it has no effect on CUDA in Paddle either"}},
     NULL},
    {"FLAGS_gpu_memory_limit_mb", NULL, NULL, IMPORT_MIB, false, {ZERO, {NULL, IMPORT_SET, "+limit.bytes"}},
     "Bytes are counted before the device call, so the limit is never exceeded"},
    {"FLAGS_fraction_of_gpu_memory_to_use", NULL, NULL, IMPORT_FRACTION, false, {{NULL, IMPORT_SET, BUDDY("fraction")}},
     "The strategy auto_growth does not use it in Paddle either"},
    {"FLAGS_initial_gpu_memory_in_mb", NULL, NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, BUDDY("initial")}}, NULL},
    {"FLAGS_reallocate_gpu_memory_in_mb", NULL, NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, BUDDY("reallocate")}}, NULL},
    {"FLAGS_fraction_of_cpu_memory_to_use", NULL, NULL, IMPORT_FRACTION, false,
     {{NULL, IMPORT_SET, "host.naive_best_fit.fraction"}}, NULL},
    {"FLAGS_initial_cpu_memory_in_mb", NULL, NULL, IMPORT_MIB, false,
     {{NULL, IMPORT_SET, "host.naive_best_fit.initial"}}, NULL},
    {"FLAGS_fraction_of_cuda_pinned_memory_to_use", NULL, NULL, IMPORT_FRACTION, false,
     {{NULL, IMPORT_SET, "pinned.naive_best_fit.fraction"}}, NULL},
    {"FLAGS_cuda_malloc_async_pool_memory_throttle_ratio", NULL, NULL, IMPORT_FRACTION, false,
     {{NULL, IMPORT_SET, "cuda_malloc_async.throttle"}}, NULL},
    {"FLAGS_cuda_memory_async_pool_release_threshold", NULL, NULL, IMPORT_BYTES, false,
     {{"18446744073709551615", IMPORT_FIX, "cuda_malloc_async.release_threshold=unlimited"},
      {NULL, IMPORT_SET, "cuda_malloc_async.release_threshold"}}, NULL},
    {"FLAGS_alloc_fill_value", NULL, NULL, IMPORT_COUNT, false,
     {{"-1", IMPORT_NOTHING, NULL}, {NULL, IMPORT_SET, "+fill.byte"}},
     "Strata fills once for each request. Paddle fills once for each of its layers"},
    {"FLAGS_sync_after_alloc", NULL, NULL, IMPORT_BOOL, false, {OFF, {"true", IMPORT_FIX, "+fill.synchronise=true"}},
     "If nothing else fills, `fill.write=false` is also set"},
    {"FLAGS_init_allocated_mem", NULL, NULL, IMPORT_BOOL, false, {OFF, {"true", IMPORT_FIX, "+fill.byte=239"}},
     "It applies only to the buddy allocators. The strategy auto_growth does not use it in Paddle either"},
    {"FLAGS_use_cuda_managed_memory", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_FIX, MANAGED}}, NULL},
    {"FLAGS_use_virtual_memory_auto_growth", NULL, NULL, IMPORT_BOOL, false, {OFF, {"true", IMPORT_NONE, VMM}}, NULL},
    {"FLAGS_use_multi_scale_virtual_memory_auto_growth", "2025-09", NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_NONE, VMM}}, NULL},
    {"FLAGS_use_vmm_auto_growth_best_fit_allocator_v2", "2026", NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_PRESET, "paddle-vmm"}}, "It is Paddle's default since 2026-08. The next three rows apply only with it"},
    {"FLAGS_vmm_v2_remap_on_oom", "2026", NULL, IMPORT_BOOL, false, {{NULL, IMPORT_SET, "large.remap_on_oom"}}, NULL},
    {"FLAGS_vmm_v2_small_pool_handle_size_in_mb", "2026", NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, "small.handle"}}, NULL},
    {"FLAGS_vmm_v2_large_pool_handle_size_in_mb", "2026", NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, "large.handle"}}, NULL},
    {"FLAGS_vmm_small_pool_size_in_mb", NULL, NULL, IMPORT_MIB, false, {ZERO, NEVER(VMM)}, NULL},
    {"FLAGS_vmm_pre_alloc_in_mb", NULL, NULL, IMPORT_MIB, false, {ZERO, NEVER(VMM)}, NULL},
    {"FLAGS_vmm_small_pool_pre_alloc_in_mb", NULL, NULL, IMPORT_MIB, false, {ZERO, NEVER(VMM)}, NULL},
    {"FLAGS_vmm_large_pool_pre_alloc_in_mb", NULL, NULL, IMPORT_MIB, false, {ZERO, NEVER(VMM)}, NULL},
    {"FLAGS_native_compact", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_NONE, "no layer copies live blocks, so their addresses never change"}}, NULL},
    {"FLAGS_dump_vmm_allocation_info", NULL, NULL, IMPORT_BOOL, false, {OFF, {"true", IMPORT_NONE, VMM ". For a report, " REPORTS}}, NULL},
    {"FLAGS_offload_retry_times", "2026", NULL, IMPORT_COUNT, false,
     {ZERO, NEVER("a callback of strata_add_free_memory_callback() lets the program free its own memory")}, NULL},
    {"FLAGS_print_allocator_trace_info", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_NONE, "the layer `trace` writes the requests to a file. For a report, " REPORTS}}, NULL},
    {"FLAGS_dump_chunk_info", NULL, NULL, IMPORT_BOOL, false, {OFF, {"true", IMPORT_NONE, REPORTS}}, NULL},
    {"FLAGS_auto_free_cudagraph_allocations_on_launch", NULL, NULL, IMPORT_BOOL, false,
     {{NULL, IMPORT_NONE, "it is a flag of graph instantiation, and the program instantiates its graphs"}}, NULL},
    {"FLAGS_new_executor_use_cuda_graph", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_NONE, "the program marks the requests of a graph with strata_pool_begin() and strata_pool_end()"}},
     NULL},
    {"FLAGS_use_pinned_memory", NULL, NULL, IMPORT_BOOL, false,
     {{"true", IMPORT_NONE, "no flag locks host memory. Allocate from the place strata_pinned()"}, OFF}, NULL},
    {"FLAGS_log_memory_stats", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_NONE, "strata_statistics_json() shows the figures on request"}}, NULL},
    {"FLAGS_enable_gpu_memory_usage_log", NULL, NULL, IMPORT_BOOL, false,
     {OFF, {"true", IMPORT_NONE, "strata_statistics_json() shows the peaks on request"}}, NULL},
    {"FLAGS_enable_gpu_memory_usage_log_mb", NULL, NULL, IMPORT_BOOL, false,
     {{NULL, IMPORT_NOTHING, "it is the unit of a log that Strata does not write"}}, NULL},
    {"FLAGS_eager_delete_tensor_gb", NULL, NULL, IMPORT_REAL, false, {{NULL, IMPORT_NOTHING, TENSORS}}, NULL},
    {"FLAGS_fast_eager_deletion_mode", NULL, NULL, IMPORT_BOOL, false, {{NULL, IMPORT_NOTHING, TENSORS}}, NULL},
    {"FLAGS_memory_fraction_of_eager_deletion", NULL, NULL, IMPORT_REAL, false, {{NULL, IMPORT_NOTHING, TENSORS}}, NULL},
    {0},
};
/* clang-format on */

static void skip_setting(const strata_import_t *import, const char *key, const char *why) {
    import_setting_t *setting = strata_import_find(import, key);
    if (setting) setting->skip_reason = why;
}

static bool is_buddy(const strata_import_t *import) {
    const import_setting_t *strategy = strata_import_find(import, "FLAGS_allocator_strategy");
    return strategy && strcmp(strategy->converted, "auto_growth") != 0;
}

/* Without a fill value, the layer that waits writes nothing. */
static void resolve_waits(const strata_import_t *import) {
    import_setting_t *waits = strata_import_find(import, "FLAGS_sync_after_alloc");
    const import_setting_t *init = strata_import_find(import, "FLAGS_init_allocated_mem");
    const import_setting_t *value = strata_import_find(import, "FLAGS_alloc_fill_value");
    bool fills = (value && value->action.verb == IMPORT_SET) || (init && init->action.verb == IMPORT_FIX && !init->skip_reason);
    if (waits && waits->action.verb == IMPORT_FIX && !fills) waits->action.what = "+fill.synchronise=true fill.write=false";
}

/* Two cases exclude each other. If the pool is divided, each part has its own chunk size and first chunk.
 * Otherwise one chunk size applies to all. */
static strata_status_t resolve(strata_import_t *import) {
    static const char *const divided[] = {"FLAGS_small_pool_auto_growth_chunk_size_in_mb",
                                          "FLAGS_large_pool_auto_growth_chunk_size_in_mb", "FLAGS_small_pool_pre_alloc_in_mb",
                                          "FLAGS_large_pool_pre_alloc_in_mb"};
    import_setting_t *init = strata_import_find(import, "FLAGS_init_allocated_mem");
    if (init && init->action.verb == IMPORT_FIX && !is_buddy(import))
        init->skip_reason = "only the buddy allocators fill their memory";
    resolve_waits(import);
    const import_setting_t *grows = strata_import_find(import, "FLAGS_use_auto_growth_pinned_allocator");
    if (grows && grows->action.verb == IMPORT_EXCHANGE)
        skip_setting(import, "FLAGS_fraction_of_cuda_pinned_memory_to_use", grows->row->key);
    const import_setting_t *small = strata_import_find(import, "FLAGS_small_pool_size_in_mb");
    if (small && small->action.verb == IMPORT_SET) {
        skip_setting(import, "FLAGS_auto_growth_chunk_size_in_mb", "FLAGS_small_pool_size_in_mb divides the pool");
        return STRATA_OK;
    }
    for (size_t i = 0; i < sizeof divided / sizeof *divided; i++)
        skip_setting(import, divided[i], "FLAGS_small_pool_size_in_mb does not divide the pool");
    return STRATA_OK;
}

const import_peer_t strata_import_paddle = {
    .name = "paddle",
    .preset = "paddle",
    .known = {{"2018", "2026"}},
    .version = "2025-08",
    .later = "2026-08",
    .later_note = "its default is now the second virtual-memory allocator (preset paddle-vmm). This preset is auto_growth",
    .example = "FLAGS_allocator_strategy=auto_growth FLAGS_auto_growth_chunk_size_in_mb=32 FLAGS_gpu_memory_limit_mb=8000",
    .rows = rows,
    .resolve = resolve};
