/* scrub: what an owner wrote no other owner reads, wherever the layer stands, in every place, whatever becomes of the blocks. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/conform/stacks.h"
#include "platform/place.h"
#include "tests/checker/told.h"

enum { OWNERS = 5, STREAMS = 3, HELD = 20, STEPS = 700, FIRST = 0x51, PLACES = 4 };

static const char *const tags[OWNERS] = {"one", "two", NULL, "one", "two"};

/* Owners 3 and 4 are of a pool; each writes a byte of its own. */
typedef struct scene {
    rig_t rig;
    strata_place_t place;
    uint64_t pool, random;
    strata_stream_t streams[STREAMS];
    strata_block_t held[HELD];
    bool lent[HELD]; /* another stream uses it too, or its own may be gone */
    uint64_t served;
} scene_t;

static uint64_t below(scene_t *scene, uint64_t bound) {
    scene->random = scene->random * 6364136223846793005ull + 1442695040888963407ull;
    return (scene->random >> 33) % bound;
}

static uint8_t *bytes_of(scene_t *scene, const strata_block_t *block) {
    return strata_device_host_view(scene->rig.devices[0], (uint64_t)(uintptr_t)block->ptr, block->size);
}

/* What other layers write into memory is none of the owners' bytes. */
static size_t bytes_of_others(const uint8_t *bytes, size_t size, int owner) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += bytes[i] >= FIRST && bytes[i] < FIRST + OWNERS && bytes[i] != FIRST + owner;
    return count;
}

static void take(scene_t *scene, int slot) {
    int owner = (int)below(scene, OWNERS);
    strata_allocate_options_t options = {.struct_size = sizeof options,
                                         .size = 1 + below(scene, below(scene, 8) ? 9000 : 300000),
                                         .tag = tags[owner],
                                         .pool = owner > 2 ? scene->pool : STRATA_POOL_ORDINARY};
    strata_block_t *block = &scene->held[slot];
    *block = (strata_block_t){0};
    strata_stream_t stream = scene->streams[below(scene, STREAMS)];
    if (strata_allocate_with(scene->rig.s, scene->place, stream, &options, block) != STRATA_OK) return;
    uint8_t *bytes = bytes_of(scene, block);
    scene->served++;
    scene->lent[slot] = false;
    EXPECT_TRUE(bytes);
    if (!bytes) return;
    EXPECT_EQ(bytes_of_others(bytes, block->size, owner), 0);
    memset(bytes, FIRST + owner, block->size);
}

static void give(scene_t *scene, int slot) {
    strata_block_t *block = &scene->held[slot];
    strata_stream_t stream = scene->streams[below(scene, STREAMS)];
    if (below(scene, 4) == 0 && strata_record_stream(scene->rig.s, block->ref, stream) == STRATA_OK)
        rig_work(&scene->rig, stream, 1000 + below(scene, 100000), block->ref);
    if (below(scene, 5) == 0) EXPECT_OK(strata_free_on(scene->rig.s, block->ref, stream));
    else EXPECT_OK(strata_free(scene->rig.s, block->ref));
    block->ref = 0;
}

static void renew(scene_t *scene) {
    strata_stream_t *stream = &scene->streams[below(scene, STREAMS)];
    EXPECT_OK(strata_stream_forget(scene->rig.s, scene->place, *stream));
    EXPECT_OK(strata_stream_destroy(scene->rig.s, scene->rig.gpu, *stream));
    *stream = rig_stream(&scene->rig);
}

static void play(scene_t *scene) {
    for (int step = 1; step <= STEPS && !strata_test_has_failed(); step++) {
        int slot = (int)below(scene, HELD);
        if (scene->held[slot].ref) give(scene, slot);
        else take(scene, slot);
        if (step % 7 == 0) rig_advance(&scene->rig, 200000);
        if (step % 90 == 0) EXPECT_OK(strata_release(scene->rig.s, scene->place, NULL));
        if (step % 110 == 0) EXPECT_OK(strata_trim(scene->rig.s, scene->place, 100000, NULL));
        if (step % 130 == 0) renew(scene);
    }
    for (int slot = 0; slot < HELD; slot++)
        if (scene->held[slot].ref) give(scene, slot);
}

