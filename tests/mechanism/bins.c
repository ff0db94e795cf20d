#include "allocation/mechanism/bins.h"

#include <stdlib.h>

#include "platform/status.h"
#include "tests/mechanism/mechanism.h"

enum { BLOCKS = 600, UNIT_SHIFT = 8, UNIT = 1 << UNIT_SHIFT };

/* The naive one: all blocks, the youngest last, searched from end to end. */
typedef struct model {
    uint32_t slots[BLOCKS];
    uint32_t count;
} model_t;

/* Halved until it is below 256 units; each halving is an octave of 128 bins. */
static uint32_t model_bin(uint64_t size) {
    uint64_t units = size >> UNIT_SHIFT, octave = 0;
    for (; units >= 256; units /= 2) octave++;
    uint64_t bin = octave * 128 + units;
    return bin < STRATA_BINS ? (uint32_t)bin : STRATA_BINS - 1;
}

static void model_remove(model_t *model, uint32_t at) {
    memmove(&model->slots[at], &model->slots[at + 1], (--model->count - at) * sizeof *model->slots);
}

/* The best of the youngest *scan blocks of the bin. */
static uint32_t model_best(const model_t *model, const strata_slab_t *slab, uint32_t bin, uint64_t size, uint32_t *scan) {
    uint32_t best = 0;
    for (uint32_t i = model->count; i-- > 0 && *scan;) {
        const strata_record_t *it = &slab->records[model->slots[i]];
        if (model_bin(it->size) != bin) continue;
        if (it->size == size) return model->slots[i];
        --*scan;
        if (it->size >= size && (best == 0 || it->size < slab->records[best].size)) best = model->slots[i];
    }
    return best;
}

static uint32_t model_next_bin(const model_t *model, const strata_slab_t *slab, uint32_t from) {
    uint32_t next = STRATA_BINS;
    for (uint32_t i = 0; i < model->count; i++) {
        uint32_t bin = model_bin(slab->records[model->slots[i]].size);
        if (bin >= from && bin < next) next = bin;
    }
    return next;
}

static uint32_t model_find(const model_t *model, const strata_slab_t *slab, uint64_t size) {
    uint32_t scan = STRATA_BINS_SCAN, bin = model_bin(size), slot = model_best(model, slab, bin, size, &scan);
    if (slot) return slot;
    bin = model_next_bin(model, slab, bin + 1);
    if (bin == STRATA_BINS) return 0;
    if (scan == 0) scan = 1;
    return model_best(model, slab, bin, size, &scan);
}

static bool model_fits(const model_t *model, const strata_slab_t *slab, uint64_t size) {
    for (uint32_t i = 0; i < model->count; i++) {
        if (slab->records[model->slots[i]].size >= size) return true;
    }
    return false;
}

static uint64_t model_largest(const model_t *model, const strata_slab_t *slab) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        uint64_t size = slab->records[model->slots[i]].size;
        if (size > largest) largest = size;
    }
    return largest;
}

TEST(bins, every_size_has_the_bin_of_its_octave) {
    static strata_bins_t bins;
    strata_bins_init(&bins, UNIT_SHIFT);
    uint32_t last = 0;
    for (uint64_t units = 1; units < 1ull << 35; units += 1 + units / 1000) {
        uint32_t bin = strata_bins_of(&bins, units << UNIT_SHIFT);
        EXPECT_EQ(bin, model_bin(units << UNIT_SHIFT));
        EXPECT_GE(bin, last);
        last = bin;
    }
    EXPECT_EQ(last, STRATA_BINS - 1);
    EXPECT_EQ(strata_bins_of(&bins, UINT64_MAX), STRATA_BINS - 1);
    EXPECT_EQ(strata_bins_of(&bins, ((1ull << 33) - 1) << UNIT_SHIFT), STRATA_BINS - 1);
    EXPECT_EQ(strata_bins_of(&bins, 255ull << UNIT_SHIFT), 255);
    EXPECT_EQ(strata_bins_of(&bins, 256ull << UNIT_SHIFT), 256);
}

typedef struct world {
    strata_slab_t slab;
    strata_bins_t bins;
    uint64_t bytes; /* of the blocks in the bins */
} world_t;

static void world_begin(world_t *world) {
    ASSERT_OK(strata_slab_init(&world->slab, 1, 0, BLOCKS + 10));
    strata_bins_init(&world->bins, UNIT_SHIFT);
    world->bytes = 0;
}

static void world_end(world_t *world) { strata_slab_destroy(&world->slab); }

#define TEST_BINS(name) TEST_WITH(bins, name, world_t, world, world_end, world_begin(world))

static uint32_t world_add(world_t *world, uint64_t size) {
    uint32_t slot = make_free(&world->slab, (uint64_t)world->slab.used << 40, size);
    strata_bins_insert(&world->bins, &world->slab, slot);
    world->bytes += size;
    return slot;
}

