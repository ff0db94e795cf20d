/* Plans of planned: which offset each request of a step is best served at. */
#include "allocation/layer/planned_state.h"

#include "planning/steady.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { DRAWN_AT_ONCE = 512 };

/* What goes to a planner: buffers, and whose they are. */
typedef struct drawing {
    planned_plan_t *plan;
    strata_plan_buffer_t *buffers;
    uint64_t *offsets;
    uint32_t *places; /* by buffer */
    uint32_t count;
    uint64_t fixed; /* bytes of what lives beyond the end of the step */
} drawing_t;

planned_place_t *strata_planned_new_places(uint32_t count) {
    planned_place_t *places = strata_host_new((size_t)count + 1, sizeof *places);
    if (places) places[count].key = STRATA_PLANNED_NOBODY;
    return places;
}

void strata_planned_delete(planned_plan_t *plan) {
    if (!plan) return;
    strata_host_delete(plan->places);
    strata_host_delete(plan->names);
    strata_host_delete(plan->links);
    strata_host_delete(plan->by_address);
    strata_host_delete(plan->slots);
    strata_host_delete(plan);
}

static void end_drawing(drawing_t *drawing) {
    strata_host_delete(drawing->buffers);
    strata_host_delete(drawing->offsets);
    strata_host_delete(drawing->places);
}

/* A buffer that lives beyond the end of the step is two. */
static bool begin_drawing(drawing_t *drawing, uint32_t count) {
    drawing->plan = strata_host_new(1, sizeof *drawing->plan);
    if (drawing->plan) drawing->plan->places = strata_planned_new_places(count);
    drawing->buffers = strata_host_new(2 * (size_t)count, sizeof *drawing->buffers);
    drawing->offsets = strata_host_new(2 * (size_t)count, sizeof *drawing->offsets);
    drawing->places = strata_host_new(2 * (size_t)count, sizeof *drawing->places);
    if (drawing->plan) drawing->plan->count = count;
    return drawing->plan && drawing->plan->places && drawing->buffers && drawing->offsets && drawing->places;
}

static void add(drawing_t *drawing, uint32_t place, uint32_t lower, uint32_t upper, uint64_t offset) {
    const planned_place_t *p = &drawing->plan->places[place];
    if (lower >= upper) return;
    drawing->places[drawing->count] = place;
    drawing->buffers[drawing->count++] = (strata_plan_buffer_t){.lower = lower,
                                                                .upper = upper,
                                                                .size = p->size,
                                                                .alignment = STRATA_PLANNED_ALIGNMENT,
                                                                .offset = offset == STRATA_NOWHERE ? 0 : offset,
                                                                .flags = offset == STRATA_NOWHERE ? 0 : STRATA_PLAN_FIXED};
}

/* What lives at the end of the step all lives at one moment: it is stacked up from the bottom. */
static void draw(drawing_t *drawing, uint32_t place, uint32_t life) {
    uint32_t count = drawing->plan->count;
    if (place + life <= count) {
        add(drawing, place, place, place + life, STRATA_NOWHERE);
        return;
    }
    uint64_t offset = drawing->fixed;
    drawing->fixed += strata_round_down(drawing->plan->places[place].size + STRATA_PLANNED_ALIGNMENT - 1, STRATA_PLANNED_ALIGNMENT);
    add(drawing, place, place, count, offset);
    add(drawing, place, 0, place + life - count, offset);
}

/* What lives longer than a step stays with the cache below. */
static void draw_one(const strata_past_t *past, drawing_t *drawing, uint32_t i, uint32_t number) {
    uint32_t count = drawing->plan->count, life = strata_past_life(past, number, count);
    const strata_past_request_t *request = strata_past_at(past, number);
    uint64_t hash = strata_past_mix(i ? drawing->plan->places[i - 1].hash : 0, request->key);
    drawing->plan->places[i] = (planned_place_t){.key = request->key,
                                                 .mixed = strata_past_mixed(request->key),
                                                 .size = request->size,
                                                 .offset = STRATA_NOWHERE,
                                                 .hash = hash};
    if (life <= count && request->key >> 56 == 0) draw(drawing, i, life);
}

/* The step of the requests before `end`, a few at a time, so that requests of others need not wait long. False: the past does not know
 * it, and the one before it, any more. */
static bool draw_all(planned_t *self, drawing_t *drawing, uint32_t end, strata_call_t *call) {
    uint32_t count = drawing->plan->count, from = end - count;
    for (uint32_t i = 0; i < count;) {
        if (!strata_past_knows(&self->past, from - count + i)) return false;
        for (uint32_t most = i + DRAWN_AT_ONCE; i < count && i < most; i++) draw_one(&self->past, drawing, i, from + i);
        strata_call_lock(call, strata_call_unlock(call));
    }
    return true;
}

/* No lock is held. */
static strata_status_t place_all(drawing_t *drawing) {
    strata_status_t status = strata_plan_steady(drawing->buffers, drawing->count, drawing->offsets);
    if (status == STRATA_OK) status = strata_plan_check(drawing->buffers, drawing->count, drawing->offsets, &drawing->plan->peak);
    if (status != STRATA_OK) return status;
    for (uint32_t i = 0; i < drawing->count; i++) drawing->plan->places[drawing->places[i]].offset = drawing->offsets[i];
    return STRATA_OK;
}

