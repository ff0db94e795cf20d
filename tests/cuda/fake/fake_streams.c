/* The fake's streams, events, captures and graphs. */
#include <string.h>

#include "tests/cuda/fake/fake_internal.h"

uint64_t fake_live_objects(void) {
    uint64_t live = 0;
    for (size_t i = 0; i < FAKE_MANY; i++)
        live += (uint64_t)fake.streams[i].used + fake.events[i].used + fake.graphs[i].used + fake.instances[i].used +
                fake.objects[i].used + fake.memory[i].used + (fake.pools[i].used && !fake.pools[i].is_default) +
                fake.ranges[i].used + fake.physical[i].used + fake.mappings[i].used + fake.captures[i].used;
    return live;
}

fake_stream_t *fake_stream_of(CUstream stream) {
    int device = fake_current_device();
    if (stream == NULL || stream == CU_STREAM_LEGACY) return &fake.legacy[device];
    if (stream == CU_STREAM_PER_THREAD) return &fake.per_thread[device];
    fake_stream_t *found = (fake_stream_t *)(void *)stream;
    return FAKE_IS(fake.streams, found) && found->device == device ? found : NULL;
}

static bool is_legacy(const fake_stream_t *stream) { return stream == &fake.legacy[stream->device]; }

static fake_stream_t *stream_at(size_t i) {
    if (i < FAKE_DEVICES) return &fake.legacy[i];
    if (i < 2 * FAKE_DEVICES) return &fake.per_thread[i - FAKE_DEVICES];
    return &fake.streams[i - 2 * FAKE_DEVICES];
}

#define STREAMS (2 * FAKE_DEVICES + FAKE_MANY)

uint64_t fake_pending(int device) {
    uint64_t pending = 0;
    for (size_t i = 0; i < STREAMS; i++)
        if (stream_at(i)->used && stream_at(i)->device == device) pending += stream_at(i)->submitted - stream_at(i)->done;
    return pending;
}

void fake_wait_stream(fake_stream_t *stream) {
    stream->done = stream->submitted;
    fake_pools_observe(stream->device);
}

void fake_wait_device(int device) {
    for (size_t i = 0; i < STREAMS; i++)
        if (stream_at(i)->device == device) stream_at(i)->done = stream_at(i)->submitted;
    fake_pools_observe(device);
}

void fake_run(CUstream stream) {
    FAKE_LOCKED();
    for (size_t i = 0; i < STREAMS; i++)
        if (!stream || (void *)stream == (void *)stream_at(i)) stream_at(i)->done = stream_at(i)->submitted;
}

void fake_submit(CUstream stream) {
    FAKE_LOCKED();
    ((fake_stream_t *)(void *)stream)->submitted++;
}

CUstreamCaptureStatus fake_capture_of(CUstream stream) {
    fake_capture_t *capture = ((fake_stream_t *)(void *)stream)->capture;
    return capture ? capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
}

void fake_invalidate(fake_capture_t *capture) { capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED; }

/* A captured blocking stream of the device: the legacy stream is then of no use. */
static fake_capture_t *blocking_capture(int device) {
    for (size_t i = 0; i < FAKE_MANY; i++) {
        fake_stream_t *stream = &fake.streams[i];
        if (stream->used && stream->device == device && stream->capture && !(stream->flags & CU_STREAM_NON_BLOCKING))
            return stream->capture;
    }
    return NULL;
}

