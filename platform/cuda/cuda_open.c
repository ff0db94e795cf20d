/* Finding, opening and closing a device. */
#include <stdio.h>
#include <string.h>

#include "platform/cuda/cuda_device.h"
#include "platform/host/host_memory.h"
#include "platform/host/host_nodes.h"

static void device_close(strata_device_t *self);

static const strata_device_operations_t operations = {
#define CUDA_OPERATION(name, quick, shown) .name = strata_cuda_##name,
    STRATA_DEVICE_CALL_MAP(CUDA_OPERATION)
#undef CUDA_OPERATION
        .event_ready_at = strata_cuda_event_ready_at,
    .event_is_captured = strata_cuda_event_is_captured,
    .host_view = strata_cuda_host_view,
    .close = device_close,
};

static strata_status_t count_of(const strata_cuda_driver_t *driver, uint32_t *count) {
    int found = 0;
    CUresult code = driver->DeviceGetCount(&found);
    if (code != CUDA_SUCCESS) return strata_cuda_fail_init(driver, "cuDeviceGetCount", code);
    *count = found < 0 ? 0 : found > (int)STRATA_CUDA_DEVICES_MAX ? STRATA_CUDA_DEVICES_MAX : (uint32_t)found;
    return STRATA_OK;
}

strata_status_t strata_cuda_count(uint32_t *count) {
    const strata_cuda_driver_t *driver;
    strata_status_t status = strata_cuda_driver_get(&driver);
    return status == STRATA_OK ? count_of(driver, count) : status;
}

/* Returns the value of an attribute, or 0 if the driver lacks it. */
static int attribute_of(const strata_cuda_device_t *device, CUdevice_attribute attribute) {
    int value = 0;
    return device->driver->DeviceGetAttribute(&value, attribute, device->handle) == CUDA_SUCCESS ? value : 0;
}

static bool reaches_a_peer(const strata_cuda_device_t *device) {
    if (!strata_cuda_driver_has(device->driver, STRATA_CUDA_PEERS)) return false;
    for (uint32_t i = 0; i < device->device_count; i++) {
        CUdevice other;
        int can = 0;
        if (i == device->base.ordinal || device->driver->DeviceGet(&other, (int)i) != CUDA_SUCCESS) continue;
        if (device->driver->DeviceCanAccessPeer(&can, device->handle, other) == CUDA_SUCCESS && can) return true;
    }
    return false;
}

static uint32_t nearest_node(const strata_cuda_device_t *device) {
    int node = 0;
    CUresult code = device->driver->DeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device->handle);
    return code == CUDA_SUCCESS && node >= 0 ? (uint32_t)node : STRATA_HOST_NODES;
}

/* Sets the capabilities that both the device and the driver's entries support. A query that fails
 * counts as "no". Called with the context current. */
