#include "allocation/tables/directory.h"

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum {
    MAX_LEAVES = 1 << 20, /* 2 TiB, leaf 0 included */
    FIRST_LEAVES = 16
};

/* The granules of a range, [first, end). */
typedef struct granules {
    uint64_t first, end;
} granules_t;

static strata_directory_inner_t *inner_of(const strata_directory_t *directory, uint64_t index) {
    return atomic_load_explicit(&directory->inners[index], memory_order_acquire);
}

/* Returns the link of a granule in the tree. The inner node must exist. */
static _Atomic uint32_t *leaf_link(const strata_directory_t *directory, uint64_t granule) {
    return &inner_of(directory, granule / STRATA_DIRECTORY_GRANULES)->leaf[granule % STRATA_DIRECTORY_GRANULES];
}

/* Counts a granule as covered (`by` 1) or uncovered (-1) in its page. Returns true if the page now counts
 * 0. The lock is held. */
static bool count_on_page(const strata_directory_t *directory, uint64_t granule, int by) {
    strata_directory_inner_t *inner = inner_of(directory, granule / STRATA_DIRECTORY_GRANULES);
    uint16_t *covered = &inner->covered[granule % STRATA_DIRECTORY_GRANULES / STRATA_DIRECTORY_PAGE];
    if (*covered == 0) inner->pages++;
    *covered = (uint16_t)(*covered + by);
    if (*covered == 0) inner->pages--;
    return *covered == 0;
}

strata_status_t strata_directory_new(uint32_t unit_shift, strata_directory_t **out) {
    if (unit_shift < 6 || unit_shift > 9)
        return strata_fail(STRATA_E_INVALID, 0, "a directory in units of 2^%u bytes cannot be made", unit_shift);
    strata_directory_t *directory = strata_host_new(1, sizeof *directory);
    if (!directory) return STRATA_E_HOST_MEMORY;
    strata_lock_init(&directory->lock, STRATA_RANK_DEVICE, NULL);
    directory->unit_shift = unit_shift;
    directory->entry_bits = STRATA_DIRECTORY_GRANULE_SHIFT - unit_shift;
    size_t leaf_bytes = sizeof *directory->entries << directory->entry_bits;
    size_t inners_bytes = STRATA_DIRECTORY_INNERS * sizeof *directory->inners;
    directory->inners = strata_host_reserve(inners_bytes, inners_bytes, &directory->inners_reserved);
    strata_status_t status = directory->inners ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK)
        status = strata_growing_reserve(&directory->entries_range, leaf_bytes * FIRST_LEAVES, leaf_bytes * MAX_LEAVES);
    if (status != STRATA_OK) goto failed;
    directory->entries = directory->entries_range.memory;
    directory->capacity = (uint32_t)(strata_growing_max(&directory->entries_range) / leaf_bytes);
    size_t leaves_bytes = directory->capacity * sizeof *directory->leaves;
    status = strata_growing_reserve(&directory->leaves_range, FIRST_LEAVES * sizeof *directory->leaves, leaves_bytes);
    if (status != STRATA_OK) goto failed;
    directory->leaves = directory->leaves_range.memory;
    directory->used = 1;
    *out = directory;
    return STRATA_OK;
failed:
    strata_directory_delete(directory);
    return status;
}

void strata_directory_delete(strata_directory_t *directory) {
    if (!directory) return;
    for (strata_directory_inner_t *inner = directory->first_inner, *next; inner; inner = next) {
        next = inner->next;
        strata_host_unreserve(inner, sizeof *inner);
    }
    strata_host_unreserve(directory->inners, directory->inners_reserved);
    strata_growing_release(&directory->entries_range);
    strata_growing_release(&directory->leaves_range);
    strata_lock_destroy(&directory->lock);
    strata_host_delete(directory);
}

