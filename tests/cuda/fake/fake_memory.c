/* The fake's memory: plain, managed, pinned, pools. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake/fake_internal.h"

uint64_t fake_used(int device) { return fake.used[device]; }

fake_memory_t *fake_memory_at(CUdeviceptr address) {
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.memory[i].used && fake.memory[i].address == address) return &fake.memory[i];
    return NULL;
}

/* The memory in which all these bytes lie. */
static fake_memory_t *memory_around(CUdeviceptr address, size_t size) {
    for (size_t i = 0; i < FAKE_MANY; i++) {
        fake_memory_t *memory = &fake.memory[i];
        bool within = address >= memory->address && size <= memory->size && address - memory->address <= memory->size - size;
        if (memory->used && within) return memory;
    }
    return NULL;
}

static uint64_t rounded(uint64_t size) { return (size + FAKE_GRANULE - 1) & ~(FAKE_GRANULE - 1); }

/* Its bytes; NULL: it has none. */
static void *bytes_at(CUdeviceptr address, size_t size) {
    const fake_memory_t *memory = memory_around(address, size);
    return memory && memory->raw ? (void *)(uintptr_t)address : NULL;
}

static void give_contents(fake_memory_t *memory) {
    memory->raw = aligned_alloc(FAKE_GRANULE, rounded(memory->size));
    if (!memory->raw) abort();
    memory->address = (CUdeviceptr)(uintptr_t)memory->raw;
}

/* Plain memory takes whole granules of the device; pools account for their own. */
CUresult fake_memory_new(fake_kind_t kind, uint64_t size, fake_memory_t **result) {
    int device = fake_current_device();
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    bool physical = kind == FAKE_DEVICE_MEMORY;
    if (physical && (size > fake_options.memory || fake.used[device] + rounded(size) > fake_options.memory))
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_memory_t *memory;
    FAKE_TAKE(fake.memory, memory);
    *memory = (fake_memory_t){.used = true, .kind = kind, .size = size, .device = device, .address = fake.next_address};
    fake.next_address += rounded(size) + FAKE_GRANULE;
    if (physical) fake.used[device] += rounded(size);
    *result = memory;
    return CUDA_SUCCESS;
}

void fake_memory_delete(fake_memory_t *memory) {
    if (memory->kind == FAKE_DEVICE_MEMORY) fake.used[memory->device] -= rounded(memory->size);
    if (memory->pool) memory->pool->used_bytes -= memory->size;
    free(memory->raw);
    memory->used = false;
    memory->raw = NULL;
}

CUresult fake_MemAlloc(CUdeviceptr *address, size_t size) {
    FAKE_ENTER(MemAlloc, FAKE_CONTEXT | FAKE_UNSAFE, size, 0);
    fake_memory_t *memory;
    CUresult code = fake_memory_new(FAKE_DEVICE_MEMORY, size, &memory);
    if (code != CUDA_SUCCESS) return code;
    if (fake_options.contents) give_contents(memory);
    *address = memory->address;
    return CUDA_SUCCESS;
}

CUresult fake_MemAllocManaged(CUdeviceptr *address, size_t size, unsigned int flags) {
    FAKE_ENTER(MemAllocManaged, FAKE_CONTEXT | FAKE_UNSAFE, size, flags);
    fake_memory_t *memory;
    if (flags != CU_MEM_ATTACH_GLOBAL) return CUDA_ERROR_INVALID_VALUE;
    CUresult code = fake_memory_new(FAKE_MANAGED, size, &memory);
    if (code == CUDA_SUCCESS) *address = memory->address;
    return code;
}

/* Waits for nothing: the header promises no wait. Takes memory of pools and graphs too. */
CUresult fake_MemFree(CUdeviceptr address) {
    FAKE_ENTER(MemFree, FAKE_CONTEXT | FAKE_UNSAFE, address, 0);
    fake_memory_t *memory = fake_memory_at(address);
    if (!memory || memory->kind == FAKE_PINNED || memory->kind == FAKE_REGISTERED) return CUDA_ERROR_INVALID_VALUE;
    if (memory->kind == FAKE_GRAPH) return fake_graph_freed_outside(memory);
    fake_memory_delete(memory);
    return CUDA_SUCCESS;
}

