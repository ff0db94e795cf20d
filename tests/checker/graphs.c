/* What a launch finds where its graph was captured: memory that is still lent (rule 9), and owners whom it does not overwrite (rule
 * 10). */
#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])

static void begin(watched_t *w) { EXPECT_OK(strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED)); }

static strata_handle_t end(watched_t *w) {
    strata_handle_t graph = NULL;
    EXPECT_OK(strata_device_capture_end(w->device, A(w), &graph));
    return graph;
}

static void touch(watched_t *w, strata_address_t address, uint64_t size, bool write) {
    strata_access_t access = {address, size, write};
    EXPECT_OK(strata_device_work(w->device, A(w), 100 * US, &access, 1));
}

static strata_handle_t graph_at(watched_t *w, strata_address_t address, uint64_t size) {
    begin(w);
    touch(w, address, size, true);
    return end(w);
}

static void launch(watched_t *w, strata_handle_t graph, strata_handle_t stream) {
    EXPECT_OK(strata_device_graph_launch(w->device, graph, stream));
}

/* ---- rule 9 ---- */

typedef enum way { FREED, UNMAPPED, FREED_IN_ORDER, FREED_FROM_POOL, FREED_ON_THE_HOST, WAYS } way_t;

static strata_address_t get_some(watched_t *w, way_t way) {
    strata_address_t address = 0;
    if (way == FREED) return get(w->device, 2 * MIB);
    if (way == UNMAPPED) return map_new(w->device, 2 * MIB).address;
    if (way == FREED_IN_ORDER || way == FREED_FROM_POOL)
        EXPECT_OK(strata_device_malloc_async(w->device, NULL, 2 * MIB, A(w), &address));
    else EXPECT_OK(strata_device_host_alloc(w->device, STRATA_MEMORY_PINNED, 2 * MIB, 256, 0, &address));
    return address;
}

static void put_back(watched_t *w, way_t way, strata_address_t address) {
    EXPECT_OK(strata_device_synchronise(w->device));
    if (way == FREED || way == FREED_FROM_POOL) put(w->device, address);
    if (way == UNMAPPED) EXPECT_OK(strata_device_unmap(w->device, address, 2 * MIB));
    if (way == FREED_IN_ORDER) EXPECT_OK(strata_device_free_async(w->device, address, A(w)));
    if (way == FREED_ON_THE_HOST) EXPECT_OK(strata_device_host_free(w->device, STRATA_MEMORY_PINNED, address));
}

TEST(checker_graphs, memory_goes_back_under_a_graph) {
    for (way_t way = FREED; way < WAYS; way++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        strata_address_t address = get_some(&w, way);
        strata_handle_t graph = graph_at(&w, address, MIB);
        launch(&w, graph, A(&w));
        put_back(&w, way, address);
        EXPECT_HAZARDS(&w, GIVEN_BACK, 0); /* a graph that is never launched again hurts nobody */
        launch(&w, graph, A(&w));
        launch(&w, graph, A(&w));
        EXPECT_HAZARDS(&w, GIVEN_BACK, 1);
    }
}

/* That the device gives the same address again does not bring the memory back. */
TEST_WATCHED(checker_graphs, memory_got_again_at_the_address_is_other_memory) {
    mapped_t m = map_new(w->device, 2 * MIB);
    strata_handle_t of_mapped = graph_at(w, m.address, MIB);
    EXPECT_OK(strata_device_unmap(w->device, m.address, 2 * MIB));
    EXPECT_OK(strata_device_map(w->device, m.address, 2 * MIB, m.physical));
    launch(w, of_mapped, A(w));
    EXPECT_HAZARDS(w, GIVEN_BACK, 1);

    strata_address_t first = 0, second = 0;
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &first));
    strata_handle_t of_pool = graph_at(w, first, MIB);
    EXPECT_OK(strata_device_free_async(w->device, first, A(w)));
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &second));
    ASSERT_EQ(first, second);
    launch(w, of_pool, A(w));
    EXPECT_HAZARDS(w, GIVEN_BACK, 2);
    launch(w, graph_at(w, second, MIB), A(w));
    EXPECT_HAZARDS(w, GIVEN_BACK, 2);
}

