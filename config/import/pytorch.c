/* PyTorch's PYTORCH_CUDA_ALLOC_CONF and the variables beside it. */
#include <string.h>

#include "config/import/rows.h"

#define PINNED "pinned memory is a place of its own, with the layers of `places: {pinned: ...}`"

#define ADDRESSES      "a segment that grows has addresses for nine eighths of the device, and others are one piece"
#define EITHER(option) "caching." option " caching_vmm." option

/* First versions come from the release notes, from the pages on CUDA of each release, and from the headers that it installs. Where
 * these do not reach they follow from the dates of the changes that brought a key (pytorch/pytorch#74213, 74261, 82682, 85940,
 * 87290, 108367, 178154). The first version of max_split_size_mb is from memory. */
/* clang-format off */
static const import_row_t rows[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", NULL, NULL, IMPORT_CONF, false, {{0}}, "read before the other one, as PyTorch does"},
    {"PYTORCH_ALLOC_CONF", "2.10", NULL, IMPORT_CONF, false, {{0}},
     "the new name; 2.9 recommends it, and its CUDA allocator does not read it"},
    {"backend", "2.0", NULL, IMPORT_WORD, true,
     {{"native", IMPORT_NOTHING, NULL},
      {"cudaMallocAsync", IMPORT_PRESET, "cuda_malloc_async retry.timeout=0 cuda_malloc_async.throttle=1"}},
     "PyTorch neither waits for memory nor throttles there"},
    {"max_split_size_mb", "1.9", NULL, IMPORT_MIB, true, {{NULL, IMPORT_SET, EITHER("max_split_size")}}, NULL},
    {"max_non_split_rounding_mb", "2.6", NULL, IMPORT_MIB, true, {{NULL, IMPORT_SET, EITHER("max_non_split_rounding")}}, NULL},
    {"large_segment_size_mb", "2.11", NULL, IMPORT_MIB, true, {{NULL, IMPORT_SET, EITHER("large_segment")}}, NULL},
    {"roundup_power2_divisions", "1.12", NULL, IMPORT_TEXT, true, {{NULL, IMPORT_SET, EITHER("roundup_power2_divisions")}},
     "both forms: 4 and [256:1,512:2,>:8]; the list since 2.0"},
    {"roundup_bypass_threshold_mb", "1.13", "1.13", IMPORT_MIB, true,
     {{NULL, IMPORT_NONE, "write the list form of roundup_power2_divisions, with 0 for the larger sizes: [64:4,>:0]"}}, NULL},
    {"per_process_memory_fraction", "2.10", NULL, IMPORT_FRACTION, true, {{NULL, IMPORT_SET, EITHER("memory_fraction")}}, NULL},
    {"garbage_collection_threshold", "1.12", NULL, IMPORT_FRACTION, true,
     {{"0", IMPORT_NOTHING, "0 never collects"}, {NULL, IMPORT_SET, "caching.garbage_collection_threshold"}},
     "ignored without a per_process_memory_fraction below 1; without it PyTorch collects nothing either"},
    {"expandable_segments", "2.1", NULL, IMPORT_BOOL, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_PRESET, "pytorch-expandable"}}, NULL},
    {"expandable_segments_reserve", NULL, NULL, IMPORT_TEXT, true,
     {{NULL, IMPORT_NONE, ADDRESSES}}, NULL},
    {"expandable_segments_reserve_by_class", NULL, NULL, IMPORT_TEXT, true,
     {{NULL, IMPORT_NONE, ADDRESSES}}, NULL},
    {"release_lock_on_cudamalloc", "2.2", NULL, IMPORT_BOOL, true,
     {{"true", IMPORT_NOTHING, NULL}, {"false", IMPORT_NOTHING, "no lock is ever held over a device call that may block"}},
     NULL},
    {"throw_on_cudamalloc_oom", "2.12", NULL, IMPORT_BOOL, true,
     {{"false", IMPORT_NOTHING, NULL},
      {"true", IMPORT_NONE,
       "a request beyond caching.memory_fraction fails without a device call, but idle memory is given back first; "
       "STRATA_NO_GROW of one request refuses at once"}},
     NULL},
    {"graph_capture_record_stream_reuse", "2.9", NULL, IMPORT_BOOL, true,
     {{NULL, IMPORT_SET, EITHER("reuse_in_capture")}}, NULL},
    {"pinned_use_cuda_host_register", "2.2", NULL, IMPORT_BOOL, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_NONE, PINNED "; the driver allocates it, nothing is registered"}}, NULL},
    {"pinned_num_register_threads", "2.2", NULL, IMPORT_COUNT, true,
     {{"1", IMPORT_NOTHING, NULL}, {NULL, IMPORT_NONE, PINNED "; the driver allocates it, nothing is registered"}}, NULL},
    {"pinned_use_background_threads", "2.6", NULL, IMPORT_BOOL, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_NONE, PINNED "; events are polled by the calls themselves"}}, NULL},
    {"pinned_reserve_segment_size_mb", "2.10", NULL, IMPORT_MIB, true,
     {{"0", IMPORT_NOTHING, NULL}, {NULL, IMPORT_SET, "pinned.auto_growth.preallocate"}},
     "it is got when the facade is opened"},
    {"pinned_free_catch_all", "2.12", NULL, IMPORT_BOOL, true,
     {{"false", IMPORT_NOTHING, NULL},
      {"true", IMPORT_NONE, "a pointer that does not belong to the facade is an error and nothing else"}},
     NULL},
    {"pinned_max_cached_size_mb", "2.13", NULL, IMPORT_MIB, true,
     {{NULL, IMPORT_NONE, PINNED "; strata_trim() brings a cache down to a size"}}, NULL},
    {"pinned_max_round_threshold_mb", "2.13", NULL, IMPORT_MIB, true,
     {{NULL, IMPORT_NONE, PINNED "; it rounds to 256 bytes and never to powers of two"}}, NULL},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", NULL, NULL, IMPORT_BOOL, false,
     {{"true", IMPORT_PRESET, "system"}, {"false", IMPORT_NOTHING, NULL}},
     "releases up to 2.6 turn the cache off for any value, even 0"},
    {0},
};
/* clang-format on */

