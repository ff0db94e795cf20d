/* Where the tables of a stack end: the request is told, nothing it took is kept, and what there is goes on. */
#include <stdio.h>

#include "facade/registry/names.h"
#include "platform/host/growing.h"
#include "platform/host/host_memory.h"
#include "strategy/model.h"
#include "tests/facade/support/fixture.h"

enum { EXTRA = 5, STACKS = 4 };

static const size_t sizes[] = {600, 30000, 3 * MIB};

/* A slab has room for `extra` records more, besides those that were given back to it; what it had. */
static uint32_t shorten(strata_slab_t *slab, uint32_t extra) {
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used + extra;
    return capacity;
}

/* Answers whether the table was too short for one of the requests. */
static bool ends(rig_t *rig, strata_stream_t stream, uint32_t stack, uint32_t extra) {
    bool ended = false;
    strata_stack_t *full = rig_domain(rig)->first_stack;
    for (uint32_t i = 0; i < stack; i++) full = full->links.next;
    strata_slab_t *slab = &full->slab;
    uint32_t capacity = shorten(slab, extra);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        strata_block_t block = {.ref = 7};
        uint64_t reserved = rig_figures(rig).reserved_bytes;
        strata_status_t status = strata_allocate(rig->s, rig->gpu, stream, sizes[i], &block);
        if (status == STRATA_OK) {
            EXPECT_OK(strata_free(rig->s, block.ref));
            continue;
        }
        ended = true;
        EXPECT_EQ(status, STRATA_E_LIMIT);
        EXPECT_CONTAINS(strata_last_error()->text, "maximum");
        EXPECT_EQ(block.ref, 7);
        EXPECT_LE(rig_figures(rig).reserved_bytes, reserved);
        EXPECT_OK(strata_validate(rig->s));
    }
    slab->capacity = capacity;
    return ended;
}

/* `grown`: there is memory already, else the first request asks for some. Answers as ends(). */
static bool one_ends(const char *text, uint32_t stack, uint32_t extra, bool grown) {
    RIG(rig, text, 0);
    strata_stream_t stream = rig_stream(&rig);
    (void)rig_stack(&rig, stream);
    strata_block_t kept = {.ref = 0};
    if (grown) kept = rig_allocate(&rig, stream, 1000);
    bool ended = stack < rig_domain(&rig)->stack_count && ends(&rig, stream, stack, extra);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, stream, sizes[i]).ref));
    if (grown) EXPECT_OK(strata_free(rig.s, kept.ref));
    if (strata_test_has_failed()) FAIL_TEST("%s, stack %u, room for %u, %s", text, stack, extra, grown ? "grown" : "new");
    return ended;
}

/* How many of the short tables a stack came to the end of. */
static uint32_t full_tables(const char *layers) {
    uint32_t found = 0;
    char text[200];
    snprintf(text, sizeof text, "strategy: full\nstack: [%s]\n", layers);
    for (uint32_t stack = 0; stack < STACKS; stack++)
        for (uint32_t extra = 0; extra < EXTRA && !strata_test_has_failed(); extra++)
            for (int grown = 0; grown < 2; grown++) found += one_ends(text, stack, extra, grown != 0);
    return found;
}

TEST(facade_full, a_full_table_of_any_cache_and_source_is_told_and_costs_nothing) {
    uint32_t types = 0;
    for (size_t i = 0; strata_layer_at(i); i++) {
        const strata_layer_type_t *type = strata_layer_at(i);
        char layers[100];
        if (type->role != STRATA_CACHE && type->role != STRATA_SOURCE) continue;
        snprintf(layers, sizeof layers, "%s%s", type->name, type->role == STRATA_CACHE ? source_below(type) : "");
        EXPECT_GT(full_tables(layers), 0);
        types++;
    }
    EXPECT_GT(types, 5);
}

/* Those that make records of their own. */
TEST(facade_full, a_full_table_under_a_decorator_is_told_and_costs_nothing) {
    static const char *const stacks[] = {
        "guard: {report: false}, auto_growth, system", "aligned: {alignment: 4KiB}, auto_growth, system",
        "stream_safe, guard: {report: false}, buffered, system", "guard: {report: false}, caching, system"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) EXPECT_GT(full_tables(stacks[i]), 0);
}

/* A slot whose generations are used up serves no more: its block moves to another slot. Without one it stays out of use until its
 * chunk goes. */
