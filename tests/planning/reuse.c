/* Programs worked out by hand from the rules of the peer (docs/planning.md shows some): what `reuse` makes of every line. */
#include <stdio.h>

#include "platform/status.h"
#include "tests/planning/plans.h"

enum { PROGRAM = 8, TEXT = 1024 };

typedef struct program {
    const char *name;
    strata_plan_buffer_t b[PROGRAM];
    const char *lines; /* "0 allocate a; 2 null a; 2 reuse b a": buffers by letters */
    uint64_t peak;
    bool close_gaps;
} program_t;

#define B(from, to, bytes)                                                                                                         \
    { .lower = from, .upper = to, .size = bytes }

static const program_t programs[] = {
    {"at_once", {B(0, 2, 64), B(2, 4, 64)}, "0 allocate a; 2 null a; 2 reuse b a; 4 null b; ", 64, false},
    {"a_chain",
     {B(0, 1, 64), B(1, 2, 64), B(2, 3, 64)},
     "0 allocate a; 1 null a; 1 reuse b a; 2 null b; 2 reuse c b; 3 null c; ",
     64,
     false},
    {"other_size", {B(0, 2, 64), B(2, 4, 128)}, "0 allocate a; 2 free a; 2 allocate b; 4 null b; ", 128, false},
    {"freed_where_nobody_comes",
     {B(0, 1, 64), B(0, 3, 32), B(2, 3, 128)},
     "0 allocate a; 0 allocate b; 1 free a; 2 allocate c; 3 null b; 3 null c; ",
     224,
     false},
    {"last_freed_first",
     {B(0, 2, 64), B(0, 2, 64), B(2, 4, 64), B(2, 4, 64)},
     "0 allocate a; 0 allocate b; 2 null a; 2 null b; 2 reuse c b; 2 reuse d a; 4 null c; 4 null d; ",
     128,
     false},
    {"other_kind",
     {B(0, 2, 64), {.lower = 2, .upper = 4, .size = 64, .kind = 1}},
     "0 allocate a; 2 free a; 2 allocate b; 4 null b; ",
     64,
     false},
    {"other_alignment",
     {B(0, 2, 64), {.lower = 2, .upper = 4, .size = 64, .alignment = 256}},
     "0 allocate a; 2 free a; 2 allocate b; 4 null b; ",
     64,
     false},
    {"other_branch",
     {{.lower = 0, .upper = 2, .size = 64, .fork = 1, .branch = 1}, {.lower = 2, .upper = 4, .size = 64, .fork = 1, .branch = 2}},
     "0 allocate a; 2 free a; 2 allocate b; 4 null b; ",
     128,
     false},
    {"waiting_would_raise_the_peak",
     {B(0, 1, 64), B(1, 2, 128), B(2, 3, 64)},
     "0 allocate a; 1 free a; 1 allocate b; 2 free b; 2 allocate c; 3 null c; ",
     128,
     false},
    {"waiting_below_the_peak",
     {B(0, 1, 64), B(1, 2, 96), B(2, 3, 64), B(5, 6, 256)},
     "0 allocate a; 1 null a; 1 allocate b; 2 free b; 2 reuse c a; 3 free c; 5 allocate d; 6 null d; ",
     256,
     false},
    {"what_waits_counts",
     {B(0, 1, 64), B(0, 1, 64), B(1, 2, 32), B(2, 3, 64), B(2, 3, 64), B(5, 6, 130)},
     "0 allocate a; 0 allocate b; 1 free a; 1 null b; 1 allocate c; 2 free c; 2 reuse d b; 2 allocate e; 3 free d; 3 free e; "
     "5 allocate f; 6 null f; ",
     130,
     false},
    {"outputs_are_not_passed_on",
     {{.lower = 0, .upper = 2, .size = 64, .flags = STRATA_PLAN_OUTPUT}, B(2, 4, 64)},
     "0 allocate a; 2 allocate b; 4 null b; ",
     64,
     false},
    {"removed_buffers_are_null",
     {B(0, 2, 64), {.lower = 1, .upper = 2, .size = 64, .flags = STRATA_PLAN_REMOVED}, B(2, 4, 64)},
     "0 allocate a; 1 null b; 2 null a; 2 null b; 2 reuse c a; 4 null c; ",
     64,
     false},
    {"larger_is_not_taken",
     {B(0, 2, 128), B(2, 4, 64), B(3, 5, 1)},
     "0 allocate a; 2 free a; 2 allocate b; 3 allocate c; 4 null b; 5 null c; ",
     128,
     false},
    {"larger_is_taken_mended",
     {B(0, 2, 128), B(2, 4, 64), B(3, 5, 1)},
     "0 allocate a; 2 null a; 2 reuse b a; 3 allocate c; 4 null b; 5 null c; ",
     129,
     true},
};

