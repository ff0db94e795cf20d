/* Each class is a treap: a search tree by (size, ptr) and a heap by a hash of the slot. No two slots have the
 * same hash, so the shape depends only on the blocks. The left child is bin_prev, and the right one bin_next. */
#include "allocation/mechanism/tree.h"

#include "platform/status.h"

_Static_assert(STRATA_TREE_WORDS <= 64, "one word has a bit for each word");

/* A treap is this deep only with negligible probability. */
enum { MAX_DEPTH = 512 };

/* A bijection on 32 bits: the finalizer of MurmurHash3. */
static inline uint32_t priority(uint32_t slot) {
    slot ^= slot >> 16;
    slot *= 0x85ebca6bu;
    slot ^= slot >> 13;
    slot *= 0xc2b2ae35u;
    return slot ^ (slot >> 16);
}

static inline bool before(const strata_record_t *a, const strata_record_t *b) {
    return a->size != b->size ? a->size < b->size : a->ptr < b->ptr;
}

/* Splits the subtree into the keys before `pivot`, under *left, and the others, under *right. */
static void split(strata_slab_t *slab, uint32_t subtree, const strata_record_t *pivot, uint32_t *left, uint32_t *right) {
    while (subtree) {
        strata_record_t *record = &slab->records[subtree];
        if (before(record, pivot)) {
            *left = subtree;
            left = &record->bin_next;
            subtree = record->bin_next;
        } else {
            *right = subtree;
            right = &record->bin_prev;
            subtree = record->bin_prev;
        }
    }
    *left = 0;
    *right = 0;
}

/* Moves the only block to its class, because another block is about to be inserted. */
static void classify_only(strata_tree_t *tree, strata_slab_t *slab) {
    uint32_t slot = tree->only;
    strata_tree_quick_remove(tree, slab, slot);
    strata_tree_insert(tree, slab, slot);
}

void strata_tree_insert(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot) {
    if (tree->only) classify_only(tree, slab);
    strata_record_t *record = &slab->records[slot];
    uint32_t own = priority(slot);
    uint32_t class = strata_tree_class(record->size);
    uint32_t *link = &tree->roots[class];
    while (*link && priority(*link) > own) {
        strata_record_t *above = &slab->records[*link];
        link = before(above, record) ? &above->bin_next : &above->bin_prev;
    }
    uint32_t subtree = *link, left, right;
    split(slab, subtree, record, &left, &right);
    record->bin_prev = left;
    record->bin_next = right;
    *link = slot;
    strata_slab_note_idle(slab, slot);
    tree->words[class / 64] |= 1ull << (class % 64);
    tree->filled |= 1ull << (class / 64);
    tree->count++;
    tree->bytes += record->size;
}

/* Joins two trees. Every key under `left` must be before every key under `right`. */
static void merge(strata_slab_t *slab, uint32_t left, uint32_t right, uint32_t *link) {
    while (left && right) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &slab->records[left].bin_next;
            left = *link;
        } else {
            *link = right;
            link = &slab->records[right].bin_prev;
            right = *link;
        }
    }
    *link = left ? left : right;
}

void strata_tree_remove(strata_tree_t *tree, strata_slab_t *slab, uint32_t slot) {
    if (tree->only) {
        if (tree->only == slot) strata_tree_quick_remove(tree, slab, slot);
        return;
    }
    strata_record_t *record = &slab->records[slot];
    uint32_t class = strata_tree_class(record->size);
    uint32_t *link = &tree->roots[class];
    while (*link != slot) {
        if (*link == 0) return; /* The block is not in the tree. It is left as it is, for validate to report. */
        strata_record_t *above = &slab->records[*link];
        link = before(above, record) ? &above->bin_next : &above->bin_prev;
    }
    merge(slab, record->bin_prev, record->bin_next, link);
    strata_slab_note_used(slab, slot);
    if (tree->roots[class] == 0) {
        uint64_t bits = tree->words[class / 64] & ~(1ull << (class % 64));
        tree->words[class / 64] = bits;
        if (bits == 0) tree->filled &= ~(1ull << (class / 64));
    }
    tree->count--;
    tree->bytes -= record->size;
}