TEST_BINS(empty) {
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, UNIT), 0);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 1ull << 50), 0);
    EXPECT_EQ(strata_bins_find_any(&world->bins, &world->slab, UNIT), 0);
    EXPECT_EQ(strata_bins_largest(&world->bins, &world->slab), 0);
    EXPECT_OK(strata_bins_validate(&world->bins, &world->slab, 0, 0));
}

TEST_BINS(last_in_first_out_among_equals) {
    uint32_t a = world_add(world, 65536), b = world_add(world, 65536), c = world_add(world, 65536);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 65536), c);
    strata_bins_remove(&world->bins, &world->slab, b);
    strata_bins_remove(&world->bins, &world->slab, c);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 65536), a);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 256), a);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 65536 + UNIT), 0);
}

/* The last block in is not linked; no question is answered otherwise for that. */
TEST_BINS(the_loose_block_is_found_as_if_it_were_linked) {
    uint32_t a = world_add(world, 1024 * UNIT), b = world_add(world, 1027 * UNIT);
    EXPECT_EQ(world->bins.loose, b);
    EXPECT_EQ(world->bins.heads[model_bin(1024 * UNIT)], a);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 1027 * UNIT), b); /* its size */
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 100 * UNIT), a); /* smaller, of the same later bin */
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 1026 * UNIT), b);
    uint32_t c = world_add(world, 512 * UNIT);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 100 * UNIT), c); /* of a bin before all that are linked */
    uint32_t d = world_add(world, 4096 * UNIT);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 100 * UNIT), c); /* of a bin after one that is linked */
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 4000 * UNIT), d); /* of a bin after all */
    EXPECT_EQ(strata_bins_largest(&world->bins, &world->slab), 4096 * UNIT);
    strata_bins_resize(&world->bins, &world->slab, d, 3 * UNIT);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 2 * UNIT), d); /* of an exact bin */
    EXPECT_OK(strata_bins_validate(&world->bins, &world->slab, 4, (1024 + 1027 + 512 + 3) * UNIT));
    EXPECT_EQ(world->bins.loose, d);
    strata_bins_remove(&world->bins, &world->slab, d);
    EXPECT_EQ(world->bins.loose, 0);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 2 * UNIT), c);
}

/* One bin holds 1024 to 1031 units; blocks too small for the request fill it. */
TEST_BINS(a_search_reads_no_more_than_its_bound) {
    uint64_t small = 1024 * UNIT, wanted = 1026 * UNIT;
    uint32_t hidden = world_add(world, wanted);
    for (int i = 0; i < STRATA_BINS_SCAN - 1; i++) world_add(world, small);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, wanted), hidden);
    world_add(world, small);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, wanted), 0);
    EXPECT_EQ(strata_bins_find_any(&world->bins, &world->slab, wanted), hidden);
    uint32_t next = world_add(world, 2048 * UNIT);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, wanted), next);
    EXPECT_EQ(strata_bins_find_any(&world->bins, &world->slab, wanted), hidden);
}

TEST_BINS(the_last_bin_holds_all_that_is_larger) {
    uint32_t huge = world_add(world, 1ull << 50), large = world_add(world, 1ull << 45);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, (1ull << 45) + UNIT), huge);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 1ull << 30), large);
    EXPECT_EQ(strata_bins_find(&world->bins, &world->slab, 1ull << 51), 0);
    EXPECT_EQ(strata_bins_largest(&world->bins, &world->slab), 1ull << 50);
    EXPECT_OK(strata_bins_validate(&world->bins, &world->slab, 2, (1ull << 50) + (1ull << 45)));
}

/* Small, middling and huge, so that exact bins, wide bins and the last one are used. */
static uint64_t random_size(uint64_t *seed, uint64_t spread) {
    switch (random_below(seed, 3)) {
    case 0: return UNIT * (1 + random_below(seed, 20 * spread));
    case 1: return UNIT * (1024 + random_below(seed, 64 * spread));
    default: return (uint64_t)UNIT << random_below(seed, 10 * spread);
    }
}

static void resize_one(world_t *world, model_t *model, uint32_t at, uint64_t size) {
    strata_record_t *record = &world->slab.records[model->slots[at]];
    uint64_t old_size = record->size;
    world->bytes += size - old_size;
    uint32_t slot = model->slots[at];
    strata_bins_resize(&world->bins, &world->slab, slot, size);
    EXPECT_EQ(record->size, size);
    if (model_bin(old_size) == model_bin(size)) return;
    model_remove(model, at);
    model->slots[model->count++] = slot;
}