TEST_RIG_WAYS(facade_full, a_block_whose_slot_is_used_up_is_lost_where_no_other_slot_is_left, full, 2, 0,
              "strategy: used_up\nstack: [auto_growth, system]\n") {
    strata_slab_t *slab = &rig_stack(rig, NULL)->slab;
    strata_block_t first = rig_allocate(rig, NULL, 1000), after = rig_allocate(rig, NULL, 1000);
    strata_record_t *record = strata_slab_record(slab, strata_ref_slot(first.ref));
    EXPECT_OK(strata_free(rig->s, first.ref));
    record->generation = STRATA_GENERATION_LAST - 1;
    strata_block_t last = rig_allocate(rig, NULL, 1000);
    EXPECT_EQ(last.ptr, first.ptr);
    uint32_t capacity = full ? shorten(slab, 0) : slab->capacity;
    EXPECT_OK(strata_free(rig->s, last.ref));
    slab->capacity = capacity;
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, last.ref));
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_OK(strata_validate(rig->s));
    strata_block_t next = rig_allocate(rig, NULL, 1000);
    EXPECT_EQ(next.ptr == first.ptr, !full);
    RIG_FREE(rig, next, after);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    /* A chunk with a lost block is not idle. */
    EXPECT_EQ(rig_figures(rig).reserved_bytes > 0, full);
}

static bool tables_grow(void) {
    strata_growing_t range;
    EXPECT_OK(strata_growing_reserve(&range, 4096, 64 << 20));
    bool grows = strata_growing_usable(&range) < strata_growing_max(&range);
    strata_growing_release(&range);
    return grows;
}

/* Each block has its place in a table that grows as the slab does. */
TEST(facade_full, a_block_without_room_for_its_owners_is_not_shared) {
    enum { BLOCKS = 1500 };
    strata_block_t blocks[BLOCKS];
    if (!tables_grow()) TEST_SKIP("address space comes in one piece here");
    RIG(rig, "strata", 0);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(&rig, NULL, 1000);
    strata_block_t a = blocks[0], b = blocks[BLOCKS - 1];
    EXPECT_OK(strata_retain(rig.s, a.ref));
    strata_host_fail_at(1, 1);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_retain(rig.s, b.ref));
    strata_host_fail_at(0, 0);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, b.ref));
    EXPECT_OK(strata_retain(rig.s, blocks[BLOCKS - 2].ref));
    EXPECT_OK(strata_free(rig.s, blocks[BLOCKS - 2].ref));
    EXPECT_OK(strata_free(rig.s, a.ref));
    for (int i = 0; i < BLOCKS - 1; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
}

/* A name that finds no room is one of the others; a pool that has none could not be told from another. */
TEST_RIG(facade_full, a_pool_is_not_named_where_no_name_is_left, 0,
         "strategy: named\nstack: [system]\npools: {weights: {stack: [system]}}\n") {
    uint64_t pool = 77;
    for (uint32_t i = 0; i < STRATA_NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "operator %u", i);
        EXPECT_OK(strata_annotate(rig->s, name));
    }
    EXPECT_OK(strata_annotate(rig->s, NULL));
    EXPECT_SAYS(STRATA_E_LIMIT, strata_pool(rig->s, "weights", &pool), "names, the maximum");
    EXPECT_EQ(pool, 77);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 1000).ref));
}

/* One block, borrowed and taken back by as many streams as a stack knows. The list is in order of the handles: from the
 * last to the first each comes in front. */
TEST_RIG(facade_full, more_borrowers_than_a_stack_notes_are_refused_and_waited_for_instead, 0,
         "strategy: borrowed\nstack: [stream_safe, auto_growth, system]\n") {
    strata_status_t status = STRATA_OK;
    uintptr_t handle = (uintptr_t)1 << 40, noted = 0;
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, NULL, 1000), other = rig_allocate(rig, NULL, 1000);
    for (; status == STRATA_OK && noted < 1u << 17; noted++)
        status = strata_record_stream(rig->s, block.ref, (strata_stream_t)(handle - noted));
    EXPECT_EQ(status, STRATA_E_LIMIT);
    EXPECT_CONTAINS(strata_last_error()->text, "streams use blocks of one layer at the same time, the maximum");
    /* The last use of another block is not noted either: its free waits for it. */
    rig_work(rig, stream, 1000 * 1000, other.ref);
    uint64_t end = strata_sim_stream_end(rig->devices[0], stream);
    EXPECT_OK(strata_free_on(rig->s, other.ref, stream));
    EXPECT_GE(strata_sim_now(rig->world), end);
    for (uintptr_t i = noted - 1; i-- > 0;) EXPECT_OK(strata_erase_stream(rig->s, block.ref, (strata_stream_t)(handle - i)));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_figures(rig).deferred_frees, 0);
}

TEST_RIG(facade_full, nothing_is_asked_for_where_no_record_is_left, 0, "strata") {
    strata_stack_t *stack = rig_stack(rig, NULL);
    uint32_t capacity = shorten(&stack->slab, 0);
    EXPECT_SAYS(STRATA_E_LIMIT, rig_try(rig, NULL, 0), "the maximum");
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    stack->slab.capacity = capacity;
    (void)rig_allocate(rig, NULL, 0);
}