/* Returns false if the range is empty or exceeds the 2^57 bytes of addresses. */
static bool granules_of(uint64_t address, uint64_t size, granules_t *granules) {
    uint64_t end;
    if (size == 0 || !strata_add(address, size, &end) || end > 1ull << STRATA_DIRECTORY_ADDRESS_BITS) return false;
    granules->first = address >> STRATA_DIRECTORY_GRANULE_SHIFT;
    granules->end = ((end - 1) >> STRATA_DIRECTORY_GRANULE_SHIFT) + 1;
    return true;
}

/* Creates an idle inner node, to which place_inners() assigns addresses. No lock is held. */
static strata_status_t make_inner(strata_directory_t *directory) {
    size_t reserved;
    strata_directory_inner_t *inner = strata_host_reserve(sizeof *inner, sizeof *inner, &reserved);
    if (!inner) return STRATA_E_HOST_MEMORY;
    strata_lock(&directory->lock);
    inner->next = directory->first_inner;
    directory->first_inner = inner;
    inner->idle = true;
    inner->next_idle = directory->first_idle;
    directory->first_idle = inner;
    strata_unlock(&directory->lock);
    return STRATA_OK;
}

/* Assigns idle inner nodes to all indexes of a range that have none. Returns false if one more node is
 * needed. The lock is held. */
static bool place_inners(strata_directory_t *directory, granules_t granules) {
    for (uint64_t i = granules.first / STRATA_DIRECTORY_GRANULES; i <= (granules.end - 1) / STRATA_DIRECTORY_GRANULES; i++) {
        strata_directory_inner_t *inner = directory->first_idle;
        if (inner_of(directory, i)) continue;
        if (!inner) return false;
        directory->first_idle = inner->next_idle;
        inner->idle = false;
        inner->index = i;
        atomic_store_explicit(&directory->inners[i], inner, memory_order_release);
    }
    return true;
}

/* Unassigns the inner nodes of a range that cover nothing. The lock is held. */
static void unassign_inners(strata_directory_t *directory, granules_t granules) {
    for (uint64_t i = granules.first / STRATA_DIRECTORY_GRANULES; i <= (granules.end - 1) / STRATA_DIRECTORY_GRANULES; i++) {
        strata_directory_inner_t *inner = inner_of(directory, i);
        if (!inner || inner->pages > 0) continue;
        atomic_store_explicit(&directory->inners[i], NULL, memory_order_release);
        inner->idle = true;
        inner->next_idle = directory->first_idle;
        directory->first_idle = inner;
    }
}

/* The number of leaves that have entries. */
static size_t entries_now(const strata_directory_t *directory) {
    return strata_growing_usable(&directory->entries_range) / (sizeof *directory->entries << directory->entry_bits);
}

/* The number of leaves that can be in use. The lock is held. */
static uint32_t room_now(const strata_directory_t *directory) {
    uint64_t leaves = strata_min(directory->capacity, strata_growing_usable(&directory->leaves_range) / sizeof *directory->leaves);
    return (uint32_t)(directory->has_entries ? strata_min(leaves, entries_now(directory)) : leaves);
}

/* Returns how many leaves must exist so that every granule can be covered once more, or 0 if the directory
 * can never have that many. The lock is held. */
static uint32_t leaves_wanted(const strata_directory_t *directory, granules_t granules) {
    uint64_t fresh = 0;
    for (uint64_t granule = granules.first; granule < granules.end; granule++) {
        uint32_t leaf = atomic_load_explicit(leaf_link(directory, granule), memory_order_relaxed);
        if (leaf && directory->leaves[leaf].covers == UINT32_MAX) return 0;
        fresh += leaf == 0;
    }
    uint64_t wanted = directory->used + fresh - strata_min(fresh, directory->free_count);
    return wanted <= directory->capacity ? (uint32_t)wanted : 0;
}

/* Takes a free or new leaf, which must exist. The lock is held. */
static uint32_t take_leaf(strata_directory_t *directory, uint64_t granule) {
    uint32_t leaf = directory->free_head;
    if (leaf) {
        directory->free_head = directory->leaves[leaf].next;
        directory->free_count--;
    } else {
        leaf = directory->used++;
    }
    directory->leaves[leaf] = (strata_directory_leaf_t){.granule = (uint32_t)granule};
    return leaf;
}