static bool has_scrub(const strata_strategy_t *strategy, strata_place_t place) {
    const strata_model_layer_t *layers[STRATA_STACK_LAYERS];
    size_t count = strata_model_layers(strata_strategy_stack(strategy, strata_place_kind(place), 0), layers, STRATA_STACK_LAYERS);
    for (size_t i = 0; i < count; i++)
        if (strcmp(layers[i]->type->name, "scrub") == 0) return true;
    return false;
}

/* Every place whose stack has the layer; false: it is no strategy. */
static bool check_strategy(const char *stacks, uint64_t seed, uint64_t *served) {
    strata_strategy_t *strategy = NULL;
    char text[STACK_LETTERS + 64];
    snprintf(text, sizeof text, "%s\npools:\n  others: {}\n", stacks);
    if (strata_config_load(&(strata_config_request_t){.text = text, .devices = "sim"}, &strategy) != STRATA_OK) return false;
    const strata_place_t places[PLACES] = {strata_gpu(0), strata_managed(0), strata_pinned(), strata_host()};
    for (int i = 0; i < PLACES; i++) {
        scene_t scene = {.place = places[i], .random = seed};
        if (!has_scrub(strategy, places[i])) continue;
        rig_open_on(&scene.rig, strategy, &(strata_sim_options_t){.contents = true, .capacity = 2 * GIB}, 0);
        for (int s = 0; s < STREAMS; s++) scene.streams[s] = rig_stream(&scene.rig);
        EXPECT_OK(strata_pool(scene.rig.s, "others", &scene.pool));
        play(&scene);
        *served += scene.served;
        rig_close_by_force(&scene.rig);
        if (strata_test_has_failed()) FAIL_TEST("in %s of:\n%s", strata_place_name((strata_place_kind_t)i), text);
    }
    strata_strategy_delete(strategy);
    return true;
}

/* `text` with a layer above the stack's layer that stands at `line`. */
static void insert_scrub(const char *text, const char *line, char *out, size_t capacity) {
    int indent = (int)strspn(line, " ");
    snprintf(out, capacity, "%.*s%*s- scrub: {}\n%s", (int)(line - text), text, indent, "", line);
}

TEST(scrub_everywhere, over_and_under_every_layer_of_every_preset) {
    int legal = 0, refused = 0;
    uint64_t served = 0;
    for (size_t i = 0; strata_preset_name(i) && !strata_test_has_failed(); i++) {
        const char *text = strata_preset_text(strata_preset_name(i));
        for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
            char with[STACK_LETTERS];
            if (strncmp(line + strspn(line, " "), "- ", 2) != 0) continue;
            if (strspn(line, " ") > 4) continue; /* in one branch of a router: the others are not scrubbed */
            insert_scrub(text, line, with, sizeof with);
            if (check_strategy(with, 3 + i, &served)) legal++;
            else refused++;
        }
    }
    printf("%d positions, %d that no strategy may have\n", legal, refused);
    EXPECT_GT(legal, 30);
    EXPECT_GT(served, 300 * (uint64_t)legal);
}

TEST(scrub_everywhere, in_random_legal_stacks) {
    const strata_layer_type_t *scrub = strata_layer_find("scrub");
    uint64_t served = 0; /* some stacks are told to refuse what is asked */
    for (uint64_t seed = 1; seed <= 60 && !strata_test_has_failed(); seed++) {
        static drawn_stack_t stack;
        ASSERT_TRUE(stack_draw(&stack, seed, scrub));
        EXPECT_TRUE(check_strategy(stack.text, seed, &served));
    }
    EXPECT_GT(served, 10000);
}

TEST(scrub_everywhere, no_cache_stands_above_it) {
    static const char *const stacks[] = {
        "stack: [auto_growth, scrub, system]", "stack: [stream_safe, buffered, stream_safe, scrub, auto_growth, system]",
        "stack: [buffered, binning: {routes: [{up_to: 1MiB, stack: [system]}, {stack: [scrub, system]}]}]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        strata_strategy_t *strategy = NULL;
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = stacks[i]}, &strategy),
                    "is a cache above \"scrub\"");
    }
}