/* Returns the root of the first class above `class` that has blocks, or 0 if there is none. */
static uint32_t root_above(const strata_tree_t *tree, uint32_t class) {
    uint32_t word = class / 64;
    uint64_t bits = tree->words[word] & (UINT64_MAX << 1 << (class % 64));
    if (bits == 0) {
        uint64_t words = tree->filled & (UINT64_MAX << 1 << word);
        if (words == 0) return 0;
        word = (uint32_t)__builtin_ctzll(words);
        bits = tree->words[word];
    }
    return tree->roots[word * 64 + (uint32_t)__builtin_ctzll(bits)];
}

/* Returns the root of the last class below `class` that has blocks, or 0 if there is none. */
static uint32_t root_below(const strata_tree_t *tree, uint32_t class) {
    uint32_t word = class / 64;
    uint64_t bits = tree->words[word] & ((1ull << (class % 64)) - 1);
    if (bits == 0) {
        uint64_t words = tree->filled & ((1ull << word) - 1);
        if (words == 0) return 0;
        word = 63u ^ (uint32_t)__builtin_clzll(words);
        bits = tree->words[word];
    }
    return tree->roots[word * 64 + (63u ^ (uint32_t)__builtin_clzll(bits))];
}

static uint32_t first_of(const strata_slab_t *slab, uint32_t root) {
    uint32_t first = 0;
    for (uint32_t slot = root; slot; slot = slab->records[slot].bin_prev) first = slot;
    return first;
}

static uint32_t last_of(const strata_slab_t *slab, uint32_t root) {
    uint32_t last = 0;
    for (uint32_t slot = root; slot; slot = slab->records[slot].bin_next) last = slot;
    return last;
}

uint32_t strata_tree_find(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size) {
    if (tree->only) return strata_tree_quick_find(tree, slab, size);
    uint32_t best = 0, class = strata_tree_class(size);
    for (uint32_t slot = tree->roots[class]; slot;) {
        const strata_record_t *record = &slab->records[slot];
        if (record->size >= size) {
            best = slot;
            slot = record->bin_prev;
        } else {
            slot = record->bin_next;
        }
    }
    return best ? best : first_of(slab, root_above(tree, class));
}

uint32_t strata_tree_after(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size, uint64_t ptr) {
    const strata_record_t pivot = {.size = size, .ptr = ptr};
    if (tree->only) return before(&pivot, &slab->records[tree->only]) ? tree->only : 0;
    uint32_t found = 0, class = strata_tree_class(size);
    for (uint32_t slot = tree->roots[class]; slot;) {
        const strata_record_t *record = &slab->records[slot];
        bool after = before(&pivot, record);
        if (after) found = slot;
        slot = after ? record->bin_prev : record->bin_next;
    }
    return found ? found : first_of(slab, root_above(tree, class));
}

uint32_t strata_tree_before(const strata_tree_t *tree, const strata_slab_t *slab, uint64_t size, uint64_t ptr) {
    const strata_record_t pivot = {.size = size, .ptr = ptr};
    if (tree->only) return before(&slab->records[tree->only], &pivot) ? tree->only : 0;
    uint32_t found = 0, class = strata_tree_class(size);
    for (uint32_t slot = tree->roots[class]; slot;) {
        const strata_record_t *record = &slab->records[slot];
        bool ahead = before(record, &pivot);
        if (ahead) found = slot;
        slot = ahead ? record->bin_next : record->bin_prev;
    }
    return found ? found : last_of(slab, root_below(tree, class));
}

uint64_t strata_tree_largest(const strata_tree_t *tree, const strata_slab_t *slab) {
    if (tree->only) return slab->records[tree->only].size;
    uint32_t root = tree->roots[STRATA_TREE_CLASSES - 1];
    uint32_t last = last_of(slab, root ? root : root_below(tree, STRATA_TREE_CLASSES - 1));
    return last ? slab->records[last].size : 0;
}

/* An in-order walk. While a node's left subtree is being visited, the node is on the path. */
typedef struct tree_walk {
    uint32_t path[MAX_DEPTH];
    uint32_t depth, count;
    uint64_t bytes;
    const strata_record_t *last;
} tree_walk_t;

