#include "doors/common/refs.h"

/* Refs differ in their low bits (slots) and high bits (stacks). The high half of the product mixes both. */
static size_t home_of(const strata_refs_t *refs, strata_ref_t ref) {
    return (size_t)((ref * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (refs->room - 1);
}

/* Returns the slot of a ref, or the empty slot where it would be inserted. */
static size_t slot_of(const strata_refs_t *refs, strata_ref_t ref) {
    size_t slot = home_of(refs, ref);
    while (refs->slots[slot] && refs->slots[slot] != ref) slot = (slot + 1) & (refs->room - 1);
    return slot;
}

bool strata_refs_contain(const strata_refs_t *refs, strata_ref_t ref) {
    return refs->room && refs->slots[slot_of(refs, ref)] == ref;
}

void strata_refs_add(strata_refs_t *refs, strata_ref_t ref) { refs->slots[slot_of(refs, ref)] = ref; }

/* Moves later refs of the probe sequence up, so that no search stops at the gap. */
void strata_refs_remove(strata_refs_t *refs, strata_ref_t ref) {
    if (!strata_refs_contain(refs, ref)) return;
    size_t gap = slot_of(refs, ref), last = refs->room - 1;
    refs->slots[gap] = 0;
    for (size_t at = (gap + 1) & last; refs->slots[at]; at = (at + 1) & last) {
        size_t steps_from_home = (at - home_of(refs, refs->slots[at])) & last;
        if (steps_from_home < ((at - gap) & last)) continue; /* its home is after the gap */
        refs->slots[gap] = refs->slots[at];
        refs->slots[at] = 0;
        gap = at;
    }
}
