/* Physical memory that is mapped at several addresses, at once or one after the other. Lives are ranges
 * of addresses, so this file finds the lives of the same bytes:
 * - A new owner at a new address comes after all uses at earlier addresses (rule 7).
 * - Two live blocks never have the same bytes.
 * - Two accesses by different addresses need an order as two by one address do (rule 1). */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

/* ---- uses that precede a new mapping ---- */

/* Takes over the uses that an earlier owner left there. A live block's uses are its own. If its bytes
 * are served to another block, that is reported then. */
static void inherit(strata_checker_t *checker, check_life_t *to, check_life_t *from) {
    if (!from->alive) check_uses_join(checker, &to->before, &from->uses);
    if (!from->follows_before) check_uses_join(checker, &to->before, &from->before);
}

static bool has_left_something(const check_life_t *life) {
    return (!life->alive && life->uses.count > 0) || (!life->follows_before && life->before.count > 0);
}

/* Works byte by byte: the uses of a part precede the new owner of that part only. */
static void inherit_from(strata_checker_t *checker, const sim_mapping_t *to, const sim_mapping_t *from) {
    uint64_t end = from->node.key + from->size, shift = to->node.key - from->node.key;
    for (check_segment_t *at = check_segment_first(checker, from->node.key, from->size); at;
         at = check_segment_next(checker, at, end)) {
        uint64_t begin = strata_max(at->node.key, from->node.key), stop = strata_min(end, at->node.key + at->size);
        check_segment_t *there = has_left_something(at->life) ? check_segment_first(checker, begin + shift, stop - begin) : NULL;
        while (there && there->node.key < stop + shift) {
            uint64_t first = strata_max(there->node.key, begin + shift),
                     last = strata_min(stop + shift, there->node.key + there->size);
            check_life_t *part = check_life_part(checker, there->life, first, last - first);
            if (part) inherit(checker, part, at->life);
            there = last < stop + shift ? check_segment_first(checker, last, stop + shift - last) : NULL;
        }
    }
}

void check_on_map(sim_device_t *device, const sim_mapping_t *mapping) {
    strata_checker_t *checker = device->world->checker;
    if (!checker) return;
    bool comes_back = check_is_pausing(checker) && check_is_paused(checker, mapping->node.key, mapping->size);
    check_on_memory(device, mapping->node.key, mapping->size, NULL);
    if (mapping->physical->mapped) checker->aliases = true;
    if (comes_back) return; /* the blocks there and their order are unchanged */
    check_segment_t *fresh = check_segment_first(checker, mapping->node.key, mapping->size);
    if (fresh && mapping->physical->past) check_uses_join(checker, &fresh->life->before, mapping->physical->past);
    for (const sim_mapping_t *other = mapping->physical->mapped; other; other = other->next) inherit_from(checker, mapping, other);
}

/* ---- uses that an ended mapping leaves ---- */

static void keep_uses(strata_checker_t *checker, sim_physical_t *physical, check_life_t *life) {
    if (life->uses.count + life->before.count == 0) return;
    if (!physical->past) physical->past = calloc(1, sizeof(check_uses_t));
    if (!physical->past) {
        checker->incomplete = true;
        return;
    }
    check_uses_join(checker, physical->past, &life->uses);
    if (!life->follows_before) check_uses_join(checker, physical->past, &life->before);
}

void check_on_unmap(sim_device_t *device, const sim_mapping_t *mapping) {
    strata_checker_t *checker = device->world->checker;
    if (!checker) return;
    uint64_t end = mapping->node.key + mapping->size;
    for (check_segment_t *at = check_segment_first(checker, mapping->node.key, mapping->size); at;
         at = check_segment_next(checker, at, end))
        keep_uses(checker, mapping->physical, at->life);
    check_on_memory_freed(device, mapping->node.key, mapping->size, NULL);
}

void check_physical_end(sim_physical_t *physical) {
    if (!physical->past) return;
    check_uses_end(physical->past);
    free(physical->past);
    physical->past = NULL;
}

/* ---- other mappings of the same bytes ---- */

static const sim_mapping_t *mapping_at(const strata_checker_t *checker, uint64_t address) {
    const sim_region_t *region = sim_region_at(checker->world, address);
    if (!region || region->kind != SIM_REGION_RESERVATION) return NULL;
    const sim_mapping_t *mapping = (const sim_mapping_t *)sim_tree_floor(&region->mappings, address);
    return mapping && address - mapping->node.key < mapping->size ? mapping : NULL;
}

static void each_in(strata_checker_t *checker, uint64_t begin, uint64_t size, uint64_t shift, check_alias_fn each, void *context) {
    uint64_t end = begin + size;
    for (check_segment_t *at = check_segment_first(checker, begin, size); at; at = check_segment_next(checker, at, end))
        each(checker, at->life, shift, context);
}

void check_each_alias(strata_checker_t *checker, uint64_t begin, uint64_t size, check_alias_fn each, void *context) {
    uint64_t end = begin + size;
    const sim_mapping_t *own;
    if (!checker->aliases) return;
    for (uint64_t at = begin; at < end && (own = mapping_at(checker, at)) != NULL; at = own->node.key + own->size) {
        uint64_t stop = strata_min(end, own->node.key + own->size);
        for (const sim_mapping_t *other = own->physical->mapped; other; other = other->next)
            if (other != own)
                each_in(checker, at - own->node.key + other->node.key, stop - at, own->node.key - other->node.key, each, context);
    }
}
