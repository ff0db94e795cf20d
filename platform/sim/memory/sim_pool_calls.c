/* The calls on pools. */
#include "platform/sim/memory/sim_pool.h"
#include "platform/sim/world/checker_hooks.h"

strata_status_t sim_pools_init(sim_device_t *device) {
    sim_pool_t *pool = sim_pool_new(device, 0, false);
    if (!pool) return sim_no_host_memory();
    if (!sim_handle_new(device, SIM_POOL, pool, &pool->handle)) {
        sim_pool_drop(pool);
        return sim_no_host_memory();
    }
    device->default_pool = pool;
    return STRATA_OK;
}

void sim_pools_end(sim_device_t *device) {
    sim_tree_t *regions = &device->world->regions;
    for (sim_node_t *node = sim_tree_ceiling(regions, 0, 0), *next; node; node = next) {
        sim_region_t *region = (sim_region_t *)node;
        next = sim_tree_next(regions, node);
        if (region->device == device && region->kind == SIM_REGION_BLOCK) sim_pool_free_block((sim_block_t *)region, NULL);
    }
    while (device->pools) sim_pool_drop(device->pools);
}

/* Returns the pool of a handle, or NULL with the error set. A NULL handle means the default pool. */
static sim_pool_t *find(sim_device_t *device, strata_handle_t handle) {
    if (!handle) return device->default_pool;
    return sim_handle_find(device, SIM_POOL, (uintptr_t)handle, STRATA_E_DEVICE);
}

static strata_status_t invalid(const char *what) {
    return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: %s", what);
}

static strata_status_t malloc_async(sim_device_t *device, strata_handle_t pool_handle, uint64_t size, strata_handle_t stream_handle,
                                    strata_address_t *address) {
    sim_pool_t *pool = find(device, pool_handle);
    if (!pool) return STRATA_E_DEVICE;
    sim_stream_t *stream = sim_stream_for_work(device, stream_handle);
    if (!stream) return strata_last_error()->status;
    sim_charge(device, &device->world->profile.malloc_async, size);
    if (stream->capture) return sim_graph_malloc(stream, size, address);
    sim_block_t *block;
    strata_status_t status = sim_pool_allocate_block(pool, size, stream, &block);
    if (status != STRATA_OK) return status;
    stream->operations++;
    *address = block->region.node.key;
    check_on_memory(device, *address, size, stream);
    return STRATA_OK;
}

strata_status_t sim_op_malloc_async(strata_device_t *base, strata_handle_t pool, uint64_t size, strata_handle_t stream,
                                    strata_address_t *address) {
    sim_device_t *device = sim_of(base);
    if (size == 0) return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: malloc_async of 0");
    strata_status_t status = sim_begin(device, STRATA_CALL_malloc_async);
    if (status != STRATA_OK) return status;
    return sim_end(device, malloc_async(device, pool, size, stream, address));
}

static strata_status_t free_async(sim_device_t *device, strata_address_t address, strata_handle_t handle) {
    sim_region_t *region = sim_region_find(device, address);
    if (!region) return STRATA_E_DEVICE;
    sim_stream_t *stream = sim_stream_for_work(device, handle);
    if (!stream) return strata_last_error()->status;
    if (stream->capture) return sim_graph_free_node(stream, region);
    if (region->kind != SIM_REGION_BLOCK)
        return strata_fail(STRATA_E_UNSUPPORTED, SIM_CU_NOT_SUPPORTED,
                           "CUDA_ERROR_NOT_SUPPORTED: the simulator frees only pool memory in stream order");
    sim_charge(device, &device->world->profile.free_async, region->size);
    sim_block_t *block = (sim_block_t *)region;
    if (block->graph) return sim_graph_free(stream, block);
    check_on_memory_freed(device, address, region->size, stream);
    sim_pool_free_block(block, stream);
    return STRATA_OK;
}

strata_status_t sim_op_free_async(strata_device_t *base, strata_address_t address, strata_handle_t stream) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_free_async);
    if (status != STRATA_OK) return status;
    return sim_end(device, free_async(device, address, stream));
}

strata_status_t sim_op_pool_create(strata_device_t *base, uint64_t max_size, bool shareable, strata_handle_t *out) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_create);
    if (status != STRATA_OK) return status;
    sim_pool_t *pool = sim_pool_new(device, max_size, shareable);
    if (!pool || !sim_handle_new(device, SIM_POOL, pool, &pool->handle)) {
        if (pool) sim_pool_drop(pool);
        return sim_end(device, sim_no_host_memory());
    }
    *out = (strata_handle_t)(uintptr_t)pool->handle;
    return sim_end(device, STRATA_OK);
}

