#include "allocation/mechanism/tree.h"

#include <string.h>

#include "platform/status.h"
#include "tests/mechanism/mechanism.h"

enum { BLOCKS = 400 };

/* The naive one: all blocks, in no order, searched from end to end. */
typedef struct model {
    uint32_t slots[BLOCKS];
    uint32_t count;
} model_t;

static uint32_t model_find(const model_t *model, const strata_slab_t *slab, uint64_t size) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        const strata_record_t *it = &slab->records[model->slots[i]], *top = &slab->records[best];
        if (it->size < size) continue;
        if (best == 0 || it->size < top->size || (it->size == top->size && it->ptr < top->ptr)) best = model->slots[i];
    }
    return best;
}

static uint64_t model_largest(const model_t *model, const strata_slab_t *slab) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        uint64_t size = slab->records[model->slots[i]].size;
        if (size > largest) largest = size;
    }
    return largest;
}

TEST_SLAB(tree, empty, 1, 0, 10) {
    strata_tree_t tree = {0};
    EXPECT_EQ(strata_tree_find(&tree, slab, 0), 0);
    EXPECT_EQ(strata_tree_largest(&tree, slab), 0);
    EXPECT_OK(strata_tree_validate(&tree, slab));
    uint32_t stranger = make_free(slab, 0, 256);
    strata_tree_remove(&tree, slab, stranger);
    EXPECT_EQ(tree.count, 0);
}

/* 512 bytes at 9000. */
static void expect_alone(strata_tree_t *tree, strata_slab_t *slab, uint32_t only) {
    EXPECT_EQ(strata_tree_quick_find(tree, slab, 512), only);
    EXPECT_EQ(strata_tree_find(tree, slab, 256), only);
    EXPECT_EQ(strata_tree_quick_find(tree, slab, 513), 0);
    EXPECT_EQ(strata_tree_after(tree, slab, 512, 8999), only);
    EXPECT_EQ(strata_tree_after(tree, slab, 512, 9000), 0);
    EXPECT_EQ(strata_tree_before(tree, slab, 513, 0), only);
    EXPECT_EQ(strata_tree_before(tree, slab, 512, 9000), 0);
    EXPECT_EQ(strata_tree_largest(tree, slab), 512);
    EXPECT_OK(strata_tree_validate(tree, slab));
}

/* One block stands in no class until a second one comes. */
TEST_SLAB(tree, of_one_block_is_as_any_other, 1, 0, 100) {
    strata_tree_t tree = {0};
    uint32_t first = make_free(slab, 9000, 512), second = make_free(slab, 1000, 4096), stranger = make_free(slab, 5000, 512);
    strata_tree_quick_insert(&tree, slab, first);
    EXPECT_EQ(tree.only, first);
    EXPECT_TRUE(strata_slab_is_idle(slab, first));
    expect_alone(&tree, slab, first);
    strata_tree_remove(&tree, slab, stranger);
    EXPECT_EQ(tree.count, 1);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.only, 99);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.only, 0);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.bytes, 1);
    strata_tree_quick_insert(&tree, slab, second);
    EXPECT_EQ(tree.only, 0);
    EXPECT_EQ(tree.count, 2);
    EXPECT_EQ(tree.bytes, 512 + 4096);
    EXPECT_OK(strata_tree_validate(&tree, slab));
    EXPECT_EQ(strata_tree_quick_find(&tree, slab, 513), second);
    strata_tree_quick_remove(&tree, slab, first);
    EXPECT_EQ(strata_tree_quick_find(&tree, slab, 1), second);
    strata_tree_quick_remove(&tree, slab, second);
    EXPECT_FALSE(strata_slab_is_idle(slab, second));
    strata_tree_quick_insert(&tree, slab, second);
    strata_tree_insert(&tree, slab, first); /* and by the long way */
    EXPECT_EQ(strata_tree_find(&tree, slab, 1), first);
    strata_tree_remove(&tree, slab, first);
    strata_tree_quick_remove(&tree, slab, second);
    strata_tree_quick_insert(&tree, slab, first);
    strata_tree_remove(&tree, slab, first);
    EXPECT_EQ(tree.only, 0);
    EXPECT_EQ(tree.count, 0);
    EXPECT_FALSE(strata_slab_is_idle(slab, first));
    EXPECT_OK(strata_tree_validate(&tree, slab));
}

