/* Which plan the private pools of captured graphs are built from. */
#include "facade/open/plans.h"

#include "tests/facade/fixture.h"

static const char *top_of(strata_t s, strata_place_t place) {
    return strata_plans_of_graphs(strata_facade_of(s), place)->nodes[1].name;
}

static bool is_the_places(strata_t s, strata_place_t place) {
    const strata_facade_t *facade = strata_facade_of(s);
    return strata_plans_of_graphs(facade, place) == strata_plans_of(facade, place);
}

TEST(facade_graph_plans, is_that_of_graph_else_the_places_own) {
    RIG(rig,
        "stack: [stream_safe, auto_growth, system]\n"
        "pools: {a: , b: [system]}\n"
        "streams: {\"copy*\": [limit, system]}\n"
        "graph: {stack: [buffered, system], places: {pinned: [aligned, auto_growth, system]}}\n",
        0);
    EXPECT_STREQ(top_of(rig.s, strata_gpu(0)), "buffered");
    EXPECT_STREQ(top_of(rig.s, strata_pinned()), "aligned");
    EXPECT_EQ(strata_plans_of_graphs(strata_facade_of(rig.s), strata_pinned())->place, STRATA_PLACE_PINNED);
    EXPECT_TRUE(is_the_places(rig.s, strata_managed(0)));
    EXPECT_TRUE(is_the_places(rig.s, strata_host()));
}

TEST(facade_graph_plans, without_a_word_are_the_places) {
    RIG(rig, "stack: [stream_safe, auto_growth, system]\ndevices: {use: sim, gpu:0: {stack: [buffered, system]}}\n", 0);
    EXPECT_STREQ(top_of(rig.s, strata_gpu(0)), "buffered");
    EXPECT_TRUE(is_the_places(rig.s, strata_gpu(0)));
    EXPECT_TRUE(is_the_places(rig.s, strata_pinned()));
}

/* A place that `graph:` does not list has what the device has there. */
TEST(facade_graph_plans, of_a_device_is_the_devices_unless_graph_has_it) {
    RIG(rig,
        "stack: [auto_growth, system]\ndevices: {use: sim, gpu:0: {stack: [buffered, system]}}\n"
        "graph: {places: {pinned: [buffered, system]}}\n",
        0);
    EXPECT_STREQ(top_of(rig.s, strata_gpu(0)), "buffered");
    EXPECT_TRUE(is_the_places(rig.s, strata_gpu(0)));
    EXPECT_FALSE(is_the_places(rig.s, strata_pinned()));
}
