/* Managed, pinned and host memory. The tests of the peer's managed memory are written anew from their descriptions. */
#include "facade/open/life.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

enum { INTS = 1024 };

static void open_places(rig_t *rig, const char *strategy, const char *const *set, size_t count, uint64_t capacity) {
    strata_sim_options_t options = {.capacity = capacity, .contents = true};
    rig_open_on(rig, rig_strategy(strategy, set, count), &options, 0);
    rig->borrowed_strategy = false;
}

static strata_domain_t *domain_of(rig_t *rig, strata_place_t place) {
    strata_domain_t *domain = NULL;
    EXPECT_OK(strata_facade_domain(strata_facade_of(rig->s), place, &domain));
    return domain;
}

/* A figure of the source of a group, by its row. */
static uint64_t group_figure(const strata_group_t *group, const char *name) {
    const strata_layer_t *source = group->shared[group->plan->count];
    for (const strata_stat_row_t *row = source->type->stats; row->name; row++)
        if (strcmp(row->name, name) == 0) return *(const uint64_t *)(const void *)((const char *)source + row->offset);
    FAIL_TEST("there is no figure %s", name);
    return 0;
}

static uint64_t source_figure(rig_t *rig, strata_place_t place, const char *name) {
    return group_figure(&domain_of(rig, place)->ordinary, name);
}

static uint32_t *ints_of(rig_t *rig, strata_block_t block) {
    return strata_device_host_view(rig->devices[0], (uintptr_t)block.ptr, INTS * sizeof(uint32_t));
}

/* ---- managed ---- */

/* The peer's H2D: what the host wrote is there for the device, and still there after its work and a prefetch. */
TEST_BY(places_managed, host_to_device, open_places(rig, "strata", NULL, 0, 0)) {
    strata_block_t a = rig_allocate_in(rig, strata_managed(0), NULL, INTS * sizeof(uint32_t));
    uint32_t *ints = ints_of(rig, a);
    ASSERT_TRUE(ints);
    for (uint32_t i = 0; i < INTS; i++) ints[i] = i;
    EXPECT_OK(strata_device_prefetch(rig->devices[0], (uintptr_t)a.ptr, INTS * sizeof(uint32_t), false, NULL));
    rig_work(rig, NULL, 1000, a.ref);
    EXPECT_OK(strata_device_synchronise(rig->devices[0]));
    for (uint32_t i = 0; i < INTS; i++) EXPECT_EQ(ints_of(rig, a)[i], i);
}

/* The peer's D2H: the host sees what the device wrote, once it has waited. */
TEST_BY(places_managed, device_to_host, open_places(rig, "strata", NULL, 0, 0)) {
    strata_block_t a = rig_allocate_in(rig, strata_managed(0), NULL, INTS * sizeof(uint32_t));
    EXPECT_OK(strata_device_fill(rig->devices[0], (uintptr_t)a.ptr, 7, INTS * sizeof(uint32_t), NULL));
    EXPECT_OK(strata_device_synchronise(rig->devices[0]));
    for (uint32_t i = 0; i < INTS; i++) EXPECT_EQ(ints_of(rig, a)[i], 0x07070707);
}

TEST_BY(places_managed, the_size_of_the_device_is_asked_for_once, open_places(rig, "strata", NULL, 0, 0)) {
    (void)rig_allocate_in(rig, strata_managed(0), NULL, 40 * MIB);
    uint64_t asked = rig_calls(rig, STRATA_CALL_mem_info);
    (void)rig_allocate_in(rig, strata_managed(0), NULL, 40 * MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_mem_info), asked);
}

