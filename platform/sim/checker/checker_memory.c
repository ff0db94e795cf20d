/* Present and earlier owners of memory: ranges of addresses, with the time of each owner. */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

/* ---- uses ---- */

check_use_t *check_uses_all(check_uses_t *uses) { return uses->more ? uses->more : uses->few; }

static bool room_for_use(check_uses_t *uses) {
    const uint32_t few = sizeof uses->few / sizeof *uses->few;
    if (uses->count < (uses->more ? uses->room : few)) return true;
    uint32_t room = uses->more ? uses->room * 2 : few * 4;
    check_use_t *more = realloc(uses->more, room * sizeof *more);
    if (!more) return false;
    if (!uses->more) memcpy(more, uses->few, sizeof uses->few);
    uses->more = more;
    uses->room = room;
    return true;
}

void check_uses_add(strata_checker_t *checker, check_uses_t *uses, const check_use_t *use) {
    check_use_t *all = check_uses_all(uses);
    for (uint32_t i = 0; i < uses->count; i++) {
        if (all[i].actor != use->actor) continue;
        if (use->epoch > all[i].epoch) all[i] = *use;
        return;
    }
    if (room_for_use(uses)) check_uses_all(uses)[uses->count++] = *use;
    else checker->incomplete = true;
}

void check_uses_join(strata_checker_t *checker, check_uses_t *to, check_uses_t *from) {
    for (uint32_t i = 0; i < from->count; i++) check_uses_add(checker, to, &check_uses_all(from)[i]);
}

void check_uses_remove(check_uses_t *uses, uint32_t index) {
    check_use_t *all = check_uses_all(uses);
    all[index] = all[--uses->count];
}

void check_uses_end(check_uses_t *uses) {
    free(uses->more);
    *uses = (check_uses_t){0};
}

check_use_t *check_unordered(check_uses_t *uses, const check_clock_t *clock) {
    check_use_t *all = check_uses_all(uses);
    for (uint32_t i = 0; i < uses->count; i++)
        if (check_clock_get(clock, all[i].actor) < all[i].epoch) return &all[i];
    return NULL;
}

/* ---- lives ---- */

check_life_t *check_life_new(strata_checker_t *checker, uint64_t address, uint64_t size) {
    check_life_t *life = calloc(1, sizeof *life);
    if (!life) {
        checker->incomplete = true;
        return NULL;
    }
    life->alive = true;
    life->number = ++checker->lives;
    life->address = address;
    life->size = size;
    return life;
}

void check_life_drop(check_life_t *life) {
    if (--life->refs > 0) return;
    check_uses_end(&life->uses);
    check_uses_end(&life->before);
    check_uses_end(&life->freed);
    check_uses_end(&life->borrowers);
    free(life->accesses);
    free(life);
}

/* ---- segments: the owner of each range; a life that was cut has several ---- */

check_segment_t *check_segment_first(strata_checker_t *checker, uint64_t address, uint64_t size) {
    check_segment_t *segment = (check_segment_t *)sim_tree_floor(&checker->segments, address);
    if (segment && address - segment->node.key < segment->size) return segment;
    segment = (check_segment_t *)sim_tree_ceiling(&checker->segments, address, 0);
    return segment && segment->node.key - address < size ? segment : NULL;
}

check_segment_t *check_segment_next(strata_checker_t *checker, check_segment_t *segment, uint64_t end) {
    check_segment_t *next = (check_segment_t *)sim_tree_next(&checker->segments, &segment->node);
    return next && next->node.key < end ? next : NULL;
}

void check_segment_new(strata_checker_t *checker, uint64_t address, uint64_t size, check_life_t *life) {
    check_segment_t *segment = calloc(1, sizeof *segment);
    if (!segment) {
        checker->incomplete = true;
        return;
    }
    segment->node.key = address;
    segment->size = size;
    segment->life = life;
    life->refs++;
    sim_tree_insert(&checker->segments, &segment->node);
}

