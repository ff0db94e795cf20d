/* Captures for programs without a runtime, by the device's own calls and handles. */
#include "allocation/domain/paused.h"
#include "allocation/graphs/graphs.h"
#include "allocation/reclaim/over_limit.h"
#include "facade/registry/facade.h"
#include "facade/streams/notify.h"
#include "platform/arguments.h"

strata_status_t strata_capture_begin(strata_t handle, strata_place_t place, strata_stream_t stream) {
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status != STRATA_OK) return status;
    return strata_device_capture_begin(domain->device, strata_notify_stream(domain, stream), STRATA_CAPTURE_RELAXED);
}

strata_status_t strata_capture_end(strata_t handle, strata_place_t place, strata_stream_t stream, strata_graph_t *graph) {
    STRATA_REFUSE_NULL(graph);
    strata_domain_t *domain;
    strata_graph_pool_t *pool;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status != STRATA_OK) return status;
    /* The pool must record this capture even if it made no request. */
    if (strata_graphs_open(domain)) (void)strata_graphs_capturing(domain, strata_notify_stream(domain, stream), &pool);
    return strata_device_capture_end(domain->device, strata_notify_stream(domain, stream), graph);
}

strata_status_t strata_stream_wait(strata_t handle, strata_place_t place, strata_stream_t stream, strata_stream_t other) {
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    strata_handle_t event = NULL;
    while (status == STRATA_OK && !event) {
        status = strata_events_ensure(&domain->events, 1);
        if (status == STRATA_OK) event = strata_events_acquire(&domain->events);
    }
    if (status != STRATA_OK) return status;
    status = strata_device_event_record(domain->device, event, strata_notify_stream(domain, other));
    if (status == STRATA_OK) status = strata_device_stream_wait(domain->device, strata_notify_stream(domain, stream), event);
    strata_events_release(&domain->events, event);
    if (status != STRATA_OK) return status;
    strata_notify_wait(domain, stream, other);
    return STRATA_OK;
}

strata_status_t strata_graph_launch(strata_t handle, strata_place_t place, strata_graph_t graph, strata_stream_t stream) {
    STRATA_REFUSE_NULL(graph);
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status == STRATA_OK) status = strata_domain_refuse_launch(domain);
    return status == STRATA_OK ? strata_device_graph_launch(domain->device, graph, strata_notify_stream(domain, stream)) : status;
}

strata_status_t strata_graph_destroy(strata_t handle, strata_place_t place, strata_graph_t graph) {
    STRATA_REFUSE_NULL(graph);
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, NULL, &domain);
    if (status == STRATA_OK) status = strata_device_graph_destroy(domain->device, graph);
    if (status == STRATA_OK) strata_over_limit_sweep(domain);
    return status;
}
