/* What a plan passes on, and between whom. */
#include "platform/status.h"
#include "tests/planning/plans.h"

typedef struct found {
    size_t count, earlier, later;
    uint64_t bytes;
} found_t;

static void note(void *context, size_t earlier, size_t later, uint64_t bytes) {
    found_t *found = context;
    found->count++;
    found->earlier = earlier;
    found->later = later;
    found->bytes += bytes;
}

static strata_plan_dependencies_t depend(const strata_plan_buffer_t *b, size_t count, const uint64_t *o, found_t *found) {
    strata_plan_dependencies_t sums = {.struct_size = sizeof sums};
    EXPECT_OK(strata_plan_depend(b, count, o, note, found, &sums));
    return sums;
}

TEST(plan_depend, counts_bytes_by_their_last_owner) {
    /* c lies on all of a and half of b; d on c's first half. */
    strata_plan_buffer_t b[] = {{.lower = 0, .upper = 1, .size = 64},
                                {.lower = 0, .upper = 1, .size = 64},
                                {.lower = 1, .upper = 2, .size = 96},
                                {.lower = 2, .upper = 3, .size = 48}};
    found_t found = {0};
    strata_plan_dependencies_t sums = depend(b, 4, (const uint64_t[]){0, 64, 0, 0}, &found);
    EXPECT_EQ(sums.reuses, 3);
    EXPECT_EQ(sums.bytes, 64 + 32 + 48);
    EXPECT_EQ(sums.implicit, 0);
    EXPECT_EQ(found.count, 0);
}

TEST(plan_depend, tells_branches_apart) {
    strata_plan_buffer_t b[] = {{.lower = 0, .upper = 1, .size = 64, .fork = 1, .branch = 1},
                                {.lower = 1, .upper = 2, .size = 32, .fork = 1, .branch = 2},
                                {.lower = 2, .upper = 3, .size = 64, .fork = 1, .branch = 1},
                                {.lower = 3, .upper = 4, .size = 64, .fork = 2, .branch = 9}};
    found_t found = {0};
    strata_plan_dependencies_t sums = depend(b, 4, (const uint64_t[]){0, 0, 0, 0}, &found);
    EXPECT_EQ(sums.reuses, 4); /* a to b, b and a to c, c to d */
    EXPECT_EQ(sums.implicit, 2);
    EXPECT_EQ(sums.implicit_bytes, 32 + 32);
    EXPECT_EQ(found.count, 2);
    EXPECT_EQ(found.earlier, 1);
    EXPECT_EQ(found.later, 2);
    EXPECT_EQ(found.bytes, 64);
}

TEST(plan_depend, agrees_with_a_byte_by_byte_account) {
    plans_random_t random = {17};
    strata_plan_buffer_t b[30];
    uint64_t o[30];
    enum { BYTES = 4096 };
    for (int round = 0; round < 100; round++) {
        plans_random_buffers(&random, &(plans_shape_t){.times = 30, .sizes = 60, .forks = 50}, b, 30);
        plans_make_with(&(strata_plan_options_t){.struct_size = sizeof(strata_plan_options_t), .planner = "greedy", .time_ns = 1},
                        b, 30, o);
        int owner[BYTES];
        uint64_t bytes = 0;
        for (size_t i = 0; i < BYTES; i++) owner[i] = -1;
        for (uint64_t time = 0; time < 70; time++)
            for (size_t i = 0; i < 30; i++)
                for (uint64_t at = o[i]; b[i].lower == time && at < o[i] + b[i].size; at++) {
                    bytes += owner[at] >= 0;
                    owner[at] = (int)i;
                }
        found_t found = {0};
        strata_plan_dependencies_t sums = depend(b, 30, o, &found);
        EXPECT_EQ(sums.bytes, bytes);
        EXPECT_EQ(sums.implicit, 0); /* branches share nothing in a plan that obeys forks */
    }
}
