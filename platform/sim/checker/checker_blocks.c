/* The program's reports about its blocks: served, borrowed, freed. */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

/* ---- served ---- */

typedef struct carving {
    check_life_t *life;
    uint64_t note;
} carving_t;

static void carve(strata_checker_t *checker, check_life_t *old, void *context) {
    const carving_t *carving = context;
    check_life_t *life = carving->life;
    if (old->alive && !old->raw) {
        check_use_t other = {.actor = old->owner, .life = old->number};
        check_report_history(
            checker, &(check_fault_t){
                         .kind = STRATA_HAZARD_OVERLAP, .life = life, .actor = life->owner, .note = carving->note, .old = &other});
    }
    check_uses_join(checker, &life->before, &old->uses);
    if (!old->follows_before) check_uses_join(checker, &life->before, &old->before);
    if (!old->birth_actor) return;
    check_uses_join(checker, &life->freed, &old->freed);
    life->birth_actor = old->birth_actor;
    life->birth_epoch = old->birth_epoch;
}

static void report_overlap(strata_checker_t *checker, check_life_t *old, uint64_t shift, void *context) {
    const carving_t *carving = context;
    (void)shift;
    if (!old->alive || old->raw || old == carving->life) return;
    check_use_t other = {.actor = old->owner, .life = old->number};
    check_report_history(checker, &(check_fault_t){.kind = STRATA_HAZARD_OVERLAP,
                                                   .life = carving->life,
                                                   .actor = carving->life->owner,
                                                   .note = carving->note,
                                                   .old = &other});
}

static sim_stream_t *stream_of(sim_device_t *device, strata_handle_t handle) {
    sim_device_t *owner = (uintptr_t)handle > 2 ? sim_handle_owner(device->world, (uintptr_t)handle) : NULL;
    return sim_stream(owner ? owner : device, handle);
}

static void serve(strata_checker_t *checker, const strata_checker_block_t *block) {
    sim_device_t *device = sim_of(block->device);
    sim_stream_t *stream = stream_of(device, block->stream);
    uint64_t *name = check_map_at(&checker->names, block->name, true);
    check_life_t *life = stream && name ? check_life_new(checker, block->address, block->size) : NULL;
    if (!life) {
        checker->incomplete = true;
        return;
    }
    life->refs = 1;
    life->name = block->name;
    life->device = device;
    life->ownerless = block->ownerless;
    life->planned = block->planned;
    life->graph_pool = block->graph_pool;
    life->owner = check_stream(checker, stream);
    if (block->ownerless && block->stream) check_uses_add(checker, &life->borrowers, &(check_use_t){.actor = life->owner});
    carving_t carving = {life, check_note(checker, CHECK_NOTE_SERVED, life->owner, life->number, 0)};
    check_remove_range(checker, block->address, block->size, carve, &carving);
    check_segment_new(checker, block->address, block->size, life);
    check_each_alias(checker, block->address, block->size, report_overlap, &carving);
    if (*name) check_life_drop((check_life_t *)(uintptr_t)*name);
    *name = (uintptr_t)life;
}

void strata_checker_allocated(strata_checker_t *checker, const strata_checker_block_t *block) {
    if (block->size == 0 || block->name == 0) return;
    strata_lock(&checker->world->lock);
    serve(checker, block);
    strata_unlock(&checker->world->lock);
}

void strata_checker_capture_pool(strata_checker_t *checker, uint64_t capture, uint64_t graph_pool) {
    strata_lock(&checker->world->lock);
    uint64_t *pool = check_map_at(&checker->pools, capture, true);
    if (pool) *pool = graph_pool;
    else checker->incomplete = true;
    strata_unlock(&checker->world->lock);
}

/* ---- borrowed and used ---- */

static check_life_t *life_of(strata_checker_t *checker, uint64_t name) {
    const uint64_t *at = check_map_at(&checker->names, name, false);
    return at ? (check_life_t *)(uintptr_t)*at : NULL;
}

/* Returns the actor of a stream that the program names, or 0 if it is no stream. */
static uint32_t actor_of(strata_checker_t *checker, const check_life_t *life, strata_handle_t handle) {
    sim_stream_t *stream = stream_of(life->device, handle);
    return stream ? check_stream(checker, stream) : 0;
}

static void forget_borrower(check_life_t *life, uint32_t actor) {
    const check_use_t *all = check_uses_all(&life->borrowers);
    for (uint32_t i = 0; i < life->borrowers.count; i++) {
        if (all[i].actor != actor) continue;
        check_uses_remove(&life->borrowers, i);
        return;
    }
}

static void borrow(strata_checker_t *checker, uint64_t name, strata_handle_t stream, bool begins) {
    strata_lock(&checker->world->lock);
    check_life_t *life = life_of(checker, name);
    uint32_t actor = life ? actor_of(checker, life, stream) : 0;
    if (actor) {
        check_note(checker, begins ? CHECK_NOTE_BORROWED : CHECK_NOTE_ERASED, actor, life->number, 0);
        if (begins) check_uses_add(checker, &life->borrowers, &(check_use_t){.actor = actor});
        else forget_borrower(life, actor);
    }
    strata_unlock(&checker->world->lock);
}

