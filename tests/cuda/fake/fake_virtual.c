/* The fake's virtual memory: the driver's rules of order. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake/fake_internal.h"

static fake_range_t *range_of(CUdeviceptr address, uint64_t size) {
    for (size_t i = 0; i < FAKE_MANY; i++) {
        fake_range_t *range = &fake.ranges[i];
        if (range->used && address >= range->address && address + size <= range->address + range->size) return range;
    }
    return NULL;
}

static bool overlaps(const fake_mapping_t *mapping, CUdeviceptr address, uint64_t size) {
    return mapping->used && mapping->address < address + size && address < mapping->address + mapping->size;
}

/* Whether whole mappings, next to each other, make up the range. */
static bool mapped_whole(CUdeviceptr address, uint64_t size) {
    uint64_t covered = 0;
    for (size_t i = 0; i < FAKE_MANY; i++) {
        const fake_mapping_t *mapping = &fake.mappings[i];
        if (!overlaps(mapping, address, size)) continue;
        if (mapping->address < address || mapping->address + mapping->size > address + size) return false;
        covered += mapping->size;
    }
    return covered == size;
}

static fake_physical_t *physical_of(CUmemGenericAllocationHandle handle) {
    fake_physical_t *found = (fake_physical_t *)(uintptr_t)handle;
    return FAKE_IS(fake.physical, found) ? found : NULL;
}

/* Memory goes with the last of handle and mappings. */
static void physical_settle(fake_physical_t *physical) {
    if (physical->held || physical->mappings) return;
    fake.used[physical->device] -= physical->size;
    physical->used = false;
}

static uint64_t reachable(CUdeviceptr address, int device) {
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (overlaps(&fake.mappings[i], address, 1)) return fake.mappings[i].access >> device & 1;
    return 0;
}

uint64_t fake_bytes_reachable(CUdeviceptr address) { return reachable(address, 0); }

uint64_t fake_peer_reachable(CUdeviceptr address, int device) { return reachable(address, device); }

CUresult fake_MemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                          CUmemAllocationGranularity_flags option) {
    FAKE_ENTER(MemGetAllocationGranularity, FAKE_CONTEXT, properties->location.id, option);
    *granularity = FAKE_GRANULE;
    return CUDA_SUCCESS;
}

CUresult fake_MemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags) {
    FAKE_ENTER(MemAddressReserve, FAKE_CONTEXT | FAKE_UNSAFE, size, alignment);
    if (size == 0 || size % FAKE_GRANULE || hint || flags) return CUDA_ERROR_INVALID_VALUE;
    if (size > fake_options.address_space - fake.reserved_addresses) return CUDA_ERROR_OUT_OF_MEMORY;
    fake_range_t *range;
    FAKE_TAKE(fake.ranges, range);
    range->address = fake.next_address;
    range->size = size;
    fake.next_address += size + FAKE_GRANULE;
    fake.reserved_addresses += size;
    *address = range->address;
    return CUDA_SUCCESS;
}

CUresult fake_MemAddressFree(CUdeviceptr address, size_t size) {
    FAKE_ENTER(MemAddressFree, FAKE_CONTEXT | FAKE_UNSAFE, address, size);
    fake_range_t *range = range_of(address, size);
    if (!range || range->address != address || range->size != size) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (overlaps(&fake.mappings[i], address, size)) return CUDA_ERROR_INVALID_VALUE;
    fake.reserved_addresses -= size;
    range->used = false;
    return CUDA_SUCCESS;
}

