/* The mechanism that strata/layer.h offers to caches outside the tree, under the example's index and under one that is a plain list. */
#include <stdio.h>

#include "allocation/cache/chunked.h"
#include "facade/open/life.h"
#include "tests/chunked/chunked.h"

extern const strata_layer_type_t *const strata_layers[]; /* the example's */

/* ---- a cache with a list of free blocks ---- */

typedef struct listed {
    strata_chunked_t cache;
    uint32_t first; /* linked by bin_next */
    bool wrong; /* says validate */
} listed_t;

static void insert(strata_layer_t *base, strata_record_t *block) {
    listed_t *self = (listed_t *)base;
    block->bin_next = self->first;
    self->first = strata_record_slot(base, block);
}

static void take_out(strata_layer_t *base, strata_record_t *block) {
    uint32_t *link = &((listed_t *)base)->first;
    while (strata_record_at(base, *link) != block) link = &strata_record_at(base, *link)->bin_next;
    *link = block->bin_next;
}

static strata_record_t *find(strata_layer_t *base, uint64_t size) {
    uint32_t slot = ((listed_t *)base)->first;
    while (slot && strata_record_at(base, slot)->size < size) slot = strata_record_at(base, slot)->bin_next;
    return slot ? strata_record_at(base, slot) : NULL;
}

static uint64_t grow_by_a_mib(strata_layer_t *base, uint64_t size) {
    (void)base, (void)size;
    return MIB;
}

static strata_status_t validate(strata_layer_t *base, uint32_t blocks, uint64_t bytes) {
    uint32_t count = 0;
    for (uint32_t slot = ((listed_t *)base)->first; slot; slot = strata_record_at(base, slot)->bin_next) {
        bytes -= strata_record_at(base, slot)->size;
        count++;
    }
    bool right = count == blocks && bytes == 0 && !((listed_t *)base)->wrong;
    return right ? STRATA_OK : strata_fail(STRATA_E_CORRUPT, 0, "listed: wrong");
}

static strata_chunked_policy_t policy = {.struct_size = sizeof policy, .insert = insert, .remove = take_out};

static strata_status_t create(strata_layer_t *base) { return strata_chunked_create(base, &policy); }

static const strata_layer_type_t listed_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "listed",
    .doc = "free blocks in a list",
    .state_size = sizeof(listed_t),
    .create = create,
    STRATA_CHUNKED_OPERATIONS,
};

__attribute__((constructor)) static void register_both(void) {
    static const strata_layer_type_t *const types[] = {&listed_type};
    (void)strata_layers_register(strata_layers, 1, true);
    (void)strata_layers_register(types, 1, true);
}

/* A whole policy; tests change it before they open. */
static void be_whole(void) {
    policy = (strata_chunked_policy_t){.struct_size = sizeof policy,
                                       .unit = 256,
                                       .insert = insert,
                                       .remove = take_out,
                                       .find = find,
                                       .growth = grow_by_a_mib,
                                       .validate = validate};
}

static strata_block_t serve_flagged(rig_t *rig, size_t size, uint32_t flags, strata_status_t wanted) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .flags = flags};
    strata_block_t block = {0};
    EXPECT_STATUS(wanted, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block));
    return block;
}

#define LISTED "stack:\n  - listed\n  - system\n"

/* ---- what it does ---- */

TEST(chunked_outside, cuts_the_high_end_and_merges_what_is_freed) {
    strata_block_t blocks[4];
    be_whole();
    RIG(rig, LISTED, 0);
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(&rig, NULL, 1000);
    for (int i = 1; i < 4; i++) EXPECT_EQ((uintptr_t)blocks[i].ptr + 1024, (uintptr_t)blocks[i - 1].ptr);
    EXPECT_EQ(blocks[0].size, 1024);
    strata_statistics_t f = rig_figures(&rig);
    EXPECT_EQ(f.growths, 1);
    EXPECT_EQ(f.cache_hits, 3);
    EXPECT_EQ(f.reserved_bytes, MIB);
    EXPECT_EQ(f.requested_bytes, 4000);
    EXPECT_OK(strata_free(rig.s, blocks[1].ref));
    EXPECT_OK(strata_free(rig.s, blocks[2].ref));
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t both = rig_allocate(&rig, NULL, 2048);
    EXPECT_EQ(both.ptr, blocks[2].ptr);
    RIG_FREE(&rig, both, blocks[3], blocks[0]);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t whole = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(rig_figures(&rig).growths, 1);
    EXPECT_OK(strata_free(rig.s, whole.ref));
}

typedef struct set_back {
    strata_block_t live[4];
    int count;
} set_back_t;

static void note_live(const strata_block_t *block, bool live, void *context) {
    set_back_t *seen = context;
    if (live) seen->live[seen->count++] = *block;
}

/* What was live at a checkpoint of a pool of graphs is so again where it was, cut out of whatever is free there by now: low, in the middle
 * and high. */
