#include "allocation/mechanism/slab.h"

#include "platform/arithmetic.h"
#include "platform/host_memory.h"
#include "platform/status.h"

_Static_assert(sizeof(strata_record_t) == 64, "one line a record");

/* With fewer slots than this a stack is of no use. */
enum { LEAST_SLOTS = 1024 };

/* Bytes of so many records and of their bits. */
static uint64_t bytes_of(uint64_t slots) {
    return slots * sizeof(strata_record_t) + (slots + 63) / 64 * sizeof(uint64_t);
}

/* The most slots that fit, whole words of bits. */
static uint64_t slots_in(uint64_t bytes, uint64_t most) {
    return bytes >= bytes_of(most) ? most : bytes / bytes_of(64) * 64;
}

strata_status_t strata_slab_init(strata_slab_t *slab, uint16_t home, uint32_t first_generation, uint32_t capacity) {
    uint64_t slots = strata_max(2, strata_min(capacity, STRATA_SLAB_SLOTS));
    size_t reserved = 0;
    strata_record_t *records = strata_host_reserve(bytes_of(slots), bytes_of(strata_min(slots, LEAST_SLOTS)), &reserved);
    if (!records) return STRATA_E_HOST_MEMORY;
    records[0].state = STRATA_RECORD_LIVE; /* no neighbour to merge with */
    records[0].home = home;
    slots = slots_in(reserved, slots);
    *slab = (strata_slab_t){.records = records,
                            .idle = (uint64_t *)(void *)(records + slots),
                            .used = 1,
                            .capacity = (uint32_t)slots,
                            .first_generation = first_generation,
                            .home = home,
                            .reserved = reserved};
    return STRATA_OK;
}

void strata_slab_destroy(strata_slab_t *slab) {
    strata_host_unreserve(slab->records, slab->reserved);
    *slab = (strata_slab_t){0};
}

uint32_t strata_slab_touch(strata_slab_t *slab) {
    if (slab->used >= slab->capacity || slab->first_generation >= STRATA_GENERATION_LAST) return 0;
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
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u says it is of slab %u, not %u", slot, record->home, slab->home);
    if (record->state > STRATA_RECORD_CHUNK)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u has the state %u, which is none", slot, record->state);
    if (record->generation < slab->first_generation || record->generation > STRATA_GENERATION_LAST)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u has generation %u, the slab began at %u", slot, record->generation,
                           slab->first_generation);
    if (strata_slab_is_idle(slab, slot) && record->state != STRATA_RECORD_FREE)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is noted as idle in state %u", slot, record->state);
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

/* A list that ends has no slot twice: the link of a slot decides all that follows. */
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
        return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the slab goes on at slot %u after all %u", slot,
                           slab->unused);
    return STRATA_OK;
}

strata_status_t strata_slab_validate(const strata_slab_t *slab) {
    slab_census_t census = {0, 0};
    if (slab->used == 0 || slab->used > slab->capacity || bytes_of(slab->capacity) > slab->reserved)
        return strata_fail(STRATA_E_CORRUPT, 0, "the slab uses %u of %u slots in %zu bytes", slab->used, slab->capacity,
                           slab->reserved);
    if (slab->records[0].state != STRATA_RECORD_LIVE)
        return strata_fail(STRATA_E_CORRUPT, 0, "the sentinel of the slab has the state %u", slab->records[0].state);
    if (strata_slab_is_idle(slab, 0)) return strata_fail(STRATA_E_CORRUPT, 0, "the sentinel of the slab is noted as idle");
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        strata_status_t status = count_record(slab, slot, &census);
        if (status != STRATA_OK) return status;
    }
    if (census.unused != slab->unused || census.retired != slab->retired)
        return strata_fail(STRATA_E_CORRUPT, 0, "the slab counts %u unused and %u retired slots, it has %u and %u",
                           slab->unused, slab->retired, census.unused, census.retired);
    if (slab->used < slab->capacity &&
        (slab->records[slab->used].home | slab->records[slab->used].state | strata_slab_is_idle(slab, slab->used)) != 0)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u was written before it was touched", slab->used);
    return validate_free_list(slab);
}