CUresult fake_MemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                        unsigned long long flags) {
    FAKE_ENTER(MemCreate, FAKE_CONTEXT | FAKE_UNSAFE, size, properties->requestedHandleTypes);
    int device = properties->location.id;
    if (size == 0 || size % FAKE_GRANULE || flags || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > fake_options.memory - fake.used[device]) return CUDA_ERROR_OUT_OF_MEMORY;
    fake_physical_t *physical;
    FAKE_TAKE(fake.physical, physical);
    *physical = (fake_physical_t){
        .used = true, .held = 1, .shareable = properties->requestedHandleTypes != 0, .size = size, .device = device};
    fake.used[device] += size;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

CUresult fake_MemRelease(CUmemGenericAllocationHandle handle) {
    FAKE_ENTER(MemRelease, FAKE_CONTEXT | FAKE_UNSAFE, handle, 0);
    fake_physical_t *physical = physical_of(handle);
    if (!physical || !physical->held) return CUDA_ERROR_INVALID_VALUE;
    physical->held--;
    physical_settle(physical);
    return CUDA_SUCCESS;
}

CUresult fake_MemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags) {
    FAKE_ENTER(MemMap, FAKE_CONTEXT | FAKE_UNSAFE, address, size);
    fake_physical_t *physical = physical_of(handle);
    if (!physical || !physical->held || offset || flags || size != physical->size || !range_of(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (overlaps(&fake.mappings[i], address, size)) return CUDA_ERROR_INVALID_VALUE;
    fake_mapping_t *mapping;
    FAKE_TAKE(fake.mappings, mapping);
    *mapping = (fake_mapping_t){.used = true, .address = address, .size = size, .physical = physical};
    physical->mappings++;
    fake.mapping_count++;
    return CUDA_SUCCESS;
}

/* Waits for no kernel. */
CUresult fake_MemUnmap(CUdeviceptr address, size_t size) {
    FAKE_ENTER(MemUnmap, FAKE_CONTEXT | FAKE_UNSAFE, address, size);
    if (!mapped_whole(address, size)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < FAKE_MANY; i++) {
        fake_mapping_t *mapping = &fake.mappings[i];
        if (!overlaps(mapping, address, size)) continue;
        mapping->used = false;
        mapping->physical->mappings--;
        fake.mapping_count--;
        physical_settle(mapping->physical);
    }
    return CUDA_SUCCESS;
}

/* Too many mappings show here, as "out of memory". */
CUresult fake_MemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count) {
    FAKE_ENTER(MemSetAccess, FAKE_CONTEXT | FAKE_UNSAFE, address, count);
    if (count == 0 || !mapped_whole(address, size)) return CUDA_ERROR_INVALID_VALUE;
    if (fake.mapping_count > fake_options.mappings_max) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t k = 0; k < count; k++)
        if (access[k].location.id >= fake_options.devices) return CUDA_ERROR_INVALID_DEVICE;
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (overlaps(&fake.mappings[i], address, size))
            for (size_t k = 0; k < count; k++) fake.mappings[i].access |= UINT64_C(1) << access[k].location.id;
    return CUDA_SUCCESS;
}

/* A descriptor of a pipe's worth: real, so that the receiver can close it. It names its handle by number. */
static CUmemGenericAllocationHandle exported[1024];

CUresult fake_MemExportToShareableHandle(void *result, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                         unsigned long long flags) {
    FAKE_ENTER(MemExportToShareableHandle, FAKE_CONTEXT | FAKE_UNSAFE, handle, type);
    fake_physical_t *physical = physical_of(handle);
    if (!physical || !physical->shareable || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || descriptor >= 1024) return CUDA_ERROR_OPERATING_SYSTEM;
    exported[descriptor] = handle;
    memcpy(result, &descriptor, sizeof descriptor);
    return CUDA_SUCCESS;
}

CUresult fake_MemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *value, CUmemAllocationHandleType type) {
    FAKE_ENTER(MemImportFromShareableHandle, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)value, type);
    intptr_t descriptor = (intptr_t)value;
    if (descriptor < 0 || descriptor >= 1024 || !physical_of(exported[descriptor])) return CUDA_ERROR_INVALID_VALUE;
    *handle = exported[descriptor];
    physical_of(*handle)->held++;
    return CUDA_SUCCESS;
}