/* The peer's Oversubscribe: twice the device's memory and one int more is served, in use, and counted. */
TEST_BY(places_managed, oversubscribe, open_places(rig, "strata", NULL, 0, 16 * MIB)) {
    uint64_t free_bytes, total;
    ASSERT_OK(strata_device_mem_info(rig->devices[0], &free_bytes, &total));
    (void)rig_allocate_in(rig, strata_managed(0), NULL, MIB);
    EXPECT_EQ(source_figure(rig, strata_managed(0), "oversubscribed"), 0);
    strata_block_t a = rig_allocate_in(rig, strata_managed(0), NULL, 2 * total + sizeof(uint32_t));
    uint64_t beyond = source_figure(rig, strata_managed(0), "oversubscribed");
    EXPECT_GE(beyond, total + sizeof(uint32_t));
    strata_block_t more = rig_allocate_in(rig, strata_managed(0), NULL, total);
    EXPECT_GE(source_figure(rig, strata_managed(0), "oversubscribed"), beyond + total);
    EXPECT_OK(strata_free(rig->s, more.ref));
    /* At most. */
    EXPECT_GE(source_figure(rig, strata_managed(0), "oversubscribed"), beyond + total);
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    EXPECT_GE(figures.oversubscribed_bytes, source_figure(rig, strata_managed(0), "oversubscribed"));
    EXPECT_OK(strata_device_fill(rig->devices[0], (uintptr_t)a.ptr + 2 * total, 5, sizeof(uint32_t), NULL));
    EXPECT_OK(strata_device_synchronise(rig->devices[0]));
    const uint8_t *last = strata_device_host_view(rig->devices[0], (uintptr_t)a.ptr + 2 * total, sizeof(uint32_t));
    EXPECT_TRUE(last && last[0] == 5 && last[3] == 5);
}

/* The peer's OOM: 2^60 bytes. A request of more than 2^48 bytes is refused before any layer sees it, one of less by the device;
 * either way nothing has changed. */
TEST_BY(places_managed, out_of_memory, open_places(rig, "strata", NULL, 0, 0)) {
    strata_block_t a = {.ref = 5};
    (void)rig_allocate_in(rig, strata_managed(0), NULL, 1000);
    EXPECT_NE(strata_allocate(rig->s, strata_managed(0), NULL, (size_t)1 << 60, &a), STRATA_OK);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, strata_managed(0), NULL, (size_t)1 << 48, &a));
    EXPECT_EQ(a.ref, 5);
}

/* Each option is one call for each piece that the device gives. */
TEST(places_managed, prefetch_and_advice) {
    static const char *const set[] = {"managed.system.prefetch=device", "managed.system.preferred=device",
                                      "managed.system.accessed_by=host", "managed.system.read_mostly=true"};
    for (size_t count = 0; count <= 4; count++) {
        RIG_BY(rig, open_places(&rig, "system", set, count, 0));
        (void)rig_allocate_in(&rig, strata_managed(0), NULL, 1000);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_prefetch), count > 0 ? 1 : 0);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_advise), count > 1 ? count - 1 : 0);
        EXPECT_EQ(source_figure(&rig, strata_managed(0), "refused_hints"), 0);
        EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_prefetch, 1, false, STRATA_E_DEVICE));
        (void)rig_allocate_in(&rig, strata_managed(0), NULL, 1000);
        EXPECT_EQ(source_figure(&rig, strata_managed(0), "refused_hints"), count > 0 ? 1 : 0);
        strata_sim_clear_faults(rig.devices[0]);
    }
}

/* It would be a part of the program's graph, and be done at each launch. */
TEST_BY(places_managed, nothing_is_prefetched_on_a_captured_stream,
        open_places(rig, "strata", (const char *const[]){"managed.system.prefetch=device"}, 1, 0)) {
    strata_stream_t stream = rig_stream(rig);
    uint64_t pool = 0;
    EXPECT_OK(strata_graph_pool_begin(rig->s, strata_managed(0), stream, &pool));
    rig_begin_capture(rig, stream);
    strata_block_t block = rig_allocate_in(rig, strata_managed(0), stream, 1000);
    strata_group_t *group = strata_domain_group(domain_of(rig, strata_managed(0)), pool, "graph");
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_prefetch), 0);
    EXPECT_EQ(group_figure(group, "refused_hints"), 1);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_end_capture(rig, stream);
    EXPECT_OK(strata_graph_pool_end(rig->s, strata_managed(0), pool));
    EXPECT_OK(strata_graph_pool_remove(rig->s, strata_managed(0), pool));
}