CUresult fake_MemHostAlloc(void **address, size_t size, unsigned int flags) {
    FAKE_ENTER(MemHostAlloc, FAKE_CONTEXT | FAKE_UNSAFE, size, flags);
    fake_memory_t *memory;
    CUresult code = fake_memory_new(FAKE_PINNED, size, &memory);
    if (code != CUDA_SUCCESS) return code;
    /* Aligned to exactly the option, never to more. */
    uint64_t unit = fake_options.pinned_alignment;
    memory->raw = aligned_alloc(2 * unit, (size + 4 * unit - 1) & ~(2 * unit - 1));
    if (!memory->raw) abort();
    memory->address = (CUdeviceptr)(uintptr_t)memory->raw + unit;
    *address = (void *)(uintptr_t)memory->address;
    return CUDA_SUCCESS;
}

CUresult fake_MemFreeHost(void *address) {
    FAKE_ENTER(MemFreeHost, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)address, 0);
    fake_memory_t *memory = fake_memory_at((CUdeviceptr)(uintptr_t)address);
    if (!memory || memory->kind != FAKE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    fake_memory_delete(memory);
    return CUDA_SUCCESS;
}

/* Whole pages of the program's own, once at a time. */
CUresult fake_MemHostRegister(void *address, size_t size, unsigned int flags) {
    FAKE_ENTER(MemHostRegister, FAKE_CONTEXT | FAKE_UNSAFE, size, flags);
    fake_memory_t *memory = fake_memory_at((CUdeviceptr)(uintptr_t)address);
    if (memory) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (((uintptr_t)address | size) & 4095) return CUDA_ERROR_INVALID_VALUE;
    CUresult code = fake_memory_new(FAKE_REGISTERED, size, &memory);
    if (code == CUDA_SUCCESS) memory->address = (CUdeviceptr)(uintptr_t)address;
    return code;
}

CUresult fake_MemHostUnregister(void *address) {
    FAKE_ENTER(MemHostUnregister, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)address, 0);
    fake_memory_t *memory = fake_memory_at((CUdeviceptr)(uintptr_t)address);
    if (!memory || memory->kind != FAKE_REGISTERED) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    fake_memory_delete(memory);
    return CUDA_SUCCESS;
}

CUresult fake_MemGetInfo(size_t *left, size_t *total) {
    FAKE_ENTER(MemGetInfo, FAKE_CONTEXT | FAKE_UNSAFE, 0, 0);
    *left = fake_options.memory - fake.used[fake_current_device()];
    *total = fake_options.memory;
    return CUDA_SUCCESS;
}

CUresult fake_MemsetD8Async(CUdeviceptr address, unsigned char byte, size_t size, CUstream stream) {
    FAKE_ENTER(MemsetD8Async, FAKE_CONTEXT, address, size);
    fake_stream_t *on = fake_stream_of(stream);
    bool captured = false;
    CUresult code = on ? fake_push(on, &captured) : fake_options.unknown_stream;
    void *bytes = code == CUDA_SUCCESS && !captured ? bytes_at(address, size) : NULL;
    if (bytes) memset(bytes, byte, size);
    return code;
}

static bool is_pinned(CUdeviceptr address, size_t size) {
    const fake_memory_t *memory = memory_around(address, size);
    return memory && memory->kind == FAKE_PINNED;
}

static CUresult copy_between(CUdeviceptr address, const void *host, size_t size, CUstream stream) {
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    return address && is_pinned((CUdeviceptr)(uintptr_t)host, size) ? fake_push(on, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    FAKE_ENTER(MemcpyDtoHAsync, FAKE_CONTEXT, from, size);
    CUresult code = copy_between(from, to, size, stream);
    const void *bytes = code == CUDA_SUCCESS ? bytes_at(from, size) : NULL;
    if (bytes) memcpy(to, bytes, size);
    return code;
}

CUresult fake_MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    FAKE_ENTER(MemcpyHtoDAsync, FAKE_CONTEXT, to, size);
    return copy_between(to, from, size, stream);
}

