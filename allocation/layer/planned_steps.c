/* Where steps of planned begin and end, and which plan is followed. */
#include "allocation/layer/planned_state.h"
#include "platform/arithmetic.h"

#define COLD __attribute__((noinline))

enum { RESTS_MOST = 64, BESIDE_PART = 16, UNHELD_FIRST = 2, UNHELD_DOUBLED = 10 };

/* ---- steps that are told ---- */

static planned_plan_t *by_serial(const planned_t *self, uint32_t serial) {
    for (uint32_t i = 0; i < self->plan_count; i++)
        if (self->plans[i]->serial == serial) return self->plans[i];
    return NULL;
}

static bool may_work(const planned_t *self) {
    const strata_stack_t *stack = self->base.stack;
    return !self->busy && !stack->orphan && !stack->group->graph && !atomic_load(&stack->group->pinned);
}

/* The plan that is followed from now on, if there is room for it. */
static void follow(planned_t *self, planned_plan_t *plan) {
    strata_planned_go(self, plan && strata_planned_has_room(self, plan) ? plan : NULL, 0);
    if (plan) plan->used = ++self->clock;
    if (!self->holds && may_work(self)) strata_planned_hold(self);
}

/* A step of `plan` (NULL: of none) has ended. What follows is what followed it the last time, at first the same. */
static planned_plan_t *turn(planned_t *self, planned_plan_t *plan) {
    if (self->before && plan) self->before->after = plan->serial;
    self->before = plan;
    self->steps += plan && plan == self->now && self->at == plan->count;
    planned_plan_t *next = plan ? by_serial(self, plan->after) : NULL;
    return next ? next : plan;
}

/* Whether strangers have kept the room from being held for so long that it is made anew without them: each time they are given twice as
 * long. A cache of physical handles needs little more than those that they pin; another one would get the whole room twice. */
static bool has_strangers(const planned_t *self) {
    uint32_t most = (uint32_t)UNHELD_FIRST << strata_min(self->estranged, UNHELD_DOUBLED);
    return self->unheld >= most && self->base.below[0]->type->needs & STRATA_TRAIT_HANDLE_SOURCE;
}

/* Whether too much of the step found its place taken. */
static bool overflows(const planned_t *self, const planned_plan_t *plan) { return self->beside_bytes > plan->peak / BESIDE_PART; }

/* So it is; room is made anew, but seldom if that does not help. */
static bool is_crowded(planned_t *self, const planned_plan_t *plan) {
    bool crowded = overflows(self, plan);
    self->beside_bytes = 0;
    if (!crowded) {
        self->rest = self->rests = 0;
        return false;
    }
    if (self->rest > 0) {
        self->rest--;
        return false;
    }
    self->rests = (uint32_t)strata_min(2 * self->rests + 1, RESTS_MOST);
    self->rest = self->rests;
    return true;
}

/* Whether room for the plan and what lives now are little more than what lived at the most: else much of the step is not free yet,
 * since other streams use it, and room would be got twice. */
static bool has_settled(const planned_t *self, const planned_plan_t *plan) {
    uint64_t most = strata_past_most(&self->past);
    return self->past.live + plan->peak <= most + most / BESIDE_PART;
}

/* Whether the step of so many requests followed the plan from its first one to its last. */
static bool is_followed(const planned_t *self, uint32_t count) {
    const planned_plan_t *plan = self->now;
    return plan && !plan->names && self->at == plan->count && count == plan->count;
}

/* The plan of the step of the last `count` requests. It is made if the step was repeated. */
static planned_plan_t *plan_of_step(planned_t *self, uint32_t count, strata_call_t *call) {
    if (is_followed(self, count)) return self->now;
    strata_planned_tell_all(self);
    if (self->now && self->at == self->now->count && self->now->adopted) strata_planned_settle(self->now);
    uint32_t now = self->past.next;
    if (count == 0 || now - self->past.first < count) return NULL;
    uint64_t hash = strata_past_hash(&self->past, now - count, count);
    planned_plan_t *plan = strata_planned_find(self, count, hash);
    bool wants = !plan && hash != self->making && strata_planned_options(self)->learns;
    if (!wants || !may_work(self) || !strata_past_repeats(&self->past, count)) return plan;
    self->busy = true;
    plan = strata_planned_make(self, count, call);
    self->busy = false;
    return plan;
}

