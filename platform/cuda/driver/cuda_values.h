/* The numbers of the driver API that are used here, as macros with names and values: X(name, value). A
 * name from an enum of the API is a row of that enum's list. A name that the API defines by a macro is
 * a row of STRATA_CUDA_FLAGS. */
#ifndef STRATA_PLATFORM_CUDA_VALUES_H
#define STRATA_PLATFORM_CUDA_VALUES_H

#define STRATA_CUDA_RESULTS(X)                                                                                                     \
    X(CUDA_SUCCESS, 0)                                                                                                             \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                                                 \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                                                               \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                                                                                 \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                                                                                 \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                                                                           \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                                                                   \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                                                                              \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                                                             \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                                                           \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                                                        \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                                                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                                                                              \
    X(CUDA_ERROR_NOT_FOUND, 500)                                                                                                   \
    X(CUDA_ERROR_NOT_READY, 600)                                                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                                                             \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                                                              \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                                                                                 \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                                                        \
    X(CUDA_ERROR_ASSERT, 710)                                                                                                      \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                                                                              \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                                                                                  \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                                                        \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                                                         \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                                                          \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                                                       \
    X(CUDA_ERROR_INVALID_PC, 718)                                                                                                  \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                                                               \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                                                                               \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                                                                      \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                                                                       \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)                                                                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                                                     \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                                                                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                                                     \
    X(CUDA_ERROR_CAPTURED_EVENT, 907)                                                                                              \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                                                 \
    X(CUDA_ERROR_EXTERNAL_DEVICE, 911)                                                                                             \
    X(CUDA_ERROR_UNKNOWN, 999)

/* Codes that the headers of 12.0 do not name yet. */
#define STRATA_CUDA_LATER_RESULTS(X)                                                                                               \
    X(CUDA_ERROR_CONTAINED, 226)                                                                                                   \
    X(CUDA_ERROR_LOSSY_QUERY, 402)                                                                                                 \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)

#define STRATA_CUDA_ATTRIBUTES(X)                                                                                                  \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                                                            \
    X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                                                                                      \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)                                                                           \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)                                                             \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                                                \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                                                        \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)                                                            \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)

/* The host node nearest to the device. Drivers report it also before 12.2, which named it. */
#define STRATA_CUDA_LATER_ATTRIBUTES(X) X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)

#define STRATA_CUDA_POINTER_ATTRIBUTES(X)                                                                                          \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                                                         \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)

#define STRATA_CUDA_MEMORY_TYPES(X)                                                                                                \
    X(CU_MEMORYTYPE_HOST, 1)                                                                                                       \
    X(CU_MEMORYTYPE_DEVICE, 2)

#define STRATA_CUDA_CAPTURE_MODES(X)                                                                                               \
    X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                                                                            \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                                                      \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)

#define STRATA_CUDA_CAPTURE_STATUSES(X)                                                                                            \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                                                            \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                                                          \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)

/* The advice of the device contract has the API's numbers. */
#define STRATA_CUDA_ADVICE(X)                                                                                                      \
    X(CU_MEM_ADVISE_SET_READ_MOSTLY, 1)                                                                                            \
    X(CU_MEM_ADVISE_UNSET_READ_MOSTLY, 2)                                                                                          \
    X(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 3)                                                                                     \
    X(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 4)                                                                                   \
    X(CU_MEM_ADVISE_SET_ACCESSED_BY, 5)                                                                                            \
    X(CU_MEM_ADVISE_UNSET_ACCESSED_BY, 6)

/* The attributes of a pool have the API's numbers too. */
#define STRATA_CUDA_POOL_ATTRIBUTES(X)                                                                                             \
    X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1)                                                                          \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2)                                                                                \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3)                                                                        \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                                                                        \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                                                                                     \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6)                                                                                        \
    X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                                                                                         \
    X(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)

#define STRATA_CUDA_LOCATION_TYPES(X) X(CU_MEM_LOCATION_TYPE_DEVICE, 1)

#define STRATA_CUDA_LATER_LOCATION_TYPES(X) X(CU_MEM_LOCATION_TYPE_HOST, 2)

#define STRATA_CUDA_ALLOCATION_TYPES(X) X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)

#define STRATA_CUDA_HANDLE_TYPES(X)                                                                                                \
    X(CU_MEM_HANDLE_TYPE_NONE, 0)                                                                                                  \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)

#define STRATA_CUDA_GRANULARITIES(X) X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)

#define STRATA_CUDA_ACCESS(X) X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)

#define STRATA_CUDA_FOUND(X)                                                                                                       \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                                                                              \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)

#define STRATA_CUDA_FLAGS(X)                                                                                                       \
    X(CU_STREAM_DEFAULT, 0)                                                                                                        \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                                                   \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                                                  \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                                                                                 \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                                                                                \
    X(CU_MEMHOSTALLOC_WRITECOMBINED, 4)                                                                                            \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                                                                                              \
    X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)                                                                                             \
    X(CU_MEM_ATTACH_GLOBAL, 1)                                                                                                     \
    X(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, 1)                                                                                        \
    X(CU_GRAPH_USER_OBJECT_MOVE, 1)                                                                                                \
    X(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, 1)                                                                          \
    X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1)

/* T(type, its values, its values that the headers of 12.0 do not name). */
#define STRATA_CUDA_NONE(X)
#define STRATA_CUDA_ENUM_MAP(T)                                                                                                    \
    T(CUresult, STRATA_CUDA_RESULTS, STRATA_CUDA_LATER_RESULTS)                                                                    \
    T(CUdevice_attribute, STRATA_CUDA_ATTRIBUTES, STRATA_CUDA_LATER_ATTRIBUTES)                                                    \
    T(CUpointer_attribute, STRATA_CUDA_POINTER_ATTRIBUTES, STRATA_CUDA_NONE)                                                       \
    T(CUmemorytype, STRATA_CUDA_MEMORY_TYPES, STRATA_CUDA_NONE)                                                                    \
    T(CUstreamCaptureMode, STRATA_CUDA_CAPTURE_MODES, STRATA_CUDA_NONE)                                                            \
    T(CUstreamCaptureStatus, STRATA_CUDA_CAPTURE_STATUSES, STRATA_CUDA_NONE)                                                       \
    T(CUmem_advise, STRATA_CUDA_ADVICE, STRATA_CUDA_NONE)                                                                          \
    T(CUmemPool_attribute, STRATA_CUDA_POOL_ATTRIBUTES, STRATA_CUDA_NONE)                                                          \
    T(CUmemLocationType, STRATA_CUDA_LOCATION_TYPES, STRATA_CUDA_LATER_LOCATION_TYPES)                                             \
    T(CUmemAllocationType, STRATA_CUDA_ALLOCATION_TYPES, STRATA_CUDA_NONE)                                                         \
    T(CUmemAllocationHandleType, STRATA_CUDA_HANDLE_TYPES, STRATA_CUDA_NONE)                                                       \
    T(CUmemAllocationGranularity_flags, STRATA_CUDA_GRANULARITIES, STRATA_CUDA_NONE)                                               \
    T(CUmemAccess_flags, STRATA_CUDA_ACCESS, STRATA_CUDA_NONE)                                                                     \
    T(CUdriverProcAddressQueryResult, STRATA_CUDA_FOUND, STRATA_CUDA_NONE)

#endif
