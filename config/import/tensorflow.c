/* Table of the variables of TensorFlow and XLA. JAX reads those of XLA, with its own defaults. */
#include <stdlib.h>
#include <string.h>

#include "config/import/rows.h"

#define ASYNC   "cuda_malloc_async pinned=strata host=strata retry.timeout=0 cuda_malloc_async.throttle=1"
#define MANAGED "system.memory=managed"

/* clang-format off */
static const import_row_t rows[] = {
    {"XLA_PYTHON_CLIENT_ALLOCATOR", NULL, NULL, IMPORT_WORD_ANY_CASE, false,
     {{"default", IMPORT_NOTHING, NULL},
      {"bfc", IMPORT_NOTHING, NULL},
      {"platform", IMPORT_PRESET, "system"},
      {"cuda_async", IMPORT_PRESET, ASYNC},
      {"vmm", IMPORT_NONE, "Strata does not reproduce XLA's allocator over virtual memory"}}, NULL},
    {"TF_GPU_ALLOCATOR", NULL, NULL, IMPORT_WORD, false,
     {{"cuda_malloc", IMPORT_PRESET, "system"},
      {"cuda_malloc_async", IMPORT_PRESET, ASYNC},
      {"memory_guard", IMPORT_FIX, "+guard.report=true"}},
     "The peers neither wait for memory nor throttle over the driver's pool"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", NULL, NULL, IMPORT_BOOL_JAX, false,
     {{"true", IMPORT_FIX, "bfc.allow_growth=false"}, {"false", IMPORT_FIX, "bfc.allow_growth=true"}},
     "The first request allocates a region of the whole limit. The default is `true` if any variable of XLA is set, as in JAX"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", NULL, NULL, IMPORT_BOOL_EXACT, false, {{NULL, IMPORT_SET, "bfc.allow_growth"}}, NULL},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", NULL, NULL, IMPORT_BOOL_TENSORFLOW, false, {{NULL, IMPORT_SET, "bfc.garbage_collection"}}, NULL},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", NULL, NULL, IMPORT_FRACTION, false, {{NULL, IMPORT_SET, "bfc.memory_fraction"}},
     "XLA_CLIENT_MEM_FRACTION is the new name. Both together are refused, as in JAX"},
    {"XLA_CLIENT_MEM_FRACTION", NULL, NULL, IMPORT_FRACTION, false, {{NULL, IMPORT_SET, "bfc.memory_fraction"}},
     "The default is 0.75 if any variable of XLA is set, as in JAX"},
    {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", NULL, NULL, IMPORT_MIB, false,
     {{"0", IMPORT_NOTHING, NULL}, {NULL, IMPORT_NONE, "the communication library manages the memory of collectives"}}, NULL},
    {"TF_BFC_MEMORY_DUMP", NULL, NULL, IMPORT_TEXT, false, {{NULL, IMPORT_SET, "bfc.memory_dump"}}, NULL},
    {"TF_DETERMINISTIC_ALLOCATOR", NULL, NULL, IMPORT_BOOL_TENSORFLOW, false,
     {{"true", IMPORT_FIX, "cuda_malloc_async.reuse_opportunistic=false cuda_malloc_async.reuse_internal=false"},
      {"false", IMPORT_NOTHING, NULL}}, NULL},
    {"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", NULL, NULL, IMPORT_BYTES, false,
     {{"0", IMPORT_NOTHING, NULL},
      {"-1", IMPORT_NONE, "Strata does not fill the driver's pool in advance. Instead, allocate and free that amount at the start"},
      {NULL, IMPORT_NONE, "Strata does not fill the driver's pool in advance. Instead, allocate and free that amount at the start"}}, NULL},
    {"TF_FORCE_UNIFIED_MEMORY", NULL, NULL, IMPORT_BOOL_TENSORFLOW, false,
     {{"false", IMPORT_NOTHING, NULL},
      {"true", IMPORT_FIX, MANAGED}}, "With unified memory the fraction may exceed 1, and a fraction below 1 counts as 1"},
    {"TF_GPU_HOST_MEM_LIMIT_IN_MB", NULL, NULL, IMPORT_MIB, false, {{NULL, IMPORT_SET, "pinned.system.cap"}}, NULL},
    {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", NULL, NULL, IMPORT_GIB, false, {{NULL, IMPORT_SET, "pinned.system.cap"}}, NULL},
    {"XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE", NULL, NULL, IMPORT_BOOL_TENSORFLOW, false,
     {{"false", IMPORT_NOTHING, NULL}, {"true", IMPORT_FIX, "pinned.auto_growth.preallocate=16GiB"}},
     "The memory is allocated when the facade is opened. Its size is XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB, or 16 GiB by default"},
    {0},
};
/* clang-format on */

