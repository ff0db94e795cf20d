#include "allocation/tables/slab.h"

#include "platform/arithmetic.h"
#include "platform/status.h"

_Static_assert(sizeof(strata_record_t) == 64, "one line a record");

/* The size that a slab starts with. */
enum { FIRST_SLOTS = 4096 };

/* Rounded up to whole words of bits. */
static size_t bits_of(uint64_t slots) { return (slots + 63) / 64 * sizeof(uint64_t); }

/* Returns the number of slots that fit in these sizes of both ranges, in bytes. */
static uint32_t slots_in(size_t records, size_t idle) {
    return (uint32_t)strata_min(STRATA_SLAB_SLOTS, strata_min(records / sizeof(strata_record_t), 8 * (uint64_t)idle));
}

static uint32_t room_now(const strata_slab_t *slab) {
    return slots_in(strata_growing_usable(&slab->record_range), strata_growing_usable(&slab->idle_range));
}

strata_status_t strata_slab_init(strata_slab_t *slab, uint16_t home, uint32_t first_generation, uint32_t capacity) {
    uint64_t slots = strata_max(2, strata_min(capacity, STRATA_SLAB_SLOTS)), first = strata_min(slots, FIRST_SLOTS);
    strata_growing_t records, idle;
    strata_status_t status = strata_growing_reserve(&records, first * sizeof(strata_record_t), slots * sizeof(strata_record_t));
    if (status != STRATA_OK) return status;
    status = strata_growing_reserve(&idle, bits_of(first), bits_of(slots));
    if (status != STRATA_OK) {
        strata_growing_release(&records);
        return status;
    }
    *slab = (strata_slab_t){.records = records.memory,
                            .idle = idle.memory,
                            .used = 1,
                            .first_generation = first_generation,
                            .home = home,
                            .refs = (uint64_t)home << (STRATA_REF_SLOT_BITS + STRATA_REF_GENERATION_BITS),
                            .record_range = records,
                            .idle_range = idle};
    slab->capacity = (uint32_t)strata_min(slots, slots_in(strata_growing_max(&records), strata_growing_max(&idle)));
    slab->room = room_now(slab);
    slab->records[0].state = STRATA_RECORD_LIVE; /* so that it never merges with a neighbor */
    return STRATA_OK;
}

void strata_slab_destroy(strata_slab_t *slab) {
    strata_growing_release(&slab->record_range);
    strata_growing_release(&slab->idle_range);
    *slab = (strata_slab_t){0};
}

strata_status_t strata_slab_reserve(const strata_slab_t *slab, uint64_t slots) {
    if (slots > slab->capacity)
        return strata_fail(STRATA_E_LIMIT, 0,
                           "too many blocks: this stack has %u, the maximum; free some, or use more streams or pools",
                           slab->capacity);
    strata_status_t status = strata_growing_grow(&slab->record_range, slots * sizeof(strata_record_t));
    return status == STRATA_OK ? strata_growing_grow(&slab->idle_range, bits_of(slots)) : status;
}

/* Requests growth, which happens once no lock is held, and adopts growth that has happened since the last call. */
static void request_growth(strata_slab_t *slab) {
    slab->room = room_now(slab);
    if (slab->used < slab->room / 2) return;
    uint64_t wanted = strata_min(2 * (uint64_t)slab->room, slab->capacity);
    bool short_of_it = slab->used >= slab->room;
    if (strata_growing_usable(&slab->record_range) / sizeof(strata_record_t) < wanted)
        strata_growing_mark(&slab->record_range, short_of_it);
    if (8 * (uint64_t)strata_growing_usable(&slab->idle_range) < wanted) strata_growing_mark(&slab->idle_range, short_of_it);
}

uint32_t strata_slab_touch(strata_slab_t *slab) {
    if (slab->used >= slab->capacity || slab->first_generation >= STRATA_GENERATION_LAST) return 0;
    if (slab->used >= slab->room / 2 && slab->room < slab->capacity) request_growth(slab);
    if (slab->used >= slab->room) return 0;
    uint32_t slot = slab->used++;
    slab->records[slot].generation = slab->first_generation;
    slab->records[slot].home = slab->home;
    return slot;
}