/* ---- the plans that there are ---- */

planned_plan_t *strata_planned_find(planned_t *self, uint32_t count, uint64_t hash) {
    for (uint32_t i = 0; i < self->plan_count; i++) {
        planned_plan_t *plan = self->plans[i];
        if (plan->count == count && plan->places[count - 1].hash == hash) return plan;
    }
    return NULL;
}

/* Whatever comes to be compared with this step begins with the one before it: older ones are forgotten, so that the lock is not held for
 * long. */
void strata_planned_tell(planned_t *self) {
    const planned_plan_t *plan = self->now;
    strata_past_skip(&self->past, self->at + plan->count);
    uint32_t count = self->past.next - self->past.open;
    uint32_t at = (uint32_t)((self->at + plan->count - (uint64_t)count % plan->count) % plan->count);
    for (; count > 0; count--) {
        const planned_place_t *place = &plan->places[at];
        strata_past_tell(&self->past, &(strata_past_key_t){place->key, place->mixed});
        if (++at == plan->count) at = 0;
    }
}

void strata_planned_go(planned_t *self, planned_plan_t *plan, uint32_t at) {
    static planned_place_t none = {.key = STRATA_PLANNED_NOBODY};
    bool round = plan && plan == self->now && at == 0 && self->at == plan->count;
    if (!round) {
        strata_planned_tell_all(self);
        strata_planned_let_go(self);
    }
    self->now = plan;
    self->at = at;
    self->next = plan ? &plan->places[at] : &none;
}

static planned_plan_t *oldest(planned_t *self) {
    uint32_t found = 0;
    for (uint32_t i = 1; i < self->plan_count; i++)
        if (self->plans[i]->used < self->plans[found]->used) found = i;
    planned_plan_t *plan = self->plans[found];
    self->plans[found] = self->plans[--self->plan_count];
    if (self->now == plan) strata_planned_go(self, NULL, 0);
    if (self->before == plan) self->before = NULL;
    return plan;
}

planned_plan_t *strata_planned_keep(planned_t *self, planned_plan_t *plan) {
    planned_plan_t *gone = self->plan_count >= strata_planned_options(self)->plans ? oldest(self) : NULL;
    plan->serial = ++self->last_serial;
    plan->used = ++self->clock;
    self->plans[self->plan_count++] = plan;
    self->made++;
    return gone;
}

/* ---- making one ---- */

/* For the `count` requests before `end`. */
static planned_plan_t *make(planned_t *self, uint32_t count, uint32_t end, strata_call_t *call) {
    drawing_t drawing = {0};
    strata_opened_t opened = strata_call_unlock(call);
    bool ready = begin_drawing(&drawing, count);
    strata_call_lock(call, opened);
    ready = ready && draw_all(self, &drawing, end, call);
    opened = strata_call_unlock(call);
    ready = ready && drawing.count > 0 && place_all(&drawing) == STRATA_OK;
    ready = ready && drawing.plan->peak >= strata_planned_options(self)->least;
    if (ready) (void)strata_planned_link(drawing.plan);
    end_drawing(&drawing);
    strata_call_lock(call, opened);
    planned_plan_t *gone = ready ? strata_planned_keep(self, drawing.plan) : drawing.plan;
    opened = strata_call_unlock(call);
    strata_planned_delete(gone);
    strata_call_lock(call, opened);
    return ready ? drawing.plan : NULL;
}

/* Whether another thread will make it. */
static bool hand_over(planned_t *self, uint32_t count, uint32_t end, strata_call_t *call) {
    const strata_domain_t *domain = self->base.domain;
    if (!domain->want_plans) return false;
    self->wanted = count;
    self->wanted_end = end;
    strata_opened_t opened = strata_call_unlock(call);
    bool handed = domain->want_plans(domain->free_memory_context);
    strata_call_lock(call, opened);
    if (!handed) self->wanted = 0;
    return handed;
}

planned_plan_t *strata_planned_make(planned_t *self, uint32_t count, strata_call_t *call) {
    const strata_error_t reason = *strata_last_error();
    uint32_t end = self->past.next;
    if (hand_over(self, count, end, call)) return NULL;
    planned_plan_t *plan = make(self, count, end, call);
    (void)strata_fail_again(&reason);
    return plan;
}

/* What is wanted meanwhile is newer, and comes next. */
void strata_planned_make_wanted(strata_layer_t *base, strata_call_t *call) {
    planned_t *self = (planned_t *)base;
    while (self->wanted > 0) {
        strata_planned_tell_all(self);
        uint32_t count = self->wanted, end = self->wanted_end;
        self->wanted = 0;
        if (!strata_past_knows(&self->past, end - count)) continue;
        self->making = strata_past_hash(&self->past, end - count, count);
        (void)make(self, count, end, call);
        self->making = 0;
    }
}
