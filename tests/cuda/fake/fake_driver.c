/* The fake's frame: records, faults on order, capture rules, contexts, devices. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake/fake_internal.h"

fake_options_t fake_options;
fake_world_t fake;
const char *fake_omitted;
CUresult fake_omission;
uint64_t fake_asked_plain, fake_asked_otherwise;

static pthread_mutex_t mutex;
static fake_call_t calls[FAKE_CALLS_MAX];
static uint64_t call_count;
static const char *fail_name;
static uint64_t fail_in; /* 0: off */
static CUresult fail_code;
static _Thread_local CUcontext stack[16];
static _Thread_local size_t depth;
static _Thread_local CUstreamCaptureMode mode; /* GLOBAL is 0 */
static char context_marks[FAKE_DEVICES]; /* their addresses are the contexts */

__attribute__((constructor)) static void make_mutex(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void fake_lock(void) { pthread_mutex_lock(&mutex); }

void fake_unlock_guard(int *guard) {
    (void)guard;
    pthread_mutex_unlock(&mutex);
}

strata_cuda_driver_t fake_table(void) {
    return (strata_cuda_driver_t){
#define FAKE_FIELD(field, name, version, group, arguments) .field = fake_##field,
        STRATA_CUDA_ENTRY_MAP(FAKE_FIELD)
#undef FAKE_FIELD
    };
}

/* What the last test left: memory of the host, and user objects, which own something. */
static void drop_world(void) {
    for (size_t i = 0; i < FAKE_MANY; i++) {
        if (fake.memory[i].used) fake_memory_delete(&fake.memory[i]);
        if (fake.objects[i].used) fake.objects[i].destroy(fake.objects[i].value);
    }
}

void fake_reset(void) {
    static strata_cuda_driver_t table;
    drop_world();
    memset(&fake, 0, sizeof fake);
    fake.next_stream_id = 1;
    fake.next_capture_id = 1;
    fake.next_address = UINT64_C(0x7f0000000000);
    for (int i = 0; i < FAKE_DEVICES; i++) {
        fake.legacy[i] = (fake_stream_t){.used = true, .device = i, .id = fake.next_stream_id++};
        fake.per_thread[i] = (fake_stream_t){.used = true, .device = i, .id = fake.next_stream_id++};
        fake.pools[i] = (fake_pool_t){.used = true, .device = i, .is_default = true, .policies = {1, 1, 1, 1}};
    }
    fake_options = (fake_options_t){.devices = 2,
                                    .driver_version = 13000,
                                    .memory = UINT64_C(1) << 30,
                                    .address_space = UINT64_C(1) << 40,
                                    .mappings_max = 64,
                                    .pinned_alignment = 4096,
                                    .unknown_stream = CUDA_ERROR_INVALID_HANDLE};
    call_count = 0;
    fail_in = 0;
    depth = 0;
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    fake_omitted = NULL;
    fake_omission = CUDA_ERROR_NOT_FOUND;
    fake_asked_plain = fake_asked_otherwise = 0;
    table = fake_table();
    strata_cuda_set_table_for_tests(&table);
}

CUresult fake_get_proc(const char *symbol, void **function, int version, uint64_t flags, CUdriverProcAddressQueryResult *found) {
    static const struct {
        const char *symbol;
        int version;
        size_t offset;
    } rows[] = {
#define FAKE_ROW(field, name, version, group, arguments) {"cu" #name, version, offsetof(strata_cuda_driver_t, field)},
        STRATA_CUDA_ENTRY_MAP(FAKE_ROW)
#undef FAKE_ROW
    };
    strata_cuda_driver_t table = fake_table();
    *(flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM ? &fake_asked_plain : &fake_asked_otherwise) += 1;
    *function = NULL;
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (version > fake_options.driver_version) return CUDA_ERROR_INVALID_VALUE;
    if (fake_omitted && strcmp(symbol, fake_omitted) == 0) return fake_omission;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].symbol, symbol) != 0 || rows[i].version != version) continue;
        memcpy(function, (const char *)&table + rows[i].offset, sizeof *function);
        *found = CU_GET_PROC_ADDRESS_SUCCESS;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