static void segment_drop(strata_checker_t *checker, check_segment_t *segment) {
    sim_tree_remove(&checker->segments, &segment->node);
    check_life_drop(segment->life);
    free(segment);
}

void check_remove_range(strata_checker_t *checker, uint64_t address, uint64_t size, check_segment_fn each, void *context) {
    uint64_t end = address + size;
    for (check_segment_t *at = check_segment_first(checker, address, size), *next; at; at = next) {
        uint64_t begin = at->node.key, stop = begin + at->size;
        check_life_t *life = at->life;
        next = check_segment_next(checker, at, end);
        if (each) each(checker, life, context);
        if (stop > end) check_segment_new(checker, end, stop - end, life);
        if (begin < address) at->size = address - begin;
        else segment_drop(checker, at);
    }
}

static bool copy_accesses(check_life_t *part, const check_life_t *life) {
    if (!life->access_count) return true;
    part->accesses = calloc(CHECK_REMEMBERED, sizeof *part->accesses);
    if (!part->accesses) return false;
    part->access_count = life->access_count;
    memcpy(part->accesses, life->accesses, life->access_count * sizeof *life->accesses);
    return true;
}

check_life_t *check_life_part(strata_checker_t *checker, check_life_t *life, uint64_t address, uint64_t size) {
    check_life_t *part = check_life_new(checker, address, size);
    if (!part) return NULL;
    part->refs = 1;
    part->alive = life->alive;
    part->raw = life->raw;
    part->follows_before = life->follows_before;
    part->number = life->number;
    part->graph_pool = life->graph_pool;
    part->owner = life->owner;
    part->device = life->device;
    part->birth_actor = life->birth_actor;
    part->birth_epoch = life->birth_epoch;
    check_uses_join(checker, &part->uses, &life->uses);
    check_uses_join(checker, &part->before, &life->before);
    check_uses_join(checker, &part->freed, &life->freed);
    if (!copy_accesses(part, life)) checker->incomplete = true;
    check_remove_range(checker, address, size, NULL, NULL);
    check_segment_new(checker, address, size, part);
    if (--part->refs > 0) return part;
    part->refs = 1;
    check_life_drop(part);
    return NULL;
}

/* ---- memory that the device lends and gets back ---- */

/* Creates the life of memory that only the device or its caller holds. */
static check_life_t *raw_life(strata_checker_t *checker, strata_address_t address, uint64_t size, bool alive) {
    check_life_t *life = check_life_new(checker, address, size);
    if (!life) return NULL;
    life->raw = true;
    life->alive = alive;
    life->refs = 1;
    check_segment_new(checker, address, size, life);
    if (--life->refs > 0) return life;
    life->refs = 1;
    check_life_drop(life);
    return NULL;
}

/* Memory that a pool serves again was freed in the order of some stream. The pool has ordered the
 * allocating stream after that free. */
static void collect_frees(strata_checker_t *checker, check_life_t *life, void *context) {
    check_uses_join(checker, context, &life->uses);
}

static void keep_unseen(check_uses_t *frees, const check_clock_t *seen) {
    for (uint32_t i = frees->count; i-- > 0;) {
        const check_use_t *free_point = &check_uses_all(frees)[i];
        if (check_clock_get(seen, free_point->actor) >= free_point->epoch) check_uses_remove(frees, i);
    }
}

void check_on_memory(sim_device_t *device, strata_address_t address, uint64_t size, sim_stream_t *stream) {
    strata_checker_t *checker = device->world->checker;
    if (!checker || size == 0) return;
    if (check_paused_end(checker, address, size) && check_is_pausing(checker)) return;
    check_uses_t freed = {0};
    check_remove_range(checker, address, size, stream ? collect_frees : NULL, &freed);
    check_lease_end(checker, address, size, check_host(checker), 0);
    check_lease_begin(checker, address, size);
    check_life_t *life = raw_life(checker, address, size, true);
    if (!life) {
        check_uses_end(&freed);
        return;
    }
    life->freed = freed;
    if (stream) {
        life->birth_actor = check_begin_operation(checker, stream);
        life->birth_epoch = check_tick(checker, life->birth_actor);
        keep_unseen(&life->freed, &check_actor(checker, check_host(checker))->clock);
    }
    check_note(checker, CHECK_NOTE_GOT, stream ? life->birth_actor : check_host(checker), life->number, 0);
}

