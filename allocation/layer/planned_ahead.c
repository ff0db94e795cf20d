/* Plans of planned that were made ahead (strata_plan_load()).
 *
 * Such a plan has sizes as its maker rounded them, so that the keys of the program's requests are learnt as they come: a request is the
 * one that the plan has there if it takes as many bytes, rounded up. */
#include <stdlib.h>

#include "allocation/layer/planned_state.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* ---- names ---- */

static int by_name(const void *a, const void *b) {
    const planned_name_t *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Of several of one name the next one is meant, else the first. */
uint32_t strata_planned_named(const planned_plan_t *plan, const char *name, uint32_t at) {
    uint64_t wanted = strata_ahead_name(name);
    uint32_t low = 0, high = plan->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->names[middle].name < wanted) low = middle + 1;
        else high = middle;
    }
    for (uint32_t i = low; i < plan->count && plan->names[i].name == wanted; i++)
        if (plan->names[i].place >= at) return plan->names[i].place;
    return low < plan->count && plan->names[low].name == wanted ? plan->names[low].place : at;
}

/* ---- keys ---- */

bool strata_planned_adopt(planned_plan_t *plan, uint32_t at, uint64_t key) {
    planned_place_t *place = &plan->places[at];
    /* A larger alignment than the room's is no place's. */
    bool plain = key < UINT64_C(1) << 56;
    if (!plain || strata_round_down(key + STRATA_PLANNED_ALIGNMENT - 1, STRATA_PLANNED_ALIGNMENT) != place->size) return false;
    place->key = key;
    place->mixed = strata_past_mixed(key);
    plan->adopted = true;
    return true;
}

void strata_planned_settle(planned_plan_t *plan) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < plan->count; i++) hash = plan->places[i].hash = strata_past_mix(hash, plan->places[i].key);
    plan->adopted = false;
}

/* ---- loading ---- */

static planned_plan_t *new_plan(const strata_ahead_t *ahead) {
    planned_plan_t *plan = strata_host_new(1, sizeof *plan);
    if (!plan) return NULL;
    plan->count = ahead->count;
    plan->peak = ahead->peak;
    plan->places = strata_planned_new_places(ahead->count);
    plan->names = strata_host_new(ahead->count, sizeof *plan->names);
    if (!plan->places || !plan->names) {
        strata_planned_delete(plan);
        return NULL;
    }
    for (uint32_t i = 0; i < ahead->count; i++) {
        const strata_ahead_request_t *request = &ahead->requests[i];
        plan->places[i] = (planned_place_t){
            .key = request->size, .mixed = strata_past_mixed(request->size), .size = request->size, .offset = request->offset};
        plan->names[i] = (planned_name_t){.name = request->name, .place = i};
    }
    qsort(plan->names, ahead->count, sizeof *plan->names, by_name);
    strata_planned_settle(plan);
    (void)strata_planned_link(plan);
    return plan;
}

/* What the cache below makes of a request of one unit. It lies in the room, so that no device call is made. */
static strata_status_t check_unit(planned_t *self, strata_call_t *call) {
    const strata_request_t request = {.struct_size = sizeof request,
                                      .size = STRATA_PLANNED_ALIGNMENT,
                                      .alignment = STRATA_PLANNED_ALIGNMENT,
                                      .stream = self->base.stack->stream,
                                      .call = call,
                                      .flags = STRATA_NO_RETRY | STRATA_NO_GROW};
    uint64_t hits = self->base.stack->figures.cache_hits;
    strata_record_t *record;
    if (strata_below_allocate(&self->base, &request, &record) != STRATA_OK) return STRATA_OK;
    uint64_t size = record->size;
    strata_below_free(record, call);
    self->base.stack->figures.cache_hits = hits;
    if (size == STRATA_PLANNED_ALIGNMENT) return STRATA_OK;
    return strata_fail(STRATA_E_UNSUPPORTED, 0,
                       "the cache below makes %llu bytes of %d, and a plan made ahead has no room for that; leave its padding and "
                       "larger alignments out",
                       (unsigned long long)size, STRATA_PLANNED_ALIGNMENT);
}

static strata_status_t refuse(const planned_t *self) {
    const strata_group_t *group = self->base.stack->group;
    if (group->graph) return strata_fail(STRATA_E_UNSUPPORTED, 0, "pools of captured graphs follow no plans; load it outside them");
    if (self->busy) return strata_fail(STRATA_E_BUSY, 0, "another thread ends a step of this stream; load the plan between steps");
    if (self->base.stack->orphan) return strata_fail(STRATA_E_STALE, 0, "the stream was forgotten");
    if (atomic_load(&group->pinned)) return strata_fail(STRATA_E_BUSY, 0, "a captured graph has this memory");
    return STRATA_OK;
}

static strata_status_t get_room(planned_t *self, const planned_plan_t *plan, strata_call_t *call) {
    if (strata_planned_has_room(self, plan)) return STRATA_OK;
    return strata_planned_make_room(self, plan, call)
               ? STRATA_OK
               : strata_fail(STRATA_E_NO_MEMORY, 0, "there is no memory for its %llu bytes", (unsigned long long)plan->peak);
}

strata_status_t strata_planned_load(strata_layer_t *base, const strata_ahead_t *ahead, strata_call_t *call) {
    planned_t *self = (planned_t *)base;
    planned_plan_t *plan = NULL, *gone = NULL;
    strata_status_t status = refuse(self);
    if (status != STRATA_OK) return status;
    self->busy = true;
    strata_opened_t opened = strata_call_unlock(call);
    plan = new_plan(ahead);
    strata_call_lock(call, opened);
    status = plan ? get_room(self, plan, call) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) status = check_unit(self, call);
    if (status == STRATA_OK) {
        gone = strata_planned_keep(self, plan);
        strata_planned_go(self, plan, 0);
        self->begin = self->past.next;
        self->due = 0;
    } else {
        gone = plan;
    }
    self->busy = false;
    opened = strata_call_unlock(call);
    const strata_error_t reason = *strata_last_error();
    strata_planned_delete(gone);
    (void)strata_fail_again(&reason);
    strata_call_lock(call, opened);
    return status;
}
