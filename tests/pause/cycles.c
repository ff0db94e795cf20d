/* A thousand pauses of a pool that grows, joins its handles and captures graphs between them; and pauses beside other threads. */
#include <stdio.h>

#include "platform/clock.h"
#include "tests/pause/pause.h"

enum { CYCLES = STRIDE == 1 ? 1000 : 60, LIVE = 8, SMALL = 1 << 16 };

/* Handles of 64 KiB, so that a cycle copies little. */
static void open_small(rig_t *rig, const char *strategy) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.granule_bytes = profile.pack_below_bytes = SMALL;
    rig_open_with(rig, strategy, &(strata_sim_options_t){.profile = &profile, .contents = true, .capacity = 256 * MIB}, 0);
}

static uint32_t draw(uint32_t *state, uint32_t below) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 8) * below >> 24);
}

typedef struct cycling {
    rig_t rig;
    strata_stream_t stream;
    strata_block_t live[LIVE], large; /* of the live ones every other is freed for the large one */
    uint32_t seeds[LIVE], large_seed, random, captures;
    uint64_t unit; /* their size: it grows from time to time */
    strata_graph_t graph;
    strata_block_t written; /* by the graph: captures % 251 */
} cycling_t;

static void make(cycling_t *c, strata_block_t *block, size_t size, uint32_t *seed) {
    if (block->ref) return;
    *block = rig_allocate(&c->rig, c->stream, size);
    *seed = draw(&c->random, 1 << 20);
    pause_write(&c->rig, block, *seed);
}

static void drop(cycling_t *c, strata_block_t *block) {
    if (block->ref) EXPECT_OK(strata_free(c->rig.s, block->ref));
    *block = (strata_block_t){0};
}

/* The holes are apart, and what they hold together is the large block in a view. */
static void change_blocks(cycling_t *c) {
    drop(c, &c->large);
    for (uint32_t i = 0; i < LIVE; i++) make(c, &c->live[i], c->unit, &c->seeds[i]);
    uint32_t first = draw(&c->random, 2);
    for (uint32_t i = first; i < LIVE; i += 2) drop(c, &c->live[i]);
    make(c, &c->large, LIVE / 2 * c->unit, &c->large_seed);
}

/* The graph before goes, and its pool with it, or the next graph is captured into the same. */
static void capture(cycling_t *c) {
    uint64_t pool = 0;
    if (c->graph) EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, c->graph));
    if (c->written.ref) EXPECT_OK(strata_free(c->rig.s, c->written.ref));
    EXPECT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &pool));
    EXPECT_OK(strata_capture_begin(c->rig.s, c->rig.gpu, c->stream));
    strata_block_t freed = rig_allocate(&c->rig, c->stream, 100000 + draw(&c->random, 300000));
    EXPECT_OK(strata_free(c->rig.s, freed.ref));
    c->written = rig_allocate(&c->rig, c->stream, 50000);
    c->captures++;
    EXPECT_OK(strata_device_fill(c->rig.devices[0], (uintptr_t)c->written.ptr, (uint8_t)(c->captures % 251), 50000, c->stream));
    EXPECT_OK(strata_capture_end(c->rig.s, c->rig.gpu, c->stream, &c->graph));
    EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, pool));
}

static void launch(cycling_t *c) {
    uint8_t *bytes = pause_bytes(&c->rig, &c->written);
    ASSERT_TRUE(bytes != NULL);
    bytes[0] = bytes[49999] = 255;
    EXPECT_OK(strata_graph_launch(c->rig.s, c->rig.gpu, c->graph, c->stream));
    EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, c->stream));
    EXPECT_TRUE(bytes[0] == c->captures % 251 && bytes[49999] == c->captures % 251);
}

static void check(cycling_t *c) {
    for (uint32_t i = 0; i < LIVE; i++)
        if (c->live[i].ref) EXPECT_TRUE(pause_holds(&c->rig, &c->live[i], c->seeds[i]));
    EXPECT_TRUE(pause_holds(&c->rig, &c->large, c->large_seed));
    launch(c);
}

/* Without what the device keeps for itself. */
static uint64_t used_by(rig_t *rig) {
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    return figures.used_bytes;
}

