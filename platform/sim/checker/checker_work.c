/* Work and the memory that it touches (rules 6 to 8, and their consequences). */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

static const int RULE_OF_FREE = 8;

/* Returns the first use by an earlier owner that `clock` does not include, if an active rule covers it. */
static const check_use_t *old_use(const strata_checker_t *checker, check_life_t *life, const check_clock_t *clock) {
    check_use_t *all = check_uses_all(&life->before);
    for (uint32_t i = 0; i < life->before.count; i++) {
        bool asked = check_rule(checker, all[i].how == CHECK_FREE_POINT ? RULE_OF_FREE : 7);
        if (asked && check_clock_get(clock, all[i].actor) < all[i].epoch) return &all[i];
    }
    return NULL;
}

/* Returns true if a use comes before its pool memory is valid (rule 6). */
static bool is_too_early(const strata_checker_t *checker, check_life_t *life, const check_clock_t *clock) {
    if (!life->birth_actor || !check_rule(checker, 6)) return false;
    if (check_clock_get(clock, life->birth_actor) >= life->birth_epoch) return false;
    return !(checker->rules & STRATA_CHECKER_FRESH_IS_VALID) || check_unordered(&life->freed, clock) != NULL;
}

void check_owner(strata_checker_t *checker, check_life_t *life, const check_clock_t *clock, const check_use_t *use) {
    if (is_too_early(checker, life, clock)) {
        check_use_t birth = {.actor = life->birth_actor, .epoch = life->birth_epoch, .life = life->number};
        check_report_history(
            checker,
            &(check_fault_t){
                .kind = STRATA_HAZARD_OUTSIDE, .rule = 6, .life = life, .actor = use->actor, .note = use->note, .old = &birth});
    }
    if (life->before.count == 0) return;
    const check_use_t *old = old_use(checker, life, clock);
    if (old) {
        check_report_history(checker, &(check_fault_t){.kind = STRATA_HAZARD_NEW_OWNER,
                                                       .rule = old->how == CHECK_FREE_POINT ? RULE_OF_FREE : 7,
                                                       .life = life,
                                                       .actor = use->actor,
                                                       .note = use->note,
                                                       .old = old});
        check_uses_end(&life->before); /* reported: its consequences are not reported again */
    }
    life->follows_before = true;
}

static check_note_kind_t note_of(check_how_t how) {
    static const check_note_kind_t notes[] = {CHECK_NOTE_USED,  CHECK_NOTE_FILLED,  CHECK_NOTE_HOST,
                                              CHECK_NOTE_GRAPH, CHECK_NOTE_IMPLIED, CHECK_NOTE_FREED};
    return notes[how];
}

/* An allocator may fill memory that has no owner, to scrub it or to find late writers. Such a fill is
 * work like any other, but no use after free. It must come after all earlier uses. */
static bool is_allocators_own(const check_touch_t *touch, const check_life_t *life) {
    return touch->how == CHECK_FILL && !life->alive;
}

static bool is_foreign(const check_touch_t *touch, const check_life_t *life) {
    return touch->expected && life->name != touch->expected;
}

/* A graph keeps the memory that it allocates and the memory that its pool serves. There the end of a
 * block ends only its name. */
static bool is_kept(const check_captured_t *captured, const check_life_t *life) {
    return captured && (captured->own || (life->graph_pool && life->graph_pool == captured->pool));
}

static bool is_of_nobody(const check_touch_t *touch, const check_life_t *life) {
    return (!life->alive && !is_kept(touch->captured, life)) || (life->raw && is_foreign(touch, life));
}

/* Rule 10. The number of a life shows when it began. */
static bool is_served_since(const strata_checker_t *checker, const check_touch_t *touch, const check_life_t *life) {
    const check_captured_t *captured = touch->captured;
    if (!captured || life->raw || is_kept(captured, life)) return false;
    return life->number > captured->lives && check_rule(checker, 10);
}

static void report_served_since(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch, uint64_t note) {
    const check_captured_t *captured = touch->captured;
    check_use_t old = {.actor = captured->actor, .life = captured->life, .note = captured->note};
    check_report_history(checker, &(check_fault_t){.kind = STRATA_HAZARD_SERVED_SINCE,
                                                   .rule = 10,
                                                   .life = life,
                                                   .actor = touch->reported,
                                                   .note = note,
                                                   .old = &old,
                                                   .launch = touch});
}

static uint64_t graph_of(const check_touch_t *touch) { return touch->captured ? touch->captured->graph : 0; }

static const check_touch_t *launch_of(const check_touch_t *touch) { return touch->captured ? touch : NULL; }

/* The fill must also come after the old owner's uses, which are not in `before` yet. */
static void fill_dead(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch, const check_use_t *use) {
    check_uses_join(checker, &life->before, &life->uses);
    check_uses_end(&life->uses);
    check_owner(checker, life, touch->clock, use);
    check_uses_add(checker, &life->uses, use);
}

