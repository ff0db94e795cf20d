/* Which request of a plan made ahead is meant: by its name, and by the bytes that the program asks for. */
#include "allocation/layer/planned_state.h"
#include "tests/facade/planned.h"

enum { PLACES = 6 };

/* ---- names ---- */

static int by_name(const void *a, const void *b) {
    const planned_name_t *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

typedef struct meant {
    const char *name;
    const char *asked;
    uint32_t places[PLACES + 1]; /* by how many requests of the step there were; PLACES + 1: as many as there were */
} meant_t;

#define SAME (PLACES + 1)
static const meant_t meant[] = {
    {"three_times", "x", {0, 1, 4, 4, 4, 0, 0}},
    {"once", "y", {2, 2, 2, 2, 2, 2, 2}},
    {"a_longer_name", "xx", {3, 3, 3, 3, 3, 3, 3}},
    {"the_last_one", "weights", {5, 5, 5, 5, 5, 5, 5}},
    {"a_beginning", "weight", {SAME, SAME, SAME, SAME, SAME, SAME, SAME}},
    {"longer_than_any", "weights1", {SAME, SAME, SAME, SAME, SAME, SAME, SAME}},
    {"none", "", {SAME, SAME, SAME, SAME, SAME, SAME, SAME}},
};

/* The next one of a name is meant, also where it is the next request of all; behind the last one it is the first again. */
TEST_EACH(facade_planned_names, the_next_request_of_a_name_is_meant, meant_t, meant) {
    static const char *const texts[PLACES] = {"x", "x", "y", "xx", "x", "weights"};
    planned_name_t names[PLACES];
    for (uint32_t i = 0; i < PLACES; i++) names[i] = (planned_name_t){.name = strata_ahead_name(texts[i]), .place = i};
    qsort(names, PLACES, sizeof *names, by_name);
    const planned_plan_t plan = {.count = PLACES, .names = names};
    for (uint32_t at = 0; at <= PLACES; at++)
        EXPECT_EQ(strata_planned_named(&plan, row->asked, at), row->places[at] == SAME ? at : row->places[at]);
}

/* ---- sizes ---- */

typedef struct asked {
    const char *name;
    uint64_t noted, size, alignment;
    bool fits;
} asked_t;

static const asked_t sizes[] = {
    {"the_size_itself", 512, 512, 256, true},
    {"one_byte_less", 512, 511, 256, true},
    {"the_least_that_rounds_up", 512, 257, 256, true},
    {"one_unit_less", 512, 256, 256, false},
    {"one_byte_more", 512, 513, 256, false},
    {"one_unit_more", 512, 768, 256, false},
    {"a_larger_alignment", 512, 512, 512, false},
    {"the_smallest", 256, 1, 256, true},
    {"nothing", 256, 0, 256, false},
};

TEST_EACH(facade_planned_names, a_request_is_the_one_of_its_rounded_size, asked_t, sizes) {
    planned_place_t places[2] = {{.size = 4096, .key = 4096}, {.size = row->noted, .key = row->noted}};
    planned_plan_t plan = {.count = 2, .places = places};
    uint64_t key = strata_planned_key(row->size, row->alignment);
    EXPECT_EQ(strata_planned_adopt(&plan, 1, key), row->fits);
    EXPECT_EQ(plan.adopted, row->fits);
    EXPECT_EQ(places[1].key, row->fits ? key : row->noted);
    EXPECT_EQ(places[1].size, row->noted);
    EXPECT_EQ(places[0].key, 4096);
}

/* ---- two plans of one length ---- */

enum { FEW = 8 };

/* Returns whether the room was held to the end of the step. */
static bool step_of(rig_t *rig, uint64_t shape) {
    const planned_t *planned = (const planned_t *)rig_stack(rig, NULL)->cache;
    strata_block_t blocks[FEW];
    for (uint64_t i = 0; i < FEW; i++) blocks[i] = rig_allocate(rig, NULL, (size_t)(1 + (i * (shape + 1)) % 5) * MIB);
    bool held = planned->holds;
    for (uint32_t i = 0; i < FEW; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_step(rig->s));
    return held;
}

/* Three plans with as many requests each: what followed a plan the last time is expected after it, so no step leaves its plan. */
TEST_RIG(facade_planned_names, steps_that_take_turns_are_followed_in_turn, 0, "planned") {
    enum { SHAPES = 3 };
    for (int round = 0; round < 4; round++)
        for (uint64_t shape = 0; shape < SHAPES; shape++)
            for (int twice = 0; twice < 2; twice++) (void)step_of(rig, shape);
    EXPECT_EQ(planned_figure(rig, "plans"), SHAPES);
    for (int round = 0; round < 3; round++)
        for (uint64_t shape = 0; shape < SHAPES; shape++) (void)step_of(rig, shape);
    uint64_t left = planned_figure(rig, "left"), steps = planned_figure(rig, "planned_steps"),
             hits = planned_figure(rig, "planned_hits");
    for (int round = 0; round < 4; round++)
        for (uint64_t shape = 0; shape < SHAPES; shape++)
            EXPECT_TRUE(step_of(rig, shape) || (round == 0 && shape == 0)); /* a figure ended the hold before */
    EXPECT_EQ(planned_figure(rig, "plans"), SHAPES);
    EXPECT_EQ(planned_figure(rig, "left"), left);
    EXPECT_EQ(planned_figure(rig, "planned_steps"), steps + 4 * SHAPES);
    EXPECT_EQ(planned_figure(rig, "planned_hits"), hits + 4 * SHAPES * FEW);
    EXPECT_OK(strata_validate(rig->s));
}

/* A step of exactly `least` bytes is planned, one of less is not. */
TEST(facade_planned_names, a_step_of_just_the_least_is_planned) {
    for (uint64_t more = 0; more < 2; more++) {
        char text[128];
        snprintf(text, sizeof text, "stack: [planned: {least: %llu}, auto_growth: {chunk_size: 2MiB}, system]",
                 (unsigned long long)(8 * MIB + 256 * more));
        RIG(rig, text, 0);
        for (int step = 0; step < 4; step++) {
            strata_block_t blocks[FEW];
            for (uint32_t i = 0; i < FEW; i++) blocks[i] = rig_allocate(&rig, NULL, MIB);
            for (uint32_t i = 0; i < FEW; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
            EXPECT_OK(strata_step(rig.s));
        }
        EXPECT_EQ(planned_figure(&rig, "plans"), 1 - more);
    }
}