static void cycle(cycling_t *c, uint32_t number) {
    if (number % 200 == 199) c->unit += SMALL;
    change_blocks(c);
    if (number % 25 == 0) capture(c);
    launch(c);
    uint64_t reserved = rig_figures(&c->rig).reserved_bytes;
    pause_do(&c->rig, STRATA_POOL_EVERY, number % 10 ? STRATA_PAUSE_PINNED : STRATA_PAUSE_FILE);
    EXPECT_EQ(rig_figures(&c->rig).reserved_bytes, 0);
    EXPECT_EQ(used_by(&c->rig), 0); /* neither by a handle nor by a view of it */
    if (number % 7 == 0) drop(c, &c->live[draw(&c->random, LIVE)]);
    resume_do(&c->rig, STRATA_POOL_EVERY);
    EXPECT_LE(rig_figures(&c->rig).reserved_bytes, reserved);
    check(c);
    if (number % 50 == 0) EXPECT_OK(strata_validate(c->rig.s));
}

typedef struct wanted {
    const char *name;
    uint64_t sum;
} wanted_t;

static void add_figure(const strata_layer_figure_t *row, void *context) {
    wanted_t *wanted = context;
    if (strcmp(row->name, wanted->name) == 0) wanted->sum += row->value;
}

static uint64_t figure(cycling_t *c, const char *name) {
    wanted_t wanted = {.name = name};
    EXPECT_OK(strata_layer_figures(c->rig.s, c->rig.gpu, add_figure, &wanted));
    return wanted.sum;
}

TEST(pause_cycles, a_thousand_with_growth_views_and_captures) {
    cycling_t c = {.random = 7, .unit = SMALL};
    open_small(&c.rig, "stack: [stream_safe, auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]\n"
                       "graph: {stack: [stream_safe, auto_growth_vmm, vmm]}\n");
    c.stream = rig_stream(&c.rig);
    for (uint32_t i = 0; i < CYCLES && !strata_test_has_failed(); i++) cycle(&c, i);
    printf("%d cycles, %llu handles created, %llu joined, %u graphs\n", CYCLES, (unsigned long long)figure(&c, "creations"),
           (unsigned long long)figure(&c, "joins"), c.captures);
    EXPECT_GT(figure(&c, "joins"), CYCLES / 20);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, c.graph));
    rig_finish(&c.rig);
}

/* ---- what it holds ---- */

enum { WEIGHTS = 64, TEMPORARIES = 24 };

/* A step: temporaries of changing sizes, a few alive at a time. */
static void run_step(cycling_t *c) {
    strata_block_t alive[4] = {{0}};
    for (uint32_t i = 0; i < TEMPORARIES; i++) {
        drop(c, &alive[i % 4]);
        alive[i % 4] = rig_allocate(&c->rig, c->stream, (4 + draw(&c->random, 60)) * MIB + draw(&c->random, 1 << 20));
    }
    for (uint32_t i = 0; i < 4; i++) drop(c, &alive[i]);
}

/* Peak reserved over peak requested of a program that sleeps after every step, or never. */
static double run_steps(bool pauses) {
    cycling_t c = {.random = 11};
    strata_block_t weights[WEIGHTS] = {{0}};
    rig_open_with(&c.rig, PAUSE_MOVING, &(strata_sim_options_t){.capacity = 16 * GIB}, 0);
    c.stream = rig_stream(&c.rig);
    for (uint32_t i = 0; i < WEIGHTS; i++) weights[i] = rig_allocate(&c.rig, c.stream, (1 + i % 9) * 16 * MIB);
    for (uint32_t i = 0; i < CYCLES && !strata_test_has_failed(); i++) {
        run_step(&c);
        if (i % 16 == 0) drop(&c, &weights[i % WEIGHTS]);
        if (i % 16 == 0) weights[i % WEIGHTS] = rig_allocate(&c.rig, c.stream, (1 + i % 9) * 16 * MIB);
        if (!pauses) continue;
        pause_do(&c.rig, STRATA_POOL_ORDINARY, i % 3 ? STRATA_PAUSE_PINNED : STRATA_PAUSE_DROP);
        EXPECT_EQ(rig_figures(&c.rig).reserved_bytes, 0);
        resume_do(&c.rig, STRATA_POOL_ORDINARY);
    }
    strata_statistics_t figures = rig_figures(&c.rig);
    double ratio = (double)figures.peak_reserved_bytes / (double)figures.peak_requested_bytes;
    printf("%d steps %s: %llu handles created, %llu joined; peak reserved over peak requested %.4f\n", CYCLES,
           pauses ? "with pauses" : "without", (unsigned long long)figure(&c, "creations"), (unsigned long long)figure(&c, "joins"),
           ratio);
    for (uint32_t i = 0; i < WEIGHTS; i++) drop(&c, &weights[i]);
    rig_finish(&c.rig);
    return ratio;
}