TEST_SLAB(tree, prefers_the_lowest_address_among_equals, 1, 0, 100) {
    strata_tree_t tree = {0};
    uint32_t high = make_free(slab, 9000, 512), low = make_free(slab, 1000, 512), middle = make_free(slab, 5000, 512);
    uint32_t large = make_free(slab, 0, 1024);
    strata_tree_insert(&tree, slab, high);
    strata_tree_insert(&tree, slab, low);
    strata_tree_insert(&tree, slab, large);
    strata_tree_insert(&tree, slab, middle);
    EXPECT_EQ(strata_tree_find(&tree, slab, 256), low);
    EXPECT_EQ(strata_tree_find(&tree, slab, 512), low);
    strata_tree_remove(&tree, slab, low);
    EXPECT_EQ(strata_tree_find(&tree, slab, 512), middle);
    EXPECT_EQ(strata_tree_find(&tree, slab, 513), large);
    EXPECT_EQ(strata_tree_find(&tree, slab, 1025), 0);
    EXPECT_EQ(strata_tree_largest(&tree, slab), 1024);
    EXPECT_EQ(tree.bytes, 512 + 512 + 1024);
}

static bool stands_before(const strata_record_t *a, uint64_t size, uint64_t ptr) {
    return a->size != size ? a->size < size : a->ptr < ptr;
}

/* The nearest in the order on one side of (size, ptr). */
static uint32_t model_beside(const model_t *model, const strata_slab_t *slab, uint64_t size, uint64_t ptr, bool after) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        const strata_record_t *it = &slab->records[model->slots[i]], *top = &slab->records[best];
        bool is_before = stands_before(it, size, ptr), is_same = it->size == size && it->ptr == ptr;
        if (is_same || is_before == after) continue;
        if (best == 0 || stands_before(it, top->size, top->ptr) == after) best = model->slots[i];
    }
    return best;
}

/* The neighbours of a block, or of a place between blocks. */
static void check_neighbours(const strata_tree_t *tree, const strata_slab_t *slab, const model_t *model, uint64_t size,
                             uint64_t ptr) {
    EXPECT_EQ(strata_tree_after(tree, slab, size, ptr), model_beside(model, slab, size, ptr, true));
    EXPECT_EQ(strata_tree_before(tree, slab, size, ptr), model_beside(model, slab, size, ptr, false));
}

static void random_program(uint64_t seed, uint64_t sizes) {
    strata_slab_t slab;
    strata_tree_t tree = {0};
    model_t model = {.count = 0};
    ASSERT_OK(strata_slab_init(&slab, 1, 0, BLOCKS + 10));
    for (int step = 0; step < 20000; step++) {
        if (model.count < BLOCKS && random_below(&seed, 100) < 50) {
            /* Addresses are unique, as those of blocks are. */
            uint32_t slot = make_free(&slab, random_next(&seed) >> 7, 256 * (1 + random_below(&seed, sizes)));
            strata_tree_insert(&tree, &slab, slot);
            model.slots[model.count++] = slot;
        } else if (model.count) {
            uint32_t i = (uint32_t)random_below(&seed, model.count), slot = model.slots[i];
            strata_tree_remove(&tree, &slab, slot);
            model.slots[i] = model.slots[--model.count];
            strata_slab_release(&slab, slot);
        }
        uint64_t wanted = 256 * random_below(&seed, sizes + 2);
        EXPECT_EQ(strata_tree_find(&tree, &slab, wanted), model_find(&model, &slab, wanted));
        EXPECT_EQ(tree.count, model.count);
        if (step % 64) continue;
        check_neighbours(&tree, &slab, &model, wanted, random_next(&seed) >> 7);
        const strata_record_t *some = &slab.records[model.slots[0]];
        if (model.count) check_neighbours(&tree, &slab, &model, some->size, some->ptr);
        EXPECT_EQ(strata_tree_largest(&tree, &slab), model_largest(&model, &slab));
        ASSERT_OK(strata_tree_validate(&tree, &slab));
    }
    strata_slab_destroy(&slab);
}

