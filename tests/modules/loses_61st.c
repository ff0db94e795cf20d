/* The example cache, each instance of which loses every 61st block that it gets back: it is free and in no index. */
#include <strata/layer.h>

static bool losing_quick_free(strata_layer_t *self, strata_record_t *block) {
    static struct {
        uint64_t serial;
        unsigned count;
    } instances[1 << 10];
    unsigned at = self->serial % (1 << 10);
    if (instances[at].serial != self->serial) instances[at].count = 0;
    instances[at].serial = self->serial;
    if (++instances[at].count % 61) return strata_chunked_quick_free(self, block);
    block->state = STRATA_RECORD_DEFERRED;
    return true;
}

static void losing_free(strata_layer_t *self, strata_record_t *block, strata_call_t *call) {
    (void)call;
    (void)losing_quick_free(self, block);
}

#define strata_chunked_quick_free losing_quick_free
#define strata_chunked_free       losing_free
#include "examples/segregated_fit.c"