static size_t size_of(const program_t *program) {
    size_t count = 0;
    while (count < PROGRAM && program->b[count].size) count++;
    return count;
}

static void write_lines(const strata_plan_line_t *lines, size_t count, char text[TEXT]) {
    static const char *const words[] = {
#define WORD(name, what) #name,
        STRATA_PLAN_LINE_MAP(WORD)
#undef WORD
    };
    size_t length = 0;
    *text = '\0';
    for (size_t i = 0; i < count && length < TEXT; i++) {
        length += (size_t)snprintf(text + length, TEXT - length, "%d %s %c", (int)lines[i].time, words[lines[i].effect],
                                   (char)('a' + lines[i].buffer));
        if (lines[i].effect == STRATA_PLAN_reuse && length < TEXT)
            length += (size_t)snprintf(text + length, TEXT - length, " %c", (char)('a' + lines[i].other));
        if (length < TEXT) length += (size_t)snprintf(text + length, TEXT - length, "; ");
    }
}

TEST_EACH(plan_reuse, makes_of_lines_what_the_rules_do, program_t, programs) {
    strata_plan_line_t lines[2 * PROGRAM];
    uint64_t o[PROGRAM];
    char text[TEXT];
    size_t count = size_of(row), line_count = 0;
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "reuse", .close_gaps = row->close_gaps};
    EXPECT_OK(strata_plan_reuse_lines(&options, row->b, count, lines, &line_count));
    write_lines(lines, line_count, text);
    EXPECT_STREQ(text, row->lines);
    EXPECT_EQ(plans_make_with(&options, row->b, count, o).peak, row->peak);
}

/* Who takes memory over lies where it was, and nobody else is there meanwhile. */
TEST(plan_reuse, those_that_take_over_lie_at_the_same_address) {
    plans_random_t random = {31};
    strata_plan_buffer_t b[50];
    strata_plan_line_t lines[100];
    uint64_t o[50];
    size_t reuses = 0;
    for (int round = 0; round < 300; round++) {
        size_t count = 0;
        plans_random_buffers(&random, &(plans_shape_t){.times = 60, .sizes = 4}, b, 50);
        strata_plan_options_t options = {.struct_size = sizeof options, .planner = "reuse", .close_gaps = round % 2};
        plans_make_with(&options, b, 50, o);
        EXPECT_OK(strata_plan_reuse_lines(&options, b, 50, lines, &count));
        EXPECT_EQ(count, 100);
        for (size_t i = 0; i < count; i++) {
            if (lines[i].effect != STRATA_PLAN_reuse) continue;
            const strata_plan_buffer_t *from = &b[lines[i].other], *to = &b[lines[i].buffer];
            EXPECT_EQ(o[lines[i].buffer], o[lines[i].other]);
            EXPECT_GE(to->lower, from->upper);
            if (!options.close_gaps) EXPECT_EQ(from->size, to->size);
            reuses++;
        }
    }
    EXPECT_GT(reuses, 1000);
}