TEST(tree, random_program_of_many_sizes) { random_program(1, 100000); }
TEST(tree, random_program_of_few_sizes) { random_program(2, 5); }
TEST(tree, random_program_of_one_size) { random_program(3, 1); }

/* Classes are in the order of their sizes, none is wider than a 32nd of its octave, and every size has one. */
TEST(tree, classes_rise_with_sizes) {
    uint32_t last = 0;
    EXPECT_EQ(strata_tree_class(0), 0);
    EXPECT_EQ(strata_tree_class(255), 0);
    EXPECT_EQ(strata_tree_class(256), 1);
    EXPECT_EQ(strata_tree_class(8191), 31);
    EXPECT_EQ(strata_tree_class(8192), 32);
    for (uint64_t octave = 1ull << 13; octave < 1ull << 44; octave *= 2) {
        for (uint64_t step = 0; step < 32; step++) {
            uint64_t first = octave + octave / 32 * step;
            EXPECT_EQ(strata_tree_class(first - 1), first == 8192 ? 31 : last);
            last = strata_tree_class(first);
            EXPECT_EQ(last, 32 + 32 * (63 - (uint32_t)__builtin_clzll(octave) - 13) + step);
        }
    }
    EXPECT_EQ(strata_tree_class(1ull << 44), STRATA_TREE_CLASSES - 1);
    EXPECT_EQ(strata_tree_class(UINT64_MAX), STRATA_TREE_CLASSES - 1);
}

/* The last class has all sizes that are too large for any: in order too. */
TEST_SLAB(tree, finds_the_largest_sizes_in_order, 1, 0, 10) {
    strata_tree_t tree = {0};
    uint32_t small = make_free(slab, 1 << 12, 512), huge = make_free(slab, 1ull << 50, 1ull << 47);
    uint32_t larger = make_free(slab, 1ull << 51, 1ull << 48);
    strata_tree_insert(&tree, slab, larger);
    strata_tree_insert(&tree, slab, small);
    strata_tree_insert(&tree, slab, huge);
    EXPECT_EQ(strata_tree_find(&tree, slab, 513), huge);
    EXPECT_EQ(strata_tree_find(&tree, slab, (1ull << 47) + 1), larger);
    EXPECT_EQ(strata_tree_find(&tree, slab, (1ull << 48) + 1), 0);
    EXPECT_EQ(strata_tree_before(&tree, slab, UINT64_MAX, UINT64_MAX), larger);
    EXPECT_EQ(strata_tree_before(&tree, slab, 1ull << 47, 0), small);
    EXPECT_EQ(strata_tree_largest(&tree, slab), 1ull << 48);
    EXPECT_OK(strata_tree_validate(&tree, slab));
}

/* The shape is a function of the blocks: the order of coming and going leaves no trace. */
TEST_SLAB(tree, shape_does_not_depend_on_history, 1, 0, 200 + 10) {
    enum { N = 200 };
    strata_tree_t forward = {0}, backward = {0};
    uint32_t left[N + 1], right[N + 1];
    uint64_t seed = 77;
    for (uint32_t i = 1; i <= N; i++) make_free(slab, i * 4096, 256 * (1 + random_below(&seed, 50)));
    for (uint32_t slot = 1; slot <= N; slot++) strata_tree_insert(&forward, slab, slot);
    for (uint32_t slot = 1; slot <= N; slot++) {
        left[slot] = slab->records[slot].bin_prev;
        right[slot] = slab->records[slot].bin_next;
    }
    for (uint32_t slot = N; slot >= 1; slot--) strata_tree_insert(&backward, slab, slot);
    for (uint32_t slot = 1; slot <= N; slot += 3) strata_tree_remove(&backward, slab, slot);
    for (uint32_t slot = 1; slot <= N; slot += 3) strata_tree_insert(&backward, slab, slot);
    EXPECT_EQ(memcmp(backward.roots, forward.roots, sizeof forward.roots), 0);
    for (uint32_t slot = 1; slot <= N; slot++) {
        EXPECT_EQ(slab->records[slot].bin_prev, left[slot]);
        EXPECT_EQ(slab->records[slot].bin_next, right[slot]);
    }
}

