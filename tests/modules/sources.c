/* A source written with what the public header offers: memory of the place, a fill after it, an event. */
#include "tests/modules/pass.h"

typedef struct source {
    strata_layer_t base;
    strata_event_t event;
} source_t;

static strata_status_t create(strata_layer_t *base) { return strata_layer_acquire_event(base, &((source_t *)base)->event); }

static void give_left(const strata_record_t *record, void *self) {
    (void)strata_layer_free_memory(self, record->ptr, record->size);
}

static void destroy(strata_layer_t *base) {
    strata_layer_each_remaining(base, give_left, base);
    strata_layer_release_event(base, ((source_t *)base)->event);
}

/* What it was filled with is there before anything that the stream does next. */
static strata_status_t fill(strata_layer_t *base, const strata_request_t *request, uint64_t address) {
    strata_event_t event = ((source_t *)base)->event;
    strata_status_t status = strata_layer_fill(base, address, 0xa5, request->size, request->stream);
    if (status == STRATA_OK) status = strata_layer_record_event(base, event, request->stream);
    if (status == STRATA_OK) status = strata_layer_await_event(base, request->stream, event);
    if (status == STRATA_OK) status = strata_layer_query_event(base, event);
    return status == STRATA_E_NOT_READY ? STRATA_OK : status;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    uint64_t address = 0;
    if (request->flags & STRATA_NO_GROW) return strata_fail(STRATA_E_NO_MEMORY, 0, "filled_source keeps nothing");
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_layer_allocate_memory(base, request, request->size, request->alignment, &address);
    if (status == STRATA_OK && strata_place_kind(strata_layer_place(base)) == STRATA_PLACE_GPU)
        status = fill(base, request, address);
    strata_call_lock(request->call, opened);
    *record = status == STRATA_OK ? strata_record_new(base, request, address, request->size) : NULL;
    if (*record) return STRATA_OK;
    if (status == STRATA_OK) status = STRATA_E_LIMIT;
    opened = strata_call_unlock(request->call);
    if (address) (void)strata_layer_free_memory(base, address, request->size);
    strata_call_lock(request->call, opened);
    return status;
}

static void give_back(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_layer_free_memory(base, record->ptr, record->size);
    strata_call_lock(call, opened);
    if (status == STRATA_OK) strata_record_delete(base, record);
}

static const strata_layer_type_t filled_source_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "filled_source",
    .doc = "memory filled with a byte",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .guarded = true,
    .state_size = sizeof(source_t),
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = give_back,
};

STRATA_LAYERS(&filled_source_type);
