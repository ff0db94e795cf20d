/* TensorFlow's and XLA's variables. */
#include "config/import/rows.h"

#define ASYNC   "cuda_malloc_async retry.timeout=0 cuda_malloc_async.throttle=1"
#define MANAGED "system.memory=managed"

/* clang-format off */
static const import_row_t rows[] = {
    {"XLA_PYTHON_CLIENT_ALLOCATOR", NULL, NULL, IMPORT_WORD, false,
     {{"default", IMPORT_NOTHING, NULL},
      {"bfc", IMPORT_NOTHING, NULL},
      {"platform", IMPORT_PRESET, "system"},
      {"cuda_async", IMPORT_PRESET, ASYNC}}, NULL},
    {"TF_GPU_ALLOCATOR", NULL, NULL, IMPORT_WORD, false,
     {{"cuda_malloc", IMPORT_PRESET, "system"},
      {"cuda_malloc_async", IMPORT_PRESET, ASYNC},
      {"memory_guard", IMPORT_FIX, "+guard.report=true"}},
     "the peers neither wait for memory nor throttle over the driver's pool"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", NULL, NULL, IMPORT_BOOL, false,
     {{"true", IMPORT_FIX, "bfc.allow_growth=false"}, {"false", IMPORT_FIX, "bfc.allow_growth=true"}},
     "the first region is all that the limit allows, got at the first request"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", NULL, NULL, IMPORT_BOOL, false, {{NULL, IMPORT_SET, "bfc.allow_growth"}}, NULL},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", NULL, NULL, IMPORT_BOOL, false, {{NULL, IMPORT_SET, "bfc.garbage_collection"}}, NULL},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", NULL, NULL, IMPORT_FRACTION, false, {{NULL, IMPORT_SET, "bfc.memory_fraction"}},
     "XLA_CLIENT_MEM_FRACTION is its new name and decides where both are said"},
    {"XLA_CLIENT_MEM_FRACTION", NULL, NULL, IMPORT_FRACTION, false, {{NULL, IMPORT_SET, "bfc.memory_fraction"}}, NULL},
    {"TF_BFC_MEMORY_DUMP", NULL, NULL, IMPORT_TEXT, false, {{NULL, IMPORT_SET, "bfc.memory_dump"}}, NULL},
    {"TF_DETERMINISTIC_ALLOCATOR", NULL, NULL, IMPORT_BOOL, false,
     {{"true", IMPORT_FIX, "cuda_malloc_async.reuse_opportunistic=false cuda_malloc_async.reuse_internal=false"},
      {"false", IMPORT_NOTHING, NULL}}, NULL},
    {"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", NULL, NULL, IMPORT_BYTES, false,
     {{"0", IMPORT_NOTHING, NULL},
      {"-1", IMPORT_NONE, "the driver's pool is not filled beforehand; allocate and free as much at the start"},
      {NULL, IMPORT_NONE, "the driver's pool is not filled beforehand; allocate and free as much at the start"}}, NULL},
    {"TF_FORCE_UNIFIED_MEMORY", NULL, NULL, IMPORT_BOOL, false,
     {{"false", IMPORT_NOTHING, NULL},
      {"true", IMPORT_FIX, MANAGED}}, NULL},
    {"TF_GPU_HOST_MEM_LIMIT_IN_MB", NULL, NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, "pinned.system.cap"}}, NULL},
    {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", NULL, NULL, IMPORT_GIB, false, {{NULL, IMPORT_SET, "pinned.system.cap"}}, NULL},
    {"XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE", NULL, NULL, IMPORT_BOOL, false,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_FIX, "pinned.auto_growth.preallocate=16GiB"}},
     "got when the facade is opened: as much as XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB says, else 16 GiB"},
    {0},
};
/* clang-format on */

/* What is preallocated of pinned memory is also its limit. */
static void settle(import_setting_t *settings, size_t count) {
    import_setting_t *before = strata_import_find(settings, count, "XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE");
    const import_setting_t *limit = strata_import_find(settings, count, "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB");
    if (!before || !limit || before->act.verb != IMPORT_FIX) return;
    before->act = (import_case_t){NULL, IMPORT_SET, "pinned.auto_growth.preallocate"};
    snprintf(before->meant, sizeof before->meant, "%s", limit->meant);
}

const import_peer_t strata_import_tensorflow = {.name = "tensorflow",
                                                .preset = "tensorflow",
                                                .known = {{"2018", "2026"}},
                                                .version = "2026-01",
                                                .example = "TF_FORCE_GPU_ALLOW_GROWTH=true XLA_PYTHON_CLIENT_MEM_FRACTION=.75",
                                                .rows = rows,
                                                .settle = settle};