TEST(chunked_outside, serves_at_the_addresses_of_a_checkpoint) {
    strata_block_t blocks[4];
    strata_checkpoint_t checkpoint;
    set_back_t seen = {.count = 0};
    uint64_t pool = 0;
    be_whole();
    RIG(rig, LISTED, 0);
    strata_stream_t stream = rig_stream(&rig);
    ASSERT_OK(strata_graph_pool_begin(rig.s, rig.gpu, stream, &pool));
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_allocate(rig.s, rig.gpu, stream, MIB / 4, &blocks[i]));
    ASSERT_OK(strata_graph_pool_end(rig.s, rig.gpu, pool));
    EXPECT_OK(strata_free(rig.s, blocks[2].ref));
    ASSERT_OK(strata_graph_pool_checkpoint(rig.s, rig.gpu, pool, &checkpoint));
    for (int i = 0; i < 4; i++)
        if (i != 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    ASSERT_OK(strata_graph_pool_restore(rig.s, rig.gpu, checkpoint, note_live, &seen));
    EXPECT_EQ(seen.count, 3);
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < seen.count; i++) {
        bool same = false;
        for (int k = 0; k < 4; k++) same = same || (k != 2 && seen.live[i].ptr == blocks[k].ptr);
        EXPECT_TRUE(same);
        EXPECT_OK(strata_free(rig.s, seen.live[i].ref));
    }
    strata_graph_checkpoint_drop(checkpoint);
    EXPECT_OK(strata_graph_pool_remove(rig.s, rig.gpu, pool));
}

/* An address inside a block is found in the chunk that it lies in. */
TEST(chunked_outside, finds_the_block_of_an_address) {
    be_whole();
    RIG(rig, LISTED, 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b = rig_allocate(&rig, NULL, 3000), found;
    EXPECT_OK(strata_base_pointer(rig.s, (char *)b.ptr + 2999, &found));
    EXPECT_EQ(found.ref, b.ref);
    EXPECT_OK(strata_base_pointer(rig.s, (char *)a.ptr + 5, &found));
    EXPECT_EQ(found.ref, a.ref);
    RIG_FREE(&rig, a, b);
}

/* Of two idle chunks one goes where half may stay. */
TEST(chunked_outside, trims_whole_chunks) {
    uint64_t released;
    be_whole();
    RIG(rig, LISTED, 0);
    strata_block_t a = rig_allocate(&rig, NULL, MIB), b = rig_allocate(&rig, NULL, MIB), c = rig_allocate(&rig, NULL, 300);
    RIG_FREE(&rig, a, b);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 2 * MIB, &released));
    EXPECT_EQ(released, MIB);
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, MIB);
    EXPECT_OK(strata_free(rig.s, c.ref));
}

TEST(chunked_outside, grows_as_the_request_allows) {
    be_whole();
    RIG(rig, LISTED, 3 * MIB);
    strata_record_t *record;
    strata_request_t serve = {.size = 1000, .alignment = 256, .flags = STRATA_NO_GROW};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_stack_serve(rig_stack(&rig, NULL), &serve, &record));
    EXPECT_CONTAINS(strata_last_error()->text, "no free block of 1024 bytes, and growth is forbidden");
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 0);
    strata_block_t a = rig_allocate(&rig, NULL, 2 * MIB); /* more than the policy asks for */
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = serve_flagged(&rig, 1000, STRATA_NO_GROW, STRATA_OK);
    EXPECT_OK(strata_free(rig.s, b.ref));
    policy.growth = NULL;
    uint64_t calls = rig_calls(&rig, STRATA_CALL_malloc);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 8 * MIB, &b));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc) - calls, 2); /* at first and after a release: the request alone is no less */
}

/* Where a whole chunk cannot be had, the ladder's last rung asks for the request alone. */
TEST(chunked_outside, grows_by_less_where_memory_is_short) {
    be_whole();
    RIG(rig, LISTED, 0);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 64 * KIB));
    strata_block_t a = rig_allocate(&rig, NULL, 5000);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 5120);
    (void)serve_flagged(&rig, 128 * KIB, 0, STRATA_E_NO_MEMORY);
    EXPECT_OK(strata_free(rig.s, a.ref));
    policy.growth = NULL;
    a = rig_allocate(&rig, NULL, 6000);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 6144 + 5120);
    (void)serve_flagged(&rig, 128 * KIB, 0, STRATA_E_NO_MEMORY);
    EXPECT_OK(strata_free(rig.s, a.ref));
}

TEST(chunked_outside, asks_the_policy_what_is_wrong) {
    cache_t cache = {.name = "listed"};
    be_whole();
    RIG(rig, LISTED, 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    listed_t *listed = (listed_t *)cache_of(&cache, &rig);
    EXPECT_OK(strata_validate(rig.s));
    listed->wrong = true;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(rig.s));
    EXPECT_CONTAINS(strata_last_error()->text, "listed: wrong");
    policy.validate = NULL;
    EXPECT_OK(strata_validate(rig.s));
    chunked_t *chunked = (chunked_t *)&listed->cache;
    EXPECT_PLANTED(strata_validate(rig.s), chunked->used_bytes, 2048, "listed: the sum of free blocks is wrong");
    EXPECT_OK(strata_free(rig.s, a.ref));
}