/* Garbage is collected only with a fraction that says how much is too much, and of segments that are one piece; a block is rounded only
 * if some blocks are not split; and the driver's pool has no segments. */
static void settle(import_setting_t *settings, size_t count) {
    import_setting_t *threshold = strata_import_find(settings, count, "garbage_collection_threshold");
    import_setting_t *rounding = strata_import_find(settings, count, "max_non_split_rounding_mb");
    if (rounding && rounding->act.verb == IMPORT_SET && !strata_import_find(settings, count, "max_split_size_mb"))
        rounding->passed_over = "every block is split without a max_split_size_mb";
    const import_setting_t *fraction = strata_import_find(settings, count, "per_process_memory_fraction");
    import_setting_t *expandable = strata_import_find(settings, count, "expandable_segments");
    const import_setting_t *backend = strata_import_find(settings, count, "backend");
    bool expands = expandable && expandable->act.verb == IMPORT_PRESET;
    if (expands && backend && backend->act.verb == IMPORT_PRESET)
        expandable->passed_over = "backend:cudaMallocAsync has no segments";
    else if (expands && threshold && threshold->act.verb == IMPORT_SET)
        threshold->passed_over = "blocks of segments that grow are not collected";
    if (threshold && !threshold->passed_over && threshold->act.verb == IMPORT_SET &&
        (!fraction || strcmp(fraction->meant, "1") == 0))
        threshold->passed_over = "nothing is collected without a per_process_memory_fraction below 1; a program that sets one "
                                 "later writes caching.memory_fraction and caching.garbage_collection_threshold itself";
}

const import_peer_t strata_import_pytorch = {.name = "pytorch",
                                             .preset = "pytorch",
                                             .old_preset = "pytorch-1.13",
                                             .old = "2.0",
                                             .known = {{"1.9", "1.13"}, {"2.0", "2.13"}},
                                             .version = "2.9",
                                             .example = "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]",
                                             .rows = rows,
                                             .settle = settle};
