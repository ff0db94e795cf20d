/* Table of PyTorch's PYTORCH_CUDA_ALLOC_CONF and the variables beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/import/rows.h"

#define PINNED "pinned memory is a separate place, with the layers of `places: {pinned: ...}`"

#define ADDRESSES      "an expandable segment reserves addresses for nine eighths of the device. Other segments are one piece"
#define EITHER(option) "caching." option " caching_vmm." option
#define ASYNC          "cuda_malloc_async pinned=strata host=strata retry.timeout=0 cuda_malloc_async.throttle=1"
#define LOCK           "no lock is ever held during a device call that may block"
#define REGISTERED     PINNED ". The driver allocates it, and nothing is registered"

/* First versions are from the release notes, from the CUDA pages of each release, and from the headers
 * that it installs. The others follow from the dates of the changes that introduced a key
 * (pytorch/pytorch#74213, 74261, 82682, 85940, 87290, 108367, 178154). The first version of
 * max_split_size_mb is from memory. */
/* clang-format off */
static const import_row_t rows[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", NULL, NULL, IMPORT_CONF, false, {{0}}, "If it is set, the other two are ignored, as in PyTorch"},
    {"PYTORCH_HIP_ALLOC_CONF", NULL, NULL, IMPORT_CONF, false, {{0}}, "It is the name on ROCm and is read before "
                                                                      "PYTORCH_ALLOC_CONF"},
    {"PYTORCH_ALLOC_CONF", "2.10", NULL, IMPORT_CONF, false, {{0}},
     "It is the new name. PyTorch 2.9 recommends it, but its CUDA allocator does not read it"},
    {"backend", "2.0", NULL, IMPORT_WORD, true,
     {{"native", IMPORT_NOTHING, NULL},
      {"cudaMallocAsync", IMPORT_PRESET, ASYNC},
      {"hipMallocAsync", IMPORT_PRESET, ASYNC}},
     "PyTorch neither waits for memory nor throttles over the driver's pool"},
    {"max_split_size_mb", "1.9", NULL, IMPORT_MIB, true, {{NULL, IMPORT_SET, EITHER("max_split_size")}}, NULL},
    {"max_non_split_rounding_mb", "2.6", NULL, IMPORT_MIB, true, {{NULL, IMPORT_SET, EITHER("max_non_split_rounding")}}, NULL},
    {"large_segment_size_mb", "2.11", NULL, IMPORT_MIB, true, {{NULL, IMPORT_SET, EITHER("large_segment")}}, NULL},
    {"roundup_power2_divisions", "1.12", NULL, IMPORT_TEXT, true, {{NULL, IMPORT_SET, EITHER("roundup_power2_divisions")}},
     "Both forms are read: 4 and, since 2.0, the list [256:1,512:2,>:8]"},
    {"roundup_bypass_threshold_mb", "1.13", "1.13", IMPORT_MIB, true,
     {{NULL, IMPORT_NONE, "write the list form of roundup_power2_divisions, with 0 for the larger sizes: [64:4,>:0]"}}, NULL},
    {"per_process_memory_fraction", "2.10", NULL, IMPORT_FRACTION, true, {{NULL, IMPORT_SET, EITHER("memory_fraction")}}, NULL},
    {"garbage_collection_threshold", "1.12", NULL, IMPORT_FRACTION, true,
     {{NULL, IMPORT_SET, "caching.garbage_collection_threshold"}},
     "It is ignored without a per_process_memory_fraction below 1. PyTorch collects nothing then either"},
    {"expandable_segments", "2.1", NULL, IMPORT_BOOL_PYTORCH, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_PRESET, "pytorch-expandable"}}, NULL},
    {"expandable_segments_reserve", NULL, NULL, IMPORT_TEXT, true,
     {{NULL, IMPORT_NONE, ADDRESSES}}, NULL},
    {"expandable_segments_reserve_by_class", NULL, NULL, IMPORT_TEXT, true,
     {{NULL, IMPORT_NONE, ADDRESSES}}, NULL},
    {"release_lock_on_cudamalloc", "2.2", NULL, IMPORT_BOOL_PYTORCH, true,
     {{"true", IMPORT_NOTHING, NULL}, {"false", IMPORT_NOTHING, LOCK}}, NULL},
    {"release_lock_on_hipmalloc", NULL, NULL, IMPORT_BOOL_PYTORCH, true,
     {{"true", IMPORT_NOTHING, NULL}, {"false", IMPORT_NOTHING, LOCK}}, NULL},
    {"throw_on_cudamalloc_oom", "2.12", NULL, IMPORT_BOOL_PYTORCH, true,
     {{"false", IMPORT_NOTHING, NULL},
      {"true", IMPORT_NONE,
       "a request beyond caching.memory_fraction fails without a device call, but idle memory is released first. "
       "A request with STRATA_NO_GROW fails at once"}},
     NULL},
    {"graph_capture_record_stream_reuse", "2.9", NULL, IMPORT_BOOL_PYTORCH, true,
     {{NULL, IMPORT_SET, EITHER("reuse_in_capture")}}, NULL},
    {"pinned_use_cuda_host_register", "2.2", NULL, IMPORT_BOOL_PYTORCH, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_NONE, REGISTERED}}, NULL},
    {"pinned_use_hip_host_register", NULL, NULL, IMPORT_BOOL_PYTORCH, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_NONE, REGISTERED}}, NULL},
    {"pinned_num_register_threads", "2.2", NULL, IMPORT_COUNT, true,
     {{"1", IMPORT_NOTHING, NULL}, {NULL, IMPORT_NONE, REGISTERED}}, NULL},
    {"pinned_use_background_threads", "2.6", NULL, IMPORT_BOOL_PYTORCH, true,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_NONE, PINNED ". The calls themselves poll the events"}}, NULL},
    {"pinned_reserve_segment_size_mb", "2.10", NULL, IMPORT_MIB, true,
     {{NULL, IMPORT_SET, "pinned.auto_growth.preallocate"}},
     "The memory is allocated when the facade is opened"},
    {"pinned_free_catch_all", "2.12", NULL, IMPORT_BOOL_PYTORCH, true,
     {{"false", IMPORT_NOTHING, NULL},
      {"true", IMPORT_NONE, "a pointer that does not belong to the facade is always an error"}},
     NULL},
    {"pinned_max_cached_size_mb", "2.13", NULL, IMPORT_MIB, true,
     {{NULL, IMPORT_NONE, PINNED ". To shrink a cache to a given size, call strata_trim()"}}, NULL},
    {"pinned_max_round_threshold_mb", "2.13", NULL, IMPORT_MIB, true,
     {{NULL, IMPORT_NONE, PINNED ". Sizes are rounded to multiples of 256 bytes, never to powers of two"}}, NULL},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", NULL, NULL, IMPORT_BOOL_DIGIT, false,
     {{"true", IMPORT_PRESET, "system"}, {"false", IMPORT_NOTHING, NULL}},
     "Releases up to 2.6 turn the cache off for any value, even 0"},
    {"PYTORCH_NO_HIP_MEMORY_CACHING", NULL, NULL, IMPORT_BOOL_DIGIT, false,
     {{"true", IMPORT_PRESET, "system"}, {"false", IMPORT_NOTHING, NULL}}, "It is the name on ROCm"},
    {0},
};
/* clang-format on */

