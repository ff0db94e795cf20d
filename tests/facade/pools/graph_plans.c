/* Which plan the private pools of captured graphs are built from. */
#include "facade/registry/plans.h"

#include "tests/facade/support/fixture.h"

/* The first layer that the strategy names. */
static const char *top_of(strata_t s, strata_place_t place) {
    const strata_plan_t *plan = strata_plans_of_graphs(strata_facade_of(s), place);
    return plan->nodes[plan->nodes[1].number ? 1 : 2].name;
}

static bool is_the_places(strata_t s, strata_place_t place) {
    const strata_facade_t *facade = strata_facade_of(s);
    return strata_plans_of_graphs(facade, place) == strata_plans_of(facade, place);
}

TEST_RIG(facade_graph_plans, is_that_of_graph_else_the_places_own, 0,
         "stack: [stream_safe, auto_growth, system]\n"
         "pools: {a: , b: [system]}\n"
         "streams: {\"copy*\": [limit, system]}\n"
         "graph: {stack: [buffered, system], places: {managed: [aligned, auto_growth, system]}}\n") {
    EXPECT_STREQ(top_of(rig->s, strata_gpu(0)), "buffered");
    EXPECT_STREQ(top_of(rig->s, strata_managed(0)), "aligned");
    EXPECT_EQ(strata_plans_of_graphs(strata_facade_of(rig->s), strata_managed(0))->place, STRATA_PLACE_MANAGED);
    EXPECT_TRUE(is_the_places(rig->s, strata_pinned()));
}

TEST_RIG(facade_graph_plans, without_a_word_are_the_places, 0,
         "stack: [stream_safe, auto_growth, system]\ndevices: {use: sim, gpu:0: {stack: [buffered, system]}}\n") {
    EXPECT_STREQ(top_of(rig->s, strata_gpu(0)), "buffered");
    EXPECT_TRUE(is_the_places(rig->s, strata_gpu(0)));
    EXPECT_TRUE(is_the_places(rig->s, strata_managed(0)));
}

/* A place that `graph:` does not list has what the device has there. */
TEST_RIG(facade_graph_plans, of_a_device_is_the_devices_unless_graph_has_it, 0,
         "stack: [auto_growth, system]\ndevices: {use: sim, gpu:0: {stack: [buffered, system]}}\n"
         "graph: {places: {managed: [buffered, system]}}\n") {
    EXPECT_STREQ(top_of(rig->s, strata_gpu(0)), "buffered");
    EXPECT_TRUE(is_the_places(rig->s, strata_gpu(0)));
    EXPECT_FALSE(is_the_places(rig->s, strata_managed(0)));
}

/* The stack of the place without virtual memory serves graphs too, but replaces no stack that needs none. */
TEST_BY(facade_graph_plans, is_the_places_on_a_device_without_virtual_memory, rig_open_without_virtual_memory(rig, "strata")) {
    uint64_t pool = 0;
    strata_stream_t stream = rig_stream(rig);
    EXPECT_TRUE(is_the_places(rig->s, rig->gpu));
    EXPECT_OK(strata_graph_pool_begin(rig->s, rig->gpu, stream, &pool));
    strata_block_t block = rig_allocate(rig, stream, MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_graph_pool_end(rig->s, rig->gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(rig->s, rig->gpu, pool));
}
TEST_BY(facade_graph_plans, stays_if_it_needs_no_virtual_memory,
        rig_open_without_virtual_memory(rig, "extends: strata\ngraph: [buffered, system]\n")) {
    EXPECT_STREQ(top_of(rig->s, rig->gpu), "buffered");
}

TEST_RIG(facade_graph_plans, the_report_names_an_option_by_its_path, 64 * MIB,
         "stack: [auto_growth, system]\ngraph: [buffered, limit: {bytes: 16MiB}, system]\n") {
    strata_stream_t stream;
    uint64_t pool = 0;
    strata_block_t none;
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &stream));
    EXPECT_OK(strata_graph_pool_begin(rig->s, rig->gpu, stream, &pool));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, stream, 20 * MIB, &none), "; graph.limit.bytes allows 16MiB");
    EXPECT_CONTAINS(strata_last_error()->text, "try: raise graph.limit.bytes to 20MiB or more (now 16MiB)");
    EXPECT_OK(strata_graph_pool_end(rig->s, rig->gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(rig->s, rig->gpu, pool));
}