/* A block is not what makes it other memory: that is no matter of rule 10. */
TEST(checker_graphs, memory_that_came_back_is_asked_by_rule_9_alone) {
    OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(9)));
    mapped_t m = map_new(w.device, 2 * MIB);
    strata_handle_t graph = graph_at(&w, m.address, MIB);
    EXPECT_OK(strata_device_unmap(w.device, m.address, 2 * MIB));
    EXPECT_OK(strata_device_map(w.device, m.address, 2 * MIB, m.physical));
    launch(&w, graph, A(&w));
    EXPECT_HAZARDS(&w, GIVEN_BACK, 0);
}

/* What a closed device still had lent says nothing of what is at its addresses later. */
TEST(checker_graphs, a_device_that_is_opened_again_lends_anew) {
    const strata_sim_options_t options = {.devices = 2};
    OPENED(watched_t, w, watched_close, watched_open_on(&w, STRATA_CHECKER_ALL, &options));
    strata_address_t before = get(w.sim.other, 64 * MIB);
    strata_device_close(w.sim.other);
    ASSERT_OK(strata_sim_open(w.sim.world, 1, &w.sim.other));
    strata_device_t *device = w.device = w.sim.other;
    w.streams[0] = stream_new(device, STRATA_STREAM_NON_BLOCKING);
    strata_address_t first = get(device, 2 * MIB), second = get(device, 2 * MIB);
    EXPECT_EQ(before, first);
    strata_handle_t graph = graph_at(&w, first, MIB);
    put(device, second);
    launch(&w, graph, A(&w));
    EXPECT_HAZARDS(&w, GIVEN_BACK, 0);
    put(device, first);
    launch(&w, graph, A(&w));
    EXPECT_HAZARDS(&w, GIVEN_BACK, 1);
}

/* Of three mappings a graph uses half of the first and the second; one of the three is unmapped. */
static void unmap_one(uint64_t which, bool of_a_block) {
    OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
    strata_address_t address = 0;
    strata_physical_t handles[3];
    EXPECT_OK(strata_device_reserve(w.device, 6 * MIB, 0, &address));
    for (uint64_t i = 0; i < 3; i++) {
        EXPECT_OK(strata_device_create(w.device, 2 * MIB, false, &handles[i]));
        EXPECT_OK(strata_device_map(w.device, address + i * 2 * MIB, 2 * MIB, handles[i]));
    }
    EXPECT_OK(strata_device_set_access(w.device, address, 6 * MIB, NULL, 0));
    strata_checker_block_t block = {.name = 1, .device = w.device, .stream = A(&w), .address = address, .size = 6 * MIB};
    if (of_a_block) strata_checker_allocated(w.checker, &block);
    strata_handle_t graph = graph_at(&w, address + MIB, 3 * MIB);
    if (of_a_block) strata_checker_freed(w.checker, 1);
    EXPECT_OK(strata_device_unmap(w.device, address + which * 2 * MIB, 2 * MIB));
    launch(&w, graph, A(&w));
    EXPECT_EQ(strata_checker_hazards_of(w.checker, STRATA_HAZARD_GIVEN_BACK), which == 2 ? 0 : 1);
}

TEST(checker_graphs, every_part_of_a_range_counts_and_nothing_beside_it) {
    for (uint64_t which = 0; which < 3; which++) {
        unmap_one(which, false);
        unmap_one(which, true); /* one owner, three mappings */
    }
}

/* Memory that went back without a block, or with one that was free: both are told as the block's, or the memory's, that was
 * captured. */
TEST_WATCHED(checker_graphs, a_report_tells_who_gave_the_memory_back_and_when) {
    strata_checker_name(w->checker, w->device, A(w), "kernels");
    mapped_t m = map_new(w->device, 2 * MIB);
    strata_checker_block_t block = {.name = 1, .device = w->device, .stream = A(w), .address = m.address, .size = MIB};
    strata_checker_line(w->checker, 11);
    strata_checker_allocated(w->checker, &block);
    strata_handle_t graph = graph_at(w, m.address + 4096, 512);
    strata_checker_line(w->checker, 12);
    strata_checker_freed(w->checker, 1);
    strata_checker_line(w->checker, 13);
    EXPECT_OK(strata_device_unmap(w->device, m.address, 2 * MIB));
    launch(w, graph, A(w));
    EXPECT_HAZARDS(w, GIVEN_BACK, 1);
    const char *report = strata_checker_report(w->checker, 0);
    ASSERT_TRUE(report);
    static const char *const parts[] = {"after its memory went back",
                                        "(rule 9)",
                                        "graph 1 touches 0x",
                                        "512 bytes",
                                        "1048576 bytes, block",
                                        "served to kernels (thread 1)",
                                        "captured by graph 1 on kernels",
                                        "line 12",
                                        "freed on kernels",
                                        "line 13",
                                        "launched on kernels (thread 1)  <- here",
                                        "given back to the device by thread 1  <- this"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) EXPECT_CONTAINS(report, parts[i]);
    EXPECT_FALSE(strstr(report, "between the two"));
}

