/* The memory of the fake device: addresses that must not be accessed, handed out in constant time and reused. */
#ifndef STRATA_BENCH_PEERS_MEMORY_H
#define STRATA_BENCH_PEERS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/bench/peers/driver/counts.h"

#define DEVICE_GRANULE (UINT64_C(2) << 20)
#define DEVICE_MEMORY  (UINT64_C(2) << 40) /* the memory that the device reports; no allocation fails below that */

/* Every call is counted. The functions return 0 or false if there is no more room. */
uint64_t memory_allocate(uint64_t size);
bool memory_free(uint64_t address);
uint64_t memory_reserve(uint64_t size);
uint64_t memory_create(uint64_t size);
void memory_drop(uint64_t handle); /* drops the handle itself, or one of its mappings */
bool memory_map(uint64_t address, uint64_t handle);
void memory_unmap(uint64_t address, uint64_t size);
void memory_count(void); /* counts a call of another kind */
driver_counts_t memory_counts(void);

#endif