static strata_status_t descend(const strata_slab_t *slab, tree_walk_t *walk, uint32_t slot, uint32_t above) {
    while (slot) {
        if (slot >= slab->used) return strata_fail(STRATA_E_CORRUPT, 0, "the tree has a link to slot %u, which is invalid", slot);
        if (above && priority(slot) >= priority(above))
            return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is below slot %u in the tree, contrary to their priorities", slot,
                               above);
        if (walk->depth == MAX_DEPTH)
            return strata_fail(STRATA_E_CORRUPT, 0, "the tree is more than %d deep at slot %u", MAX_DEPTH, slot);
        walk->path[walk->depth++] = slot;
        above = slot;
        slot = slab->records[slot].bin_prev;
    }
    return STRATA_OK;
}

static strata_status_t visit(const strata_tree_t *tree, const strata_slab_t *slab, tree_walk_t *walk, uint32_t slot,
                             uint32_t class) {
    const strata_record_t *record = &slab->records[slot];
    if (record->state != STRATA_RECORD_FREE)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is in the tree in state %u", slot, record->state);
    if (!strata_slab_is_idle(slab, slot))
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u is in the tree, but its bit is clear", slot);
    if (strata_tree_class(record->size) != class)
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u of %llu bytes is in class %u of the tree, not %u", slot,
                           (unsigned long long)record->size, class, strata_tree_class(record->size));
    if (walk->last && !before(walk->last, record))
        return strata_fail(STRATA_E_CORRUPT, 0, "slot %u of %llu bytes is out of order in the tree", slot,
                           (unsigned long long)record->size);
    if (++walk->count > tree->count)
        return strata_fail(STRATA_E_CORRUPT, 0, "the tree has more blocks than the %u it counts", tree->count);
    walk->bytes += record->size;
    walk->last = record;
    return STRATA_OK;
}

static strata_status_t validate_class(const strata_tree_t *tree, const strata_slab_t *slab, tree_walk_t *walk, uint32_t class) {
    strata_status_t status = descend(slab, walk, tree->roots[class], 0);
    while (status == STRATA_OK && walk->depth) {
        uint32_t slot = walk->path[--walk->depth];
        status = visit(tree, slab, walk, slot, class);
        if (status == STRATA_OK) status = descend(slab, walk, slab->records[slot].bin_next, slot);
    }
    bool marked = tree->words[class / 64] >> (class % 64) & 1;
    if (status != STRATA_OK || marked == (tree->roots[class] != 0)) return status;
    return strata_fail(STRATA_E_CORRUPT, 0, "class %u of the tree begins with slot %u, but its bit is %d", class,
                       tree->roots[class], marked);
}

strata_status_t strata_tree_validate(const strata_tree_t *tree, const strata_slab_t *slab) {
    tree_walk_t walk = {.depth = 0};
    strata_status_t status = STRATA_OK;
    for (uint32_t class = 0; class < STRATA_TREE_CLASSES && status == STRATA_OK; class ++)
        status = validate_class(tree, slab, &walk, class);
    if (status == STRATA_OK && tree->only) {
        if (tree->only >= slab->used)
            return strata_fail(STRATA_E_CORRUPT, 0, "the tree's one block has slot %u, which is invalid", tree->only);
        status = visit(tree, slab, &walk, tree->only, strata_tree_class(slab->records[tree->only].size));
    }
    if (status != STRATA_OK) return status;
    for (uint32_t word = 0; word < 64; word++) {
        bool marked = tree->filled >> word & 1;
        if (marked != (word < STRATA_TREE_WORDS && tree->words[word] != 0))
            return strata_fail(STRATA_E_CORRUPT, 0, "the tree's bit of word %u is %d", word, marked);
    }
    if (walk.count != tree->count || walk.bytes != tree->bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "the tree counts %u blocks of %llu bytes, but has %u of %llu", tree->count,
                           (unsigned long long)tree->bytes, walk.count, (unsigned long long)walk.bytes);
    return STRATA_OK;
}
