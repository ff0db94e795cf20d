/* The records of cuda_malloc_async: creates them, frees their blocks, and keeps blocks that a capture or a
 * graph still needs. */
#include "allocation/layers/sources/cuda_malloc_async_state.h"

strata_record_t *strata_async_make_record(async_layer_t *self, const strata_request_t *request, strata_address_t address) {
    uint32_t user = strata_uses_user(&self->uses, request->stream);
    strata_record_t *record = user ? strata_record_new(&self->base, request, address, request->size) : NULL;
    if (!record) return NULL;
    strata_user_at(&self->uses.users, user)->holds++;
    record->user = user;
    return record;
}

/* The block is cleared from the record and uncovered before the device frees it. Once the device has it,
 * another thread may get the same address. */
bool strata_async_give_back(async_layer_t *self, strata_record_t *record, bool in_order, strata_stream_t stream,
                            strata_call_t *call) {
    strata_domain_t *domain = self->base.domain;
    strata_unlocked_t opened = strata_call_unlock(call);
    uint64_t size = strata_record_withdraw(&self->base, record);
    strata_domain_uncover(domain, record->ptr, size);
    bool gone = strata_async_is_released(in_order ? strata_device_free_async(domain->device, record->ptr, stream)
                                                  : strata_device_free(domain->device, STRATA_MEMORY_DEVICE, record->ptr));
    if (!gone) strata_domain_recover(domain, record->ptr, size);
    strata_call_lock(call, opened);
    record->size = size;
    return gone;
}

/* ---- freed blocks that wait for the free stream ---- */

/* The bytes of a free in progress are not counted as a use yet. */
static void end_pending_use(void *context, uint32_t owner, uint64_t bytes) {
    async_layer_t *self = context;
    if (owner < STRATA_USES) strata_uses_reduce(&self->uses, owner, bytes);
    strata_domain_discount(self->base.domain, bytes);
}

async_free_t strata_async_begin_free(async_layer_t *self, const strata_record_t *record) {
    async_free_t pending_free = {.owner = STRATA_USES + (self->frees_begun++ & INT32_MAX), .bytes = record->size};
    pending_free.has_span = strata_spans_add(&self->pending, pending_free.owner, record->ptr, record->ptr + record->size);
    self->waiting++;
    atomic_fetch_add(&self->base.domain->pool_frees, 1);
    return pending_free;
}

static void end_wait(async_layer_t *self) {
    self->waiting--;
    atomic_fetch_sub(&self->base.domain->pool_frees, 1);
}

void strata_async_end_free(async_layer_t *self, const async_free_t *pending_free, bool gone, bool has_free_stream,
                           strata_call_t *call) {
    uint64_t left = pending_free->has_span ? strata_spans_bytes(&self->pending, pending_free->owner) : pending_free->bytes;
    uint32_t use = gone && has_free_stream ? strata_free_stream_note(&self->frees, left, call) : 0;
    /* The lock was released, so more of the bytes may be in use again. */
    uint64_t waits = pending_free->has_span ? strata_spans_bytes(&self->pending, pending_free->owner) : left;
    if (use) {
        strata_spans_hand_over(&self->pending, pending_free->owner, use);
        if (waits < left) strata_uses_reduce(&self->uses, use, left - waits);
        return;
    }
    strata_spans_end(&self->pending, pending_free->owner);
    if (gone) strata_domain_discount(self->base.domain, waits);
    end_wait(self);
}

void strata_async_end_wait(async_layer_t *self, uint32_t use, uint64_t bytes) {
    strata_spans_end(&self->pending, use);
    strata_domain_discount(self->base.domain, bytes);
    end_wait(self);
}

/* Returns the number of frees that wait in this instance. */
static uint32_t end_pending(async_layer_t *self, uint64_t address, uint64_t bytes) {
    async_lock(self);
    uint32_t waiting = self->waiting;
    strata_spans_remove(&self->pending, address, address + bytes, end_pending_use, self);
    async_unlock(self);
    return waiting;
}

/* Instances of one place share the default pool, so frees may be pending in another instance. */
void strata_async_end_pending(async_layer_t *self, uint64_t address, uint64_t bytes) {
    strata_domain_t *domain = self->base.domain;
    if (end_pending(self, address, bytes) == atomic_load(&domain->pool_frees)) return;
    STRATA_DOMAIN_EACH(domain, stack)
        STRATA_EACH_OWN_LAYER(stack, layer)
            if (layer->type == self->base.type) (void)end_pending((async_layer_t *)layer, address, bytes);
}

/* ---- freed blocks that are kept for now ---- */

static void count_kept(async_layer_t *self, uint64_t bytes) {
    strata_statistics_t *figures = strata_layer_stack_figures(&self->base);
    self->kept_bytes += bytes;
    figures->reserved_bytes += bytes;
    figures->deferred_bytes += bytes;
}

void strata_async_keep(async_layer_t *self, strata_record_t *record) {
    record->state = STRATA_RECORD_DEFERRED;
    record->route = self->base.number;
    record->next = self->kept;
    self->kept = strata_record_slot(&self->base, record);
    count_kept(self, record->size);
}

uint32_t strata_async_detach_kept(async_layer_t *self) {
    uint32_t list = self->kept;
    self->kept = 0;
    count_kept(self, 0 - self->kept_bytes);
    return list;
}

strata_record_t *strata_async_next_kept(async_layer_t *self, uint32_t *list) {
    if (*list == 0) return NULL;
    strata_record_t *record = strata_record_at(&self->base, *list);
    *list = record->next;
    record->next = 0;
    record->route = 0;
    return record;
}