/* ---- chunks that touch ---- */

enum { ROOM = 8 << 20 };

typedef struct adjacent {
    strata_layer_t base;
    uint64_t address, used;
} adjacent_t;

static strata_status_t get(strata_layer_t *base) {
    const strata_request_t none = {.size = 0};
    return strata_layer_allocate_memory(base, &none, ROOM, 256, &((adjacent_t *)base)->address);
}

static void give(strata_layer_t *base) { EXPECT_OK(strata_layer_free_memory(base, ((adjacent_t *)base)->address, ROOM)); }

static strata_status_t serve_next(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    adjacent_t *self = (adjacent_t *)base;
    if (self->used + request->size > ROOM) return strata_fail(STRATA_E_NO_MEMORY, 0, "all is served");
    *record = strata_record_new(base, request, self->address + self->used, request->size);
    self->used += request->size;
    return STRATA_OK;
}

static void take_back(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    (void)call;
    strata_record_delete(base, record);
}

#define ADJACENT(layer, traits)                                                                                                    \
    {                                                                                                                              \
        .struct_size = sizeof(strata_layer_type_t), .name = layer, .doc = "cuts one piece", .role = STRATA_SOURCE,                 \
        .scope = STRATA_SCOPE_DEVICE, .gives = traits, .guarded = true, .state_size = sizeof(adjacent_t), .create = get,           \
        .destroy = give, .allocate = serve_next, .free = take_back                                                                 \
    }
#define PASSING(layer, traits)                                                                                                     \
    {                                                                                                                              \
        .struct_size = sizeof(strata_layer_type_t), .name = layer, .doc = "does nothing", .role = STRATA_DECORATOR,                \
        .scope = STRATA_SCOPE_NONE, .passes = traits, .state_size = sizeof(strata_layer_t), .create = strata_layer_create_nothing, \
        .destroy = strata_layer_destroy_nothing, .allocate = strata_below_allocate, .free = strata_layer_free_below                \
    }

static const strata_layer_type_t below[] = {
    ADJACENT("touching", STRATA_TRAIT_EXACT_SIZE | STRATA_TRAIT_CONTIGUOUS),
    ADJACENT("apart", STRATA_TRAIT_EXACT_SIZE),
    PASSING("passing", ~0u),
    PASSING("hiding", STRATA_TRAIT_EXACT_SIZE),
};

/* Whether two chunks of 2 MiB serve 4 MiB. */
static bool joins(const char *layers) {
    char text[200];
    be_whole();
    policy.joins_chunks = strchr(layers, '+') != NULL;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const strata_layer_type_t *type = &below[i];
        EXPECT_OK(strata_layers_register(&type, 1, true));
    }
    snprintf(text, sizeof text, "stack: [listed, %s]\n", layers + (*layers == '+'));
    RIG(rig, text, 0);
    strata_block_t a = rig_allocate(&rig, NULL, 2 * MIB), b = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, a, b);
    EXPECT_OK(strata_validate(rig.s));
    uint64_t growths = rig_figures(&rig).growths;
    strata_block_t both = rig_allocate(&rig, NULL, 4 * MIB);
    bool joined = rig_figures(&rig).growths == growths;
    EXPECT_OK(strata_free(rig.s, both.ref));
    return joined;
}

TEST(chunked_outside, joins_chunks_where_both_sides_say_so) {
    EXPECT_TRUE(joins("+touching"));
    EXPECT_FALSE(joins("touching"));
    EXPECT_FALSE(joins("+apart"));
    EXPECT_TRUE(joins("+passing, touching"));
    EXPECT_FALSE(joins("+hiding, touching"));
    EXPECT_FALSE(joins("+passing, apart"));
    EXPECT_TRUE(joins("+vmm"));
    EXPECT_FALSE(joins("vmm"));
    EXPECT_TRUE(joins("+passing, vmm"));
    EXPECT_FALSE(joins("+vmm: {registrable: true}"));
    EXPECT_FALSE(joins("+fallback: {stacks: [[touching], [touching]]}"));
}

/* ---- what it refuses ---- */

static void expect_refused(void) {
    rig_t rig;
    strata_strategy_t *strategy = rig_strategy(LISTED, NULL, 0);
    rig_open_devices(&rig, strategy, &(strata_sim_options_t){.devices = 1});
    EXPECT_STATUS(STRATA_E_INVALID, strata_facade_open_on(strategy, rig.devices, 1, 0, &rig.s));
    EXPECT_CONTAINS(strata_last_error()->text, "listed: strata_chunked_create");
    rig_end(&rig);
    strata_strategy_delete(strategy);
}

TEST(chunked_outside, refuses_half_a_policy) {
    be_whole();
    policy.find = NULL;
    expect_refused();
    be_whole();
    policy.insert = NULL;
    expect_refused();
    be_whole();
    policy.remove = NULL;
    expect_refused();
    be_whole();
    policy.struct_size = 8;
    expect_refused();
    be_whole();
    policy.unit = 300;
    expect_refused();
    policy.unit = 64; /* less than device memory has */
    expect_refused();
}