/* ---- pinned and host ---- */

/* The cap holds to the byte, counts what caches keep, and is out of memory as a device is: the ladder empties caches first. */
TEST(places_pinned, the_cap_holds) {
    static const char *const caps[] = {"pinned.system.cap=20MiB"};
    static const char *const strategies[] = {"strata", "system"};
    strata_place_t pinned = strata_pinned();
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, open_places(&rig, strategies[i], caps, 1, 0));
        strata_block_t a = rig_allocate_in(&rig, pinned, NULL, 8 * MIB), b = {.ref = 5};
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, pinned, NULL, 12 * MIB + 1, &b));
        uint64_t refused = source_figure(&rig, pinned, "refused_by_cap");
        EXPECT_GE(refused, 1);
        /* Without the ladder one request is refused once. */
        strata_allocate_options_t once = {.struct_size = sizeof once, .size = 12 * MIB + 1, .flags = STRATA_NO_RETRY};
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, pinned, NULL, &once, &b));
        EXPECT_EQ(source_figure(&rig, pinned, "refused_by_cap"), refused + 1);
        EXPECT_EQ(b.ref, 5);
        b = rig_allocate_in(&rig, pinned, NULL, 12 * MIB);
        EXPECT_EQ(domain_of(&rig, pinned)->peak_reserved_bytes, 20 * MIB);
        RIG_FREE(&rig, a, b);
        a = rig_allocate_in(&rig, pinned, NULL, 20 * MIB);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_LE(domain_of(&rig, pinned)->peak_reserved_bytes, 20 * MIB);
    }
}

/* A refusal of the device gives back what it had claimed of the cap. */
TEST_BY(places_pinned, a_failed_request_takes_nothing_of_the_cap,
        open_places(rig, "system", (const char *const[]){"pinned.system.cap=1MiB"}, 1, 0)) {
    strata_place_t pinned = strata_pinned();
    strata_block_t a = {0};
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_host_alloc, 1, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig->s, pinned, NULL, MIB, &a));
    }
    strata_sim_clear_faults(rig->devices[0]);
    a = rig_allocate_in(rig, pinned, NULL, MIB);
}

TEST_BY(places_host, huge_pages, open_places(rig, "system", (const char *const[]){"host.system.huge_pages=true"}, 1, 0)) {
    strata_place_t host = strata_host();
    strata_block_t a = rig_allocate_in(rig, host, NULL, 5 * MIB), b = rig_allocate_in(rig, host, NULL, 100);
    EXPECT_EQ((uintptr_t)a.ptr % (2 * MIB), 0);
    /* From exactly one on, wherever the last one ended. */
    for (int i = 0; i < 8; i++) {
        strata_block_t odd = rig_allocate_in(rig, host, NULL, MIB + 4096), exact = rig_allocate_in(rig, host, NULL, 2 * MIB);
        EXPECT_EQ((uintptr_t)exact.ptr % (2 * MIB), 0);
        RIG_FREE(rig, exact, odd);
    }
    EXPECT_EQ((uintptr_t)b.ptr % 64, 0);
    memset(a.ptr, 1, a.size);
}

/* ---- nodes of the host ---- */

