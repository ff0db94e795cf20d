/* Finds the record that begins at an address, for free by pointer.
 *
 *   inners[address >> 39] -> inner.leaf[granule] -> entries[leaf << entry_bits + unit] = (home, slot)
 *
 * It is a radix tree by address. A leaf covers a granule of 2 MiB and holds a (home, slot) for every unit
 * of 2^unit_shift bytes. Entries are hints: they are written when a block is handed out and never erased. A
 * reader therefore checks the record itself (full pointer, state) under its stack's lock. Look-ups and
 * writes take no lock; covering and uncovering do.
 *
 * Leaves are in a range that grows in place. An uncovered leaf is emptied and reused, and costs memory only
 * where it was written. Entries take 1/32 of the covered size (1/8 in units of 64 bytes) in address space.
 * They exist only after strata_directory_begin(), while covering starts with the directory. A reader that
 * found a leaf just before it was uncovered may get a hint for another address. */
#ifndef STRATA_ALLOCATION_MECHANISM_DIRECTORY_H
#define STRATA_ALLOCATION_MECHANISM_DIRECTORY_H

#include <stdatomic.h>
#include <stddef.h>

#include "platform/host/growing.h"
#include "platform/lock.h"
#include "platform/status.h"

enum {
    STRATA_DIRECTORY_ADDRESS_BITS = 57,
    STRATA_DIRECTORY_GRANULE_SHIFT = 21, /* log2 of the bytes that a leaf covers */
    STRATA_DIRECTORY_INNER_SHIFT = 39, /* log2 of the bytes that an inner node covers */
    STRATA_DIRECTORY_INNERS = 1 << (STRATA_DIRECTORY_ADDRESS_BITS - STRATA_DIRECTORY_INNER_SHIFT),
    STRATA_DIRECTORY_GRANULES = 1 << (STRATA_DIRECTORY_INNER_SHIFT - STRATA_DIRECTORY_GRANULE_SHIFT), /* of one inner node */
    STRATA_DIRECTORY_PAGE = 1 << 10, /* granules with links on one page of an inner node */
    STRATA_DIRECTORY_PAGES = STRATA_DIRECTORY_GRANULES / STRATA_DIRECTORY_PAGE,
    STRATA_DIRECTORY_NEAR = 1 << 10, /* granules found without the tree */
    STRATA_DIRECTORY_LEAF_BITS = 24
};

/* An inner node, in reserved memory. Readers take no lock, so a node is never unmapped before the directory
 * is deleted. A node that covers nothing becomes idle and is reused for other addresses; a late reader then
 * gets a hint for one of those. Pages of links without covered granules are returned to the system, so
 * addresses that are no longer covered cost no memory. */
typedef struct strata_directory_inner {
    _Atomic uint32_t leaf[STRATA_DIRECTORY_GRANULES]; /* by granule; 0 if it is not covered */
    uint16_t covered[STRATA_DIRECTORY_PAGES]; /* covered granules per page; guarded by the lock */
    /* Guarded by the lock. */
    uint32_t pages; /* pages with covered granules */
    bool idle; /* covers nothing and is not in `inners` */
    uint64_t index; /* in `inners` */
    struct strata_directory_inner *next; /* list of all inner nodes */
    struct strata_directory_inner *next_idle;
} strata_directory_inner_t;

/* Guarded by the lock. */
typedef struct strata_directory_leaf {
    uint32_t covers; /* how often its granule is covered; 0 for a free leaf */
    union {
        uint32_t granule; /* the low bits of address >> 21, for validation */
        uint32_t next; /* of a free leaf: the next one, or 0 */
    };
} strata_directory_leaf_t;

typedef struct strata_directory {
    _Atomic(strata_directory_inner_t *) *inners; /* NULL where nothing is covered; changed under the lock */
    strata_directory_inner_t *first_inner, *first_idle; /* guarded by the lock */
    _Atomic uint64_t *entries; /* leaf n's begin at n << entry_bits; each is home << 32 | slot, or 0 if it was never written */
    uint32_t unit_shift;
    uint32_t entry_bits;
    /* The most recently covered granules, by their low bits: granule << 24 | leaf. Written only under the
     * lock, together with the tree. */
    _Atomic uint64_t near[STRATA_DIRECTORY_NEAR];
    strata_lock_t lock; /* rank DEVICE */
    strata_directory_leaf_t *leaves; /* leaf 0 means none */
    uint32_t used; /* leaves ever taken, leaf 0 included */
    bool has_entries; /* strata_directory_begin() was called */
    uint32_t capacity; /* upper bound on leaves, leaf 0 included */
    uint32_t free_head;
    uint32_t free_count;
    size_t inners_reserved;
    strata_growing_t entries_range, leaves_range; /* grown before leaves are taken, with no lock held */
} strata_directory_t;

