#include "lab/bench/peers/driver/memory.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Two regions of addresses, for plain allocations and for reserved ranges. Both are within 47 bits. */
#define PLAIN_BASE    (UINT64_C(1) << 44)
#define PLAIN_END     (UINT64_C(5) << 44)
#define RESERVED_BASE (UINT64_C(5) << 44)
#define RESERVED_END  (UINT64_C(8) << 44)
#define PLAIN_UNIT    (UINT64_C(1) << 16)

enum { CLASSES = 1 << 14, HANDLES = 1 << 24 };

/* The tables are as large as the regions need, but only written pages take memory. `lock` guards all of this. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *sizes; /* of a plain allocation, by its first unit; of a free one, the next free one's address */
static uint32_t *mapped; /* the handle mapped at a granule of the reserved region */
static struct physical {
    uint64_t size; /* of a free one, the next free one */
    uint32_t owners; /* its handle and its mappings */
} * physical;
static uint64_t free_plain[CLASSES]; /* by units: the last one freed */
static uint64_t next_plain = PLAIN_BASE, next_reserved = RESERVED_BASE, next_handle = 1, free_handle;
static driver_counts_t counts;

static void *table(uint64_t count, size_t size) {
    void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

__attribute__((constructor)) static void begin(void) {
    sizes = table((PLAIN_END - PLAIN_BASE) / PLAIN_UNIT, sizeof *sizes);
    mapped = table((RESERVED_END - RESERVED_BASE) / DEVICE_GRANULE, sizeof *mapped);
    physical = table(HANDLES, sizeof *physical);
}

static void lock_and_count(void) {
    pthread_mutex_lock(&lock);
    counts.calls++;
}

static void unlock(void) { pthread_mutex_unlock(&lock); }

static void count_held(uint64_t size) {
    counts.held += size;
    if (counts.held > counts.peak) counts.peak = counts.held;
}

static uint64_t *size_of(uint64_t address) { return &sizes[(address - PLAIN_BASE) / PLAIN_UNIT]; }

/* The last one freed is served again if it has the same number of units. Very large ones are never reused. */
static uint64_t plain_address(uint64_t units) {
    if (units < CLASSES && free_plain[units]) {
        uint64_t address = free_plain[units];
        free_plain[units] = *size_of(address);
        return address;
    }
    if (units > (PLAIN_END - next_plain) / PLAIN_UNIT) return 0;
    next_plain += units * PLAIN_UNIT;
    return next_plain - units * PLAIN_UNIT;
}

uint64_t memory_allocate(uint64_t size) {
    lock_and_count();
    uint64_t address = counts.held + size > DEVICE_MEMORY ? 0 : plain_address((size + PLAIN_UNIT - 1) / PLAIN_UNIT);
    if (address) {
        *size_of(address) = size;
        count_held(size);
    }
    unlock();
    return address;
}

bool memory_free(uint64_t address) {
    if (address < PLAIN_BASE || address >= PLAIN_END) return false;
    lock_and_count();
    uint64_t size = *size_of(address), units = (size + PLAIN_UNIT - 1) / PLAIN_UNIT;
    counts.held -= size;
    if (units < CLASSES) {
        *size_of(address) = free_plain[units];
        free_plain[units] = address;
    }
    unlock();
    return true;
}

uint64_t memory_reserve(uint64_t size) {
    lock_and_count();
    uint64_t address = size > RESERVED_END - next_reserved ? 0 : next_reserved;
    if (address) next_reserved += (size + DEVICE_GRANULE - 1) / DEVICE_GRANULE * DEVICE_GRANULE;
    unlock();
    return address;
}

uint64_t memory_create(uint64_t size) {
    lock_and_count();
    uint64_t handle = counts.held + size > DEVICE_MEMORY ? 0 : free_handle;
    if (handle) free_handle = physical[handle].size;
    else if (counts.held + size <= DEVICE_MEMORY && next_handle < HANDLES) handle = next_handle++;
    if (handle) {
        physical[handle] = (struct physical){.size = size, .owners = 1};
        count_held(size);
    }
    unlock();
    return handle;
}

static void drop(uint64_t handle) {
    if (--physical[handle].owners) return;
    counts.held -= physical[handle].size;
    physical[handle].size = free_handle;
    free_handle = handle;
}

void memory_drop(uint64_t handle) {
    lock_and_count();
    drop(handle);
    unlock();
}

bool memory_map(uint64_t address, uint64_t handle) {
    lock_and_count();
    uint32_t *at = &mapped[(address - RESERVED_BASE) / DEVICE_GRANULE];
    bool free = *at == 0;
    if (free) {
        *at = (uint32_t)handle;
        physical[handle].owners++;
    }
    unlock();
    return free;
}

void memory_unmap(uint64_t address, uint64_t size) {
    lock_and_count();
    for (uint64_t i = 0; i < size / DEVICE_GRANULE; i++) {
        uint32_t *at = &mapped[(address - RESERVED_BASE) / DEVICE_GRANULE + i];
        if (*at) drop(*at);
        *at = 0;
    }
    unlock();
}

void memory_count(void) {
    lock_and_count();
    unlock();
}

driver_counts_t memory_counts(void) {
    pthread_mutex_lock(&lock);
    driver_counts_t now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}
