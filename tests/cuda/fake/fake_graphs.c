/* The fake's captures and graphs, their user objects and their memory. */
#include <string.h>

#include "tests/cuda/fake/fake_internal.h"

static void object_release(fake_object_t *object, unsigned int count) {
    object->references -= count;
    if (object->references) return;
    object->used = false;
    object->destroy(object->value);
}

static fake_graph_t *graph_of(CUgraph graph) {
    fake_graph_t *found = (fake_graph_t *)(void *)graph;
    return FAKE_IS(fake.graphs, found) && !found->destroyed ? found : NULL;
}

/* The user objects go with graph and instances; memory that a launch left stays. */
static void graph_settle(fake_graph_t *graph) {
    if (!graph->destroyed || graph->instances) return;
    size_t count = graph->object_count;
    graph->object_count = 0;
    for (size_t i = 0; i < graph->alloc_nodes; i++) {
        graph->memory[i]->graph = NULL;
        if (!graph->left[i]) fake_memory_delete(graph->memory[i]);
    }
    graph->used = false;
    for (size_t i = 0; i < count; i++) object_release(graph->objects[i], 1);
}

CUresult fake_StreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    FAKE_ENTER(StreamBeginCapture, FAKE_CONTEXT, (uintptr_t)stream, mode);
    fake_stream_t *found = fake_stream_of(stream);
    if (!found) return fake_options.unknown_stream;
    if (found == &fake.legacy[found->device] || found->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_capture_t *capture;
    fake_graph_t *graph;
    FAKE_TAKE(fake.graphs, graph);
    FAKE_TAKE(fake.captures, capture);
    graph->device = found->device;
    *capture = (fake_capture_t){.used = true,
                                .id = fake.next_capture_id++,
                                .device = found->device,
                                .mode = mode,
                                .thread = pthread_self(),
                                .status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                .origin = found,
                                .graph = graph};
    found->capture = capture;
    found->tail.count = 0;
    return CUDA_SUCCESS;
}

CUresult fake_StreamEndCapture(CUstream stream, CUgraph *graph) {
    FAKE_ENTER(StreamEndCapture, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = fake_stream_of(stream);
    if (!found) return fake_options.unknown_stream;
    fake_capture_t *capture = found->capture;
    if (!capture) return CUDA_ERROR_INVALID_VALUE;
    if (capture->origin != found) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    bool whole = capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.streams[i].capture == capture) fake.streams[i].capture = NULL;
    for (size_t i = 0; i < FAKE_DEVICES; i++)
        if (fake.per_thread[i].capture == capture) fake.per_thread[i].capture = NULL;
    capture->used = false;
    *graph = whole ? (CUgraph)(void *)capture->graph : NULL;
    if (whole) return CUDA_SUCCESS;
    capture->graph->destroyed = true;
    graph_settle(capture->graph);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult fake_UserObjectCreate(CUuserObject *result, void *value, CUhostFn destroy, unsigned int references, unsigned int flags) {
    FAKE_ENTER(UserObjectCreate, FAKE_CONTEXT, references, flags);
    if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC || !references) return CUDA_ERROR_INVALID_VALUE;
    fake_object_t *object;
    FAKE_TAKE(fake.objects, object);
    *object = (fake_object_t){true, value, destroy, references};
    *result = (CUuserObject)(void *)object;
    return CUDA_SUCCESS;
}

CUresult fake_UserObjectRelease(CUuserObject object, unsigned int count) {
    FAKE_ENTER(UserObjectRelease, FAKE_CONTEXT, count, 0);
    object_release((fake_object_t *)(void *)object, count);
    return CUDA_SUCCESS;
}

CUresult fake_GraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
    FAKE_ENTER(GraphRetainUserObject, FAKE_CONTEXT, count, flags);
    fake_graph_t *found = graph_of(graph);
    if (!found || found->object_count == 8 || count != 1) return CUDA_ERROR_INVALID_VALUE;
    fake_object_t *given = (fake_object_t *)(void *)object;
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) given->references++;
    found->objects[found->object_count++] = given;
    return CUDA_SUCCESS;
}

CUresult fake_GraphInstantiateWithFlags(CUgraphExec *instance, CUgraph graph, unsigned long long flags) {
    FAKE_ENTER(GraphInstantiateWithFlags, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)graph, flags);
    fake_graph_t *found = graph_of(graph);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    if (found->alloc_nodes && found->instances) return CUDA_ERROR_NOT_SUPPORTED;
    fake_instance_t *made;
    FAKE_TAKE(fake.instances, made);
    *made = (fake_instance_t){true, found, (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0};
    found->instances++;
    *instance = (CUgraphExec)(void *)made;
    return CUDA_SUCCESS;
}