static void step_once(world_t *world, model_t *model, uint64_t *seed, uint64_t spread) {
    uint64_t dice = random_below(seed, 100);
    if (model->count < BLOCKS && dice < 45) {
        model->slots[model->count++] = world_add(world, random_size(seed, spread));
    } else if (model->count && dice < 85) {
        uint32_t at = (uint32_t)random_below(seed, model->count), slot = model->slots[at];
        strata_bins_remove(&world->bins, &world->slab, slot);
        world->bytes -= world->slab.records[slot].size;
        model_remove(model, at);
        strata_slab_release(&world->slab, slot);
    } else if (model->count) {
        resize_one(world, model, (uint32_t)random_below(seed, model->count), random_size(seed, spread));
    }
}

static void random_program(uint64_t seed, uint64_t spread) {
    static world_t world;
    model_t model = {.count = 0};
    world_begin(&world);
    for (int step = 0; step < 20000; step++) {
        step_once(&world, &model, &seed, spread);
        uint64_t wanted = random_size(&seed, spread);
        EXPECT_EQ(strata_bins_find(&world.bins, &world.slab, wanted), model_find(&model, &world.slab, wanted));
        if (step % 8) continue; /* what follows leaves no block loose */
        uint32_t any = strata_bins_find_any(&world.bins, &world.slab, wanted);
        EXPECT_EQ(any != 0, model_fits(&model, &world.slab, wanted));
        if (any) EXPECT_GE(world.slab.records[any].size, wanted);
        if (step % 128) continue;
        EXPECT_EQ(strata_bins_largest(&world.bins, &world.slab), model_largest(&model, &world.slab));
        ASSERT_OK(strata_bins_validate(&world.bins, &world.slab, model.count, world.bytes));
    }
    strata_slab_destroy(&world.slab);
}

TEST(bins, random_program_of_many_sizes) { random_program(5, 4); }
TEST(bins, random_program_of_crowded_bins) { random_program(6, 1); }

static world_t planted;
static uint32_t oldest, middle, youngest, alone, loose, outsider, bin, count;
static uint64_t bytes;

/* Three of one bin, one of another, one that is loose, and one that is in no bin. */
static void plant_bins(void) {
    world_begin(&planted);
    oldest = world_add(&planted, 1024 * UNIT);
    middle = world_add(&planted, 1025 * UNIT);
    youngest = world_add(&planted, 1026 * UNIT);
    alone = world_add(&planted, 5 * UNIT);
    loose = world_add(&planted, 1026 * UNIT);
    outsider = make_free(&planted.slab, 1ull << 52, 1024 * UNIT);
    bin = model_bin(1024 * UNIT);
    count = 5;
    bytes = planted.bytes;
    EXPECT_EQ(planted.bins.heads[bin], youngest);
}

#define CAUGHT(place, value) EXPECT_CAUGHT(strata_bins_validate(&planted.bins, &planted.slab, count, bytes), place, value)

TEST(bins, validate_finds_planted_faults_of_heads_and_sums) {
    plant_bins();
    strata_bins_t *bins = &planted.bins;
    CAUGHT(count, 4);
    CAUGHT(count, 6);
    CAUGHT(bytes, 7);
    CAUGHT(bins->loose, 0);
    CAUGHT(bins->loose, youngest); /* a linked one */
    CAUGHT(bins->loose, 1u << 20); /* no slot */
    CAUGHT(bins->loose_bin, 5);
    CAUGHT(bins->summary, bins->summary ^ 1);
    CAUGHT(bins->summary, bins->summary | 1ull << 63);
    CAUGHT(bins->words[0], 0);
    CAUGHT(bins->words[3], 4);
    CAUGHT(bins->heads[5], 0);
    CAUGHT(bins->heads[bin], alone); /* of another bin */
    CAUGHT(bins->heads[bin], middle); /* a lost head */
    strata_slab_destroy(&planted.slab);
}

TEST(bins, validate_finds_planted_faults_of_blocks) {
    plant_bins();
    strata_record_t *records = planted.slab.records;
    CAUGHT(records[loose].bin_next, youngest);
    CAUGHT(records[loose].state, STRATA_RECORD_LIVE);
    CAUGHT(records[youngest].bin_next, 0);
    CAUGHT(records[youngest].bin_next, oldest);
    CAUGHT(records[youngest].bin_next, outsider);
    CAUGHT(records[youngest].bin_next, loose);
    CAUGHT(records[youngest].bin_prev, 0);
    CAUGHT(records[youngest].bin_next, 1u << 20); /* no slot */
    CAUGHT(records[oldest].bin_next, youngest); /* a circle */
    CAUGHT(records[middle].bin_prev, oldest);
    CAUGHT(records[middle].size, 1027ull * UNIT); /* sum alone */
    CAUGHT(records[middle].size, 1025ull * UNIT + 1);
    CAUGHT(records[middle].size, 2048ull * UNIT);
    CAUGHT(records[alone].size, 0);
    CAUGHT(records[alone].state, STRATA_RECORD_LIVE);
    strata_slab_destroy(&planted.slab);
}
