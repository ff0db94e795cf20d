/* Shared ownership of a block. */
#include "allocation/layer.h"
#include "allocation/side.h"
#include "facade/facade.h"

strata_status_t strata_retain(strata_t handle, strata_ref_t ref) {
    strata_path_t path;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &path, &record);
    if (status != STRATA_OK) return status;
    status = strata_record_retain(&path, record);
    (void)strata_path_unlock(&path);
    return status;
}

strata_status_t strata_release_ref(strata_t facade, strata_ref_t ref) {
    return strata_free(facade, ref);
}