static _Atomic uint64_t *near_of(strata_directory_t *directory, uint64_t granule) {
    return &directory->near[granule % STRATA_DIRECTORY_NEAR];
}

static void cover_all(strata_directory_t *directory, granules_t granules) {
    for (uint64_t granule = granules.first; granule < granules.end; granule++) {
        _Atomic uint32_t *link = leaf_link(directory, granule);
        uint32_t leaf = atomic_load_explicit(link, memory_order_relaxed);
        if (leaf == 0) {
            leaf = take_leaf(directory, granule);
            (void)count_on_page(directory, granule, 1);
            atomic_store_explicit(link, leaf, memory_order_release);
            atomic_store_explicit(near_of(directory, granule), granule << STRATA_DIRECTORY_LEAF_BITS | leaf, memory_order_release);
        }
        directory->leaves[leaf].covers++;
    }
}

/* No lock is held. */
static strata_status_t make_entries(strata_directory_t *directory, uint64_t leaves) {
    return strata_growing_grow(&directory->entries_range, leaves * sizeof *directory->entries << directory->entry_bits);
}

strata_status_t strata_directory_begin(strata_directory_t *directory) {
    for (;;) {
        strata_lock(&directory->lock);
        uint32_t used = directory->used;
        bool enough = directory->has_entries || entries_now(directory) >= used;
        directory->has_entries = enough;
        strata_unlock(&directory->lock);
        strata_status_t status = enough ? STRATA_OK : make_entries(directory, used);
        if (enough || status != STRATA_OK) return status;
    }
}

/* Makes room for `leaves` leaves. No lock is held. */
static strata_status_t make_room(strata_directory_t *directory, uint64_t leaves, bool with_entries) {
    strata_status_t status = with_entries ? make_entries(directory, leaves) : STRATA_OK;
    return status == STRATA_OK ? strata_growing_grow(&directory->leaves_range, leaves * sizeof *directory->leaves) : status;
}

strata_status_t strata_directory_cover(strata_directory_t *directory, uint64_t address, uint64_t size) {
    granules_t granules;
    if (!granules_of(address, size, &granules) || granules.end - granules.first > directory->capacity)
        return strata_fail(STRATA_E_LIMIT, 0, "%llu bytes at 0x%llx are outside the range that free by pointer can cover",
                           (unsigned long long)size, (unsigned long long)address);
    for (;;) {
        strata_lock(&directory->lock);
        bool placed = place_inners(directory, granules);
        uint32_t wanted = placed ? leaves_wanted(directory, granules) : 0;
        bool fits = wanted && wanted <= room_now(directory);
        if (fits) cover_all(directory, granules);
        else unassign_inners(directory, granules);
        bool with_entries = directory->has_entries;
        strata_unlock(&directory->lock);
        if (fits) return STRATA_OK;
        if (placed && !wanted)
            return strata_fail(STRATA_E_LIMIT, 0, "free by pointer covers %llu MiB, the maximum",
                               ((unsigned long long)directory->capacity - 1) << (STRATA_DIRECTORY_GRANULE_SHIFT - 20));
        strata_status_t status = placed ? make_room(directory, wanted, with_entries) : make_inner(directory);
        if (status != STRATA_OK) return status;
    }
}

/* Empties the leaves [first, end). Readers may still read them. The lock is held. */
static void empty_leaves(strata_directory_t *directory, uint64_t first, uint64_t end) {
    _Atomic uint64_t *entries = directory->entries + (first << directory->entry_bits);
    uint64_t count = directory->has_entries ? (end - first) << directory->entry_bits : 0;
    if (count == 0 || strata_host_discard(entries, count * sizeof *entries)) return;
    for (uint64_t i = 0; i < count; i++) atomic_store_explicit(&entries[i], 0, memory_order_relaxed);
}