/* ---- rule 10 ---- */

static void serve_for(watched_t *w, uint64_t name, uint64_t mib, uint64_t graph_pool) {
    strata_checker_block_t block = {
        .name = name, .device = w->device, .stream = A(w), .address = w->chunk + mib * MIB, .size = MIB, .graph_pool = graph_pool};
    strata_checker_allocated(w->checker, &block);
}

/* A capture whose requests go to a pool (0: to none), with a block of that pool at the chunk's begin. */
static strata_handle_t graph_of_pool(watched_t *w, uint64_t pool, bool write) {
    uint64_t id = 0;
    strata_capture_status_t status;
    begin(w);
    EXPECT_OK(strata_device_capture_status(w->device, A(w), &status, &id));
    if (pool) strata_checker_capture_pool(w->checker, id, pool);
    serve_for(w, 1, 0, pool);
    touch(w, w->chunk, MIB, write);
    return end(w);
}

TEST_WATCHED_WAYS(checker_graphs, a_block_served_since_is_overwritten_or_read_by_a_stranger, write, 2) {
    strata_handle_t graph = graph_of_pool(w, 0, write);
    launch(w, graph, A(w));
    strata_checker_freed(w->checker, 1);
    serve(w, 2, 1, A(w)); /* beside it */
    EXPECT_HAZARDS(w, SERVED_SINCE, 0);
    serve(w, 3, 0, A(w));
    work_at(w, 0, A(w), true);
    launch(w, graph, A(w));
    launch(w, graph, A(w));
    EXPECT_HAZARDS(w, SERVED_SINCE, 1);
    strata_checker_freed(w->checker, 3);
    launch(w, graph, A(w));
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_USE_AFTER_FREE), 1);
}

/* What was there at the capture may be touched as long as it lives, be it of a pool or of none. */
TEST_WATCHED(checker_graphs, blocks_that_live_since_the_capture_are_the_graphs_to_use) {
    serve_for(w, 1, 0, 0);
    serve_for(w, 2, 1, 7);
    strata_handle_t graph = graph_at(w, w->chunk, 3 * MIB);
    for (int i = 0; i < 2; i++) launch(w, graph, A(w));
    EXPECT_HAZARDS(w, SERVED_SINCE, 0);
}