void strata_checker_borrowed(strata_checker_t *checker, uint64_t name, strata_handle_t stream) {
    borrow(checker, name, stream, true);
}

void strata_checker_erased(strata_checker_t *checker, uint64_t name, strata_handle_t stream) {
    borrow(checker, name, stream, false);
}

void strata_checker_used(strata_checker_t *checker, uint64_t name, strata_handle_t handle, bool begins) {
    strata_lock(&checker->world->lock);
    check_life_t *life = life_of(checker, name);
    sim_stream_t *stream = life ? stream_of(life->device, handle) : NULL;
    if (stream) {
        check_use_t use = {.how = CHECK_IMPLIED, .life = life->number};
        use.actor = check_begin_operation(checker, stream);
        use.epoch = check_tick(checker, use.actor);
        use.note = check_note(checker, CHECK_NOTE_IMPLIED, use.actor, life->number, 0);
        if (begins) check_owner(checker, life, &check_actor(checker, use.actor)->clock, &use);
        check_uses_add(checker, &life->uses, &use);
    }
    strata_unlock(&checker->world->lock);
}

/* ---- freed ---- */

typedef struct freeing {
    check_life_t *life;
    uint32_t host, stream; /* the caller; the stream of the last use, or the caller if none is known */
} freeing_t;

static bool knows(strata_checker_t *checker, uint32_t actor, const check_use_t *use) {
    return check_clock_get(check_clock_of(checker, actor), use->actor) >= use->epoch;
}

/* Returns true if the allocator is responsible for a use. It must order the next owner after everything
 * submitted so far to the owner stream, the stream of the free and the borrowers. It must also order it
 * after everything that the freeing thread has seen. */
static bool covered(strata_checker_t *checker, const freeing_t *freeing, const check_use_t *use) {
    check_life_t *life = freeing->life;
    if (knows(checker, freeing->host, use) || knows(checker, freeing->stream, use)) return true;
    if (!life->ownerless && knows(checker, life->owner, use)) return true;
    for (uint32_t i = 0; i < life->borrowers.count; i++)
        if (knows(checker, check_uses_all(&life->borrowers)[i].actor, use)) return true;
    return false;
}

/* Any other use is the program's fault. It is reported once, here. */
static void check_uncovered(strata_checker_t *checker, const freeing_t *freeing, uint64_t note) {
    check_uses_t *uses = &freeing->life->uses;
    for (uint32_t i = 0; i < uses->count;) {
        check_use_t use = check_uses_all(uses)[i];
        if (covered(checker, freeing, &use)) {
            i++;
            continue;
        }
        check_report_history(
            checker, &(check_fault_t){
                         .kind = STRATA_HAZARD_FREE, .life = freeing->life, .actor = freeing->stream, .note = note, .old = &use});
        check_uses_remove(uses, i);
    }
}

/* Rule 8: a plan that gives memory to several owners in turn must order the next one after the free itself. */
static void mark_free(strata_checker_t *checker, const freeing_t *freeing, uint64_t note) {
    check_use_t use = {.actor = freeing->stream, .how = CHECK_FREE_POINT, .life = freeing->life->number, .note = note};
    if (check_actor(checker, use.actor)->destroyed) use.actor = freeing->host;
    use.epoch = check_tick(checker, use.actor);
    check_uses_add(checker, &freeing->life->uses, &use);
}

static void end_life(strata_checker_t *checker, check_life_t *life, uint32_t stream) {
    freeing_t freeing = {.life = life, .host = check_host(checker), .stream = stream};
    uint64_t note = check_note(checker, CHECK_NOTE_FREED, freeing.stream, life->number, 0);
    check_uncovered(checker, &freeing, note);
    if (life->planned && check_rule(checker, 8)) mark_free(checker, &freeing, note);
    life->alive = false;
    check_uses_end(&life->borrowers);
    free(life->accesses);
    life->accesses = NULL;
    life->access_count = 0;
    if (life->follows_before) check_uses_end(&life->before);
}

static void end_named(strata_checker_t *checker, uint64_t name, const strata_handle_t *on) {
    strata_lock(&checker->world->lock);
    check_life_t *life = life_of(checker, name);
    uint32_t stream = life && on ? actor_of(checker, life, *on) : 0;
    if (life) {
        uint32_t unsaid = life->ownerless ? check_host(checker) : life->owner;
        end_life(checker, life, stream ? stream : unsaid);
        check_map_remove(&checker->names, name);
        check_life_drop(life);
    }
    strata_unlock(&checker->world->lock);
}

void strata_checker_freed(strata_checker_t *checker, uint64_t name) { end_named(checker, name, NULL); }

void strata_checker_freed_on(strata_checker_t *checker, uint64_t name, strata_handle_t stream) {
    end_named(checker, name, &stream);
}