CUresult fake_PointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    FAKE_ENTER(PointerGetAttribute, FAKE_CONTEXT, address, attribute);
    const fake_memory_t *memory = memory_around(address, 1);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    unsigned int type = memory->kind == FAKE_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    unsigned int managed = memory->kind == FAKE_MANAGED;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) memcpy(value, &type, sizeof type);
    else memcpy(value, &managed, sizeof managed);
    return CUDA_SUCCESS;
}

static CUresult about_managed(CUdeviceptr address) {
    fake_memory_t *memory = fake_memory_at(address);
    return memory && memory->kind == FAKE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_MemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice to, CUstream stream) {
    FAKE_ENTER(MemPrefetchAsync, FAKE_CONTEXT, address, to);
    (void)size;
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    CUresult code = about_managed(address);
    return code == CUDA_SUCCESS ? fake_push(on, NULL) : code;
}

CUresult fake_MemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice about) {
    FAKE_ENTER(MemAdvise, FAKE_CONTEXT, advice, about);
    (void)size;
    return about_managed(address);
}

CUresult fake_MemPrefetchAsyncAt(CUdeviceptr address, size_t size, CUmemLocation to, unsigned int flags, CUstream stream) {
    FAKE_ENTER(MemPrefetchAsyncAt, FAKE_CONTEXT, address, to.type);
    (void)size;
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    CUresult code = flags ? CUDA_ERROR_INVALID_VALUE : about_managed(address);
    return code == CUDA_SUCCESS ? fake_push(on, NULL) : code;
}

CUresult fake_MemAdviseAt(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation about) {
    FAKE_ENTER(MemAdviseAt, FAKE_CONTEXT, advice, about.type);
    (void)size;
    return about_managed(address);
}

/* ---- pools ---- */

static fake_pool_t *pool_of(CUmemoryPool pool) {
    fake_pool_t *found = (fake_pool_t *)(void *)pool;
    return FAKE_IS(fake.pools, found) ? found : NULL;
}

static void pool_give_back(fake_pool_t *pool, uint64_t keep) {
    uint64_t wanted = pool->used_bytes > keep ? pool->used_bytes : keep;
    if (pool->reserved <= wanted) return;
    uint64_t least = rounded(wanted);
    fake.used[pool->device] -= pool->reserved - least;
    pool->reserved = least;
}

/* At a wait of the host: memory above the threshold goes back; exportable pools ignore it. */
void fake_pools_observe(int device) {
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.pools[i].used && fake.pools[i].device == device && !fake.pools[i].shareable)
            pool_give_back(&fake.pools[i], fake.pools[i].threshold);
}

CUresult fake_DeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    FAKE_ENTER(DeviceGetDefaultMemPool, FAKE_QUIET, device, 0);
    *pool = (CUmemoryPool)(void *)&fake.pools[device];
    return CUDA_SUCCESS;
}

CUresult fake_MemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    FAKE_ENTER(MemPoolCreate, FAKE_CONTEXT | FAKE_UNSAFE, properties->location.id, properties->handleTypes);
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    fake_pool_t *made;
    FAKE_TAKE(fake.pools, made);
    *made = (fake_pool_t){
        .used = true, .device = properties->location.id, .shareable = properties->handleTypes != 0, .policies = {1, 1, 1, 1}};
    made->max_size = properties->maxSize;
    *pool = (CUmemoryPool)(void *)made;
    return CUDA_SUCCESS;
}

CUresult fake_MemPoolDestroy(CUmemoryPool pool) {
    FAKE_ENTER(MemPoolDestroy, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)pool, 0);
    fake_pool_t *found = pool_of(pool);
    if (!found || found->is_default) return CUDA_ERROR_INVALID_VALUE;
    fake.used[found->device] -= found->reserved;
    found->used = false;
    return CUDA_SUCCESS;
}

