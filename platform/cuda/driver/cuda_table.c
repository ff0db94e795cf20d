#include "platform/cuda/driver/cuda_table.h"

#include <string.h>

#include "platform/host/host_memory.h"

static uint64_t home_of(const strata_cuda_table_t *table, uint64_t key) {
    return (key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (table->capacity - 1);
}

/* Returns the slot of `key`, or the empty slot where it belongs. */
static strata_cuda_slot_t *slot_of(const strata_cuda_table_t *table, uint64_t key) {
    uint64_t i = home_of(table, key);
    while (table->slots[i].key && table->slots[i].key != key) i = (i + 1) & (table->capacity - 1);
    return &table->slots[i];
}

/* Moves all keys into `slots` and returns the old slots. */
static strata_cuda_slot_t *rehash(strata_cuda_table_t *table, strata_cuda_slot_t *slots, uint64_t capacity) {
    strata_cuda_table_t larger = {slots, capacity, table->count, table->claimed};
    for (uint64_t i = 0; i < table->capacity; i++)
        if (table->slots[i].key) *slot_of(&larger, table->slots[i].key) = table->slots[i];
    strata_cuda_slot_t *old = table->slots;
    *table = larger;
    return old;
}

strata_status_t strata_cuda_table_claim(strata_cuda_table_t *table, strata_lock_t *lock) {
    for (;;) {
        strata_lock(lock);
        uint64_t capacity = table->capacity;
        bool fits = 2 * (table->count + table->claimed + 1) <= capacity;
        if (fits) table->claimed++;
        strata_unlock(lock);
        if (fits) return STRATA_OK;
        uint64_t wanted = capacity ? 2 * capacity : 32;
        strata_cuda_slot_t *slots = strata_host_new(wanted, sizeof *slots);
        if (!slots) return STRATA_E_HOST_MEMORY;
        strata_lock(lock);
        /* Another thread may have grown the table first. */
        strata_cuda_slot_t *spare = table->capacity == capacity ? rehash(table, slots, wanted) : slots;
        strata_unlock(lock);
        strata_host_delete(spare);
    }
}

void strata_cuda_table_unclaim(strata_cuda_table_t *table) { table->claimed--; }

void strata_cuda_table_insert(strata_cuda_table_t *table, uint64_t key, uint64_t value) {
    table->claimed--;
    strata_cuda_slot_t *slot = slot_of(table, key);
    if (!slot->key) table->count++;
    slot->key = key;
    slot->value = value;
}

uint64_t *strata_cuda_table_find(strata_cuda_table_t *table, uint64_t key) {
    if (table->count == 0 || key == 0) return NULL;
    strata_cuda_slot_t *slot = slot_of(table, key);
    return slot->key ? &slot->value : NULL;
}

bool strata_cuda_table_remove(strata_cuda_table_t *table, uint64_t key, uint64_t *value) {
    if (!strata_cuda_table_find(table, key)) return false;
    strata_cuda_slot_t *slot = slot_of(table, key);
    if (value) *value = slot->value;
    slot->key = 0;
    table->count--;
    /* Keys after the hole move up, so that searches never stop short. */
    for (uint64_t i = (uint64_t)(slot - table->slots + 1) & (table->capacity - 1); table->slots[i].key;
         i = (i + 1) & (table->capacity - 1)) {
        strata_cuda_slot_t moved = table->slots[i];
        table->slots[i].key = 0;
        *slot_of(table, moved.key) = moved;
    }
    return true;
}

bool strata_cuda_table_remove_claimed(strata_cuda_table_t *table, uint64_t key, uint64_t *value) {
    if (!strata_cuda_table_remove(table, key, value)) return false;
    table->claimed++;
    return true;
}

void strata_cuda_table_destroy(strata_cuda_table_t *table) {
    strata_host_delete(table->slots);
    memset(table, 0, sizeof *table);
}
