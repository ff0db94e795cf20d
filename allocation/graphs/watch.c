/* Detects the end of graphs. The device calls back when a graph and all its instances are gone, on its own
 * thread, where no device call may be made. So the callback only decrements a count, and the next sweep
 * does the rest. */
#include "allocation/graphs/graphs.h"
#include "platform/host/host_memory.h"

/* A facade may be closed before the last graph is gone, so the last user, pool or graph, deletes it. */
struct strata_graph_count {
    _Atomic uint32_t users; /* the pool and each graph */
    _Atomic uint32_t graphs;
};

uint32_t strata_graph_count_of(const strata_graph_count_t *count) { return count ? atomic_load(&count->graphs) : 0; }

void strata_graph_count_drop(strata_graph_count_t *count) {
    if (count && atomic_fetch_sub(&count->users, 1) == 1) strata_host_delete(count);
}

static void on_graph_destroyed(void *context) {
    strata_graph_count_t *count = context;
    atomic_fetch_sub(&count->graphs, 1);
    strata_graph_count_drop(count);
}

/* No lock is held. */
static strata_status_t ensure_count(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    bool there = pool->count != NULL;
    strata_unlock(&domain->lock);
    if (there) return STRATA_OK;
    strata_graph_count_t *count = strata_host_new(1, sizeof *count);
    if (!count) return STRATA_E_HOST_MEMORY;
    atomic_store(&count->users, 1);
    strata_lock(&domain->lock);
    if (!pool->count) {
        pool->count = count;
        count = NULL;
    }
    strata_unlock(&domain->lock);
    strata_graph_count_drop(count);
    return STRATA_OK;
}

/* If several threads see a capture, exactly one ties its graph to the pool. */
static bool claim(strata_graph_pool_t *pool, uint64_t id, strata_stream_t stream) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    strata_lock(&domain->captures->lock);
    bool mine = pool->open && pool->capture != id;
    if (mine) {
        pool->capture = id;
        pool->captured = stream;
        atomic_fetch_add(&pool->count->users, 1);
        atomic_fetch_add(&pool->count->graphs, 1);
    }
    strata_unlock(&domain->captures->lock);
    strata_unlock(&domain->lock);
    return mine;
}

strata_status_t strata_graph_pool_watch(strata_graph_pool_t *pool, strata_stream_t stream) {
    strata_domain_t *domain = pool->group->domain;
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    uint64_t id = 0;
    if (!domain->device->capabilities.capture || stream == NULL) return STRATA_OK;
    strata_status_t status = strata_device_capture_status(domain->device, stream, &capture, &id);
    if (status != STRATA_OK || capture != STRATA_CAPTURE_ACTIVE) return status;
    status = ensure_count(pool);
    if (status != STRATA_OK || !claim(pool, id, stream)) return status;
    status = strata_device_graph_on_destroy(domain->device, stream, on_graph_destroyed, pool->count);
    if (status == STRATA_OK) {
        strata_lock(&domain->lock);
        atomic_store(&pool->ready, pool->open);
        strata_unlock(&domain->lock);
        strata_graph_pool_update_paths(pool);
        return status;
    }
    /* Undoes the claim. The next request tries again. */
    strata_lock(&domain->captures->lock);
    pool->capture = 0;
    strata_unlock(&domain->captures->lock);
    on_graph_destroyed(pool->count);
    return status;
}

strata_status_t strata_graph_pool_refuse_capturing(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_device_t *device = domain->device;
    uint64_t id = 0;
    /* A filter's streams are not known by name, but one stream of the capture is. */
    strata_lock(&domain->captures->lock);
    strata_stream_t stream = pool->capture ? pool->captured : pool->window.stream;
    uint64_t known = pool->capture;
    strata_unlock(&domain->captures->lock);
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    if (!device->capabilities.capture || stream == NULL) return STRATA_OK;
    strata_status_t status = strata_device_capture_status(device, stream, &capture, &id);
    /* A stream that is gone is not being captured. */
    if (status == STRATA_E_DEVICE_LOST || status == STRATA_E_UNKNOWN_STREAM) return STRATA_OK;
    if (status != STRATA_OK || (capture != STRATA_CAPTURE_ACTIVE && capture != STRATA_CAPTURE_INVALIDATED)) return status;
    /* The stream may now be in another capture. */
    if (known && id != known) return STRATA_OK;
    return strata_fail(STRATA_E_CAPTURE, 0, "the capture is still open; end it first (cudaStreamEndCapture), then the pool");
}