void strata_slab_retire(strata_slab_t *slab, uint32_t slot) {
    slab->records[slot].state = STRATA_RECORD_UNUSED;
    slab->records[slot].generation = STRATA_GENERATION_LAST;
    slab->retired++;
}

uint32_t strata_slab_next_generation(const strata_slab_t *slab) {
    uint32_t next = slab->first_generation;
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        uint32_t generation = slab->records[slot].generation;
        if (generation >= next) next = generation + 1;
    }
    return (uint32_t)strata_min(next, STRATA_GENERATION_LAST);
}

typedef struct slab_census {
    uint32_t unused, retired;
} slab_census_t;

static strata_status_t count_record(const strata_slab_t *slab, uint32_t slot, slab_census_t *census) {
    const strata_record_t *record = &slab->records[slot];
    if (record->home != slab->home)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u belongs to slab %u, not %u", slot, record->home, slab->home);
    if (record->state > STRATA_RECORD_CHUNK)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u has the invalid state %u", slot, record->state);
    if (record->generation < slab->first_generation || record->generation > STRATA_GENERATION_LAST)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u has generation %u, but the slab began at %u", slot, record->generation,
                           slab->first_generation);
    if (strata_slab_is_idle(slab, slot) && record->state != STRATA_RECORD_FREE)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is marked idle in state %u", slot, record->state);
    bool spent = record->generation == STRATA_GENERATION_LAST;
    if (spent && record->state == STRATA_RECORD_LIVE)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is live in its last generation, which no ref can name", slot);
    if (record->state == STRATA_RECORD_UNUSED) {
        if (spent) {
            census->retired++;
        } else {
            census->unused++;
        }
    }
    return STRATA_OK;
}

/* A list that ends cannot contain a slot twice, because each slot has only one link. */
static strata_status_t validate_free_list(const strata_slab_t *slab) {
    uint32_t slot = slab->free_head;
    for (uint32_t steps = 0; steps < slab->unused; steps++) {
        if (slot == 0 || slot >= slab->used)
            return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the slab breaks at slot %u after %u of %u", slot, steps,
                               slab->unused);
        const strata_record_t *record = &slab->records[slot];
        if (record->state != STRATA_RECORD_UNUSED || record->generation >= STRATA_GENERATION_LAST)
            return strata_fail(STRATA_E_CORRUPT, 0, "slot %u of the free list is in use or retired", slot);
        slot = record->next;
    }
    if (slot != 0)
        return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the slab continues at slot %u after all %u", slot, slab->unused);
    return STRATA_OK;
}

strata_status_t strata_slab_validate(const strata_slab_t *slab) {
    slab_census_t census = {0, 0};
    uint32_t most = slots_in(strata_growing_max(&slab->record_range), strata_growing_max(&slab->idle_range));
    if (slab->used == 0 || slab->used > slab->room || slab->room > room_now(slab) || slab->capacity > most)
        return strata_fail(STRATA_E_CORRUPT, 0, "the slab uses %u of %u slots, but has room for %u of %u", slab->used, slab->room,
                           room_now(slab), slab->capacity);
    if (slab->records[0].state != STRATA_RECORD_LIVE)
        return strata_fail(STRATA_E_CORRUPT, 0, "the sentinel of the slab has the state %u", slab->records[0].state);
    if (strata_slab_is_idle(slab, 0)) return strata_fail(STRATA_E_CORRUPT, 0, "the sentinel of the slab is marked idle");
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        strata_status_t status = count_record(slab, slot, &census);
        if (status != STRATA_OK) return status;
    }
    if (census.unused != slab->unused || census.retired != slab->retired)
        return strata_fail(STRATA_E_CORRUPT, 0, "the slab counts %u unused and %u retired slots, but has %u and %u", slab->unused,
                           slab->retired, census.unused, census.retired);
    if (slab->used < slab->room &&
        (slab->records[slab->used].home | slab->records[slab->used].state | strata_slab_is_idle(slab, slab->used)) != 0)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u was written before it was touched", slab->used);
    return validate_free_list(slab);
}