/* The preallocated size of pinned memory is also its limit. */
static void resolve_pinned(const strata_import_t *import) {
    import_setting_t *before = strata_import_find(import, "XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE");
    const import_setting_t *limit = strata_import_find(import, "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB");
    if (!before || !limit || before->action.verb != IMPORT_FIX) return;
    before->action = (import_case_t){NULL, IMPORT_SET, "pinned.auto_growth.preallocate"};
    snprintf(before->converted, sizeof before->converted, "%s", limit->converted);
}

/* Returns the effective fraction, or NULL if none was given. */
static import_setting_t *fraction_of(const strata_import_t *import) {
    import_setting_t *fraction = strata_import_find(import, "XLA_CLIENT_MEM_FRACTION");
    return fraction ? fraction : strata_import_find(import, "XLA_PYTHON_CLIENT_MEM_FRACTION");
}

/* Adds the defaults of JAX if a variable of XLA shows that the program uses JAX. */
static strata_status_t resolve_defaults(strata_import_t *import) {
    const import_setting_t *jax = NULL;
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < import->count && !jax; i++)
        if (!import->settings[i].skip_reason && strncmp(import->settings[i].row->key, "XLA_", 4) == 0) jax = &import->settings[i];
    if (!jax) return STRATA_OK;
    if (!fraction_of(import)) status = strata_import_imply(import, "XLA_CLIENT_MEM_FRACTION", "0.75", jax);
    bool growth = strata_import_find(import, "XLA_PYTHON_CLIENT_PREALLOCATE") ||
                  strata_import_find(import, "TF_FORCE_GPU_ALLOW_GROWTH");
    if (status == STRATA_OK && !growth) status = strata_import_imply(import, "XLA_PYTHON_CLIENT_PREALLOCATE", "true", jax);
    return status;
}

/* With unified memory, XLA's limit is at least the whole device. Its platform allocator still requests device memory. */
static strata_status_t resolve_unified(strata_import_t *import) {
    import_setting_t *unified = strata_import_find(import, "TF_FORCE_UNIFIED_MEMORY"), *fraction = fraction_of(import);
    const import_setting_t *allocator = strata_import_find(import, "XLA_PYTHON_CLIENT_ALLOCATOR");
    bool managed = unified && unified->action.verb == IMPORT_FIX;
    if (managed && allocator && strcmp(allocator->converted, "platform") == 0) {
        unified->skip_reason = "XLA_PYTHON_CLIENT_ALLOCATOR=platform allocates device memory";
        return STRATA_OK;
    }
    double share = fraction ? strtod(fraction->converted, NULL) : 1;
    if (managed && share < 1) {
        const char *written = strata_import_written(import, unified);
        fraction->warning = strata_import_text(import, "counts as 1: %s raises a fraction below 1 to 1", written ? written : "");
        strcpy(fraction->converted, "1");
        return written && fraction->warning ? STRATA_OK : STRATA_E_HOST_MEMORY;
    }
    if (!managed && share > 1)
        fraction->warning = "is above 1 without TF_FORCE_UNIFIED_MEMORY=1: the device's memory remains the limit";
    return STRATA_OK;
}

static strata_status_t resolve(strata_import_t *import) {
    const import_setting_t *old = strata_import_find(import, "XLA_PYTHON_CLIENT_MEM_FRACTION");
    if (old && strata_import_find(import, "XLA_CLIENT_MEM_FRACTION"))
        return strata_fail_origin(&old->origin, "JAX refuses XLA_PYTHON_CLIENT_MEM_FRACTION beside XLA_CLIENT_MEM_FRACTION; leave "
                                                "the older one out");
    resolve_pinned(import);
    strata_status_t status = resolve_defaults(import);
    return status ? status : resolve_unified(import);
}

const import_peer_t strata_import_tensorflow = {.name = "tensorflow",
                                                .preset = "tensorflow",
                                                .known = {{"2018", "2026"}},
                                                .version = "2026-01",
                                                .example = "TF_FORCE_GPU_ALLOW_GROWTH=true XLA_PYTHON_CLIENT_MEM_FRACTION=.75",
                                                .rows = rows,
                                                .resolve = resolve};