/* Removes one cover of a granule. Returns the leaf that became free, or 0. The lock is held. */
static uint32_t uncover_granule(strata_directory_t *directory, uint64_t granule) {
    if (!inner_of(directory, granule / STRATA_DIRECTORY_GRANULES)) return 0;
    _Atomic uint32_t *link = leaf_link(directory, granule);
    uint32_t leaf = atomic_load_explicit(link, memory_order_relaxed);
    if (leaf == 0 || --directory->leaves[leaf].covers != 0) return 0;
    atomic_store_explicit(link, 0, memory_order_release);
    /* All links of the page are 0, so it does not matter if the system keeps the page. */
    if (count_on_page(directory, granule, -1))
        (void)strata_host_discard(leaf_link(directory, granule / STRATA_DIRECTORY_PAGE * STRATA_DIRECTORY_PAGE),
                                  STRATA_DIRECTORY_PAGE * sizeof *link);
    uint64_t near = atomic_load_explicit(near_of(directory, granule), memory_order_relaxed);
    if (near >> STRATA_DIRECTORY_LEAF_BITS == granule) atomic_store_explicit(near_of(directory, granule), 0, memory_order_release);
    directory->leaves[leaf].next = directory->free_head;
    directory->free_head = leaf;
    directory->free_count++;
    return leaf;
}

/* Empties adjacent leaves in one call, which is usually one system call per chunk. */
void strata_directory_uncover(strata_directory_t *directory, uint64_t address, uint64_t size) {
    granules_t granules;
    if (!granules_of(address, size, &granules)) return;
    strata_lock(&directory->lock);
    uint64_t first = 0, end = 0;
    for (uint64_t granule = granules.first; granule < granules.end; granule++) {
        uint32_t leaf = uncover_granule(directory, granule);
        if (leaf == 0) continue;
        if (leaf == end && end) {
            end++;
        } else if (leaf + 1u == first) {
            first--;
        } else {
            empty_leaves(directory, first, end);
            first = leaf;
            end = leaf + 1u;
        }
    }
    empty_leaves(directory, first, end);
    unassign_inners(directory, granules);
    strata_unlock(&directory->lock);
}

/* A free leaf must have no entries: readers would take an old entry for a hint. */
static strata_status_t validate_empty(const strata_directory_t *directory, uint32_t leaf) {
    if (!directory->has_entries) return STRATA_OK;
    for (uint64_t i = (uint64_t)leaf << directory->entry_bits; i < ((uint64_t)leaf + 1) << directory->entry_bits; i++) {
        if (atomic_load_explicit(&directory->entries[i], memory_order_relaxed) != 0)
            return strata_fail(STRATA_E_CORRUPT, 0, "the free leaf %u of the directory has an entry", leaf);
    }
    return STRATA_OK;
}

/* Checks that the near entries agree with the tree. */
static strata_status_t validate_near(const strata_directory_t *directory) {
    for (uint32_t i = 0; i < STRATA_DIRECTORY_NEAR; i++) {
        uint64_t near = atomic_load_explicit(&directory->near[i], memory_order_relaxed);
        uint64_t granule = near >> STRATA_DIRECTORY_LEAF_BITS, leaf = near & ((1u << STRATA_DIRECTORY_LEAF_BITS) - 1);
        if (near && (granule % STRATA_DIRECTORY_NEAR != i || strata_directory_far_leaf(directory, granule) != leaf))
            return strata_fail(STRATA_E_CORRUPT, 0, "near entry %u of the directory leads past the tree", i);
    }
    return STRATA_OK;
}

/* A list that ends cannot contain a leaf twice, because each leaf has only one link. */
static strata_status_t validate_free_list(const strata_directory_t *directory) {
    uint32_t leaf = directory->free_head;
    for (uint32_t steps = 0; steps < directory->free_count; steps++) {
        if (leaf == 0 || leaf >= directory->used || directory->leaves[leaf].covers != 0)
            return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the directory breaks at leaf %u after %u of %u", leaf, steps,
                               directory->free_count);
        strata_status_t status = validate_empty(directory, leaf);
        if (status != STRATA_OK) return status;
        leaf = directory->leaves[leaf].next;
    }
    if (leaf != 0) return strata_fail(STRATA_E_CORRUPT, 0, "the free list of the directory continues at leaf %u after all", leaf);
    return STRATA_OK;
}

