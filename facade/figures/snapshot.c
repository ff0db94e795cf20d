/* Reports every block of a place at one moment. Copies the rows with the locks of all its stacks held,
 * and reports them with no lock held. */
#include "allocation/call/rows.h"
#include "facade/registry/inside.h"
#include "platform/arguments.h"

strata_status_t strata_snapshot(strata_t handle, strata_place_t place, strata_snapshot_fn row, void *context) {
    STRATA_REFUSE_NULL(row);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_rows_t rows;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status == STRATA_OK) status = strata_rows_take(domain, &rows);
    if (status != STRATA_OK) return status;
    strata_inside_t frame;
    strata_inside_begin(&frame, handle);
    for (size_t i = 0; i < rows.run_count; i++)
        for (size_t k = 0; k < rows.runs[i].count; k++) row(&rows.runs[i].first[k], context);
    strata_inside_end(&frame);
    strata_rows_delete(&rows);
    return STRATA_OK;
}