/* Creates a directory that covers at most 2 TiB at a time. Blocks begin at multiples of 2^unit_shift bytes
 * (6 to 9). E_INVALID, E_HOST_MEMORY. */
strata_status_t strata_directory_new(uint32_t unit_shift, strata_directory_t **directory);
void strata_directory_delete(strata_directory_t *directory);
/* Enables the writing and finding of addresses in all covered ranges. No lock of Strata is held. If it
 * fails with E_HOST_MEMORY, nothing has changed. */
strata_status_t strata_directory_begin(strata_directory_t *directory);
/* Makes entries of [address, address + size) writable. Covers are counted, because chunks may share a
 * granule. If it fails with E_LIMIT or E_HOST_MEMORY, nothing has changed. The caller holds no lock of
 * Strata. */
strata_status_t strata_directory_cover(strata_directory_t *directory, uint64_t address, uint64_t size);
/* Removes one cover of the same range, to which nothing may write any longer. Addresses that were not
 * covered are skipped. */
void strata_directory_uncover(strata_directory_t *directory, uint64_t address, uint64_t size);
/* Checks the counts against the leaves, the leaves against the tree, and the free list against the free
 * leaves. E_CORRUPT. */
strata_status_t strata_directory_validate(strata_directory_t *directory);

/* Looks a granule up in the tree. Returns its leaf, or 0 if it is not covered. */
static inline uint64_t strata_directory_far_leaf(const strata_directory_t *directory, uint64_t granule) {
    if (granule >> (STRATA_DIRECTORY_ADDRESS_BITS - STRATA_DIRECTORY_GRANULE_SHIFT) != 0) return 0;
    strata_directory_inner_t *inner = atomic_load_explicit(&directory->inners[granule / STRATA_DIRECTORY_GRANULES],
                                                           memory_order_acquire);
    return inner ? atomic_load_explicit(&inner->leaf[granule % STRATA_DIRECTORY_GRANULES], memory_order_acquire) : 0;
}

/* Returns the entry of an address, or NULL if it is not covered. */
static inline _Atomic uint64_t *strata_directory_entry(const strata_directory_t *directory, uint64_t address) {
    uint64_t granule = address >> STRATA_DIRECTORY_GRANULE_SHIFT;
    uint64_t near = atomic_load_explicit(&directory->near[granule % STRATA_DIRECTORY_NEAR], memory_order_acquire);
    uint64_t leaf = near & ((1u << STRATA_DIRECTORY_LEAF_BITS) - 1);
    if (__builtin_expect(near >> STRATA_DIRECTORY_LEAF_BITS != granule || leaf == 0, 0)) {
        leaf = strata_directory_far_leaf(directory, granule);
        if (leaf == 0) return NULL;
    }
    uint64_t within = (address & ((1u << STRATA_DIRECTORY_GRANULE_SHIFT) - 1)) >> directory->unit_shift;
    return &directory->entries[(leaf << directory->entry_bits) + within];
}

/* Writes the entry of an address, or nothing if the address is not covered. Requires
 * strata_directory_begin(); `slot` is not 0. Any thread. */
static inline void strata_directory_write(strata_directory_t *directory, uint64_t address, uint16_t home, uint32_t slot) {
    _Atomic uint64_t *entry = strata_directory_entry(directory, address);
    if (entry) atomic_store_explicit(entry, (uint64_t)home << 32 | slot, memory_order_relaxed);
}

/* Reads the entry of an address, which may be any number. Returns false if it is not covered or has never
 * been written. Requires strata_directory_begin(). Any thread. */
static inline bool strata_directory_read(const strata_directory_t *directory, uint64_t address, uint16_t *home, uint32_t *slot) {
    if (address & ((1ull << directory->unit_shift) - 1)) return false;
    _Atomic uint64_t *entry = strata_directory_entry(directory, address);
    uint64_t value = entry ? atomic_load_explicit(entry, memory_order_relaxed) : 0;
    if (value == 0) return false;
    *home = (uint16_t)(value >> 32);
    *slot = (uint32_t)value;
    return true;
}

#endif
