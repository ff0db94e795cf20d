#include "allocation/mechanism/repeats.h"

#include "platform/status.h"

enum { USERS = 1 << 16, PLACES = 1 << 20, KEPT_STEPS = 64 };

typedef struct place {
    uint32_t unused;
    uint32_t next;
    uint64_t asked; /* requested bytes */
    uint64_t ptr, size;
    uint32_t slot;
} place_t;

/* The lists of a user are exchanged at its first request in a step. */
typedef struct user {
    uint32_t unused;
    strata_index_link_t link;
    uint64_t step; /* the step of its last request; 0 if this node is unused */
    uint32_t number;
    uint32_t first; /* the places of its last step that are still ahead; 0 if there are none or the step differs from it */
    uint32_t now, last; /* the places of this step, and the end of that list */
} user_t;

static user_t *user_at(const strata_repeats_t *self, uint32_t node) { return strata_node(&self->users, node); }
static place_t *place_at(const strata_repeats_t *self, uint32_t node) { return strata_node(&self->places, node); }

strata_status_t strata_repeats_init(strata_repeats_t *self) {
    *self = (strata_repeats_t){.step = 1};
    strata_status_t status = strata_nodes_init(&self->users, sizeof(user_t), USERS);
    if (status == STRATA_OK) status = strata_nodes_init(&self->places, sizeof(place_t), PLACES);
    if (status == STRATA_OK) strata_index_init(&self->index, &self->users, offsetof(user_t, link));
    else strata_repeats_destroy(self);
    return status;
}

void strata_repeats_destroy(strata_repeats_t *self) {
    if (!strata_repeats_are_on(self)) return;
    strata_nodes_destroy(&self->users);
    strata_nodes_destroy(&self->places);
    *self = (strata_repeats_t){.step = 0};
}

/* ---- users ---- */

static void release_list(strata_repeats_t *self, uint32_t *first) {
    for (uint32_t next; *first; *first = next) {
        next = place_at(self, *first)->next;
        strata_nodes_release(&self->places, *first);
    }
}

static uint32_t find(strata_repeats_t *self, uint32_t number) {
    uint32_t node = strata_index_first(&self->index, strata_index_hash(number, 0));
    while (node && user_at(self, node)->number != number) node = strata_index_next(&self->index, node);
    return node;
}

/* Returns 0 if there is no room. */
static uint32_t make(strata_repeats_t *self, uint32_t number) {
    uint32_t node = strata_nodes_acquire(&self->users);
    if (node == 0) return 0;
    user_t *user = user_at(self, node);
    user->number = number;
    user->step = self->step;
    user->first = user->now = user->last = 0;
    strata_index_add(&self->index, node, strata_index_hash(number, 0));
    return node;
}

/* At a user's first request in a step, the places of its last step become the ones to recall. */
static void begin_user_step(strata_repeats_t *self, user_t *user) {
    if (user->step == self->step) return;
    release_list(self, &user->first);
    user->first = user->now;
    user->now = user->last = 0;
    user->step = self->step;
}

/* Also forgets the users that have requested nothing for KEPT_STEPS steps. */
void strata_repeats_step(strata_repeats_t *self) {
    if (!strata_repeats_are_on(self) || ++self->step % KEPT_STEPS != 0) return;
    for (uint32_t node = 1; node < self->users.used; node++) {
        user_t *user = user_at(self, node);
        if (user->step == 0 || user->step + KEPT_STEPS > self->step) continue;
        release_list(self, &user->first);
        release_list(self, &user->now);
        strata_index_remove(&self->index, node);
        user->step = 0;
        strata_nodes_release(&self->users, node);
    }
}

/* ---- places ---- */

bool strata_repeats_recall(strata_repeats_t *self, uint32_t number, uint64_t size, strata_extent_t *extent) {
    uint32_t node = strata_repeats_are_on(self) ? find(self, number) : 0, next;
    user_t *user = node ? user_at(self, node) : NULL;
    if (!user) return false;
    begin_user_step(self, user);
    if ((next = user->first) == 0) return false;
    const place_t *place = place_at(self, next);
    if (place->asked != size) {
        release_list(self, &user->first);
        return false;
    }
    *extent = (strata_extent_t){.ptr = place->ptr, .size = place->size, .slot = place->slot};
    user->first = place->next;
    strata_nodes_release(&self->places, next);
    return true;
}

void strata_repeats_note(strata_repeats_t *self, const strata_slab_t *slab, uint32_t number, uint64_t size,
                         const strata_record_t *block) {
    if (!strata_repeats_are_on(self)) return;
    uint32_t of = find(self, number), node;
    if (of == 0) of = make(self, number);
    if (of == 0 || (node = strata_nodes_acquire(&self->places)) == 0) return;
    user_t *user = user_at(self, of);
    begin_user_step(self, user);
    *place_at(self, node) = (place_t){.asked = size, .ptr = block->ptr, .size = block->size, .slot = strata_slab_slot(slab, block)};
    *(user->last ? &place_at(self, user->last)->next : &user->now) = node;
    user->last = node;
}

/* ---- check ---- */

static bool count_list(const strata_repeats_t *self, uint32_t first, uint32_t *seen, uint32_t *end) {
    *end = 0;
    for (uint32_t node = first; node; *end = node, node = place_at(self, node)->next)
        if (node >= self->places.used || ++*seen >= self->places.used) return false;
    return true;
}

strata_status_t strata_repeats_validate(const strata_repeats_t *self) {
    uint32_t seen = 0, users = 0, end;
    if (!strata_repeats_are_on(self)) return STRATA_OK;
    for (uint32_t node = 1; node < self->users.used; node++) {
        const user_t *user = user_at(self, node);
        if (user->step == 0) continue;
        users++;
        bool sound = user->step <= self->step && count_list(self, user->first, &seen, &end) &&
                     count_list(self, user->now, &seen, &end) && end == user->last;
        if (!sound) return strata_fail(STRATA_E_CORRUPT, 0, "repeats: a list of places is broken");
    }
    if (users != self->index.count || seen + self->places.unused + 1 != self->places.used)
        return strata_fail(STRATA_E_CORRUPT, 0, "repeats: places are lost");
    strata_status_t status = strata_index_validate(&self->index);
    if (status == STRATA_OK) status = strata_nodes_validate(&self->users);
    return status == STRATA_OK ? strata_nodes_validate(&self->places) : status;
}