/* The simulated host has the nodes 0 and 1, of which 0 is near to gpu:0. */
TEST(places_node, memory_comes_from_the_node_that_is_named) {
    static const char *const sets[][2] = {{"pinned.system.node=1", "host.system.node=1"},
                                          {"pinned.system.node=0", "host.system.node=0"},
                                          {"pinned.system.node=near", "host.system.node=near"},
                                          {"pinned.system.node=any", "host.system.node=any"}};
    static const int wanted[] = {1, 0, 0, -1};
    for (int i = 0; i < 4; i++) {
        RIG_BY(rig, open_places(&rig, "system", sets[i], 2, 0));
        strata_block_t pinned = rig_allocate_in(&rig, strata_pinned(), NULL, 3 * MIB),
                       host = rig_allocate_in(&rig, strata_host(), NULL, 100);
        EXPECT_EQ(strata_sim_host_node(rig.devices[0], (uintptr_t)pinned.ptr), wanted[i]);
        EXPECT_EQ(strata_sim_host_node(rig.devices[0], (uintptr_t)host.ptr), wanted[i]);
    }
}

/* The place tells who asks for it; the others are served. */
TEST(places_node, one_that_is_not_there_is_told) {
    rig_t rig;
    strata_block_t none;
    open_places(&rig, "strata", (const char *const[]){"pinned.system.node=7"}, 1, 0);
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_allocate(rig.s, strata_pinned(), NULL, 100, &none),
                "system.node: 7: this process may use only the host's NUMA nodes 0 to 1");
    strata_block_t b = rig_allocate_in(&rig, strata_host(), NULL, 100);
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .preset = "strata",
                                     .devices = "sim",
                                     .set_count = 2,
                                     .set = (const char *const[]){"pinned.system.node=near", "pinned.system.write_combined=true"},
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_open(&options, &rig.s),
                "the driver has no write-combined memory of a NUMA node; write any");
}

/* A wish costs nothing where no node can be chosen; a name is an error. */
TEST(places_node, where_the_host_lets_nobody_choose) {
    static const char *const sets[] = {"pinned.system.node=near", "pinned.system.node=0"};
    for (int i = 0; i < 2; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy("strata", &sets[i], 1);
        RIG_BY(rig, rig_open_devices(&rig, strategy, &(strata_sim_options_t){0}));
        rig.devices[0]->capabilities.host_nodes = 0;
        EXPECT_OK(strata_facade_open_on(strategy, rig.devices, rig.count, 0, &rig.s));
        strata_block_t b = {0};
        EXPECT_STATUS(i ? STRATA_E_UNSUPPORTED : STRATA_OK, strata_allocate(rig.s, strata_pinned(), NULL, 100, &b));
        if (i) EXPECT_CONTAINS(strata_last_error()->text, "system.node: 0: this process cannot choose a NUMA node; write any");
        else EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(places, an_option_of_another_place_is_refused) {
    static const char *const wrong[][2] = {
        {"gpu.system.prefetch=device", "managed memory"},     {"gpu.system.cap=1GiB", "pinned and host memory"},
        {"host.system.write_combined=true", "pinned memory"}, {"pinned.system.huge_pages=true", "host memory"},
        {"gpu.system.node=near", "pinned and host memory"},   {"managed.system.mapped=false", "pinned memory"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strata_open_options_t options = {.struct_size = sizeof options,
                                         .preset = "strata-malloc",
                                         .devices = "sim",
                                         .set = wrong[i],
                                         .set_count = 1,
                                         .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
        strata_t s = 0;
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_open(&options, &s), wrong[i][1]);
    }
}

TEST_BY(places_managed, a_device_without_it_is_told,
        rig_open_devices(rig, rig_strategy("strata", NULL, 0), &(strata_sim_options_t){.devices = 1})) {
    rig->borrowed_strategy = false;
    rig->devices[0]->capabilities.managed = false;
    ASSERT_OK(strata_facade_open_on(rig->strategy, rig->devices, 1, 0, &rig->s));
    strata_block_t block = {.ref = 7};
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_allocate(rig->s, strata_managed(0), NULL, 1000, &block), "has no managed memory");
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, NULL, 1ull << 40, &block),
                ", reserved here 0, used by others 0.48GiB\n");
    EXPECT_EQ(block.ref, 7);
    (void)rig_allocate(rig, NULL, 1000);
}
