/* The room of planned: addresses of the cache below that are got in one piece and freed at once. From then on they are the cache's
 * free memory like any other, and a plan says where in them each request is best served. */
#include "allocation/chunks/chunks.h"
#include "allocation/layer/planned_state.h"

/* A cache of physical handles moves what is idle into the room, and what is left over goes back after that. Another cache gives back
 * first what could not become part of the room. */
static strata_status_t get(planned_t *self, uint64_t size, strata_call_t *call, strata_record_t **record) {
    strata_layer_t *below = self->base.below[0];
    bool moves = below->type->needs & STRATA_TRAIT_HANDLE_SOURCE;
    strata_request_t request = {.struct_size = sizeof request,
                                .size = size,
                                .alignment = STRATA_PLANNED_ALIGNMENT,
                                .stream = self->base.stack->stream,
                                .call = call,
                                .flags = STRATA_NO_RETRY | STRATA_DIVISIBLE};
    if (!moves && below->type->release) (void)below->type->release(below, call);
    strata_status_t status = strata_below_allocate(&self->base, &request, record);
    if (status == STRATA_OK && moves && below->type->trim) (void)below->type->trim(below, 0, call);
    return status;
}

/* The room that there was stays where no other one is to be had. */
bool strata_planned_make_room(planned_t *self, const planned_plan_t *plan, strata_call_t *call) {
    const strata_error_t reason = *strata_last_error();
    strata_statistics_t *figures = &self->base.stack->figures;
    uint64_t hits = figures->cache_hits;
    strata_record_t *record;
    uint64_t size = plan->peak;
    strata_planned_let_go(self);
    strata_status_t status = get(self, size, call, &record);
    figures->cache_hits = hits;
    self->unheld = 0;
    if (status == STRATA_OK) {
        self->room = record->ptr;
        self->room_size = size;
        self->rooms++;
        strata_below_free(record, call);
    }
    (void)strata_fail_again(&reason);
    return status == STRATA_OK;
}
