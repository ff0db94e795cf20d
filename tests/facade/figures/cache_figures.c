/* Tests cache_hits and growths after each request of small programs, in every cache of the registry. */
#include "tests/facade/support/fixture.h"

typedef enum action { ASK = 1, FREE, BORROW, STEP } action_t;

typedef struct act {
    action_t action;
    uint8_t block, stream; /* the block's number in the program; stream 0 is the default stream */
    uint64_t amount; /* bytes to ask for, or nanoseconds of a borrower's work */
    uint64_t hits, growths; /* that this request adds */
} act_t;

enum { ACTS = 16, BLOCKS = 8, STREAMS = 3 };

typedef struct program {
    const char *name, *layers;
    uint64_t capacity;
    act_t acts[ACTS];
} program_t;

#define ASKED_ON(stream, block, bytes, hits, growths)                                                                              \
    { ASK, block, stream, bytes, hits, growths }
#define ASKED(block, bytes, hits, growths) ASKED_ON(0, block, bytes, hits, growths)
#define HIT(block, bytes)                  ASKED(block, bytes, 1, 0)
#define GROWTH(block, bytes)               ASKED(block, bytes, 0, 1)
#define FREED(block)                                                                                                               \
    { FREE, block, 0, 0, 0, 0 }
#define BORROWED(stream, block)                                                                                                    \
    { BORROW, block, stream, 2000 * 1000, 0, 0 }
#define STEPPED                                                                                                                    \
    { STEP, 0, 0, 0, 0, 0 }

/* The first request makes the cache grow. The rest of that chunk serves the second one, and a freed block the third. */
#define CUT GROWTH(0, MIB), HIT(1, MIB / 2), FREED(0), HIT(0, MIB)
/* The last request is served at its address of the last step, by the serve loop. */
#define REPEATED GROWTH(0, MIB), STEPPED, HIT(1, 2 * MIB), FREED(0), FREED(1), STEPPED, HIT(1, 2 * MIB)
/* The device has no room for 48 MiB before the idle 40 MiB are released. */
#define REPLACED GROWTH(0, 40 * MIB), FREED(0), GROWTH(0, 48 * MIB)
/* The second request is served by what the first one had, after a wait for the borrower. */
#define WAITED(bytes) ASKED_ON(1, 0, bytes, 0, 1), BORROWED(2, 0), FREED(0), ASKED_ON(1, 0, bytes, 1, 0)

static const program_t programs[] = {
    {"auto_growth", "auto_growth: {chunk_size: 8MiB}, system", 0, {CUT, GROWTH(2, 40 * MIB)}},
    {"auto_growth_vmm", "auto_growth_vmm, vmm", 0, {CUT, GROWTH(2, 40 * MIB)}},
    {"best_fit_vmm", "best_fit_vmm: {handle: 2MiB}, vmm", 0, {CUT, ASKED(2, 4 * MIB, 0, 2)}},
    {"bfc", "bfc: {initial_region: 8MiB}, system", 0, {CUT, GROWTH(2, 40 * MIB)}},
    {"buffered", "buffered, system", 0, {GROWTH(0, MIB), GROWTH(1, MIB / 2), FREED(0), HIT(0, MIB), GROWTH(2, 40 * MIB)}},
    {"caching", "caching, system", 0, {CUT, GROWTH(2, 40 * MIB)}},
    {"caching_vmm", "caching_vmm, vmm", 0, {CUT, ASKED(2, 40 * MIB, 0, 2)}},
    {"naive_best_fit", "naive_best_fit: {initial: 8MiB, reallocate: 8MiB}, system", 0, {CUT, GROWTH(2, 40 * MIB)}},
    {"thread_local", "thread_local: {initial: 8MiB, reallocate: 8MiB}, system", 0, {CUT, GROWTH(2, 40 * MIB)}},

    {"auto_growth_at_a_step", "auto_growth: {chunk_size: 8MiB, stable_addresses: true}, system", 0, {REPEATED}},
    {"bfc_at_a_step", "bfc: {initial_region: 8MiB, stable_addresses: true}, system", 0, {REPEATED}},
    {"naive_best_fit_at_a_step", "naive_best_fit: {initial: 8MiB, stable_addresses: true}, system", 0, {REPEATED}},

    /* A wait is no growth. */
    {"auto_growth_after_patience", "retry: {patience: true, depth: 1}, stream_safe, auto_growth, system", 0, {WAITED(5 * MIB)}},
    {"auto_growth_after_the_ladder", "retry: {timeout: 50ms}, stream_safe, auto_growth, system", 8 * MIB, {WAITED(5 * MIB)}},
    {"naive_best_fit_after_a_wait",
     "naive_best_fit: {streams: ignored, initial: 8MiB}, system",
     0,
     {ASKED_ON(1, 0, 8 * MIB - 64, 0, 1), BORROWED(1, 0), FREED(0), ASKED_ON(2, 0, 8 * MIB - 64, 1, 0)}},
    /* A growth was refused, but the wait for all uses freed the block, and no other growth was tried. */
    {"caching_after_all_events", "caching: {search_after_events: true}, system", 20 * MIB, {WAITED(18 * MIB)}},

    {"auto_growth_after_a_release", "auto_growth, system", 64 * MIB, {REPLACED}},
    {"bfc_after_a_collection", "bfc: {memory_limit: 64MiB, initial_region: 40MiB}, system", 0, {REPLACED}},
    {"buffered_after_a_release", "buffered, system", 64 * MIB, {REPLACED}},
    {"caching_after_a_release", "caching, system", 64 * MIB, {REPLACED}},
    {"caching_after_an_oversize_release", "caching: {max_split_size: 20MiB}, system", 64 * MIB, {REPLACED}},
    {"caching_vmm_after_unmapping",
     "caching_vmm, vmm",
     64 * MIB,
     {ASKED(0, 40 * MIB, 0, 2), FREED(0), ASKED_ON(1, 0, 48 * MIB, 0, 4)}},

    /* A growth was tried and refused, so the request is no hit, though free memory served it. */
    {"bfc_after_a_forced_merge",
     "bfc: {timestamps: true, memory_limit: 16MiB, allow_growth: false}, system",
     0,
     {GROWTH(0, 8 * MIB), HIT(1, 8 * MIB), FREED(0), FREED(1), ASKED(0, 16 * MIB, 0, 0)}},
    /* Each handle that moves counts as a growth. */
    {"best_fit_vmm_after_a_move",
     "best_fit_vmm: {handle: 2MiB, remap_on_oom: true}, vmm",
     8 * MIB,
     {GROWTH(0, 2 * MIB), GROWTH(1, 2 * MIB), GROWTH(2, 2 * MIB), GROWTH(3, 2 * MIB), FREED(0), FREED(2), ASKED(0, 4 * MIB, 0, 2)}},
    {"auto_growth_vmm_by_a_view",
     "auto_growth_vmm, vmm",
     16 * MIB,
     {GROWTH(0, 4 * MIB), GROWTH(1, 4 * MIB), GROWTH(2, 4 * MIB), GROWTH(3, 4 * MIB), FREED(0), FREED(2), ASKED(0, 8 * MIB, 0, 0)}},
    /* The large pool's free block serves a small request, as it would a large one. */
    {"auto_growth_vmm_by_the_other_pool", "auto_growth_vmm, vmm", 4 * MIB, {GROWTH(0, 4 * MIB), FREED(0), HIT(0, 4096)}},
};