uint64_t fake_calls(void) {
    FAKE_LOCKED();
    return call_count;
}

const fake_call_t *fake_call_at(uint64_t i) { return &calls[i % FAKE_CALLS_MAX]; }

uint64_t fake_count(const char *name) {
    uint64_t count = 0;
    FAKE_LOCKED();
    for (uint64_t i = 0; i < call_count; i++) count += strcmp(fake_call_at(i)->name, name) == 0;
    return count;
}

const fake_call_t *fake_last(const char *name) {
    for (uint64_t i = call_count; i > 0; i--)
        if (strcmp(fake_call_at(i - 1)->name, name) == 0) return fake_call_at(i - 1);
    return NULL;
}

void fake_fail(const char *name, uint64_t k, CUresult code) {
    fail_name = name;
    fail_in = k;
    fail_code = code;
}

bool fake_failed(void) { return fail_in == 0; }

CUcontext fake_context(int device) { return (CUcontext)(void *)&context_marks[device]; }

static int device_of(CUcontext context) {
    for (int i = 0; i < FAKE_DEVICES; i++)
        if (context == fake_context(i)) return i;
    return -1;
}

CUcontext fake_current(void) { return depth ? stack[depth - 1] : NULL; }

int fake_current_device(void) { return device_of(fake_current()); }

size_t fake_depth(void) { return depth; }

CUstreamCaptureMode fake_mode(void) { return mode; }

int fake_retains(int device) { return fake.contexts[device].retains; }

/* A capture that forbids unsafe calls to this thread in its mode; the call invalidates it. */
static bool refused_by_capture(void) {
    bool refused = false;
    for (size_t i = 0; i < FAKE_MANY; i++) {
        fake_capture_t *capture = &fake.captures[i];
        if (!capture->used || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        bool own = pthread_equal(capture->thread, pthread_self()) != 0;
        bool forbids = mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? own || capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                                                             : mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own;
        if (!forbids) continue;
        fake_invalidate(capture);
        refused = true;
    }
    return refused;
}

CUresult fake_enter(const char *name, int flags, uint64_t value, uint64_t extra) {
    int device = fake_current_device();
    calls[call_count++ % FAKE_CALLS_MAX] = (fake_call_t){name, value, extra, device, device < 0 ? 0 : fake_pending(device), mode};
    if (fail_in && (!fail_name || strcmp(fail_name, name) == 0) && --fail_in == 0) return fail_code;
    if (fake_options.deinitialised) return CUDA_ERROR_DEINITIALIZED;
    if (fake.init_pid && fake.init_pid != (int)getpid()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!(flags & FAKE_CONTEXT)) return CUDA_SUCCESS;
    if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!fake.contexts[device].retains) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (fake_options.sticky[device]) return fake_options.sticky[device];
    if ((flags & FAKE_UNSAFE) && refused_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return CUDA_SUCCESS;
}

CUresult fake_Init(unsigned int flags) {
    FAKE_ENTER(Init, FAKE_QUIET, flags, 0);
    if (fake_options.init_code != CUDA_SUCCESS) return fake_options.init_code;
    fake.init_pid = (int)getpid();
    return CUDA_SUCCESS;
}

CUresult fake_DriverGetVersion(int *version) {
    FAKE_ENTER(DriverGetVersion, FAKE_QUIET, 0, 0);
    *version = fake_options.driver_version;
    return CUDA_SUCCESS;
}

CUresult fake_DeviceGetCount(int *count) {
    FAKE_ENTER(DeviceGetCount, FAKE_QUIET, 0, 0);
    *count = fake_options.devices;
    return CUDA_SUCCESS;
}

CUresult fake_DeviceGet(CUdevice *device, int ordinal) {
    FAKE_ENTER(DeviceGet, FAKE_QUIET, ordinal, 0);
    if (ordinal < 0 || ordinal >= fake_options.devices) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult fake_DeviceGetName(char *name, int length, CUdevice device) {
    FAKE_ENTER(DeviceGetName, FAKE_QUIET, device, 0);
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult fake_DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    FAKE_ENTER(DeviceGetAttribute, FAKE_QUIET, attribute, device);
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: *value = !fake_options.no_managed; break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: *value = !fake_options.no_concurrent; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = !fake_options.no_pools; break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: *value = !fake_options.no_virtual; break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: *value = !fake_options.no_fd; break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: *value = !fake_options.no_register; break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: *value = device; break; /* the host's node nearest to it */
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    default: *value = 0; break;
    }
    return CUDA_SUCCESS;
}

CUresult fake_DevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    FAKE_ENTER(DevicePrimaryCtxRetain, FAKE_QUIET, device, 0);
    fake.contexts[device].retains++;
    *context = fake_context(device);
    return CUDA_SUCCESS;
}

