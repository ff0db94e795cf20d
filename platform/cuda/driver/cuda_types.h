/* The types of the driver API that are used here, so that a build needs no CUDA Toolkit. Their names
 * are the API's and their layouts those of cuda_layouts.h. Never included together with the Toolkit's
 * cuda.h. */
#ifndef STRATA_PLATFORM_CUDA_TYPES_H
#define STRATA_PLATFORM_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/cuda/driver/cuda_values.h"

#define STRATA_CUDA_NAME(name, value)      name = (value),
#define STRATA_CUDA_ENUM(type, rows, more) typedef enum type { rows(STRATA_CUDA_NAME) more(STRATA_CUDA_NAME) } type;
STRATA_CUDA_ENUM_MAP(STRATA_CUDA_ENUM)
enum { STRATA_CUDA_FLAGS(STRATA_CUDA_NAME) };
#undef STRATA_CUDA_ENUM
#undef STRATA_CUDA_NAME

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef void (*CUhostFn)(void *value);

#define CU_STREAM_LEGACY     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_DEVICE_CPU        ((CUdevice)-1)

typedef struct CUmemLocation {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData; /* NULL */
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemPoolProps {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes; /* NULL */
    size_t maxSize; /* since 12.2; before that these bytes were reserved and must be zero */
    unsigned char reserved[56]; /* 0 */
} CUmemPoolProps;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

#endif