static uint32_t depth_of(const strata_slab_t *slab, uint32_t root) {
    static uint32_t path[100000], depths[100000];
    uint32_t top = 0, deepest = 0;
    path[top] = root;
    depths[top++] = 1;
    while (top) {
        uint32_t slot = path[--top], depth = depths[top];
        if (slot == 0) continue;
        if (depth > deepest) deepest = depth;
        path[top] = slab->records[slot].bin_prev;
        depths[top++] = depth + 1;
        path[top] = slab->records[slot].bin_next;
        depths[top++] = depth + 1;
    }
    return deepest;
}

/* Slots and sizes in step is the order that a bad hash would turn into a list. */
TEST(tree, stays_shallow_when_sizes_rise_with_slots) {
    enum { N = 50000 };
    for (uint64_t stride = 1; stride <= 8; stride *= 2) {
        strata_slab_t slab;
        strata_tree_t tree = {0};
        ASSERT_OK(strata_slab_init(&slab, 1, 0, N * 8 + 10));
        for (uint64_t i = 1; i <= N * stride; i++) {
            uint32_t slot = make_free(&slab, i << 20, i * 256);
            if (i % stride == 0) strata_tree_insert(&tree, &slab, slot);
        }
        EXPECT_EQ(tree.count, N);
        uint32_t deepest = 0;
        for (uint32_t class = 0; class < STRATA_TREE_CLASSES; class ++) {
            uint32_t depth = depth_of(&slab, tree.roots[class]);
            if (depth > deepest) deepest = depth;
        }
        EXPECT_GT(deepest, 10);
        EXPECT_LT(deepest, 60);
        EXPECT_OK(strata_tree_validate(&tree, &slab));
        strata_slab_destroy(&slab);
    }
}

TEST_SLAB(tree, validate_finds_planted_faults, 1, 0, 100) {
    strata_tree_t tree = {0};
    for (uint32_t i = 1; i <= 50; i++) strata_tree_insert(&tree, slab, make_free(slab, i * 65536, 256 * (1 + i % 10)));
    uint32_t *top = &tree.roots[strata_tree_class(256 * 5)];
    strata_record_t *records = slab->records, *root = &records[*top];
    uint32_t outsider = make_free(slab, 99 * 65536, root->size);
    ASSERT_TRUE(root->bin_prev && root->bin_next);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.count, 49);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.count, 51);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.bytes, 1);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), *top, root->bin_prev);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), *top, outsider);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), root->bin_prev, 0); /* a lost side */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), root->bin_next, root->bin_prev); /* one side twice */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), root->bin_next, 77); /* no slot */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), records[root->bin_prev].bin_prev, *top); /* a circle */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), root->size, root->size + 256 * 100); /* out of order */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), root->size, root->size + 1); /* the sum alone, or the order */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), records[10].ptr, 1ull << 50); /* the first of five equals */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), records[7].state, STRATA_RECORD_LIVE);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), slab->used, 20);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.roots[3], 0); /* a lost class */
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.words[0], tree.words[0] & (tree.words[0] - 1));
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.words[0], tree.words[0] | 1ull << 60);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.filled, 3u);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), tree.filled, 0u);
    EXPECT_CAUGHT(strata_tree_validate(&tree, slab), slab->idle[0], slab->idle[0] & ~(1ull << 7));
}