CUresult fake_touch(fake_stream_t *stream, bool *captured) {
    if (captured) *captured = stream->capture != NULL;
    if (stream->capture) {
        if (stream->capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    fake_capture_t *other = is_legacy(stream) ? blocking_capture(stream->device) : NULL;
    if (other) {
        fake_invalidate(other);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    stream->submitted++;
    return CUDA_SUCCESS;
}

CUresult fake_push(fake_stream_t *stream, bool *captured) {
    CUresult code = fake_touch(stream, captured);
    fake_capture_t *capture = stream->capture;
    if (code != CUDA_SUCCESS || !capture || capture->node_count == FAKE_NODES) return code;
    fake_node_t *node = &capture->nodes[capture->node_count++];
    node->before = stream->tail;
    stream->tail = (fake_tail_t){.nodes = {node}, .count = 1};
    return code;
}

CUresult fake_CtxSynchronize(void) {
    FAKE_ENTER(CtxSynchronize, FAKE_CONTEXT, 0, 0);
    int device = fake_current_device();
    bool captured = false;
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.captures[i].used && fake.captures[i].device == device) {
            fake_invalidate(&fake.captures[i]);
            captured = true;
        }
    if (captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_wait_device(device);
    return CUDA_SUCCESS;
}

CUresult fake_StreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    FAKE_ENTER(StreamCreateWithPriority, FAKE_CONTEXT, flags, (uint64_t)(int64_t)priority);
    fake_stream_t *made;
    FAKE_TAKE(fake.streams, made);
    made->device = fake_current_device();
    made->flags = flags;
    made->id = fake.next_stream_id++;
    *stream = (CUstream)(void *)made;
    return CUDA_SUCCESS;
}

CUresult fake_StreamDestroy(CUstream stream) {
    FAKE_ENTER(StreamDestroy, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = fake_stream_of(stream);
    if (!found) return fake_options.unknown_stream;
    if (found == &fake.legacy[found->device] || found == &fake.per_thread[found->device]) return CUDA_ERROR_INVALID_HANDLE;
    if (found->capture) found->capture->used = false; /* its graph is never made */
    found->used = false;
    return CUDA_SUCCESS;
}

/* Both invalidate a capture of the stream. */
static CUresult about_progress(CUstream stream, fake_stream_t **result) {
    fake_stream_t *found = fake_stream_of(stream);
    if (!found) return fake_options.unknown_stream;
    fake_capture_t *capture = found->capture ? found->capture : is_legacy(found) ? blocking_capture(found->device) : NULL;
    if (capture) {
        fake_invalidate(capture);
        return found->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    *result = found;
    return CUDA_SUCCESS;
}

CUresult fake_StreamQuery(CUstream stream) {
    FAKE_ENTER(StreamQuery, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = NULL;
    CUresult code = about_progress(stream, &found);
    if (code != CUDA_SUCCESS) return code;
    return found->done == found->submitted ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult fake_StreamSynchronize(CUstream stream) {
    FAKE_ENTER(StreamSynchronize, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = NULL;
    CUresult code = about_progress(stream, &found);
    if (code == CUDA_SUCCESS) fake_wait_stream(found);
    return code;
}

CUresult fake_StreamGetId(CUstream stream, unsigned long long *id) {
    FAKE_ENTER(StreamGetId, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = fake_stream_of(stream);
    if (!found) return fake_options.unknown_stream;
    *id = found->id;
    return CUDA_SUCCESS;
}

static CUresult capture_seen(CUstream stream, CUstreamCaptureStatus *status, fake_stream_t **result) {
    fake_stream_t *found = fake_stream_of(stream);
    if (!found) return fake_options.unknown_stream;
    if (is_legacy(found) && blocking_capture(found->device)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = found->capture ? found->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    *result = found;
    return CUDA_SUCCESS;
}

CUresult fake_StreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    FAKE_ENTER(StreamIsCapturing, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = NULL;
    return capture_seen(stream, status, &found);
}

CUresult fake_StreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id, CUgraph *graph,
                                   const CUgraphNode **nodes, size_t *count) {
    FAKE_ENTER(StreamGetCaptureInfo, FAKE_CONTEXT, (uintptr_t)stream, 0);
    fake_stream_t *found = NULL;
    CUresult code = capture_seen(stream, status, &found);
    if (code != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return code;
    if (id) *id = found->capture->id;
    if (graph) *graph = (CUgraph)(void *)found->capture->graph;
    if (nodes) *nodes = (const CUgraphNode *)(void *)found->tail.nodes;
    if (count) *count = found->tail.count;
    return CUDA_SUCCESS;
}

CUresult fake_GraphNodeGetDependencies(CUgraphNode node, CUgraphNode *before, size_t *count) {
    FAKE_ENTER(GraphNodeGetDependencies, FAKE_CONTEXT, (uintptr_t)node, *count);
    const fake_tail_t *found = &((const fake_node_t *)(void *)node)->before;
    for (size_t i = 0; i < *count; i++) before[i] = i < found->count ? (CUgraphNode)(void *)found->nodes[i] : NULL;
    if (*count > found->count) *count = found->count;
    return CUDA_SUCCESS;
}

/* ---- events ---- */

static fake_event_t *event_of(CUevent event) {
    fake_event_t *found = (fake_event_t *)(void *)event;
    return FAKE_IS(fake.events, found) && found->device == fake_current_device() ? found : NULL;
}

static bool passed(const fake_event_t *event) {
    return !event->stream || event->stream->id != event->stream_id || event->stream->done >= event->point;
}

CUresult fake_EventCreate(CUevent *event, unsigned int flags) {
    FAKE_ENTER(EventCreate, FAKE_CONTEXT, flags, 0);
    fake_event_t *made;
    FAKE_TAKE(fake.events, made);
    made->device = fake_current_device();
    made->flags = flags;
    *event = (CUevent)(void *)made;
    return CUDA_SUCCESS;
}

CUresult fake_EventDestroy(CUevent event) {
    FAKE_ENTER(EventDestroy, FAKE_CONTEXT, (uintptr_t)event, 0);
    fake_event_t *found = event_of(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    found->used = false;
    return CUDA_SUCCESS;
}

CUresult fake_EventRecord(CUevent event, CUstream stream) {
    FAKE_ENTER(EventRecord, FAKE_CONTEXT, (uintptr_t)event, (uintptr_t)stream);
    fake_event_t *found = event_of(event);
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    bool captured;
    uint64_t before = on->submitted;
    CUresult code = fake_touch(on, &captured);
    if (code != CUDA_SUCCESS) return code;
    on->submitted = before; /* an event is no work */
    found->captured = captured ? on->capture->id : 0;
    found->tail = on->tail;
    found->stream = captured ? NULL : on;
    found->stream_id = on->id;
    found->point = before;
    return CUDA_SUCCESS;
}

/* Forbidden whatever the mode; ends the capture that recorded the event. */
static CUresult refuse_captured(const fake_event_t *event) {
    if (!event->captured) return CUDA_SUCCESS;
    for (size_t i = 0; i < FAKE_MANY; i++)
        if (fake.captures[i].used && fake.captures[i].id == event->captured) fake_invalidate(&fake.captures[i]);
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult fake_EventQuery(CUevent event) {
    FAKE_ENTER(EventQuery, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)event, 0);
    fake_event_t *found = event_of(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    CUresult code = refuse_captured(found);
    if (code != CUDA_SUCCESS) return code;
    return passed(found) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult fake_EventSynchronize(CUevent event) {
    FAKE_ENTER(EventSynchronize, FAKE_CONTEXT | FAKE_UNSAFE, (uintptr_t)event, 0);
    fake_event_t *found = event_of(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    CUresult code = refuse_captured(found);
    if (code != CUDA_SUCCESS) return code;
    if (!passed(found)) found->stream->done = found->point;
    fake_pools_observe(found->device);
    return CUDA_SUCCESS;
}

static void join_capture(fake_stream_t *stream, fake_capture_t *capture, const fake_tail_t *more) {
    if (!stream->capture) stream->tail.count = 0;
    stream->capture = capture;
    for (size_t i = 0; i < more->count && stream->tail.count < FAKE_BEFORE; i++) {
        size_t at = stream->tail.count;
        while (at > 0 && stream->tail.nodes[at - 1] != more->nodes[i]) at--;
        if (at == 0) stream->tail.nodes[stream->tail.count++] = more->nodes[i];
    }
}

static fake_capture_t *capture_in(uint64_t id) {
    for (size_t i = 0; i < FAKE_MANY && id; i++)
        if (fake.captures[i].used && fake.captures[i].id == id) return &fake.captures[i];
    return NULL;
}

/* A wait for a captured event draws the stream into that capture. What would join a capture with anything else breaks it. */
static CUresult drawn_in(fake_stream_t *stream, const fake_event_t *event) {
    fake_capture_t *capture = capture_in(event->captured), *own = stream->capture;
    if (own && own->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!event->captured) {
        if (!own || !event->stream) return CUDA_SUCCESS;
        fake_invalidate(own);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!capture) return CUDA_ERROR_CAPTURED_EVENT;
    if ((own && own != capture) || is_legacy(stream)) {
        fake_invalidate(capture);
        if (own) fake_invalidate(own);
        return own ? CUDA_ERROR_STREAM_CAPTURE_MERGE : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join_capture(stream, capture, &event->tail);
    return CUDA_SUCCESS;
}

CUresult fake_StreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    FAKE_ENTER(StreamWaitEvent, FAKE_CONTEXT, (uintptr_t)stream, (uintptr_t)event);
    fake_event_t *found = event_of(event);
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    if (!found || flags) return CUDA_ERROR_INVALID_HANDLE;
    CUresult code = drawn_in(on, found);
    return code == CUDA_SUCCESS ? fake_touch(on, NULL) : code;
}

CUresult fake_LaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                           unsigned int bz, unsigned int shared, CUstream stream, void **parameters, void **extra) {
    FAKE_ENTER(LaunchKernel, FAKE_CONTEXT, *(uint64_t *)parameters[0], (uintptr_t)stream);
    fake_stream_t *on = fake_stream_of(stream);
    if (!on) return fake_options.unknown_stream;
    if (!function || (uint64_t)gx * gy * gz * bx * by * bz != 1 || shared || extra) return CUDA_ERROR_INVALID_VALUE;
    return fake_push(on, NULL);
}