typedef struct returning {
    const check_clock_t *clock; /* NULL if the driver takes care of the order */
    uint32_t actor;
    int rule;
    bool keeps_owners; /* it still belongs to its owners, although it is unmapped */
    uint64_t note; /* the last note */
} returning_t;

static void return_life(strata_checker_t *checker, check_life_t *life, void *context) {
    returning_t *returning = context;
    uint64_t note = returning->note = check_note(checker, CHECK_NOTE_GIVEN_BACK, returning->actor, life->number, 0);
    if (!returning->clock) return;
    if (life->alive && !life->raw && !returning->keeps_owners) {
        check_report_history(
            checker, &(check_fault_t){.kind = STRATA_HAZARD_TAKEN_AWAY, .life = life, .actor = returning->actor, .note = note});
    }
    if (!check_rule(checker, returning->rule)) return;
    const check_use_t *old = check_unordered(&life->uses, returning->clock);
    if (!old && !life->follows_before) old = check_unordered(&life->before, returning->clock);
    if (!old) return;
    check_report_history(checker, &(check_fault_t){.kind = STRATA_HAZARD_UNDER_WORK,
                                                   .rule = returning->rule,
                                                   .life = life,
                                                   .actor = returning->actor,
                                                   .note = note,
                                                   .old = old});
}

/* Memory freed in a stream's order stays in the pool, which records the point in that order. */
static void stay_in_pool(strata_checker_t *checker, strata_address_t address, uint64_t size, uint32_t actor) {
    check_life_t *life = raw_life(checker, address, size, false);
    if (!life) return;
    check_use_t use = {.actor = actor, .how = CHECK_FREE_POINT, .life = life->number, .epoch = check_tick(checker, actor)};
    use.note = check_note(checker, CHECK_NOTE_FREED, actor, life->number, 0);
    check_uses_add(checker, &life->uses, &use);
}

/* The owners and the lease remain. */
static void pause(strata_checker_t *checker, uint64_t address, uint64_t size, returning_t *returning) {
    check_segment_t *segment = check_segment_first(checker, address, size);
    returning->keeps_owners = true;
    for (; segment; segment = check_segment_next(checker, segment, address + size)) return_life(checker, segment->life, returning);
    check_paused_begin(checker, address, size);
}

/* With a stream, the memory must be ordered after that stream's work (rule 6). Otherwise it must be
 * ordered after everything that the calling thread has seen (rule 7). */
void check_on_memory_freed(sim_device_t *device, strata_address_t address, uint64_t size, sim_stream_t *stream) {
    strata_checker_t *checker = device->world->checker;
    if (!checker || size == 0) return;
    returning_t returning = {.actor = stream ? check_begin_operation(checker, stream) : check_host(checker),
                             .rule = stream ? 6 : 7};
    returning.clock = &check_actor(checker, returning.actor)->clock;
    if (!stream && check_is_pausing(checker)) {
        pause(checker, address, size, &returning);
        return;
    }
    check_remove_range(checker, address, size, return_life, &returning);
    check_lease_end(checker, address, size, returning.actor, returning.note);
    if (stream) stay_in_pool(checker, address, size, returning.actor);
}

void check_on_graph_memory_freed(sim_device_t *device, strata_address_t address, uint64_t size) {
    strata_checker_t *checker = device->world->checker;
    if (!checker || size == 0) return;
    returning_t returning = {.actor = check_host(checker)};
    check_remove_range(checker, address, size, return_life, &returning);
    check_lease_end(checker, address, size, returning.actor, returning.note);
}
