/* The structures and functions that the files of the CUDA device share. */
#ifndef STRATA_PLATFORM_CUDA_DEVICE_H
#define STRATA_PLATFORM_CUDA_DEVICE_H

#include "platform/cuda/cuda.h"
#include "platform/cuda/driver/cuda_api.h"
#include "platform/cuda/driver/cuda_table.h"
#include "platform/device.h"

#define STRATA_CUDA_DEVICES_MAX 64u

typedef struct strata_cuda_device {
    strata_device_t base; /* first: a strata_device_t * is this device */
    const strata_cuda_driver_t *driver;
    uint32_t generation; /* of the process that opened it */
    CUdevice handle;
    CUcontext context; /* the primary one, retained */
    CUmemoryPool default_pool;
    int driver_version;
    uint32_t device_count;
    bool rdma; /* physical memory can be registered with network cards */
    _Atomic int lost; /* the sticky code, or 0; once set, no call is made */

    strata_lock_t lock; /* guards the tables and counts that follow; leaf */
    strata_cuda_table_t events; /* events created here -> 1 if last recorded in a capture */
    strata_cuda_table_t captures; /* streams with a capture that was begun here */
    strata_cuda_table_t shifted; /* pinned addresses that were moved up to their alignment -> the driver's address */
    strata_cuda_table_t on_node; /* host memory of a named node -> its bytes, with the lowest bit set if it is pinned */
    _Atomic uint64_t captured_events; /* number of events with the mark; while it is 0 no query takes the lock */
    _Atomic uint64_t open_captures; /* captures.count and captures about to begin, readable without the lock */
    _Atomic uint64_t shifted_count;
    _Atomic uint64_t on_node_count;

    strata_lock_t slow_lock; /* guards the rest across driver calls; taken alone or before `lock` */
    strata_cuda_table_t graphs; /* graph -> its instance, made at the first launch */
    CUcontext peers[STRATA_CUDA_DEVICES_MAX]; /* primary contexts retained by enable_peer */
    CUmodule spin_module; /* for work(), loaded at its first call */
    CUfunction spin;
} strata_cuda_device_t;

static inline strata_cuda_device_t *strata_cuda_of(strata_device_t *device) { return (strata_cuda_device_t *)device; }

/* The state that the end of a call restores. */
typedef struct strata_cuda_scope {
    strata_cuda_device_t *device;
    bool pushed;
    bool exchanged;
    CUstreamCaptureMode mode;
} strata_cuda_scope_t;

/* PLAIN is for the calls that a capture records. RELAXED is for all others, which a capture would
 * refuse and be invalidated by. */
typedef enum strata_cuda_mode { STRATA_CUDA_PLAIN, STRATA_CUDA_RELAXED } strata_cuda_mode_t;

/* Returns OK if the driver may be called at all, otherwise E_FORKED, E_SHUTDOWN or E_DEVICE_LOST. */
strata_status_t strata_cuda_usable(const strata_cuda_device_t *device);
/* Begins a call: makes the device's context current and enters the mode. Fails, without any driver
 * call, in a forked child, after the driver's shutdown, and on a lost device. After a failure there is
 * nothing to leave. */
strata_status_t strata_cuda_enter(strata_device_t *device, strata_cuda_mode_t mode, strata_cuda_scope_t *scope);
/* Begins a call that uses `stream`. Fails with E_CAPTURE for the legacy stream while a blocking stream
 * is captured, because using it then would invalidate that capture. */
strata_status_t strata_cuda_enter_stream(strata_device_t *device, strata_cuda_mode_t mode, strata_handle_t stream,
                                         strata_cuda_scope_t *scope);
/* Restores context and mode, and returns `status`. */
strata_status_t strata_cuda_exit(strata_cuda_scope_t *scope, strata_status_t status);
/* For calls that give something back. Once the driver is shutting down the resource is already gone,
 * which counts as success. */
static inline strata_status_t strata_cuda_ignore_shutdown(strata_status_t status) {
    return status == STRATA_E_SHUTDOWN ? STRATA_OK : status;
}

/* Returns the status of a driver call's code. Records a lost device and the driver's shutdown. */
strata_status_t strata_cuda_check(strata_cuda_device_t *device, const char *call, CUresult code);
strata_status_t strata_cuda_missing(const char *call);
/* CUDA_CALL(device, MemFree, address) makes one driver call and checks it. An entry that the driver
 * lacks is E_UNSUPPORTED. */
#define CUDA_CALL(device, field, ...)                                                                                              \
    ((device)->driver->field ? strata_cuda_check((device), "cu" #field, (device)->driver->field(__VA_ARGS__))                      \
                             : strata_cuda_missing("cu" #field))

/* Checks a call that names a stream. Its handle may be that of a destroyed stream. */
strata_status_t strata_cuda_check_stream(strata_cuda_device_t *device, strata_handle_t stream, const char *call, CUresult code);
#define STREAM_CALL(device, stream, field, ...)                                                                                    \
    ((device)->driver->field ? strata_cuda_check_stream((device), (stream), "cu" #field, (device)->driver->field(__VA_ARGS__))     \
                             : strata_cuda_missing("cu" #field))

/* Finds out if the driver captures `stream`. Fails with E_CAPTURE for IMPLICIT. Safe during a capture. */
strata_status_t strata_cuda_capturing(strata_cuda_device_t *device, CUstream stream, bool *capturing);
/* The first returns true if a capture is known to be under way; waiting for the whole context would
 * invalidate it. The second also returns true if other code may have begun one. */
bool strata_cuda_capture_known(strata_cuda_device_t *device);
bool strata_cuda_capture_possible(strata_cuda_device_t *device);
/* Bookkeeping of the capture calls for a destroyed stream. */
void strata_cuda_forget_capture(strata_cuda_device_t *device, strata_handle_t stream);
void strata_cuda_drop_graphs(strata_cuda_device_t *device);

/* Allocate and free memory of a named node of the host. Freeing returns false if the address is not of
 * such memory. */
strata_status_t strata_cuda_node_alloc(strata_cuda_device_t *device, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                       uint32_t flags, strata_address_t *address);
bool strata_cuda_node_free(strata_cuda_device_t *device, strata_address_t address, strata_status_t *status);

/* The operations, one per call of the contract, with its types. */
#define STRATA_CUDA_OPERATION(name, quick, shown) extern __typeof__(*((strata_device_operations_t *)0)->name) strata_cuda_##name;
STRATA_DEVICE_CALL_MAP(STRATA_CUDA_OPERATION)
#undef STRATA_CUDA_OPERATION
/* Called with the context current. */
strata_status_t strata_cuda_granularity(strata_cuda_device_t *device, uint64_t *granularity);
uint64_t strata_cuda_event_ready_at(strata_device_t *device, strata_handle_t event);
bool strata_cuda_event_is_captured(strata_device_t *device, strata_handle_t event);
void *strata_cuda_host_view(strata_device_t *device, strata_address_t address, uint64_t size);

#endif
