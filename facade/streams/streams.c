/* Streams: forgets them, and creates streams of the facade's own device. */
#include "allocation/domain/layer.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/streams/notify.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "platform/text/pointer.h"

static strata_status_t domain_of(strata_t handle, strata_place_t place, strata_domain_t **domain) {
    strata_facade_t *facade = strata_facade_of(handle);
    return facade ? strata_facade_domain(facade, place, domain) : strata_last_error()->status;
}

/* A default stream is never destroyed, so its work never ends. That includes memory without an owner,
 * where all streams have one key. */
static bool is_default(const strata_domain_t *domain, strata_stream_t stream) {
    if (stream == NULL || stream == STRATA_STREAM_LEGACY || stream == STRATA_STREAM_PER_THREAD) return true;
    return stream == strata_facade_stream_key(domain, NULL);
}

strata_status_t strata_stream_forget(strata_t handle, strata_place_t place, strata_stream_t stream) {
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status != STRATA_OK) return status;
    strata_place_kind_t kind = strata_place_kind(place);
    bool owned = kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED;
    strata_stream_t key = strata_facade_stream_key(domain, stream);
    if (is_default(domain, stream))
        return strata_fail(STRATA_E_INVALID, 0, "a default stream cannot be forgotten, because it is never destroyed");
    strata_domain_orphan_stream(domain, owned ? key : stream);
    strata_facade_forget_name(strata_facade_of(handle), place, key);
    strata_stream_ids_forget(strata_facade_of(handle), place, owned ? key : stream);
    strata_log_flush();
    return STRATA_OK;
}

strata_status_t strata_same_stream(strata_t handle, strata_place_t place, strata_stream_t a, strata_stream_t b, bool *same) {
    STRATA_REFUSE_NULL(same);
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status != STRATA_OK) return status;
    *same = strata_facade_stream_key(domain, a) == strata_facade_stream_key(domain, b);
    return STRATA_OK;
}

/* Threads that remember NULL as the legacy stream must look it up again. */
static void rename_legacy(strata_domain_t *domain) {
    STRATA_DOMAIN_EACH(domain, stack)
        if (strata_stack_handle_of(stack) && stack->stream == NULL) strata_stack_rename(stack);
}

strata_status_t strata_set_default_stream(strata_t handle, strata_place_t place, strata_stream_t stream) {
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status != STRATA_OK) return status;
    if (strata_place_is_ownerless(strata_place_kind(place)))
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "pinned and host memory has no owner stream, so no default stream");
    strata_stream_t wanted = stream == STRATA_STREAM_LEGACY ? NULL : stream, before = NULL;
    if (wanted && !atomic_load(&domain->default_stream))
        atomic_store(&domain->default_from_first, !strata_domain_serves(domain, NULL));
    if (!atomic_compare_exchange_strong(&domain->default_stream, &before, wanted) && before != wanted)
        return strata_fail(
            STRATA_E_BUSY, 0,
            "the default stream of this place is already %s; it can be set only once, because blocks served for NULL belong to "
            "that stream",
            strata_pointer_text(before).text);
    if (wanted && !before) rename_legacy(domain);
    return STRATA_OK;
}

strata_status_t strata_stream_create(strata_t handle, strata_place_t place, int priority, strata_stream_t *stream) {
    STRATA_REFUSE_NULL(stream);
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status != STRATA_OK) return status;
    return strata_device_stream_create(domain->device, STRATA_STREAM_NON_BLOCKING, priority, stream);
}

strata_status_t strata_stream_destroy(strata_t handle, strata_place_t place, strata_stream_t stream) {
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    return status == STRATA_OK ? strata_device_stream_destroy(domain->device, stream) : status;
}

strata_status_t strata_stream_synchronize(strata_t handle, strata_place_t place, strata_stream_t stream) {
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status == STRATA_OK) status = strata_device_stream_synchronise(domain->device, strata_notify_stream(domain, stream));
    if (status != STRATA_OK) return status;
    strata_notify_sync(domain, stream);
    return STRATA_OK;
}

strata_status_t strata_stream_work(strata_t handle, strata_place_t place, strata_stream_t stream, uint64_t duration_ns,
                                   const strata_ref_t *refs, size_t count) {
    STRATA_REFUSE_NULL_ARRAY(refs, count);
    strata_domain_t *domain;
    strata_status_t status = strata_notify_domain(handle, place, stream, &domain);
    if (status != STRATA_OK) return status;
    strata_access_t *accesses = count ? strata_host_new(count, sizeof *accesses) : NULL;
    if (count && !accesses) return STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) {
        strata_call_t call;
        strata_record_t *record;
        status = strata_facade_find(handle, refs[i], &call, &record);
        if (status != STRATA_OK) break;
        accesses[i] = (strata_access_t){.address = record->ptr, .size = record->size, .write = true};
        (void)strata_call_unlock(&call);
    }
    if (status == STRATA_OK)
        status = strata_device_work(domain->device, strata_notify_stream(domain, stream), duration_ns, accesses, count);
    strata_host_delete(accesses);
    if (status != STRATA_OK) return status;
    strata_notify_work(handle, domain, stream, duration_ns, refs, count);
    return STRATA_OK;
}
