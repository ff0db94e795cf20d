/* Checks at compile time every declaration of this folder against the CUDA Toolkit's headers (12.0 or
 * newer). Built if CMake finds them. It has no code to run. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdint.h>

#include "platform/cuda/driver/cuda_entries.h"
#include "platform/cuda/driver/cuda_values.h"

#include "platform/cuda/driver/cuda_layouts.h"

#if CUDA_VERSION >= 12020
#define HAS_12020(...) __VA_ARGS__
#else
#define HAS_12020(...)
#endif
#if CUDA_VERSION >= 13000
#define HAS_13000(...) __VA_ARGS__
#else
#define HAS_13000(...)
#endif

/* The values. A name that only newer headers have is checked with headers of 13 or newer. */
#define VALUE_HOLDS(name, value)      _Static_assert((name) == (value), "the value of " #name);
#define VALUES_HOLD(type, rows, more) rows(VALUE_HOLDS) HAS_13000(more(VALUE_HOLDS))
STRATA_CUDA_ENUM_MAP(VALUES_HOLD)
STRATA_CUDA_FLAGS(VALUE_HOLDS)
#ifndef __clang__ /* clang does not accept a pointer made from a number as a constant */
_Static_assert((uintptr_t)CU_STREAM_LEGACY == 1 && (uintptr_t)CU_STREAM_PER_THREAD == 2, "the default streams' names");
#endif
_Static_assert(CU_DEVICE_CPU == -1, "the host's name as a device");

HAS_12020(STRATA_CUDA_LATER_FIELD_MAP(STRATA_CUDA_FIELD_HOLDS))

/* The entries. The Toolkit has a typedef for each version of each entry. */
#define ENTRY_HOLDS(field, name, version, group, arguments)                                                                        \
    _Static_assert(__builtin_types_compatible_p(PFN_cu##name##_v##version, CUresult(CUDAAPI *) arguments),                         \
                   "what cu" #name " takes");
STRATA_CUDA_BASE_ENTRY_MAP(ENTRY_HOLDS)
HAS_12020(STRATA_CUDA_LATER_ENTRY_MAP(ENTRY_HOLDS))
_Static_assert(__builtin_types_compatible_p(PFN_cuGetProcAddress_v12000, CUresult(CUDAAPI *) STRATA_CUDA_GET_PROC),
               "what cuGetProcAddress takes");