/* A block that was cut, one that grew together from two owners' pieces, and one that is larger than what its owner had there. */
TEST(scrub_everywhere, blocks_that_are_cut_and_merge) {
    static const char *const caches[] = {"auto_growth: {chunk_size: 64KiB}", "caching", "bfc", "naive_best_fit"};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        char text[256];
        snprintf(text, sizeof text, "version: 1\nstack: [scrub, %s, system]\n", caches[i]);
        scene_t scene = {.place = strata_gpu(0)};
        rig_open_on(&scene.rig, rig_strategy(text, NULL, 0), &(strata_sim_options_t){.contents = true, .capacity = 2 * GIB}, 0);
        scene.rig.borrowed_strategy = false;
        for (int size = 512, round = 0; round < 40; round++, size = size == 16384 ? 512 : 2 * size) {
            strata_block_t blocks[4];
            for (int b = 0; b < 4; b++) {
                int owner = (b + round) % 3;
                strata_allocate_options_t options = {.struct_size = sizeof options, .size = (size_t)size, .tag = tags[owner]};
                ASSERT_OK(strata_allocate_with(scene.rig.s, scene.place, NULL, &options, &blocks[b]));
                EXPECT_EQ(bytes_of_others(bytes_of(&scene, &blocks[b]), blocks[b].size, owner), 0);
                memset(bytes_of(&scene, &blocks[b]), FIRST + owner, blocks[b].size);
            }
            for (int b = 0; b < 4; b++) EXPECT_OK(strata_free(scene.rig.s, blocks[b].ref));
        }
        rig_close(&scene.rig);
    }
}

static strata_block_t allocate_for(scene_t *scene, int owner, size_t size) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .tag = tags[owner]};
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate_with(scene->rig.s, scene->place, NULL, &options, &block));
    EXPECT_EQ(bytes_of_others(bytes_of(scene, &block), block.size, owner), 0);
    memset(bytes_of(scene, &block), FIRST + owner, block.size);
    return block;
}

static void open_scrubbed(scene_t *scene, const char *between) {
    char text[256];
    snprintf(text, sizeof text, "version: 1\nstack: [scrub, %sauto_growth_vmm: {slack: 0, slack_least: 0}, vmm]\n", between);
    *scene = (scene_t){.place = strata_gpu(0)};
    rig_open_on(&scene->rig, rig_strategy(text, NULL, 0), &(strata_sim_options_t){.contents = true, .capacity = 2 * GIB}, 0);
    scene->rig.borrowed_strategy = false;
}

static void free_of(scene_t *scene, strata_block_t *block) { EXPECT_OK(strata_free(scene->rig.s, block->ref)); }

/* Another owner writes the bytes of two free blocks at the addresses of a view. Then the first owner gets its addresses back. */
TEST(scrub_everywhere, bytes_that_a_view_wrote_at_other_addresses) {
    enum { MARGIN = 8 * 1024 }; /* for the bytes that a decorator adds */
    static const char *const between[] = {"", "stat, ", "aligned: {alignment: 4096}, ", "guard: {quarantine: 0}, "};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        scene_t scene;
        open_scrubbed(&scene, between[i]);
        for (int round = 0; round < 3; round++) {
            strata_block_t low = allocate_for(&scene, 0, 6 * MIB - MARGIN), middle = allocate_for(&scene, 0, 40 * MIB - MARGIN),
                           high = allocate_for(&scene, 0, 6 * MIB - MARGIN);
            free_of(&scene, &low);
            free_of(&scene, &high);
            strata_block_t view = allocate_for(&scene, 1, 11 * MIB);
            EXPECT_EQ(rig_figures(&scene.rig).reserved_bytes, 52 * MIB);
            free_of(&scene, &view);
            low = allocate_for(&scene, 0, 6 * MIB - MARGIN);
            high = allocate_for(&scene, 0, 6 * MIB - MARGIN);
            free_of(&scene, &low);
            free_of(&scene, &middle);
            free_of(&scene, &high);
        }
        rig_close(&scene.rig);
        if (strata_test_has_failed()) FAIL_TEST("with %s", between[i]);
    }
}