/* The ranges that PyTorch's own parser enforces. */
static const import_range_t ranges[] = {
    {"max_split_size_mb", 20, INFINITY, false, false, "a number of at least 20"},
    {"max_non_split_rounding_mb", 20, INFINITY, false, false, "a number of at least 20"},
    {"large_segment_size_mb", 10, INFINITY, true, false, "a number above 10"},
    {"per_process_memory_fraction", 0, 1, false, false, "a number from 0 to 1"},
    {"garbage_collection_threshold", 0, 1, true, false, "a number above 0 and below 1"},
    {"pinned_num_register_threads", 1, 128, false, true, "a power of two from 1 to 128"},
    {"pinned_reserve_segment_size_mb", 1, INFINITY, false, false, "a number of at least 1"},
    {0},
};

/* PyTorch parses from left to right: a larger segment size raises the minimum of the keys after it. */
static strata_status_t check_segment(strata_import_t *import, const char *key) {
    const import_setting_t *segment = strata_import_find(import, "large_segment_size_mb"), *size = strata_import_find(import, key);
    if (!segment || !size || segment > size || strtod(size->value, NULL) >= strtod(segment->value, NULL)) return STRATA_OK;
    return strata_fail_origin(&size->origin, "PyTorch refuses %s:%s after large_segment_size_mb:%s; write at least %s", key,
                              size->value, segment->value, segment->value);
}

