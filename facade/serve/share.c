/* Shared ownership of a block. */
#include "allocation/domain/layer.h"
#include "allocation/uses/record_notes.h"
#include "facade/registry/facade.h"

strata_status_t strata_retain(strata_t handle, strata_ref_t ref) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    status = strata_record_retain(&call, record);
    (void)strata_call_unlock(&call);
    return status;
}

strata_status_t strata_release_ref(strata_t facade, strata_ref_t ref) { return strata_free(facade, ref); }
