#include "facade/streams/stream_ids.h"

#include "facade/registry/diagnose.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

/* Per facade. The table must not grow if a program never forgets a stream, so beyond this number a new
 * stream replaces an older one. */
enum { STREAMS_KNOWN = 1024 };

typedef struct known_stream {
    strata_stream_t stream;
    uint64_t id;
    strata_place_t place;
} known_stream_t;

struct strata_stream_ids {
    known_stream_t known[STREAMS_KNOWN];
    uint32_t count, next;
};

strata_status_t strata_stream_ids_begin(strata_facade_t *facade) {
    if (!(facade->flags & STRATA_OPEN_CHECK_STREAM_IDS) || facade->stream_ids) return STRATA_OK;
    facade->stream_ids = strata_host_new(1, sizeof *facade->stream_ids);
    return facade->stream_ids ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_stream_ids_end(strata_facade_t *facade) {
    strata_host_delete(facade->stream_ids);
    facade->stream_ids = NULL;
}

/* ---- the table, under the facade's lock ---- */

static known_stream_t *find(strata_stream_ids_t *ids, strata_place_t place, strata_stream_t stream) {
    for (uint32_t i = 0; i < ids->count; i++)
        if (ids->known[i].stream == stream && ids->known[i].place == place) return &ids->known[i];
    return NULL;
}

static void note(strata_stream_ids_t *ids, const known_stream_t *stream) {
    if (ids->count < STREAMS_KNOWN) ids->known[ids->count++] = *stream;
    else ids->known[ids->next++ % STREAMS_KNOWN] = *stream;
}

static bool is_another(strata_stream_ids_t *ids, const known_stream_t *stream, strata_stream_effect_t effect) {
    const known_stream_t *known = find(ids, stream->place, stream->stream);
    if (known) return known->id != stream->id;
    if (effect == STRATA_STREAM_USED) note(ids, stream);
    return false;
}

/* ---- the driver ---- */

/* Asks the place's own device, then the facade's others, because a borrower may be a stream of theirs.
 * Returns E_UNKNOWN_STREAM if one of them reports that it no longer exists. Any other failure means that
 * none has an answer. */
static strata_status_t ask(const strata_domain_t *domain, strata_stream_t stream, uint64_t *id) {
    strata_error_t gone = {.status = STRATA_OK};
    for (uint32_t i = 0; i <= domain->device_count; i++) {
        strata_device_t *device = i == 0 ? domain->device : atomic_load(&domain->devices[i - 1]);
        if (!device || (i > 0 && device == domain->device)) continue;
        strata_status_t status = strata_device_stream_id(device, stream, id);
        if (status == STRATA_OK) return status;
        if (status == STRATA_E_UNKNOWN_STREAM) gone = *strata_last_error();
    }
    return gone.status == STRATA_OK ? STRATA_E_UNSUPPORTED : strata_fail_again(&gone);
}

/* Returns the key of the place's stacks and borrows. The driver's default streams are never destroyed, so
 * NULL represents all of them. */
static strata_stream_t key_of(const strata_domain_t *domain, strata_stream_t stream) {
    if (!strata_place_is_ownerless(strata_place_kind(domain->place))) stream = strata_facade_stream_key(domain, stream);
    return stream == STRATA_STREAM_LEGACY || stream == STRATA_STREAM_PER_THREAD ? NULL : stream;
}

strata_status_t strata_stream_ids_check(strata_facade_t *facade, strata_place_t place, strata_stream_t stream,
                                        strata_stream_effect_t effect) {
    strata_domain_t *domain;
    if (!facade->stream_ids) return STRATA_OK;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    known_stream_t now = {.stream = key_of(domain, stream), .place = place};
    if (!now.stream || !domain->device->capabilities.stream_ids) return STRATA_OK;
    status = ask(domain, now.stream, &now.id);
    if (status != STRATA_OK) return status == STRATA_E_UNKNOWN_STREAM && effect == STRATA_STREAM_USED ? status : STRATA_OK;
    strata_lock(&facade->lock);
    bool another = is_another(facade->stream_ids, &now, effect);
    strata_unlock(&facade->lock);
    return another ? strata_diagnose_stream(facade, domain, now.stream) : STRATA_OK;
}

void strata_stream_ids_forget(strata_facade_t *facade, strata_place_t place, strata_stream_t stream) {
    strata_stream_ids_t *ids = facade->stream_ids;
    if (!ids) return;
    strata_lock(&facade->lock);
    known_stream_t *known = find(ids, place, stream);
    if (known) *known = ids->known[--ids->count];
    strata_unlock(&facade->lock);
}