static void ask_capabilities(strata_cuda_device_t *device) {
    const strata_cuda_driver_t *driver = device->driver;
    strata_device_capabilities_t *can = &device->base.capabilities;
    can->contents = true;
    can->alignment = 256; /* NVIDIA's promise; 512 is only observed */
    can->managed = strata_cuda_driver_has(driver, STRATA_CUDA_MANAGED) && attribute_of(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    can->concurrent_managed = can->managed && attribute_of(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    can->pools = strata_cuda_driver_has(driver, STRATA_CUDA_POOLS) &&
                 attribute_of(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) &&
                 driver->DeviceGetDefaultMemPool(&device->default_pool, device->handle) == CUDA_SUCCESS;
    device->rdma = attribute_of(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
    can->virtual_memory = strata_cuda_driver_has(driver, STRATA_CUDA_VIRTUAL) &&
                          attribute_of(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
                          strata_cuda_granularity(device, &can->granularity) == STRATA_OK;
    can->share = can->virtual_memory && strata_cuda_driver_has(driver, STRATA_CUDA_SHARE) &&
                 attribute_of(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    can->capture = strata_cuda_driver_has(driver, STRATA_CUDA_CAPTURE);
    can->peers = reaches_a_peer(device);
    can->stream_ids = strata_cuda_driver_has(driver, STRATA_CUDA_IDS);
    bool registers = strata_cuda_driver_has(driver, STRATA_CUDA_REGISTER) &&
                     attribute_of(device, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    can->host_nodes = registers ? strata_host_nodes() : 0;
    can->near_node = nearest_node(device);
    can->work = strata_cuda_driver_has(driver, STRATA_CUDA_WORK) &&
                attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 7;
}

static strata_status_t find_device(strata_cuda_device_t *device, uint32_t ordinal) {
    const strata_cuda_driver_t *driver = device->driver;
    uint32_t count = 0;
    strata_status_t status = count_of(driver, &count);
    if (status != STRATA_OK) return status;
    if (ordinal >= count)
        return strata_fail(STRATA_E_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE, "there is no gpu:%u; the driver reports %u devices",
                           ordinal, count);
    CUdevice handle = 0;
    char name[256] = "";
    int version = 0;
    CUresult code = driver->DeviceGet(&handle, (int)ordinal);
    if (code != CUDA_SUCCESS) return strata_cuda_fail_init(driver, "cuDeviceGet", code);
    code = driver->DeviceGetName(name, (int)sizeof name, handle);
    if (code != CUDA_SUCCESS) return strata_cuda_fail_init(driver, "cuDeviceGetName", code);
    code = driver->DriverGetVersion(&version);
    if (code != CUDA_SUCCESS) return strata_cuda_fail_init(driver, "cuDriverGetVersion", code);
    strata_device_init(&device->base, &operations, ordinal, strata_real_clock());
    snprintf(device->base.name, sizeof device->base.name, "%.*s", (int)sizeof device->base.name - 1, name);
    device->handle = handle;
    device->device_count = count;
    device->driver_version = version;
    device->generation = strata_cuda_generation();
    return STRATA_OK;
}

strata_status_t strata_cuda_open(uint32_t ordinal, strata_device_t **result) {
    const strata_cuda_driver_t *driver;
    strata_status_t status = strata_cuda_driver_get(&driver);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = strata_host_new(1, sizeof *device);
    if (!device) return STRATA_E_HOST_MEMORY;
    device->driver = driver;
    strata_lock_init(&device->lock, STRATA_RANK_DEVICE, NULL);
    strata_lock_init(&device->slow_lock, STRATA_RANK_DEVICE, NULL);
    status = find_device(device, ordinal);
    if (status != STRATA_OK) goto fail;
    CUresult code = driver->DevicePrimaryCtxRetain(&device->context, device->handle);
    if (code != CUDA_SUCCESS) {
        status = strata_cuda_fail_init(driver, "cuDevicePrimaryCtxRetain", code);
        goto fail;
    }
    strata_cuda_scope_t scope;
    status = strata_cuda_enter(&device->base, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) {
        if (status != STRATA_E_SHUTDOWN) driver->DevicePrimaryCtxRelease(device->handle);
        goto fail;
    }
    ask_capabilities(device);
    strata_cuda_exit(&scope, STRATA_OK);
    *result = &device->base;
    return STRATA_OK;
fail:
    strata_lock_destroy(&device->slow_lock);
    strata_lock_destroy(&device->lock);
    strata_host_delete(device);
    return status;
}

/* Gives the driver back the resources that the device itself holds. Failures are not reported, since
 * there is no remedy. */
static void give_back(strata_cuda_device_t *device) {
    strata_cuda_scope_t scope;
    if (strata_cuda_enter(&device->base, STRATA_CUDA_RELAXED, &scope) != STRATA_OK) return;
    strata_cuda_drop_graphs(device);
    if (device->spin_module) device->driver->ModuleUnload(device->spin_module);
    strata_cuda_exit(&scope, STRATA_OK);
    for (uint32_t i = 0; i < STRATA_CUDA_DEVICES_MAX; i++) {
        CUdevice peer;
        if (device->peers[i] && device->driver->DeviceGet(&peer, (int)i) == CUDA_SUCCESS)
            device->driver->DevicePrimaryCtxRelease(peer);
    }
    device->driver->DevicePrimaryCtxRelease(device->handle);
}

static void device_close(strata_device_t *self) {
    strata_cuda_device_t *device = strata_cuda_of(self);
    give_back(device);
    strata_cuda_table_destroy(&device->events);
    strata_cuda_table_destroy(&device->captures);
    strata_cuda_table_destroy(&device->shifted);
    strata_cuda_table_destroy(&device->on_node);
    strata_cuda_table_destroy(&device->graphs);
    strata_lock_destroy(&device->slow_lock);
    strata_lock_destroy(&device->lock);
    strata_host_delete(device);
}

void *strata_cuda_context(const strata_device_t *device) {
    return device->operations == &operations ? ((const strata_cuda_device_t *)device)->context : NULL;
}