static void touch_life(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch) {
    check_use_t use = {.actor = touch->actor, .how = touch->how, .epoch = touch->epoch, .life = life->number};
    use.note = check_note(checker, note_of(touch->how), touch->reported, life->number, graph_of(touch));
    check_fault_t fault = {.life = life, .actor = touch->reported, .note = use.note, .launch = launch_of(touch)};
    if (is_allocators_own(touch, life)) {
        fill_dead(checker, life, touch, &use);
    } else if (is_of_nobody(touch, life)) {
        fault.kind = STRATA_HAZARD_USE_AFTER_FREE;
        check_report_history(checker, &fault);
    } else if (is_foreign(touch, life)) {
        fault.kind = STRATA_HAZARD_FOREIGN;
        check_report_history(checker, &fault);
    } else if (is_served_since(checker, touch, life)) {
        report_served_since(checker, life, touch, use.note);
    } else {
        check_owner(checker, life, touch->clock, &use);
        if (check_rule(checker, 1)) check_race(checker, life, touch, &use);
        check_uses_add(checker, &life->uses, &use);
    }
}

/* A fill of memory that no program holds makes a separate life of those bytes. Only their order is
 * affected, before and after the fill. */
static check_life_t *life_for(strata_checker_t *checker, check_segment_t *segment, const check_touch_t *touch, uint64_t begin,
                              uint64_t end) {
    check_life_t *life = segment->life;
    if (touch->how != CHECK_FILL || (life->alive && !life->raw)) return life;
    return check_life_part(checker, life, begin, end - begin);
}

static void report_paused(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch) {
    uint64_t note = check_note(checker, note_of(touch->how), touch->reported, life->number, graph_of(touch));
    check_report_history(
        checker,
        &(check_fault_t){
            .kind = STRATA_HAZARD_PAUSED, .life = life, .actor = touch->reported, .note = note, .launch = launch_of(touch)});
}

void check_touch(strata_checker_t *checker, const check_touch_t *touch) {
    uint64_t at = touch->address, end;
    if (!strata_add(touch->address, touch->size, &end)) return;
    while (at < end) {
        check_segment_t *segment = check_segment_first(checker, at, end - at);
        if (!segment) return;
        uint64_t begin = strata_max(at, segment->node.key), stop = strata_min(end, segment->node.key + segment->size);
        if (check_is_paused(checker, begin, stop - begin)) {
            report_paused(checker, segment->life, touch);
        } else {
            check_life_t *life = life_for(checker, segment, touch, begin, stop);
            if (life) touch_life(checker, life, touch);
        }
        at = stop;
    }
}

/* ---- work submitted by the program ---- */

static uint64_t expected_at(const check_actor_t *host, size_t index) {
    return index < host->expected_count ? host->expected[index] : 0;
}

void check_on_work(sim_stream_t *stream, const strata_access_t *accesses, size_t count) {
    strata_checker_t *checker = stream->device->world->checker;
    if (!checker) return;
    check_touch_t touch = {.actor = check_begin_operation(checker, stream), .how = CHECK_WORK};
    uint32_t host = check_host(checker);
    touch.reported = touch.actor;
    touch.epoch = check_tick(checker, touch.actor);
    touch.clock = &check_actor(checker, touch.actor)->clock;
    for (size_t i = 0; i < count; i++) {
        touch.address = accesses[i].address;
        touch.size = accesses[i].size;
        touch.write = accesses[i].write;
        touch.expected = expected_at(check_actor(checker, host), i);
        check_touch(checker, &touch);
    }
    check_actor(checker, host)->expected_count = 0;
}

void check_on_fill(sim_stream_t *stream, strata_address_t address, uint64_t size, bool write) {
    strata_checker_t *checker = stream->device->world->checker;
    if (!checker) return;
    check_touch_t touch = {
        .actor = check_begin_operation(checker, stream), .how = CHECK_FILL, .address = address, .size = size, .write = write};
    touch.reported = touch.actor;
    touch.epoch = check_tick(checker, touch.actor);
    touch.clock = &check_actor(checker, touch.actor)->clock;
    check_touch(checker, &touch);
}

void strata_checker_host_access(strata_checker_t *checker, strata_address_t address, uint64_t size, bool write) {
    strata_lock(&checker->world->lock);
    check_touch_t touch = {.actor = check_host(checker), .how = CHECK_HOST, .address = address, .size = size, .write = write};
    touch.reported = touch.actor;
    touch.epoch = check_tick(checker, touch.actor);
    touch.clock = &check_actor(checker, touch.actor)->clock;
    check_touch(checker, &touch);
    strata_unlock(&checker->world->lock);
}

static void expect(strata_checker_t *checker, check_actor_t *host, const uint64_t *names, size_t count) {
    host->expected_count = 0;
    if (count > host->expected_room) {
        uint64_t *more = realloc(host->expected, count * sizeof *more);
        if (!more) {
            checker->incomplete = true;
            return;
        }
        host->expected = more;
        host->expected_room = count;
    }
    if (count) memcpy(host->expected, names, count * sizeof *names);
    host->expected_count = count;
}

void strata_checker_expect(strata_checker_t *checker, const uint64_t *names, size_t count) {
    strata_lock(&checker->world->lock);
    expect(checker, check_actor(checker, check_host(checker)), names, count);
    strata_unlock(&checker->world->lock);
}
