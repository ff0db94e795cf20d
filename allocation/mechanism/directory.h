/* From an address to the record that begins there: for free by pointer. A radix tree by address whose leaves (one per 2 MiB of
 * covered memory) hold a (home, slot) for every `unit` bytes. Entries are hints: they are written when a block is handed out,
 * never erased, and whoever reads one checks the record itself (full pointer, state) under its stack's lock. So look-ups and
 * writes take no lock; covering and uncovering do.
 *
 * Leaves come from a range reserved at creation: an uncovered leaf is reused, and costs memory only where it was written. */
#ifndef STRATA_ALLOCATION_MECHANISM_DIRECTORY_H
#define STRATA_ALLOCATION_MECHANISM_DIRECTORY_H

#include "platform/lock.h"
#include "platform/status.h"

enum { STRATA_DIRECTORY_GRANULE_SHIFT = 21 };

typedef struct strata_directory strata_directory_t;

/* `unit_shift`: blocks begin at multiples of 2^unit_shift. Covers at most 2 TiB at a time, less where address space is limited. */
strata_status_t strata_directory_new(uint32_t unit_shift, strata_directory_t **directory);
void strata_directory_delete(strata_directory_t *directory);
/* Makes entries of [address, address + size) writable; counted, as chunks may share a granule. E_LIMIT, E_HOST_MEMORY (only for
 * inner nodes); nothing has changed then. No lock of Strata is held by the caller. */
strata_status_t strata_directory_cover(strata_directory_t *directory, uint64_t address, uint64_t size);
void strata_directory_uncover(strata_directory_t *directory, uint64_t address, uint64_t size);
/* The address is covered. Any thread. */
void strata_directory_write(strata_directory_t *directory, uint64_t address, uint16_t home, uint32_t slot);
/* false: nothing was ever written there, or the address is not covered. Any address is safe to ask for. Any thread. */
bool strata_directory_read(const strata_directory_t *directory, uint64_t address, uint16_t *home, uint32_t *slot);
/* Counts against leaves, free leaves against the arena. E_CORRUPT. */
strata_status_t strata_directory_validate(strata_directory_t *directory);

#endif