static void find_zeroed(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "zeroed") == 0) *(uint64_t *)context += figure->value;
}

/* Blocks beside each other, in several handles, are their last owner's. */
TEST(scrub_everywhere, blocks_of_their_last_owner_are_not_zeroed) {
    enum { BLOCKS = 4 };
    scene_t scene;
    open_scrubbed(&scene, "");
    strata_block_t blocks[BLOCKS];
    uint64_t before = 0, after = 0;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++) blocks[i] = allocate_for(&scene, 0, 2 * MIB);
        if (round == 0) EXPECT_OK(strata_layer_figures(scene.rig.s, scene.rig.gpu, find_zeroed, &before));
        for (int i = 0; i < BLOCKS; i++) free_of(&scene, &blocks[i]);
    }
    EXPECT_OK(strata_layer_figures(scene.rig.s, scene.rig.gpu, find_zeroed, &after));
    EXPECT_EQ(after - before, BLOCKS - 1); /* the first three lost their record to the growth after them */
    rig_close(&scene.rig);
}

/* What the device had from another process, or from another facade, is as unknown as what another stack gave back. */
TEST(scrub_everywhere, what_comes_from_the_device_is_zeroed) {
    scene_t scene = {.place = strata_gpu(0)};
    static const char text[] = "version: 1\nstack: [scrub, auto_growth: {chunk_size: 64KiB}, fill: {byte: 81}, system]\n";
    rig_open_on(&scene.rig, rig_strategy(text, NULL, 0), &(strata_sim_options_t){.contents = true}, 0);
    scene.rig.borrowed_strategy = false;
    for (int i = 0; i < 20; i++) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 3000u << (i % 4), .tag = "two"};
        strata_block_t block;
        ASSERT_OK(strata_allocate_with(scene.rig.s, scene.place, NULL, &options, &block));
        EXPECT_EQ(bytes_of_others(bytes_of(&scene, &block), block.size, 1), 0);
        EXPECT_OK(strata_free(scene.rig.s, block.ref));
        if (i % 3 == 2) EXPECT_OK(strata_release(scene.rig.s, scene.place, NULL));
    }
    rig_close(&scene.rig);
}

/* The zeros are the new owner's first use: ordered after the last one of the old, on whatever stream that was, borrowed or said
 * at the free, under every layer that keeps memory. Every request is zeroed here. */
TEST(scrub_everywhere, zeros_come_after_the_last_use) {
    static const char *const stacks[] = {
        "[retry, stream_safe, scrub: {always: true}, auto_growth: {chunk_size: 2MiB}, system]",
        "[retry, scrub: {always: true}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]",
        "[stream_safe, scrub: {always: true}, buffered, auto_growth: {chunk_size: 4MiB}, system]",
        "[scrub: {always: true}, caching, system]",
        "[scrub: {always: true}, bfc: {memory_limit: 64MiB}, system]",
        "[stream_safe, scrub: {always: true}, thread_local, system]",
        "[scrub: {always: true}, naive_best_fit: {streams: ignored}, system]",
        "[scrub: {always: true}, cuda_malloc_async]",
        "[scrub: {always: true}, system]",
        "[retry, guard: {report: false, quarantine: 2}, stream_safe, scrub: {always: true}, auto_growth: {chunk_size: 2MiB}, system]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            char text[512];
            checked_t checked;
            snprintf(text, sizeof text,
                     "strategy: s\nstack: %s\nplaces:\n  pinned: [stream_safe, scrub: {always: true}, auto_growth, system]\n",
                     stacks[i]);
            checked_open(&checked, text);
            checked_program(&checked, seed, 1200, true);
            if (checked_close(&checked, true) > 0) FAIL_TEST("%s", stacks[i]);
        }
    }
}