/* A pool serves one address to several owners: its graphs may touch what it holds, live or free, and no other pool's. */
TEST(checker_graphs, a_pool_is_its_graphs_own) {
    enum { NONE, OWN = 7, OTHER = 8 };
    static const struct {
        uint64_t graph, block, hazards;
    } rows[] = {{OWN, OWN, 0}, {OWN, OTHER, 1}, {OWN, NONE, 1}, {NONE, OWN, 1}, {NONE, NONE, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        strata_handle_t graph = graph_of_pool(&w, rows[i].graph, true);
        strata_checker_freed(w.checker, 1);
        serve_for(&w, 2, 0, rows[i].block);
        launch(&w, graph, A(&w));
        EXPECT_HAZARDS(&w, SERVED_SINCE, rows[i].hazards);
    }
}

/* A free in the pool ends a name, not the graph's use; outside any pool it ends the use. */
TEST(checker_graphs, what_is_free_in_a_graphs_pool_is_still_the_graphs) {
    for (uint64_t pool = 0; pool < 2; pool++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        strata_handle_t graph = graph_of_pool(&w, pool, true);
        strata_checker_freed(w.checker, 1);
        launch(&w, graph, A(&w));
        EXPECT_HAZARDS(&w, USE_AFTER_FREE, pool ? 0 : 1);
        /* A fill by the allocator changes nothing of that. */
        EXPECT_OK(strata_device_fill(w.device, w.chunk, 0, 4096, A(&w)));
        launch(&w, graph, A(&w));
        EXPECT_EQ(strata_checker_hazards(w.checker), pool ? 0 : 1 + 1);
    }
}

/* ... and a use by it: who is served that memory comes after the launch, and two launches must not overlap there. */
TEST(checker_graphs, a_launch_uses_free_memory_of_its_pool) {
    for (int ordered = 0; ordered < 2; ordered++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        strata_handle_t graph = graph_of_pool(&w, 7, true);
        strata_checker_freed(w.checker, 1);
        launch(&w, graph, A(&w));
        if (ordered) order(&w, B(&w), A(&w));
        serve_for(&w, 2, 0, 7);
        work_at(&w, 0, B(&w), true);
        EXPECT_HAZARDS(&w, NEW_OWNER, ordered ? 0 : 1);
    }
    for (int ordered = 0; ordered < 2; ordered++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        strata_handle_t one = graph_of_pool(&w, 7, true);
        strata_checker_freed(w.checker, 1);
        strata_handle_t two = graph_of_pool(&w, 7, true);
        strata_checker_freed(w.checker, 1);
        launch(&w, one, A(&w));
        if (ordered) order(&w, B(&w), A(&w));
        launch(&w, two, B(&w));
        EXPECT_HAZARDS(&w, RACE, ordered ? 0 : 1);
    }
}

TEST_WATCHED(checker_graphs, a_report_tells_both_owners) {
    strata_checker_name(w->checker, w->device, A(w), "kernels");
    strata_checker_name(w->checker, w->device, B(w), "launches");
    strata_handle_t graph = graph_of_pool(w, 7, true);
    strata_checker_freed(w->checker, 1);
    serve_for(w, 2, 0, 8);
    order(w, B(w), A(w));
    launch(w, graph, B(w));
    EXPECT_HAZARDS(w, SERVED_SINCE, 1);
    const char *report = strata_checker_report(w->checker, 0);
    ASSERT_TRUE(report);
    static const char *const parts[] = {"over a live block that was served after its capture",
                                        "(rule 10)",
                                        "graph 1 touches 0x",
                                        "by launches:",
                                        "used by graph 1, launched on launches (thread 1)  <- here",
                                        "the other side, block",
                                        "captured by graph 1 on kernels (thread 1)  <- this",
                                        "freed on kernels"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) EXPECT_CONTAINS(report, parts[i]);
    EXPECT_FALSE(strstr(report, "between the two"));
}

/* Each owner in a range has its own history. */
TEST_WATCHED(checker_graphs, a_report_tells_the_owner_of_the_very_part) {
    serve(w, 1, 0, A(w));
    serve(w, 2, 1, B(w));
    strata_checker_name(w->checker, w->device, B(w), "copies");
    strata_handle_t graph = graph_at(w, w->chunk, 2 * MIB);
    strata_checker_freed(w->checker, 2);
    serve(w, 3, 1, A(w));
    launch(w, graph, A(w));
    EXPECT_HAZARDS(w, SERVED_SINCE, 1);
    EXPECT_CONTAINS(strata_checker_report(w->checker, 0), "1048576 bytes, of");
    EXPECT_CONTAINS(strata_checker_report(w->checker, 0), "freed on copies");
}

/* ---- memory of graphs ---- */

static strata_address_t allocate_in_the_capture(watched_t *w, uint64_t name) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc_async(w->device, NULL, MIB, A(w), &address));
    strata_checker_block_t block = {.name = name, .device = w->device, .stream = A(w), .address = address, .size = MIB};
    strata_checker_allocated(w->checker, &block);
    touch(w, address, MIB, true);
    return address;
}

/* What a graph allocates is its own at each launch, however the block of the last one ended. */
TEST_WATCHED_WAYS(checker_graphs, a_graph_allocates_its_memory_at_each_launch, way, 3) {
    begin(w);
    strata_address_t address = allocate_in_the_capture(w, 1);
    if (way == 0) strata_checker_freed(w->checker, 1);
    if (way == 0) EXPECT_OK(strata_device_free_async(w->device, address, A(w)));
    strata_handle_t graph = end(w);
    launch(w, graph, A(w));
    if (way != 0) strata_checker_freed(w->checker, 1);
    if (way == 1) EXPECT_OK(strata_device_free_async(w->device, address, A(w)));
    if (way == 2) put(w->device, address);
    launch(w, graph, A(w));
    EXPECT_HAZARDS(w, GIVEN_BACK, 0);
}

