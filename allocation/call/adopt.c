/* Adopts foreign memory as records of a source: strata/layer.h. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "platform/arguments.h"

/* Stored in the words of the record that link the blocks of a cache. */
typedef struct ending {
    strata_deleter_fn deleter;
    void *context;
} ending_t;

_Static_assert(offsetof(strata_record_t, chunk) - offsetof(strata_record_t, prev) == sizeof(ending_t), "it has room there");

static void give_back(strata_layer_t *self, const strata_record_t *record, uint64_t size) {
    ending_t ending;
    memcpy(&ending, &record->prev, sizeof ending);
    strata_domain_uncover(self->domain, record->ptr, size);
    if (ending.deleter) ending.deleter(record->ptr, size, ending.context);
    strata_domain_unbook(self->domain, size);
}

strata_status_t strata_record_adopt(strata_layer_t *self, const strata_request_t *request, const strata_adopted_t *memory,
                                    strata_record_t **record) {
    STRATA_REFUSE_NULL(self);
    STRATA_REFUSE_NULL(request);
    STRATA_REFUSE_NULL(memory);
    STRATA_REFUSE_NULL(record);
    const ending_t ending = {memory->deleter, memory->context};
    if (memory->size < request->size || (memory->address & (request->alignment - 1)) != 0)
        return strata_fail(STRATA_E_INVALID, 0, "%s: the adopted memory is too small or misaligned", self->type->name);
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_domain_t *domain = self->domain;
    strata_status_t status = strata_domain_claim(domain, request, memory->size);
    if (status == STRATA_OK && (status = strata_domain_book(domain, memory->address, memory->size)) != STRATA_OK)
        strata_domain_unclaim(domain, memory->size);
    strata_call_lock(request->call, opened);
    strata_record_t *adopted = status == STRATA_OK ? strata_record_new(self, request, memory->address, memory->size) : NULL;
    if (adopted) {
        memcpy(&adopted->prev, &ending, sizeof ending);
        *record = adopted;
        return STRATA_OK;
    }
    if (status != STRATA_OK) return status;
    opened = strata_call_unlock(request->call);
    strata_domain_uncover(domain, memory->address, memory->size);
    strata_domain_unbook(domain, memory->size);
    strata_call_lock(request->call, opened);
    return STRATA_E_LIMIT;
}

void strata_layer_free_adopted(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    STRATA_REFUSE_NULL_AS(record, "record", );
    STRATA_REFUSE_NULL_AS(call, "call", );
    strata_unlocked_t opened = strata_call_unlock(call);
    give_back(self, record, strata_record_withdraw(self, record));
    strata_call_lock(call, opened);
    strata_record_delete(self, record);
}

static void give_back_left(const strata_record_t *record, void *self) { give_back(self, record, record->size); }

void strata_layer_destroy_adopted(strata_layer_t *self) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    strata_layer_each_remaining(self, give_back_left, self);
}
