#include "facade/streams/notify.h"

#include "allocation/domain/layer.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "strata/note.h"

strata_status_t strata_notify_domain(strata_t handle, strata_place_t place, strata_stream_t stream, strata_domain_t **domain) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_status_t status = strata_facade_domain(facade, place, domain);
    return status == STRATA_OK ? strata_stream_ids_check(facade, place, stream, STRATA_STREAM_NAMED) : status;
}

strata_stream_t strata_notify_stream(const strata_domain_t *domain, strata_stream_t stream) {
    return stream ? stream : strata_facade_stream_key(domain, NULL);
}

void strata_notify_work(strata_t handle, strata_domain_t *domain, strata_stream_t stream, uint64_t duration_ns,
                        const strata_ref_t *refs, size_t count) {
    static _Atomic uint64_t kernels;
    strata_notice_t notice = {.struct_size = sizeof notice,
                              .kind = STRATA_NOTICE_WORK,
                              .stream = strata_notify_stream(domain, stream),
                              .duration_ns = duration_ns,
                              .kernel = atomic_fetch_add_explicit(&kernels, 1, memory_order_relaxed) + 1};
    for (size_t i = 0; i < count; i++) {
        strata_call_t call;
        strata_record_t *record;
        if (strata_facade_find(handle, refs[i], &call, &record) != STRATA_OK) continue;
        strata_record_notify(record, &notice, &call);
        (void)strata_call_unlock(&call);
    }
    notice.record = NULL;
    if (!notice.handled) strata_domain_notify(domain, &notice);
}

void strata_notify_wait(strata_domain_t *domain, strata_stream_t stream, strata_stream_t other) {
    strata_notice_t notice = {.struct_size = sizeof notice,
                              .kind = STRATA_NOTICE_WAIT,
                              .stream = strata_notify_stream(domain, stream),
                              .other = strata_notify_stream(domain, other)};
    strata_domain_notify(domain, &notice);
}

void strata_notify_sync(strata_domain_t *domain, strata_stream_t stream) {
    strata_notice_t notice = {
        .struct_size = sizeof notice, .kind = STRATA_NOTICE_SYNC, .stream = strata_notify_stream(domain, stream)};
    strata_domain_notify(domain, &notice);
}

/* ---- notes of events outside the facade ---- */

static strata_status_t check_live(strata_t handle, const strata_ref_t *refs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        strata_call_t call;
        strata_record_t *record;
        strata_status_t status = strata_facade_find(handle, refs[i], &call, &record);
        if (status != STRATA_OK) return status;
        (void)strata_call_unlock(&call);
    }
    return STRATA_OK;
}

strata_status_t strata_note_work(strata_t handle, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                 const strata_ref_t *refs, size_t count) {
    STRATA_REFUSE_NULL_ARRAY(refs, count);
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status == STRATA_OK) status = check_live(handle, refs, count);
    if (status == STRATA_OK) strata_notify_work(handle, domain, stream, duration_ns, refs, count);
    return status;
}

strata_status_t strata_note_wait(strata_t handle, strata_place_t place, strata_stream_t stream, strata_stream_t other) {
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status == STRATA_OK) status = strata_stream_ids_check(strata_facade_of(handle), place, other, STRATA_STREAM_NAMED);
    if (status == STRATA_OK) strata_notify_wait(domain, stream, other);
    return status;
}

strata_status_t strata_note_sync(strata_t handle, strata_place_t place, strata_stream_t stream) {
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status == STRATA_OK) strata_notify_sync(domain, stream);
    return status;
}

strata_status_t strata_note_device_sync(strata_t handle, strata_place_t place) {
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, NULL, &domain);
    if (status != STRATA_OK) return status;
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_SYNC, .all = true};
    strata_domain_notify(domain, &notice);
    return STRATA_OK;
}