/* To others it is memory like any: gone with its graph, or with its free where it outlived the graph. */
TEST(checker_graphs, memory_of_another_graph_goes_with_it_or_outlives_it) {
    for (int outlives = 0; outlives < 2; outlives++) {
        OPENED(watched_t, w, watched_close, watched_open(&w, STRATA_CHECKER_ALL));
        begin(&w);
        strata_address_t address = allocate_in_the_capture(&w, 1);
        strata_handle_t owner = end(&w), user = graph_at(&w, address, MIB);
        launch(&w, owner, A(&w));
        launch(&w, user, A(&w));
        if (!outlives) strata_checker_freed(w.checker, 1);
        if (!outlives) EXPECT_OK(strata_device_free_async(w.device, address, A(&w)));
        launch(&w, user, A(&w));
        EXPECT_HAZARDS(&w, USE_AFTER_FREE, outlives ? 0 : 1);
        EXPECT_OK(strata_device_graph_destroy(w.device, owner));
        launch(&w, user, A(&w));
        EXPECT_EQ(strata_checker_hazards_of(w.checker, STRATA_HAZARD_GIVEN_BACK), outlives ? 0 : 1);
        if (!outlives) continue;
        strata_checker_freed(w.checker, 1);
        EXPECT_OK(strata_device_free_async(w.device, address, A(&w)));
        launch(&w, user, A(&w));
        EXPECT_HAZARDS(&w, GIVEN_BACK, 1);
    }
}

/* ... or with the launch of a graph that captured its free. */
TEST_WATCHED(checker_graphs, the_launch_of_another_graph_gives_back_what_outlived_its_own) {
    begin(w);
    strata_address_t address = allocate_in_the_capture(w, 1);
    strata_handle_t owner = end(w), user = graph_at(w, address, MIB);
    begin(w);
    touch(w, address, MIB, true);
    EXPECT_OK(strata_device_free_async(w->device, address, A(w)));
    strata_handle_t freeing = end(w);
    launch(w, owner, A(w));
    EXPECT_OK(strata_device_graph_destroy(w->device, owner));
    launch(w, user, A(w));
    EXPECT_HAZARDS(w, GIVEN_BACK, 0);
    launch(w, freeing, A(w));
    launch(w, user, A(w));
    EXPECT_EQ(strata_checker_hazards_of(w->checker, STRATA_HAZARD_GIVEN_BACK), 1);
}

/* A graph may outlive the checker, and what the checker never knew is not judged. */
TEST(checker_graphs, what_the_checker_did_not_see_it_does_not_judge) {
    watched_t w = {.sim = fixture_open((strata_sim_options_t){0})};
    w.device = w.sim.device;
    w.streams[0] = stream_new(w.device, STRATA_STREAM_NON_BLOCKING);
    strata_address_t early = get(w.device, MIB);
    ASSERT_OK(strata_checker_begin(w.sim.world, STRATA_CHECKER_ALL, &w.checker));
    strata_handle_t graph = graph_at(&w, early, 2 * MIB);
    put(w.device, early);
    launch(&w, graph, A(&w));
    EXPECT_HAZARDS(&w, GIVEN_BACK, 0);
    strata_address_t more = get(w.device, MIB), known = get(w.device, MIB);
    strata_handle_t other = graph_at(&w, more + MIB, known - more);
    put(w.device, known);
    launch(&w, other, A(&w));
    EXPECT_HAZARDS(&w, GIVEN_BACK, 1);
    char place[80];
    snprintf(place, sizeof place, "graph 2 touches 0x%llx, 1048576 bytes", (unsigned long long)known);
    EXPECT_CONTAINS(strata_checker_report(w.checker, 0), place);
    strata_checker_end(w.checker);
    launch(&w, other, A(&w));
    EXPECT_OK(strata_device_graph_destroy(w.device, graph));
    fixture_close(&w.sim);
}
