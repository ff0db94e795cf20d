/* planned: requests of a program that repeats its steps are served where a plan says (docs/planning.md).
 *
 * It stands right above a cache, keeps no memory from it, and gives it advice: it learns what a step asks for and how long
 * each block lives, lets a planner lay the step out, and from then on asks the cache for each request at its planned address. The
 * cache serves there if that is free. So nothing overlaps, whatever the program does; what finds its place taken is served anywhere.
 */
#include "allocation/layer/planned_state.h"

static const strata_option_row_t options[] = {
    {"plans", STRATA_OPTION_COUNT, offsetof(planned_options_t, plans), "8", 1, STRATA_PLANNED_PLANS, NULL,
     "plans of different steps that are kept; the one that was not used for longest goes"},
    {"least", STRATA_OPTION_SIZE, offsetof(planned_options_t, least), "1MiB", 0, 1ull << 44, NULL,
     "steps that need less memory than this are not planned"},
    {"learns", STRATA_OPTION_BOOL, offsetof(planned_options_t, learns), "true", 0, 0, NULL,
     "steps that are repeated are planned; without it nothing is"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"planned_hits", "count", offsetof(planned_t, hits), "requests that were served at their planned address"},
    {"beside", "count", offsetof(planned_t, beside), "requests whose planned address was taken: served anywhere"},
    {"planned_steps", "count", offsetof(planned_t, steps), "steps that followed a plan to their end"},
    {"left", "count", offsetof(planned_t, left), "times that the program left a plan"},
    {"plans", "count", offsetof(planned_t, made), "plans that were made"},
    {"rooms", "count", offsetof(planned_t, rooms), "times that room for plans was made"},
    {"room_bytes", "bytes", offsetof(planned_t, room_size), "addresses that plans are laid out in"},
    {"pinned_bytes", "bytes", offsetof(planned_t, pinned),
     "memory outside the room that live blocks pin: of those that no plan placed, the chunks or handles they lie in"},
    {0},
};

static strata_layer_t *below(const planned_t *self) { return self->base.below[0]; }

/* Who serves at given places is a cache over chunks, and its state begins with them. */
static strata_chunks_t *chunks_of(const planned_t *self) { return (strata_chunks_t *)below(self); }

static void step(strata_layer_t *base, strata_call_t *call) {
    planned_t *self = (planned_t *)base;
    uint32_t count = self->past.next - self->begin;
    self->told = true;
    self->due = 0;
    if (count > 0) strata_planned_end_step(self, count, call);
}

/* The request of a plan made ahead that has this name is the next one. */
static void go_to(planned_t *self, const char *name) {
    uint32_t at = strata_planned_named(self->now, name, self->at);
    if (at != self->at) strata_planned_go(self, self->now, at);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    planned_t *self = (planned_t *)base;
    uint64_t key = strata_planned_key(request->size, request->alignment);
    if (request->tag && self->now && self->now->names) go_to(self, request->tag);
    if (self->due || strata_planned_is_due(self, key)) {
        uint32_t count = self->due;
        self->due = 0;
        strata_planned_end_step(self, count, request->call);
    }
    strata_record_t *served = strata_planned_serve(self, key, request->size, request->call->stack);
    if (served) {
        served->stack = request->call->stack->number;
        strata_record_push(served, below(self));
        *record = served;
    } else {
        strata_status_t status = strata_below_allocate(base, request, record);
        if (status != STRATA_OK) return status;
    }
    strata_planned_note(self, key, *record);
    return STRATA_OK;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    if (!strata_planned_take_back((planned_t *)base, record)) strata_below_free(record, call);
}

/* ---- what the cache below does ---- */

static strata_record_t *take_at(strata_layer_t *base, const strata_block_t *at, size_t requested, const strata_stack_t *stack) {
    strata_layer_t *cache = base->below[0];
    strata_planned_let_go((planned_t *)base);
    strata_record_t *record = cache->type->take_at(cache, at, requested, stack);
    if (record) record->noted = 0;
    return record;
}

static const strata_record_t *find(strata_layer_t *base, uint64_t address) {
    strata_layer_t *cache = base->below[0];
    return cache->type->find ? cache->type->find(cache, address) : NULL;
}

/* Looks at every block. */
static void figures(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    const strata_extent_t room = {.ptr = self->room, .size = self->room_size};
    self->pinned = strata_chunks_pinned(chunks_of(self), &room);
}

static void let_go(strata_layer_t *base) { strata_planned_let_go((planned_t *)base); }

static const strata_planning_t planning = {.load = strata_planned_load, .make = strata_planned_make_wanted, .let_go = let_go};

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    self->begin = 1;
    strata_planned_go(self, NULL, 0);
    return strata_past_init(&self->past);
}

static void destroy(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    strata_planned_let_go(self);
    for (uint32_t i = 0; i < self->plan_count; i++) strata_planned_delete(self->plans[i]);
    strata_past_destroy(&self->past);
}

/* What lives by the past has its number. */
static strata_status_t validate_noted(const planned_t *self) {
    const strata_past_t *past = &self->past;
    for (uint32_t n = past->first; n != past->next; n++) {
        const strata_past_request_t *request = strata_past_at(past, n);
        if (request->size && !request->until && self->base.records[request->slot].noted != n)
            return strata_fail(STRATA_E_CORRUPT, 0, "planned: a live block has the number of another request");
    }
    return STRATA_OK;
}

static strata_status_t validate(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    if (self->now && (self->at > self->now->count || self->next != &self->now->places[self->at]))
        return strata_fail(STRATA_E_CORRUPT, 0, "planned: a plan is followed beyond its end");
    strata_planned_tell_all(self);
    for (uint32_t i = 0; self->now && i < self->now->count; i++)
        if (self->now->places[i].mixed != strata_past_mixed(self->now->places[i].key))
            return strata_fail(STRATA_E_CORRUPT, 0, "planned: a place has another key's share of the hash");
    strata_status_t status = strata_past_validate(&self->past);
    if (status == STRATA_OK) status = strata_planned_validate_hold(self);
    return status == STRATA_OK ? validate_noted(self) : status;
}

const strata_layer_type_t strata_planned_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "planned",
    .doc = "a program that repeats its steps is served at planned addresses by the cache below",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .needs = STRATA_TRAIT_SINGLE_STREAM | STRATA_TRAIT_PLACES,
    .passes = ~0u,
    .guarded = true,
    .state_size = sizeof(planned_t),
    .options_size = sizeof(planned_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .hit = strata_planned_hit,
    .quick_free = strata_planned_quick_free,
    .direct = &strata_planned_direct,
    .step = step,
    .find = find,
    .take_at = take_at,
    .validate = validate,
    .figures = figures,
    .planning = &planning,
};
