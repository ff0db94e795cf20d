#include "trace/ids.h"

#include <sys/random.h>

#include "platform/clock.h"
#include "platform/host/host_memory.h"

/* If the system has no random bytes yet, the secret is the time and the address, which a file cannot
 * predict. */
static void draw_secret(strata_ids_t *ids) {
    if (ids->secret.low || ids->secret.high) return;
    if (getrandom(&ids->secret, sizeof ids->secret, GRND_NONBLOCK) == (ssize_t)sizeof ids->secret) return;
    ids->secret = (strata_sip_key_t){.low = strata_real_now(), .high = (uintptr_t)ids};
}

/* The finalizer of splitmix64, public domain. It maps no two values to one, and scatters ordinary numbers. */
static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* Returns the slot of `key`, or the empty slot for it. The slot is the high bits of a product with a
 * secret odd number. Any two keys collide in one of n slots with a chance of at most 2 / n
 * (Dietzfelbinger, Hagerup, Katajainen, Penttonen, "A reliable randomized algorithm for the
 * closest-pair problem", J. Algorithms 25, 1997). Each row looks a number up, so this takes two steps
 * instead of SipHash. */
static struct strata_ids_slot *slot_of(const strata_ids_t *ids, uint64_t key) {
    uint32_t mask = ids->capacity - 1;
    uint32_t at = (uint32_t)(mix(key ^ ids->secret.low) * (ids->secret.high | 1) >> __builtin_clzll(mask));
    while (ids->slots[at].number != STRATA_IDS_NONE && ids->slots[at].key != key) at = (at + 1) & mask;
    return &ids->slots[at];
}

uint64_t strata_ids_hash_word(strata_ids_t *ids, const char *word) {
    draw_secret(ids);
    return strata_sip_hash(&ids->secret, word, strlen(word));
}

uint32_t strata_ids_find_slot(const strata_ids_t *ids, uint64_t key) { return slot_of(ids, key)->number; }

static void insert(strata_ids_t *ids, uint64_t key, uint32_t number) {
    *slot_of(ids, key) = (struct strata_ids_slot){.key = key, .number = number};
}

/* Returns the smallest capacity for one more key with at most half of the slots in use. */
static uint32_t capacity_for(uint32_t count) {
    uint32_t capacity = 64;
    while (count >= capacity / 2) capacity *= 2;
    return capacity;
}

static strata_status_t grow(strata_ids_t *ids) {
    draw_secret(ids);
    strata_ids_t larger = {.capacity = capacity_for(ids->count), .count = ids->count, .secret = ids->secret};
    larger.slots = strata_host_new(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) return STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; i < larger.capacity; i++) larger.slots[i].number = STRATA_IDS_NONE;
    for (uint32_t i = 0; i < ids->count && !ids->capacity; i++) insert(&larger, ids->first + i, i);
    for (uint32_t i = 0; i < ids->capacity; i++)
        if (ids->slots[i].number != STRATA_IDS_NONE) insert(&larger, ids->slots[i].key, ids->slots[i].number);
    strata_host_delete(ids->slots);
    *ids = larger;
    return STRATA_OK;
}

strata_status_t strata_ids_add_any(strata_ids_t *ids, uint64_t key) {
    if (ids->count == 0 && !ids->capacity) {
        ids->first = key;
        ids->count++;
        return STRATA_OK;
    }
    if (ids->count >= ids->capacity / 2) {
        strata_status_t status = grow(ids);
        if (status != STRATA_OK) return status;
    }
    insert(ids, key, ids->count++);
    return STRATA_OK;
}

void strata_ids_clear(strata_ids_t *ids) {
    strata_host_delete(ids->slots);
    *ids = (strata_ids_t){0};
}