/* Memory without contents, and blocks of a program's sizes. */
TEST(pause_cycles, a_paused_pool_holds_hardly_more_than_it_needs) {
    double paused = run_steps(true), never = run_steps(false);
    EXPECT_TRUE(paused <= 1.05);
    EXPECT_TRUE(paused <= never + 0.01);
}

/* ---- beside others ---- */

static _Atomic uint32_t served_beside;

typedef struct beside {
    rig_t *rig;
    uint64_t pool;
    uint32_t seed;
    _Atomic bool *over;
} beside_t;

/* What the layers write into fresh blocks is written while nothing is away: a fill of paused memory would be refused. */
static void *allocate_beside(void *context) {
    beside_t *b = context;
    strata_stream_t stream = rig_stream(b->rig);
    strata_block_t held[8] = {{0}};
    while (!atomic_load(b->over)) {
        uint32_t at = draw(&b->seed, 8);
        if (held[at].ref) EXPECT_OK(strata_free(b->rig->s, held[at].ref));
        held[at] = (strata_block_t){0};
        strata_allocate_options_t options = {
            .struct_size = sizeof options, .size = 1000 + draw(&b->seed, 400000), .pool = b->pool, .flags = STRATA_ZERO};
        if (draw(&b->seed, 2)) options.flags = 0;
        strata_status_t status = strata_allocate_with(b->rig->s, b->rig->gpu, stream, &options, &held[at]);
        if (status != STRATA_OK && status != STRATA_E_BUSY) FAIL_TEST("%s", strata_last_error()->text);
        if (status == STRATA_OK) atomic_fetch_add(&served_beside, 1);
    }
    for (size_t i = 0; i < COUNT(held); i++)
        if (held[i].ref) EXPECT_OK(strata_free(b->rig->s, held[i].ref));
    return NULL;
}

static void *pause_beside(void *context) {
    beside_t *b = context;
    for (int i = 0; i < CYCLES / 10 || (i < 20 * CYCLES && atomic_load(&served_beside) <= 10); i++) {
        EXPECT_OK(pause_try(b->rig, b->pool, NULL, i % 2 ? STRATA_PAUSE_PINNED : STRATA_PAUSE_DROP, NULL));
        if (i % 4 == 0) EXPECT_OK(strata_release(b->rig->s, b->rig->gpu, NULL));
        EXPECT_OK(strata_resume(b->rig->s, b->rig->gpu, b->pool, NULL, NULL));
        strata_real_clock()->sleep_until(strata_real_clock(), strata_real_now() + 300000);
    }
    atomic_store(b->over, true);
    return NULL;
}

static void *run_beside(void *context) {
    beside_t *b = context;
    return b->over && b->seed == 0 ? pause_beside(b) : allocate_beside(b);
}

TEST(pause_cycles, beside_threads_that_allocate) {
    rig_t rig;
    _Atomic bool over = false;
    open_small(&rig, PAUSE_POOLS);
    uint64_t weights = pause_pool(&rig, "weights");
    beside_t threads[] = {{&rig, STRATA_POOL_ORDINARY, 0, &over},
                          {&rig, weights, 0, &over},
                          {&rig, STRATA_POOL_ORDINARY, 3, &over},
                          {&rig, STRATA_POOL_ORDINARY, 4, &over},
                          {&rig, weights, 5, &over}};
    in_threads(run_beside, threads, sizeof *threads, COUNT(threads));
    EXPECT_GT(atomic_load(&served_beside), 10);
    EXPECT_OK(strata_resume(rig.s, rig.gpu, STRATA_POOL_EVERY, NULL, NULL));
    EXPECT_OK(strata_validate(rig.s));
    rig_finish(&rig);
}