/* Policies are int, sizes are 64 bits: the caller's object is read with exactly that width. */
CUresult fake_MemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    FAKE_ENTER(MemPoolSetAttribute, FAKE_CONTEXT | FAKE_UNSAFE, attribute, 0);
    fake_pool_t *found = pool_of(pool);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    if (attribute >= 1 && attribute <= 3) {
        memcpy(&found->policies[attribute], value, sizeof(int));
        return CUDA_SUCCESS;
    }
    uint64_t size;
    memcpy(&size, value, sizeof size);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        found->threshold = size;
        return CUDA_SUCCESS;
    }
    bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    if (!high || size != 0) return CUDA_ERROR_INVALID_VALUE;
    *(attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? &found->used_high : &found->reserved_high) = 0;
    return CUDA_SUCCESS;
}

CUresult fake_MemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    FAKE_ENTER(MemPoolGetAttribute, FAKE_CONTEXT | FAKE_UNSAFE, attribute, 0);
    fake_pool_t *found = pool_of(pool);
    if (!found || attribute < 1 || attribute > 8) return CUDA_ERROR_INVALID_VALUE;
    if (attribute <= 3) {
        memcpy(value, &found->policies[attribute], sizeof(int));
        return CUDA_SUCCESS;
    }
    const uint64_t sizes[] = {found->threshold, found->reserved, found->reserved_high, found->used_bytes, found->used_high};
    memcpy(value, &sizes[attribute - 4], sizeof sizes[0]);
    return CUDA_SUCCESS;
}

CUresult fake_MemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    FAKE_ENTER(MemPoolTrimTo, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)pool, keep);
    fake_pool_t *found = pool_of(pool);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    if (!found->shareable) pool_give_back(found, keep);
    return CUDA_SUCCESS;
}

CUresult fake_MemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
    FAKE_ENTER(MemPoolSetAccess, FAKE_CONTEXT | FAKE_UNSAFE, access[0].location.id, count);
    fake_pool_t *found = pool_of(pool);
    if (!found || count != 1) return CUDA_ERROR_INVALID_VALUE;
    if (access[0].location.id == found->device) return CUDA_ERROR_INVALID_DEVICE;
    found->peers |= UINT64_C(1) << access[0].location.id;
    return CUDA_SUCCESS;
}

static CUresult pool_alloc(fake_pool_t *pool, uint64_t size, fake_memory_t **result) {
    uint64_t needed = rounded(pool->used_bytes + size), grow = needed > pool->reserved ? needed - pool->reserved : 0;
    bool over = pool->max_size && needed > pool->max_size;
    if (over || fake.used[pool->device] + grow > fake_options.memory) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = fake_memory_new(FAKE_POOL, size, result);
    if (code != CUDA_SUCCESS) return code;
    (*result)->pool = pool;
    (*result)->device = pool->device;
    pool->used_bytes += size;
    pool->reserved += grow;
    fake.used[pool->device] += grow;
    if (pool->used_bytes > pool->used_high) pool->used_high = pool->used_bytes;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
}

CUresult fake_MemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream) {
    FAKE_ENTER(MemAllocFromPoolAsync, FAKE_CONTEXT, size, (uintptr_t)pool);
    fake_stream_t *on = fake_stream_of(stream);
    fake_pool_t *from = pool_of(pool);
    if (!on || !from) return on ? CUDA_ERROR_INVALID_VALUE : fake_options.unknown_stream;
    bool captured;
    CUresult code = fake_push(on, &captured);
    if (code != CUDA_SUCCESS) return code;
    if (captured) return fake_graph_alloc(on, size, address);
    fake_memory_t *memory;
    code = pool_alloc(from, size, &memory);
    if (code == CUDA_SUCCESS) *address = memory->address;
    return code;
}

CUresult fake_MemFreeAsync(CUdeviceptr address, CUstream stream) {
    FAKE_ENTER(MemFreeAsync, FAKE_CONTEXT, address, 0);
    fake_stream_t *on = fake_stream_of(stream);
    fake_memory_t *memory = fake_memory_at(address);
    if (!on) return fake_options.unknown_stream;
    if (!memory || memory->kind == FAKE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    bool captured;
    CUresult code = fake_push(on, &captured);
    if (code != CUDA_SUCCESS) return code;
    if (captured) return fake_graph_free(on, memory);
    if (memory->kind == FAKE_GRAPH) return fake_graph_freed_outside(memory);
    fake_memory_delete(memory);
    return CUDA_SUCCESS;
}
