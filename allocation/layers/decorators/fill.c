/* fill: sets every served byte to one value, once per request, in the order of the request's stream. This
 * exposes programs that read bytes they never wrote, or makes them repeatable. With `write: false` nothing
 * is set, and the host only waits for the device after each request. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "platform/place.h"

typedef struct fill_options {
    uint64_t byte;
    bool synchronise, write;
} fill_options_t;

static const strata_option_row_t options[] = {
    {"byte", STRATA_OPTION_COUNT, offsetof(fill_options_t, byte), "0", 0, 255, NULL, "the value of every byte"},
    {"synchronise", STRATA_OPTION_BOOL, offsetof(fill_options_t, synchronise), "false", 0, 0, NULL,
     "then wait for the whole device, so that an earlier fault is reported here"},
    {"write", STRATA_OPTION_BOOL, offsetof(fill_options_t, write), "true", 0, 0, NULL,
     "false to only wait, as `synchronise` sets (Paddle's FLAGS_sync_after_alloc)"},
    {0},
};

static const strata_option_dependency_t dependencies[] = {{"byte", "write", "true"}, {"write", "synchronise", "true"}, {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    (void)place;
    return strata_option_check_dependencies(options, dependencies, filled, option);
}

/* Memory without an owner stream has no user while it is served. So the host may write it immediately, and
 * every stream sees the bytes. */
static strata_status_t set_bytes(strata_layer_t *self, const strata_record_t *record, strata_stream_t stream) {
    strata_device_t *device = self->domain->device;
    uint8_t byte = (uint8_t)((const fill_options_t *)self->options)->byte;
    bool ownerless = strata_place_is_ownerless(strata_place_kind(self->domain->place));
    void *view = ownerless ? strata_device_host_view(device, record->ptr, record->size) : NULL;
    if (!view) return strata_domain_fill(self->domain, record->ptr, byte, record->size, stream);
    memset(view, byte, record->size);
    return STRATA_OK;
}

/* A wait for the device would break captures of its other streams. */
static strata_status_t wait(strata_layer_t *self, strata_stream_t stream) {
    if (strata_domain_wait_for_own(self->domain)) return STRATA_OK;
    strata_status_t status = strata_last_error()->status;
    if (status == STRATA_E_CAPTURE) status = strata_domain_refuse_captured(self->domain, stream);
    return status == STRATA_OK ? strata_device_stream_synchronise(self->domain->device, stream) : status;
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    const fill_options_t *o = self->options;
    strata_record_t *served;
    strata_status_t status = strata_below_allocate(self, request, &served);
    if (status != STRATA_OK) return status;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    if (o->write) status = set_bytes(self, served, request->stream);
    if (status == STRATA_OK && o->synchronise) status = wait(self, request->stream);
    strata_call_lock(request->call, opened);
    if (status == STRATA_OK) *record = served;
    else strata_below_undo(served, request->call);
    return status;
}

const strata_layer_type_t strata_fill_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "fill",
    .doc = "sets every byte served to one value, in the order of the request's stream",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(fill_options_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
    .check = check,
};