/* Its place among the graph's allocations; -1: it is another's. */
static int place_in(const fake_graph_t *graph, const fake_memory_t *memory) {
    for (size_t i = 0; i < graph->alloc_nodes; i++)
        if (graph->memory[i] == memory) return (int)i;
    return -1;
}

/* A launch has allocated it, nothing has freed it since. */
static bool is_live(const fake_memory_t *memory) { return !memory->graph || memory->graph->left[place_in(memory->graph, memory)]; }

static bool frees_itself(const fake_memory_t *memory) {
    return memory->graph && memory->graph->freed_inside[place_in(memory->graph, memory)];
}

static CUresult check_frees(const fake_graph_t *graph) {
    for (size_t i = 0; i < graph->free_count; i++) {
        const fake_memory_t *memory = fake_memory_at(graph->frees[i]);
        if (!memory || memory->kind != FAKE_GRAPH || !is_live(memory)) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult fake_GraphLaunch(CUgraphExec instance, CUstream stream) {
    FAKE_ENTER(GraphLaunch, FAKE_CONTEXT, (uintptr_t)instance, (uintptr_t)stream);
    fake_instance_t *found = (fake_instance_t *)(void *)instance;
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    if (!FAKE_IS(fake.instances, found)) return CUDA_ERROR_INVALID_HANDLE;
    fake_graph_t *graph = found->graph;
    for (size_t i = 0; i < graph->alloc_nodes; i++)
        if (graph->left[i] && !found->auto_free) return CUDA_ERROR_INVALID_VALUE;
    CUresult code = check_frees(graph);
    if (code == CUDA_SUCCESS) code = fake_push(on, NULL);
    for (size_t i = 0; i < graph->free_count && code == CUDA_SUCCESS; i++)
        fake_graph_freed_outside(fake_memory_at(graph->frees[i]));
    for (size_t i = 0; i < graph->alloc_nodes && code == CUDA_SUCCESS; i++) {
        graph->left[i] = !graph->freed_inside[i];
        fake.graph_reserved[graph->device] += graph->memory[i]->size;
        fake.used[graph->device] += graph->memory[i]->size;
    }
    return code;
}

CUresult fake_GraphExecDestroy(CUgraphExec instance) {
    FAKE_ENTER(GraphExecDestroy, FAKE_CONTEXT, (uintptr_t)instance, 0);
    fake_instance_t *found = (fake_instance_t *)(void *)instance;
    if (!FAKE_IS(fake.instances, found)) return CUDA_ERROR_INVALID_HANDLE;
    found->used = false;
    found->graph->instances--;
    graph_settle(found->graph);
    return CUDA_SUCCESS;
}

CUresult fake_GraphDestroy(CUgraph graph) {
    FAKE_ENTER(GraphDestroy, FAKE_CONTEXT, (uintptr_t)graph, 0);
    fake_graph_t *found = graph_of(graph);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    found->destroyed = true;
    graph_settle(found);
    return CUDA_SUCCESS;
}

/* Only this gives the graphs' own memory back. */
CUresult fake_DeviceGraphMemTrim(CUdevice device) {
    FAKE_ENTER(DeviceGraphMemTrim, FAKE_CONTEXT | FAKE_UNSAFE, device, 0);
    fake.used[device] -= fake.graph_reserved[device];
    fake.graph_reserved[device] = 0;
    return CUDA_SUCCESS;
}

/* The address is the graph's from here on; contents live from its launch to its free. */
CUresult fake_graph_alloc(fake_stream_t *stream, uint64_t size, CUdeviceptr *address) {
    fake_graph_t *graph = stream->capture->graph;
    fake_memory_t *memory;
    if (graph->alloc_nodes == 8) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = fake_memory_new(FAKE_GRAPH, size, &memory);
    if (code != CUDA_SUCCESS) return code;
    memory->graph = graph;
    graph->memory[graph->alloc_nodes++] = memory;
    *address = memory->address;
    return CUDA_SUCCESS;
}

/* A capture takes back only memory of a graph: its own, once, or what another graph does not free itself. */
CUresult fake_graph_free(fake_stream_t *stream, fake_memory_t *memory) {
    fake_graph_t *graph = stream->capture->graph;
    if (memory->kind != FAKE_GRAPH) {
        fake_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (frees_itself(memory) || graph->free_count == 8) return CUDA_ERROR_INVALID_VALUE;
    if (memory->graph == graph) graph->freed_inside[place_in(graph, memory)] = true;
    else graph->frees[graph->free_count++] = memory->address;
    return CUDA_SUCCESS;
}

/* While its graph lives the address is the graph's: the next launch allocates it again. */
CUresult fake_graph_freed_outside(fake_memory_t *memory) {
    if (!is_live(memory)) return CUDA_ERROR_INVALID_VALUE;
    if (memory->graph) memory->graph->left[place_in(memory->graph, memory)] = false;
    else fake_memory_delete(memory);
    return CUDA_SUCCESS;
}