/* Validates the links of one page and adds their count to `links`. */
static strata_status_t validate_page(const strata_directory_t *directory, const strata_directory_inner_t *inner, uint32_t page,
                                     uint32_t *links) {
    uint32_t found = 0;
    for (uint32_t i = page * STRATA_DIRECTORY_PAGE; i < (page + 1) * STRATA_DIRECTORY_PAGE; i++) {
        uint32_t leaf = atomic_load_explicit(&inner->leaf[i], memory_order_relaxed);
        if (leaf == 0) continue;
        uint64_t granule = inner->index * STRATA_DIRECTORY_GRANULES + i;
        const strata_directory_leaf_t *it = &directory->leaves[leaf < directory->used ? leaf : 0];
        if (it->covers == 0 || it->granule != (uint32_t)granule)
            return strata_fail(STRATA_E_CORRUPT, 0, "granule 0x%llx of the directory leads to leaf %u, which does not cover it",
                               (unsigned long long)granule, leaf);
        found++;
    }
    *links += found;
    if (found == inner->covered[page]) return STRATA_OK;
    return strata_fail(STRATA_E_CORRUPT, 0, "page %u of inner node %llu of the directory counts %u links, but has %u", page,
                       (unsigned long long)inner->index, inner->covered[page], found);
}

/* Validates the links of all inner nodes and counts them in `links`. */
static strata_status_t validate_links(const strata_directory_t *directory, uint32_t *links) {
    strata_status_t status = STRATA_OK;
    for (const strata_directory_inner_t *inner = directory->first_inner; inner && status == STRATA_OK; inner = inner->next) {
        uint32_t pages = 0;
        for (uint32_t page = 0; page < STRATA_DIRECTORY_PAGES && status == STRATA_OK; page++) {
            status = validate_page(directory, inner, page, links);
            pages += inner->covered[page] > 0;
        }
        if (status != STRATA_OK) break;
        if (pages != inner->pages || inner->idle != (pages == 0) || (pages > 0 && inner_of(directory, inner->index) != inner))
            status = strata_fail(STRATA_E_CORRUPT, 0, "inner node %llu of the directory has links on %u pages, and counts %u%s",
                                 (unsigned long long)inner->index, pages, inner->pages, inner->idle ? ", idle" : "");
    }
    return status;
}

static strata_status_t validate_all(const strata_directory_t *directory) {
    uint32_t free_leaves = 0, links = 0;
    if (directory->used == 0 || directory->used > room_now(directory))
        return strata_fail(STRATA_E_CORRUPT, 0, "the directory uses %u of %u leaves", directory->used, room_now(directory));
    for (uint32_t leaf = 1; leaf < directory->used; leaf++) free_leaves += directory->leaves[leaf].covers == 0;
    if (free_leaves != directory->free_count)
        return strata_fail(STRATA_E_CORRUPT, 0, "the directory counts %u free leaves, but has %u", directory->free_count,
                           free_leaves);
    strata_status_t status = validate_links(directory, &links);
    if (status != STRATA_OK) return status;
    if (links != directory->used - 1 - free_leaves)
        return strata_fail(STRATA_E_CORRUPT, 0, "the directory leads to %u leaves, but %u are covered", links,
                           directory->used - 1 - free_leaves);
    status = validate_near(directory);
    return status == STRATA_OK ? validate_free_list(directory) : status;
}

strata_status_t strata_directory_validate(strata_directory_t *directory) {
    strata_lock(&directory->lock);
    strata_status_t status = validate_all(directory);
    strata_unlock(&directory->lock);
    return status;
}