CUresult fake_DevicePrimaryCtxRelease(CUdevice device) {
    FAKE_ENTER(DevicePrimaryCtxRelease, FAKE_QUIET, device, 0);
    if (!fake.contexts[device].retains) return CUDA_ERROR_INVALID_CONTEXT;
    fake.contexts[device].retains--;
    return CUDA_SUCCESS;
}

CUresult fake_CtxGetCurrent(CUcontext *context) {
    FAKE_ENTER(CtxGetCurrent, FAKE_QUIET, 0, 0);
    *context = fake_current();
    return CUDA_SUCCESS;
}

CUresult fake_CtxPushCurrent(CUcontext context) {
    FAKE_ENTER(CtxPushCurrent, FAKE_QUIET, device_of(context), 0);
    if (device_of(context) < 0 || depth == sizeof stack / sizeof *stack) return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult fake_CtxPopCurrent(CUcontext *context) {
    FAKE_ENTER(CtxPopCurrent, FAKE_QUIET, 0, 0);
    if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult fake_ThreadExchangeStreamCaptureMode(CUstreamCaptureMode *exchanged) {
    FAKE_ENTER(ThreadExchangeStreamCaptureMode, FAKE_QUIET, *exchanged, 0);
    CUstreamCaptureMode before = mode;
    mode = *exchanged;
    *exchanged = before;
    return CUDA_SUCCESS;
}

CUresult fake_DeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    FAKE_ENTER(DeviceCanAccessPeer, FAKE_QUIET, device, peer);
    *can = device >= 0 && peer >= 0; /* itself too */
    return CUDA_SUCCESS;
}

CUresult fake_CtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    FAKE_ENTER(CtxEnablePeerAccess, FAKE_CONTEXT, device_of(peer), flags);
    uint64_t bit = UINT64_C(1) << device_of(peer);
    if (!fake.contexts[device_of(peer)].retains) return CUDA_ERROR_INVALID_CONTEXT;
    if (fake.contexts[fake_current_device()].enabled & bit) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    fake.contexts[fake_current_device()].enabled |= bit;
    return CUDA_SUCCESS;
}

CUresult fake_GetErrorName(CUresult code, const char **name) {
    FAKE_ENTER(GetErrorName, FAKE_QUIET, code, 0);
    *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

CUresult fake_GetErrorString(CUresult code, const char **text) {
    FAKE_ENTER(GetErrorString, FAKE_QUIET, code, 0);
    *text = "said by the fake";
    return CUDA_SUCCESS;
}

CUresult fake_ModuleLoadData(CUmodule *module, const void *image) {
    FAKE_ENTER(ModuleLoadData, FAKE_CONTEXT | FAKE_UNSAFE, strlen(image), 0);
    *module = (CUmodule)(void *)&context_marks[0];
    return CUDA_SUCCESS;
}

CUresult fake_ModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    FAKE_ENTER(ModuleGetFunction, FAKE_CONTEXT, (uintptr_t)module, strlen(name));
    *function = (CUfunction)(void *)&context_marks[0];
    return CUDA_SUCCESS;
}

CUresult fake_ModuleUnload(CUmodule module) {
    FAKE_ENTER(ModuleUnload, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)module, 0);
    return CUDA_SUCCESS;
}