static void expect_figures(rig_t *rig, uint64_t act, uint64_t hits, uint64_t growths) {
    strata_statistics_t f = rig_figures(rig);
    if (f.cache_hits != hits || f.growths != growths)
        FAIL_TEST("after act %llu: %llu hits, %llu growths, not %llu, %llu", (unsigned long long)act,
                  (unsigned long long)f.cache_hits, (unsigned long long)f.growths, (unsigned long long)hits,
                  (unsigned long long)growths);
}

static void run_program(const program_t *program, const char *tag) {
    RIG_STACK(rig, program->layers, program->capacity);
    strata_stream_t streams[STREAMS] = {NULL, rig_stream(&rig), rig_stream(&rig)};
    strata_block_t blocks[BLOCKS] = {{.ref = 0}};
    uint64_t hits = 0, growths = 0;
    for (const act_t *act = program->acts; act->action; act++) {
        strata_stream_t stream = streams[act->stream];
        strata_block_t *block = &blocks[act->block];
        switch (act->action) {
        case ASK: *block = rig_allocate_tagged(&rig, stream, act->amount, tag); break;
        case FREE: EXPECT_OK(strata_free(rig.s, block->ref)); break;
        case BORROW: rig_borrow(&rig, block->ref, stream, act->amount); break;
        case STEP: EXPECT_OK(strata_step(rig.s)); break;
        }
        expect_figures(&rig, (uint64_t)(act - program->acts), hits += act->hits, growths += act->growths);
    }
}

/* A tagged request misses the fast path, so that the serve loop counts it. */
TEST_EACH(facade_cache_figures, a_request_counts_a_hit_or_its_growths, program_t, programs) {
    run_program(row, NULL);
    run_program(row, "tagged");
}

TEST(facade_cache_figures, every_cache_of_the_registry_has_a_program) {
    for (size_t i = 0; strata_layer_at(i); i++) {
        const strata_layer_type_t *type = strata_layer_at(i);
        bool found = type->role != STRATA_CACHE;
        for (size_t k = 0; k < COUNT(programs) && !found; k++) found = strcmp(programs[k].name, type->name) == 0;
        if (!found) FAIL_TEST("%s has no program", type->name);
    }
}

/* A tagged request misses the fast path, as a first request does; the others take it if the cache has one. */
TEST_EACH(facade_cache_figures, a_release_changes_the_chunks_alone, program_t, programs) {
    RIG_STACK(rig, row->layers, row->capacity);
    for (uint64_t turn = 0; turn < 3; turn++) {
        EXPECT_OK(strata_free(rig.s, rig_allocate_tagged(&rig, NULL, MIB, turn == 2 ? "tagged" : NULL).ref));
        expect_figures(&rig, turn, turn, 1);
        EXPECT_EQ(rig_figures(&rig).chunks, 1);
    }
    (void)rig_release(&rig);
    expect_figures(&rig, 3, 2, 1);
    EXPECT_EQ(rig_figures(&rig).chunks, 0);
    (void)rig_allocate(&rig, NULL, MIB);
    expect_figures(&rig, 4, 2, 2);
    EXPECT_EQ(rig_figures(&rig).chunks, 1);
}

TEST_EACH(facade_cache_figures, a_request_that_fails_is_no_hit, program_t, programs) {
    RIG_STACK(rig, row->layers, row->capacity);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, (size_t)1 << 40));
    expect_figures(&rig, 0, 0, 0);
    EXPECT_EQ(rig_figures(&rig).chunks, 0);
}

/* A padded block stays so for every hit, on the fast path too. */
TEST_STACK(facade_cache_figures, padding_is_the_same_for_every_hit, 0, "auto_growth: {padding: 256, chunk_size: 2MiB}, system") {
    for (int i = 0; i < 4; i++) {
        strata_block_t block = rig_allocate(rig, NULL, 256);
        EXPECT_EQ(block.size, 512);
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
}
