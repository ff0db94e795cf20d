/* The devices of a domain's facade. Each may have streams that use the domain's memory. Devices may be
 * opened at any moment, each once; none closes before the domain ends. A device that is opened after a look
 * has no earlier work to wait for. */
#include "allocation/domain/captures.h"
#include "allocation/domain/domain.h"
#include "platform/place.h"

/* Returns device i, or NULL if it is the domain's own or not open. */
static strata_device_t *other(const strata_domain_t *domain, uint32_t i) {
    strata_device_t *device = atomic_load(&domain->devices[i]);
    return device != domain->device ? device : NULL;
}

static bool is_alone(const strata_domain_t *domain) {
    for (uint32_t i = 0; i < domain->device_count; i++)
        if (other(domain, i)) return false;
    return true;
}

bool strata_domain_is_ambiguous_stream(const strata_domain_t *domain, strata_stream_t stream) {
    if (stream != NULL && stream != STRATA_STREAM_LEGACY && stream != STRATA_STREAM_PER_THREAD) return false;
    return strata_place_is_ownerless(strata_place_kind(domain->place)) && !is_alone(domain);
}

strata_status_t strata_domain_record_event(strata_domain_t *domain, strata_handle_t event, strata_stream_t stream) {
    if (strata_domain_is_ambiguous_stream(domain, stream))
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "the default stream of several devices: no single event covers them all");
    return strata_device_event_record(domain->device, event, stream);
}

static bool has_captures(const strata_device_t *device) {
    return device->capabilities.captures_known && atomic_load(&device->captures) > 0;
}

static bool knows_captures(const strata_domain_t *domain) {
    bool knows = has_captures(domain->device);
    for (uint32_t i = 0; i < domain->device_count && !knows; i++) knows = other(domain, i) && has_captures(other(domain, i));
    return knows;
}

bool strata_domain_may_capture(const strata_domain_t *domain) { return strata_captures_any_open() || knows_captures(domain); }

/* Returns false if the wait would break a capture. */
static bool begin_wait(const strata_domain_t *domain) {
    if (!knows_captures(domain) && strata_captures_begin_uncaptured()) return true;
    (void)strata_fail(STRATA_E_CAPTURE, 0, "a stream may be in a capture, so its device cannot be waited for");
    return false;
}

bool strata_domain_wait_for_own(strata_domain_t *domain) {
    if (!begin_wait(domain)) return false;
    bool done = strata_device_synchronise(domain->device) == STRATA_OK;
    strata_captures_end_uncaptured();
    return done;
}

bool strata_domain_wait_for_all(strata_domain_t *domain) {
    strata_device_t *device;
    if (!begin_wait(domain)) return false;
    bool done = strata_device_synchronise(domain->device) == STRATA_OK;
    for (uint32_t i = 0; i < domain->device_count; i++)
        if ((device = other(domain, i)) != NULL) done = strata_device_synchronise(device) == STRATA_OK && done;
    strata_captures_end_uncaptured();
    return done;
}

/* Returns false if it is not a stream of this device, or the device has lost it. */
static bool knows_capture(strata_device_t *device, strata_stream_t stream, strata_capture_status_t *capture, uint64_t *id,
                          strata_status_t *status) {
    if (strata_device_may_capture(device)) *status = strata_device_capture_status(device, stream, capture, id);
    return strata_device_may_capture(device) && *status == STRATA_OK;
}

/* A device that was not queried has no captured stream. */
strata_status_t strata_domain_capture_of(strata_domain_t *domain, strata_stream_t stream, strata_capture_status_t *capture,
                                         uint64_t *id) {
    strata_device_t *device;
    strata_status_t status = STRATA_OK;
    *capture = STRATA_CAPTURE_NONE;
    *id = 0;
    bool known = knows_capture(domain->device, stream, capture, id, &status), all = strata_device_may_capture(domain->device);
    for (uint32_t i = 0; i < domain->device_count && !known; i++) {
        if ((device = other(domain, i)) == NULL) continue;
        known = knows_capture(device, stream, capture, id, &status);
        all = all && strata_device_may_capture(device);
    }
    return known || !all ? STRATA_OK : status;
}

/* A captured stream is not even queried, because that would end the capture. */
static strata_status_t wait_on(strata_device_t *device, strata_stream_t stream) {
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    uint64_t id;
    if (device->capabilities.capture) (void)strata_device_capture_status(device, stream, &capture, &id);
    if (capture != STRATA_CAPTURE_NONE)
        return strata_fail(STRATA_E_CAPTURE, 0, "the stream is being captured and cannot be waited for");
    return strata_device_stream_synchronise(device, stream);
}

/* Does not wait for the whole device of a captured stream either. */
bool strata_domain_wait_for(strata_domain_t *domain, strata_stream_t stream) {
    strata_device_t *device;
    bool of_each = strata_domain_is_ambiguous_stream(domain, stream);
    strata_status_t status = wait_on(domain->device, stream);
    for (uint32_t i = 0; i < domain->device_count && status != STRATA_E_CAPTURE && (status == STRATA_OK) == of_each; i++)
        if ((device = other(domain, i)) != NULL) status = wait_on(device, stream);
    if (status == STRATA_E_CAPTURE) return false;
    return status == STRATA_OK || strata_domain_wait_for_all(domain);
}