/* Room for the plan comes together if there is none, or none that is any good. Returns the plan, unless it went meanwhile. */
static planned_plan_t *look_after_room(planned_t *self, planned_plan_t *plan, strata_call_t *call) {
    bool crowded = is_crowded(self, plan), strangers = has_strangers(self), has_room = strata_planned_has_room(self, plan);
    if (has_room && !crowded && !strangers) return plan;
    if (!may_work(self) || !has_settled(self, plan)) return plan;
    uint32_t serial = plan->serial;
    self->estranged += strangers;
    self->busy = true;
    (void)strata_planned_make_room(self, plan, call);
    self->busy = false;
    return by_serial(self, serial);
}

/* The plan of the step is made if it was repeated. */
void strata_planned_end_step(planned_t *self, uint32_t count, strata_call_t *call) {
    uint32_t now = self->past.next;
    planned_plan_t *next = turn(self, plan_of_step(self, count, call));
    if (!next && self->plan_count > 0) next = self->plans[self->plan_count - 1];
    if (next) next = look_after_room(self, next, call);
    follow(self, now == self->past.next ? next : NULL);
    self->begin = self->past.next;
}

/* ---- steps that nobody tells ---- */

/* Whether a step of so many requests ends here: one that is planned, or the second of two that are alike and need most of the memory
 * that was in use of late. */
static COLD bool ends_step(planned_t *self, uint32_t count) {
    const strata_past_t *past = &self->past;
    uint32_t from = past->next - count;
    uint64_t hash = strata_past_hash(past, from, count), most = strata_past_most(past);
    planned_plan_t *plan = strata_planned_find(self, count, hash);
    if (plan) return true;
    bool twice = strata_past_knows(past, from - count) && strata_past_at(past, from)->level == from - count &&
                 strata_past_hash(past, from - count, count) == hash;
    return twice && strata_past_peak(past, count) - past->live >= (most - past->live) / 2;
}

bool strata_planned_look_closely(planned_t *self, uint32_t count) {
    if (!may_work(self) || !ends_step(self, count)) return false;
    self->due = count;
    return true;
}

/* The step has been followed to its end. */
static bool wrap(planned_t *self) {
    planned_plan_t *plan = self->now;
    if (plan->adopted) strata_planned_settle(plan);
    if (self->told) {
        strata_planned_go(self, NULL, 0);
        self->left++;
        return false;
    }
    if (overflows(self, plan) || has_strangers(self)) {
        self->due = plan->count;
        return true;
    }
    follow(self, turn(self, plan));
    self->beside_bytes = 0;
    return false;
}

/* ---- whose the next request is ---- */

/* The plan that goes on with the key: this one, if it was made ahead, or another one that begins as this step did. */
static COLD planned_plan_t *other_plan(planned_t *self, uint64_t key) {
    planned_plan_t *left = self->now;
    strata_planned_tell_all(self);
    if (left->names && strata_planned_adopt(left, self->at, key)) return left;
    uint64_t hash = strata_past_mix(self->at ? left->places[self->at - 1].hash : 0, key);
    for (uint32_t i = 0; i < self->plan_count; i++) {
        planned_plan_t *plan = self->plans[i];
        if (plan != left && plan->count > self->at && plan->places[self->at].hash == hash && strata_planned_has_room(self, plan))
            return plan;
    }
    self->left++;
    return NULL;
}

bool strata_planned_is_expected(planned_t *self, uint64_t key) {
    if (self->next->key == key) return true;
    if (!self->now || self->at >= self->now->count) return false;
    strata_planned_go(self, other_plan(self, key), self->at);
    return self->now != NULL;
}

bool strata_planned_is_due(planned_t *self, uint64_t key) {
    if (self->now && self->at >= self->now->count && wrap(self)) return true;
    return !strata_planned_is_expected(self, key) && !self->told && strata_planned_look_for_step(self);
}