/* A pool with live blocks is freed with the last of them. */
static strata_status_t pool_destroy(sim_device_t *device, strata_handle_t handle) {
    sim_pool_t *pool = find(device, handle);
    if (!pool) return STRATA_E_DEVICE;
    if (pool == device->default_pool) return invalid("the default pool cannot be destroyed");
    sim_handle_drop(device, SIM_POOL, pool->handle);
    pool->handle = 0;
    pool->destroyed = true;
    if (!pool->live) sim_pool_drop(pool);
    return STRATA_OK;
}

strata_status_t sim_op_pool_destroy(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_destroy);
    if (status != STRATA_OK) return status;
    return sim_end(device, pool_destroy(device, handle));
}

strata_status_t sim_op_pool_default(strata_device_t *base, strata_handle_t *pool) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_default);
    if (status != STRATA_OK) return status;
    *pool = (strata_handle_t)(uintptr_t)device->default_pool->handle;
    return sim_end(device, STRATA_OK);
}

static strata_status_t set(sim_pool_t *pool, strata_pool_attribute_t attribute, uint64_t value) {
    switch (attribute) {
    case STRATA_POOL_REUSE_FOLLOW_EVENTS: pool->follow = value != 0; return STRATA_OK;
    case STRATA_POOL_REUSE_OPPORTUNISTIC: pool->opportunistic = value != 0; return STRATA_OK;
    case STRATA_POOL_REUSE_INTERNAL: pool->internal = value != 0; return STRATA_OK;
    case STRATA_POOL_RELEASE_THRESHOLD: pool->threshold = value; return STRATA_OK;
    case STRATA_POOL_RESERVED_HIGH:
        if (value) break;
        pool->reserved_high = pool->reserved;
        return STRATA_OK;
    case STRATA_POOL_USED_HIGH:
        if (value) break;
        pool->used_high = pool->used;
        return STRATA_OK;
    default: break;
    }
    return invalid("invalid value of a pool attribute");
}

strata_status_t sim_op_pool_set(strata_device_t *base, strata_handle_t handle, strata_pool_attribute_t attribute, uint64_t value) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_set);
    if (status != STRATA_OK) return status;
    sim_pool_t *pool = find(device, handle);
    return sim_end(device, pool ? set(pool, attribute, value) : STRATA_E_DEVICE);
}

static strata_status_t get(const sim_pool_t *pool, strata_pool_attribute_t attribute, uint64_t *value) {
    switch (attribute) {
    case STRATA_POOL_REUSE_FOLLOW_EVENTS: *value = pool->follow; return STRATA_OK;
    case STRATA_POOL_REUSE_OPPORTUNISTIC: *value = pool->opportunistic; return STRATA_OK;
    case STRATA_POOL_REUSE_INTERNAL: *value = pool->internal; return STRATA_OK;
    case STRATA_POOL_RELEASE_THRESHOLD: *value = pool->threshold; return STRATA_OK;
    case STRATA_POOL_RESERVED_CURRENT: *value = pool->reserved; return STRATA_OK;
    case STRATA_POOL_RESERVED_HIGH: *value = pool->reserved_high; return STRATA_OK;
    case STRATA_POOL_USED_CURRENT: *value = pool->used; return STRATA_OK;
    case STRATA_POOL_USED_HIGH: *value = pool->used_high; return STRATA_OK;
    }
    return invalid("a pool has no such attribute");
}

strata_status_t sim_op_pool_get(strata_device_t *base, strata_handle_t handle, strata_pool_attribute_t attribute, uint64_t *value) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_get);
    if (status != STRATA_OK) return status;
    sim_pool_t *pool = find(device, handle);
    return sim_end(device, pool ? get(pool, attribute, value) : STRATA_E_DEVICE);
}

strata_status_t sim_op_pool_trim(strata_device_t *base, strata_handle_t handle, uint64_t keep) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_trim);
    if (status != STRATA_OK) return status;
    sim_pool_t *pool = find(device, handle);
    if (!pool) return sim_end(device, STRATA_E_DEVICE);
    sim_pool_observe(pool);
    if (!pool->shareable) sim_pool_shrink(pool, keep);
    if (pool == device->default_pool && device->graph_pool) sim_pool_shrink(device->graph_pool, 0);
    return sim_end(device, STRATA_OK);
}

strata_status_t sim_op_pool_set_access(strata_device_t *base, strata_handle_t handle, uint32_t peer) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_pool_set_access);
    if (status != STRATA_OK) return status;
    sim_pool_t *pool = find(device, handle);
    if (!pool) return sim_end(device, STRATA_E_DEVICE);
    if (peer >= device->world->devices) return sim_end(device, invalid("no such peer"));
    pool->access |= UINT32_C(1) << peer;
    return sim_end(device, STRATA_OK);
}
