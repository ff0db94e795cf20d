/* The layouts of the driver API's types on 64-bit machines, as numbers. Both the types of cuda_types.h
 * and those of the Toolkit are checked against them, so every file that includes either also includes
 * this one. */
#ifndef STRATA_PLATFORM_CUDA_LAYOUTS_H
#define STRATA_PLATFORM_CUDA_LAYOUTS_H

#include <stddef.h>

#include "platform/cuda/driver/cuda_values.h"

/* X(type, bytes). */
#define STRATA_CUDA_SIZE_MAP(X)                                                                                                    \
    X(CUdevice, 4)                                                                                                                 \
    X(CUdeviceptr, 8)                                                                                                              \
    X(CUmemGenericAllocationHandle, 8)                                                                                             \
    X(CUcontext, 8)                                                                                                                \
    X(CUmodule, 8)                                                                                                                 \
    X(CUfunction, 8)                                                                                                               \
    X(CUstream, 8)                                                                                                                 \
    X(CUevent, 8)                                                                                                                  \
    X(CUgraph, 8)                                                                                                                  \
    X(CUgraphNode, 8)                                                                                                              \
    X(CUgraphExec, 8)                                                                                                              \
    X(CUuserObject, 8)                                                                                                             \
    X(CUmemoryPool, 8)                                                                                                             \
    X(CUhostFn, 8)                                                                                                                 \
    X(CUmemLocation, 8)                                                                                                            \
    X(CUmemAllocationProp, 32)                                                                                                     \
    X(CUmemPoolProps, 88)                                                                                                          \
    X(CUmemAccessDesc, 12)

/* X(type, field, offset, bytes). */
#define STRATA_CUDA_FIELD_MAP(X)                                                                                                   \
    X(CUmemLocation, type, 0, 4)                                                                                                   \
    X(CUmemLocation, id, 4, 4)                                                                                                     \
    X(CUmemAllocationProp, type, 0, 4)                                                                                             \
    X(CUmemAllocationProp, requestedHandleTypes, 4, 4)                                                                             \
    X(CUmemAllocationProp, location, 8, 8)                                                                                         \
    X(CUmemAllocationProp, win32HandleMetaData, 16, 8)                                                                             \
    X(CUmemAllocationProp, allocFlags, 24, 8)                                                                                      \
    X(CUmemAllocationProp, allocFlags.compressionType, 24, 1)                                                                      \
    X(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable, 25, 1)                                                                 \
    X(CUmemAllocationProp, allocFlags.usage, 26, 2)                                                                                \
    X(CUmemPoolProps, allocType, 0, 4)                                                                                             \
    X(CUmemPoolProps, handleTypes, 4, 4)                                                                                           \
    X(CUmemPoolProps, location, 8, 8)                                                                                              \
    X(CUmemPoolProps, win32SecurityAttributes, 16, 8)                                                                              \
    X(CUmemAccessDesc, location, 0, 8)                                                                                             \
    X(CUmemAccessDesc, flags, 8, 4)

/* Fields that the headers of 12.0 do not have. */
#define STRATA_CUDA_LATER_FIELD_MAP(X) X(CUmemPoolProps, maxSize, 24, 8)

#define STRATA_CUDA_SIZE_HOLDS(type, bytes) _Static_assert(sizeof(type) == (bytes), "the size of " #type);
#define STRATA_CUDA_FIELD_HOLDS(type, field, offset, bytes)                                                                        \
    _Static_assert(offsetof(type, field) == (offset) && sizeof(((type *)NULL)->field) == (bytes),                                  \
                   "the layout of " #type "." #field);
#define STRATA_CUDA_ENUM_HOLDS(type, rows, more) _Static_assert(sizeof(type) == 4, "the size of " #type);

STRATA_CUDA_SIZE_MAP(STRATA_CUDA_SIZE_HOLDS)
STRATA_CUDA_FIELD_MAP(STRATA_CUDA_FIELD_HOLDS)
STRATA_CUDA_ENUM_MAP(STRATA_CUDA_ENUM_HOLDS)

#endif
