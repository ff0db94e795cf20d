/* The slab of a stack holds its records, in a range that grows in place. Slots are 32-bit numbers, reused
 * last-in first-out while they are still in the CPU's cache. Slot 0 is the sentinel, which is never free.
 * Guarded by the stack's lock.
 *
 * A second range has one bit per slot, which is set while the block is idle, in the index of its cache. A
 * free reads the bits of the neighbors instead of their records, most of which are in use. Among many
 * blocks each record would be a cache miss, while the bits of 32,768 slots fit a page. A cache with an
 * index that does not keep the bits must read the records. */
#ifndef STRATA_ALLOCATION_MECHANISM_SLAB_H
#define STRATA_ALLOCATION_MECHANISM_SLAB_H

#include "platform/host/growing.h"
#include "strata/layer.h"

enum { STRATA_REF_SLOT_BITS = 24, STRATA_REF_GENERATION_BITS = 28, STRATA_SLAB_SLOTS = 1u << STRATA_REF_SLOT_BITS };

_Static_assert(sizeof(strata_record_t) == 64, "strata_slab_ref() counts on it");
_Static_assert(STRATA_GENERATION_LAST == (1u << STRATA_REF_GENERATION_BITS) - 1, "a slot that reaches it is retired, never wraps");

typedef struct strata_slab {
    /* Every free reads these fields, and every hit the first of them. So they are in the cache line of the
     * lock before them (stack.h). */
    strata_record_t *records; /* records[slot] */
    uint32_t used; /* slots ever touched, the sentinel included: records[used ..] are zero */
    uint32_t free_head; /* linked by `next` of unused records; 0 if there are none */
    uint64_t *idle; /* bit slot % 64 of idle[slot / 64] */
    uint32_t capacity; /* upper bound on slots */
    uint32_t room; /* slots that may be touched now; it rises as the ranges grow */
    uint32_t first_generation; /* of a slot's first use */
    uint32_t unused; /* length of the free list */
    uint32_t retired; /* slots retired permanently */
    uint16_t home;
    uint64_t refs; /* the part that all refs into this slab share: `home` in its bit position */
    strata_growing_t record_range, idle_range;
} strata_slab_t;

/* Creates room for at most `capacity` slots, or fewer if the system has no address window for them. No lock
 * is held. E_HOST_MEMORY. */
strata_status_t strata_slab_init(strata_slab_t *slab, uint16_t home, uint32_t first_generation, uint32_t capacity);
void strata_slab_destroy(strata_slab_t *slab);
/* Returns the number of slots that there must be room for so that `more` slots can be taken. */
static inline uint64_t strata_slab_slots_for(const strata_slab_t *slab, uint32_t more) {
    return more <= slab->unused ? slab->used : (uint64_t)slab->used + more - slab->unused;
}
/* Makes room for slots up to `slots`, which strata_slab_slots_for() returned under the lock. No lock is
 * held. E_LIMIT if the slab can never have that many. E_HOST_MEMORY. */
strata_status_t strata_slab_reserve(const strata_slab_t *slab, uint64_t slots);
/* The slow path of strata_slab_acquire(): touches a new slot. Returns 0 if the slab is full, either
 * permanently or until its ranges have grown. */
uint32_t strata_slab_touch(strata_slab_t *slab);
/* Retires a slot that has exhausted its generations. */
void strata_slab_retire(strata_slab_t *slab, uint32_t slot);
/* Returns one above the highest generation of any slot: the first generation for the next slab of this
 * number. A slab that begins at STRATA_GENERATION_LAST is full from the start. Reads every slot. */
uint32_t strata_slab_next_generation(const strata_slab_t *slab);
/* Checks that every slot is in exactly one state, that the free list holds exactly the unused ones, and
 * that homes and counts are right. E_CORRUPT. */
strata_status_t strata_slab_validate(const strata_slab_t *slab);

static inline strata_record_t *strata_slab_record(const strata_slab_t *slab, uint32_t slot) { return &slab->records[slot]; }

static inline uint32_t strata_slab_slot(const strata_slab_t *slab, const strata_record_t *record) {
    return (uint32_t)(record - slab->records);
}

/* The bits of a ref, from the top: stack number 12, slot 24, generation 28. */
static inline strata_ref_t strata_slab_ref(const strata_slab_t *slab, const strata_record_t *record) {
    /* The distance is a multiple of 64, so the shifts down by 6 and up by 28 combine into one. */
    uint64_t distance = (uint64_t)((const char *)record - (const char *)slab->records);
    return slab->refs | distance << (STRATA_REF_GENERATION_BITS - 6) | record->generation;
}

static inline bool strata_slab_is_idle(const strata_slab_t *slab, uint32_t slot) {
    return slab->idle[slot / 64] >> (slot % 64) & 1;
}
static inline void strata_slab_note_idle(strata_slab_t *slab, uint32_t slot) { slab->idle[slot / 64] |= 1ull << (slot % 64); }
static inline void strata_slab_note_used(strata_slab_t *slab, uint32_t slot) { slab->idle[slot / 64] &= ~(1ull << (slot % 64)); }

/* Returns a slot in state UNUSED with its generation and home set and everything else undefined, or 0 if
 * the slab is full. */
static inline uint32_t strata_slab_acquire(strata_slab_t *slab) {
    uint32_t slot = slab->free_head;
    if (__builtin_expect(slot == 0, 0)) return strata_slab_touch(slab);
    slab->free_head = slab->records[slot].next;
    slab->unused--;
    return slot;
}

/* Puts a slot that has generations left on the free list. */
static inline void strata_slab_link(strata_slab_t *slab, uint32_t slot) {
    strata_record_t *record = &slab->records[slot];
    record->state = STRATA_RECORD_UNUSED;
    record->next = slab->free_head;
    slab->free_head = slot;
    slab->unused++;
}

/* Returns a slot to the slab. If the slot was ever live, the code that freed the record has already raised
 * its generation. */
static inline void strata_slab_release(strata_slab_t *slab, uint32_t slot) {
    if (__builtin_expect(slab->records[slot].generation >= STRATA_GENERATION_LAST, 0)) strata_slab_retire(slab, slot);
    else strata_slab_link(slab, slot);
}

#endif
