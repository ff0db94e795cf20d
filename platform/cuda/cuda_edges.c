/* Decides if one captured stream follows another, by the edges of the graph that is being captured. */
#include "platform/cuda/cuda_device.h"

/* A join is usually a few nodes back. One that is not found within these limits counts as not joined,
 * which is never wrong. */
enum { TAIL = 16, SEARCHED = 64 };

typedef struct nodes {
    CUgraphNode list[SEARCHED];
    size_t count;
} nodes_t;

/* The nodes that precede the next node of a stream. */
typedef struct tail {
    uint64_t capture; /* 0 if the stream is not being captured, or if that is unknown */
    CUgraphNode nodes[TAIL];
    size_t count;
} tail_t;

/* The driver reports edges that carry data only to a call that asks for them, and otherwise fails with
 * LOSSY_QUERY. Its list is valid until the next call. */
static strata_status_t find_tail(strata_cuda_device_t *device, CUstream stream, tail_t *tail) {
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    const CUgraphNode *nodes = NULL;
    size_t count = 0;
    *tail = (tail_t){.capture = 0};
    if (!device->driver->StreamGetCaptureInfo) return strata_cuda_missing("cuStreamGetCaptureInfo");
    CUresult code = device->driver->StreamGetCaptureInfo(stream, &found, &id, NULL, &nodes, &count);
    if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || code == CUDA_ERROR_LOSSY_QUERY) return STRATA_OK;
    strata_status_t status = strata_cuda_check_stream(device, stream, "cuStreamGetCaptureInfo", code);
    if (status != STRATA_OK || found != CU_STREAM_CAPTURE_STATUS_ACTIVE || count > TAIL) return status;
    tail->capture = id;
    for (; tail->count < count; tail->count++) tail->nodes[tail->count] = nodes[tail->count];
    return STRATA_OK;
}

static bool has(const CUgraphNode *nodes, size_t count, CUgraphNode node) {
    while (count > 0 && nodes[count - 1] != node) count--;
    return count > 0;
}

/* Adds the nodes that are not in the list yet. Returns how many of them are in `wanted`. */
static size_t add(nodes_t *nodes, const CUgraphNode *more, size_t count, const tail_t *wanted) {
    size_t found = 0;
    for (size_t i = 0; i < count && nodes->count < SEARCHED; i++) {
        if (has(nodes->list, nodes->count, more[i])) continue;
        nodes->list[nodes->count++] = more[i];
        found += has(wanted->nodes, wanted->count, more[i]);
    }
    return found;
}

/* Searches backward from the tail, level by level. */
static bool reaches(const strata_cuda_driver_t *driver, const tail_t *from, const tail_t *wanted) {
    nodes_t nodes = {.count = 0};
    size_t found = add(&nodes, from->nodes, from->count, wanted);
    for (size_t at = 0; at < nodes.count && found < wanted->count; at++) {
        CUgraphNode before[TAIL];
        size_t count = TAIL;
        if (driver->GraphNodeGetDependencies(nodes.list[at], before, &count) != CUDA_SUCCESS) return false;
        found += add(&nodes, before, count < TAIL ? count : TAIL, wanted);
    }
    return found == wanted->count;
}

strata_status_t strata_cuda_capture_follows(strata_device_t *self, strata_handle_t stream, strata_handle_t other, uint64_t *id) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_PLAIN, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    tail_t own, others;
    if (!device->driver->GraphNodeGetDependencies) status = strata_cuda_missing("cuGraphNodeGetDependencies");
    if (status == STRATA_OK) status = find_tail(device, (CUstream)stream, &own);
    if (status == STRATA_OK) status = find_tail(device, (CUstream)other, &others);
    if (status != STRATA_OK) return strata_cuda_exit(&scope, status);
    bool follows = own.capture != 0 && own.capture == others.capture && reaches(device->driver, &own, &others);
    *id = follows ? own.capture : 0;
    return strata_cuda_exit(&scope, STRATA_OK);
}