static strata_status_t check_divisions(strata_import_t *import) {
    const import_setting_t *divisions = strata_import_find(import, "roundup_power2_divisions");
    if (!divisions) return STRATA_OK;
    bool list = divisions->converted[0] == '[', digits = divisions->converted[strspn(divisions->converted, "0123456789")] == '\0';
    unsigned long long number = strtoull(divisions->converted, NULL, 10);
    if (list && import->as_of && !strata_import_has(import, "2.0"))
        return strata_fail_origin(&divisions->origin,
                                  "pytorch reads a list of roundup_power2_divisions from 2.0 on, not as of %.20s; write one "
                                  "number",
                                  import->as_of);
    if (list || (digits && number > 0 && (number & (number - 1)) == 0)) return STRATA_OK;
    return strata_fail_origin(&divisions->origin,
                              "\"%.60s\" is not a value of roundup_power2_divisions; write a power of two, or a list as in "
                              "[256:1,512:2,>:4]",
                              divisions->value);
}

/* PyTorch collects garbage only if a memory fraction sets the limit, and never in expandable segments. It
 * rounds a block only if a maximum split size is set. The driver's pool has no segments at all. */
static void resolve_pairs(strata_import_t *import) {
    import_setting_t *threshold = strata_import_find(import, "garbage_collection_threshold");
    import_setting_t *rounding = strata_import_find(import, "max_non_split_rounding_mb");
    import_setting_t *expandable = strata_import_find(import, "expandable_segments");
    import_setting_t *split = strata_import_find(import, "max_split_size_mb");
    const import_setting_t *fraction = strata_import_find(import, "per_process_memory_fraction");
    const import_setting_t *backend = strata_import_find(import, "backend");
    bool driver = backend && backend->action.verb == IMPORT_PRESET; /* the driver's own pool */
    bool expands = expandable && expandable->action.verb == IMPORT_PRESET;
    if (driver && expands) expandable->skip_reason = "backend:cudaMallocAsync has no segments";
    if (driver) return;
    if (rounding && !split) rounding->skip_reason = "every block is split without a max_split_size_mb";
    if (expands && split && import->as_of && !strata_import_has(import, "2.10")) {
        split->skip_reason = "expandable_segments:True splits every block up to 2.9";
        if (rounding) rounding->skip_reason = split->skip_reason;
    } else if (expands && split)
        split->warning =
            "conflicts with expandable_segments:True: a free block of max_split_size or more serves only requests of nearly its "
            "size, so the segment grows instead (pytorch/pytorch#193400); leave one of the two out";
    if (expands && threshold) threshold->skip_reason = "expandable_segments:True has no segments that are collected";
    else if (threshold && (!fraction || strcmp(fraction->converted, "1") == 0))
        threshold->skip_reason = "nothing is collected without a per_process_memory_fraction below 1; a program that sets one "
                                 "later writes caching.memory_fraction and caching.garbage_collection_threshold itself";
}

static strata_status_t resolve(strata_import_t *import) {
    strata_status_t status = check_segment(import, "max_split_size_mb");
    if (status == STRATA_OK) status = check_segment(import, "max_non_split_rounding_mb");
    if (status == STRATA_OK) status = check_divisions(import);
    if (status == STRATA_OK) resolve_pairs(import);
    return status;
}

const import_peer_t strata_import_pytorch = {.name = "pytorch",
                                             .preset = "pytorch",
                                             .old_preset = "pytorch-1.13",
                                             .old = "2.0",
                                             .known = {{"1.9", "1.13"}, {"2.0", "2.13"}},
                                             .version = "2.9",
                                             .example = "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]",
                                             .rows = rows,
                                             .ranges = ranges,
                                             .refuses = "PyTorch refuses others",
                                             .resolve = resolve};
