/* Layers that break the contract: the suite must say so. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/modules/pass.h"

/* Every second record that each instance gets back does not go on. */
static void forgetful_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    static struct {
        uint64_t serial;
        unsigned count;
    } instances[1 << 10];
    unsigned at = self->serial % (1 << 10);
    if (instances[at].serial != self->serial) instances[at].count = 0;
    instances[at].serial = self->serial;
    if (++instances[at].count % 2) strata_below_free(record, call);
}

static void crashing_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self, (void)record, (void)call;
    abort();
}

static pthread_t loader;

__attribute__((constructor)) static void note_loader(void) { loader = pthread_self(); }

/* Other threads than the one that loaded the object are refused, whatever there is. */
static strata_status_t partial_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return pthread_equal(loader, pthread_self()) ? strata_below_allocate(self, request, record) : STRATA_E_NO_MEMORY;
}

PASS_TYPE(forgetful, .free = forgetful_free);
PASS_TYPE(crashing, .free = crashing_free);
PASS_TYPE_ALLOCATING(partial, partial_allocate, .free = pass_free);

STRATA_LAYERS(&forgetful_type, &crashing_type, &partial_type);
