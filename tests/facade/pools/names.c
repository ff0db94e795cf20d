/* Names and their numbers at the limits: one name is the beginning of another, the table is full to the last name or byte. */
#include "facade/registry/names.h"

#include "allocation/stack/threads.h"
#include "facade/streams/annotate.h"
#include "tests/facade/pools/pooled.h"

typedef struct pair {
    const char *name, *first, *second;
} pair_t;

static const pair_t pairs[] = {
    {"longer_second", "conv", "conv1"}, {"shorter_second", "conv1", "conv"},          {"one_byte", "c", "cc"},
    {"with_a_dot", "a.b", "a.bc"},      {"cut_before_the_dot", "a.b", "a"},           {"other_end", "conv1", "conv2"},
    {"end_of_another", "conv", "nv"},   {"of_the_others", "(other names)", "(other"},
};

static uint32_t number_of(strata_names_t *names, const char *name) {
    uint32_t number = 0;
    EXPECT_OK(strata_names_number(names, name, &number));
    return number;
}

TEST_EACH(facade_names, names_that_begin_alike_have_two_numbers, pair_t, pairs) {
    strata_names_t names;
    strata_names_init(&names);
    uint32_t first = number_of(&names, row->first), second = number_of(&names, row->second);
    EXPECT_NE(first, second);
    for (int again = 0; again < 2; again++) {
        EXPECT_EQ(number_of(&names, row->first), first);
        EXPECT_EQ(number_of(&names, row->second), second);
    }
    EXPECT_STREQ(strata_names_find(&names, first), row->first);
    EXPECT_STREQ(strata_names_find(&names, second), row->second);
    EXPECT_EQ(names.count, 2);
    strata_names_destroy(&names);
}

#define TEST_NAMES(name) TEST_WITH(facade_names, name, strata_names_t, names, strata_names_destroy, strata_names_init(names))

/* A number that was never given out may lie anywhere in the text. */
TEST_NAMES(only_numbers_that_were_given_out_name_something) {
    EXPECT_TRUE(strata_names_find(names, 1) == NULL);
    uint32_t first = number_of(names, "weights"), second = number_of(names, "w"), end = names->used;
    for (uint64_t number = 0; number < end + 3; number++)
        EXPECT_EQ(strata_names_find(names, number) != NULL, number == first || number == second);
    EXPECT_TRUE(strata_names_find(names, UINT64_MAX) == NULL);
    EXPECT_TRUE(strata_names_find(names, first + (UINT64_C(1) << 32)) == NULL);
}

/* Longer names come first, so that many a name meets one that begins with it in the slots of the table. */
TEST_NAMES(the_last_of_so_many_names_is_one_of_its_own) {
    char name[32];
    uint32_t wrong = 0;
    for (int i = STRATA_NAMES; i-- > 0;) {
        snprintf(name, sizeof name, "n%d", i);
        wrong += strcmp(strata_names_text(names, number_of(names, name)), name) != 0;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_STREQ(strata_names_text(names, number_of(names, "one more")), "(other names)");
    EXPECT_STREQ(strata_names_text(names, number_of(names, name)), name);
    EXPECT_EQ(names->count, STRATA_NAMES);
}

/* Names of the full length leave a few bytes at the end. One name fits in there exactly, a longer one does not. */
TEST_NAMES(the_last_byte_of_the_table_is_used) {
    char name[STRATA_NAME_LENGTH + 1] = {0};
    (void)number_of(names, "first");
    memset(name, 'x', STRATA_NAME_LENGTH);
    for (int i = 0; names->used + sizeof name <= STRATA_NAME_BYTES; i++) {
        int length = snprintf(name, sizeof name, "%d", i);
        name[length] = 'x';
        (void)number_of(names, name);
    }
    uint32_t left = STRATA_NAME_BYTES - names->used;
    ASSERT_GT(left, 8);
    memset(name, 'y', sizeof name - 1);
    name[left] = 0;
    EXPECT_STREQ(strata_names_text(names, number_of(names, name)), "(other names)");
    name[left - 1] = 0;
    EXPECT_STREQ(strata_names_text(names, number_of(names, name)), name);
    EXPECT_EQ(names->used, STRATA_NAME_BYTES);
    EXPECT_STREQ(strata_names_text(names, number_of(names, "z")), "(other names)");
}

TEST_NAMES(a_name_is_cut_behind_its_127th_byte) {
    char longest[STRATA_NAME_LENGTH + 1], longer[STRATA_NAME_LENGTH + 2], shorter[STRATA_NAME_LENGTH];
    memset(longest, 'a', sizeof longest);
    memset(longer, 'a', sizeof longer);
    memset(shorter, 'a', sizeof shorter);
    longest[sizeof longest - 1] = longer[sizeof longer - 1] = shorter[sizeof shorter - 1] = 0;
    uint32_t number = number_of(names, longest);
    EXPECT_STREQ(strata_names_text(names, number), longest);
    EXPECT_EQ(number_of(names, longer), number);
    EXPECT_NE(number_of(names, shorter), number);
}

/* ---- operators and tags ---- */

typedef struct leaks {
    char text[1024];
    size_t length;
} leaks_t;

static void add_leak(const strata_leak_t *leak, void *context) {
    leaks_t *leaks = context;
    leaks->length += (size_t)snprintf(leaks->text + leaks->length, sizeof leaks->text - leaks->length, "%zu %s|%s;",
                                      leak->requested, leak->tag, leak->operator_name);
}

static void expect_leaks(rig_t *rig, const char *wanted) {
    leaks_t leaks = {.length = 0};
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_BUSY, add_leak, &leaks));
    EXPECT_STREQ(leaks.text, wanted);
}

/* A note is of its own block, whether the tag before it was the same, none, or the beginning of it. */
TEST(facade_names, each_of_two_requests_in_a_row_has_its_tag) {
    static const char *const tags[] = {"weights", "weights", NULL, "weights", "weight", "weights"};
    for (size_t i = 0; i + 1 < COUNT(tags); i++) {
        RIG(rig, "strata", 0);
        char wanted[128];
        const char *first = tags[i] ? tags[i] : "", *second = tags[i + 1] ? tags[i + 1] : "";
        strata_block_t a = rig_allocate_tagged(&rig, NULL, 1000, tags[i]), b = rig_allocate_tagged(&rig, NULL, 2000, tags[i + 1]);
        snprintf(wanted, sizeof wanted, "1000 %s|;2000 %s|;", first, second);
        expect_leaks(&rig, wanted);
        RIG_FREE(&rig, a);
        snprintf(wanted, sizeof wanted, "2000 %s|;", second);
        expect_leaks(&rig, wanted);
        RIG_FREE(&rig, b);
    }
}

enum { ROOM = STRATA_ANNOTATED_FACADES };

static void annotate(rig_t *rig, int i) {
    char name[16];
    snprintf(name, sizeof name, "op%d", i);
    EXPECT_OK(strata_annotate(rig->s, name));
}

static void expect_operator(rig_t *rig, const char *name) {
    char wanted[64];
    strata_block_t block = rig_allocate(rig, NULL, 1000);
    snprintf(wanted, sizeof wanted, "1000 |%s;", name);
    expect_leaks(rig, wanted);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

/* Whichever of the four leaves or is closed, the next facade takes its room and the other three keep theirs. */
TEST(facade_names, a_thread_is_inside_operators_of_four_facades) {
    for (int gone = 0; gone < ROOM; gone++)
        for (int closed = 0; closed < 2; closed++) {
            rig_t rigs[ROOM + 2];
            char name[16];
            for (int i = 0; i < ROOM + 2; i++) rig_open(&rigs[i], "strata", NULL, 0, 0, 1);
            for (int i = 0; i < ROOM; i++) annotate(&rigs[i], i);
            EXPECT_SAYS(STRATA_E_LIMIT, strata_annotate(rigs[ROOM].s, "more"), "inside operators of 4 facades");
            EXPECT_OK(strata_annotate(rigs[ROOM].s, NULL));
            if (closed) rig_close(&rigs[gone]);
            else EXPECT_OK(strata_annotate(rigs[gone].s, NULL));
            annotate(&rigs[ROOM], ROOM);
            EXPECT_STATUS(STRATA_E_LIMIT, strata_annotate(rigs[ROOM + 1].s, "more"));
            for (int i = 0; i <= ROOM; i++) {
                snprintf(name, sizeof name, "op%d", i);
                if (i != gone) expect_operator(&rigs[i], name);
                else if (!closed) expect_operator(&rigs[i], "");
            }
            expect_operator(&rigs[ROOM + 1], "");
            for (int i = 0; i < ROOM + 2; i++) {
                if (i == gone && closed) continue;
                EXPECT_OK(strata_annotate(rigs[i].s, NULL));
                rig_close(&rigs[i]);
            }
        }
}

/* A second name for the same facade takes no more room, and only its end leaves the operator. */
TEST(facade_names, the_last_of_four_facades_may_change_its_operator) {
    rig_t rigs[ROOM];
    for (int i = 0; i < ROOM; i++) rig_open(&rigs[i], "strata", NULL, 0, 0, 1);
    for (int i = 0; i < ROOM; i++) annotate(&rigs[i], i);
    annotate(&rigs[ROOM - 1], 10);
    annotate(&rigs[0], 11);
    expect_operator(&rigs[0], "op11");
    expect_operator(&rigs[1], "op1");
    expect_operator(&rigs[ROOM - 1], "op10");
    /* Only the last slot holds an operator, and a hit is still noted. */
    for (int i = 0; i < ROOM - 1; i++) EXPECT_OK(strata_annotate(rigs[i].s, NULL));
    strata_block_t warm[3], noted[3];
    for (int i = 0; i < 3; i++) warm[i] = rig_allocate(&rigs[ROOM - 1], NULL, 1000);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rigs[ROOM - 1].s, warm[i].ref));
    for (int i = 0; i < 3; i++) noted[i] = rig_allocate(&rigs[ROOM - 1], NULL, 1000);
    expect_leaks(&rigs[ROOM - 1], "1000 |op10;1000 |op10;1000 |op10;");
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rigs[ROOM - 1].s, noted[i].ref));
    EXPECT_OK(strata_annotate(rigs[ROOM - 1].s, NULL));
    expect_operator(&rigs[ROOM - 1], "");
    for (int i = 0; i < ROOM; i++) rig_close(&rigs[i]);
}

/* The hits of an allocator are noted while any slot holds the operator of an open facade, and serve directly once none does. */
TEST(facade_names, the_hits_of_an_allocator_have_the_operator_of_any_slot) {
    for (int slot = 0; slot < ROOM; slot++) {
        rig_t rigs[ROOM];
        char wanted[64];
        strata_allocator_t allocator;
        strata_block_t block;
        for (int i = 0; i < ROOM; i++) rig_open(&rigs[i], "strata", NULL, 0, 0, 1);
        ASSERT_OK(strata_allocator_get(rigs[slot].s, rigs[slot].gpu, NULL, 0, &allocator));
        for (int i = 0; i < ROOM; i++) {
            ASSERT_OK(strata_allocator_allocate(allocator, 1000, &block));
            ASSERT_OK(strata_allocator_free(allocator, block.ref));
            annotate(&rigs[i], i);
        }
        for (int i = 0; i < ROOM; i++)
            if (i != slot) EXPECT_OK(strata_annotate(rigs[i].s, NULL));
        ASSERT_OK(strata_allocator_allocate(allocator, 1000, &block));
        snprintf(wanted, sizeof wanted, "1000 |op%d;", slot);
        expect_leaks(&rigs[slot], wanted);
        EXPECT_OK(strata_free(rigs[slot].s, block.ref));
        EXPECT_EQ(strata_threads_plain, 0);
        rig_close(&rigs[slot]);
        /* The operator of a closed facade ends with it. */
        int next = (slot + 1) % ROOM;
        EXPECT_OK(strata_annotate(rigs[next].s, NULL));
        EXPECT_NE(strata_threads_plain, 0);
        for (int i = 0; i < ROOM; i++)
            if (i != slot) rig_close(&rigs[i]);
    }
}

/* ---- numbers of pools ---- */

#define POOLS_OF(weight, weights)                                                                                                  \
    "stack: [auto_growth, system]\npools: {w: [system], " weight ": [buffered, system], " weights                                  \
    ": [limit: {bytes: 64MiB}, system]}\n"

TEST_RIG(facade_names, pools_whose_names_begin_alike_are_apart, 0, POOLS_OF("weight", "weights")) {
    uint64_t w = pool_of(rig, "w"), weights = pool_of(rig, "weights"), weight = pool_of(rig, "weight");
    EXPECT_TRUE(w != weight && weight != weights && w != weights);
    expect_route(rig, get_from(rig, w, NULL, 1000), "system");
    expect_route(rig, get_from(rig, weight, NULL, 1000), "buffered | system");
    expect_route(rig, get_from(rig, weights, NULL, 1000), "limit > system");
    EXPECT_EQ(pool_of(rig, "weights"), weights);
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(rig->s, "weigh", &w));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool(rig->s, "weightss", &w));
}

/* A number is that of a name. Under a strategy without it nothing is served, and the number means the pool again later. */
TEST_RIG(facade_names, the_number_of_a_pool_outlives_a_strategy_without_it, 0, POOLS_OF("weight", "weights")) {
    static const char *const texts[] = {POOLS_OF("weigh", "weights1"), POOLS_OF("weights", "weight")};
    uint64_t weights = pool_of(rig, "weights"), weight = pool_of(rig, "weight");
    strata_open_options_t options = {.struct_size = sizeof options, .text = texts[0]};
    strata_allocate_options_t ask = {.struct_size = sizeof ask, .size = 1000, .pool = weights};
    strata_block_t block;
    EXPECT_OK(strata_change_strategy(rig->s, &options));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate_with(rig->s, rig->gpu, NULL, &ask, &block));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(rig->s, rig->gpu, weight));
    options.text = texts[1];
    EXPECT_OK(strata_change_strategy(rig->s, &options));
    expect_route(rig, get_from(rig, weights, NULL, 1000), "buffered | system");
    expect_route(rig, get_from(rig, weight, NULL, 1000), "limit > system");
    EXPECT_EQ(pool_of(rig, "weights"), weights);
    EXPECT_EQ(pool_of(rig, "weight"), weight);
}

/* Both facades have a pool of that name, and the number holds the facade. */
TEST_RIG(facade_names, the_number_of_a_pool_is_of_one_facade, 0, POOLED) {
    RIG(other, POOLED, 0);
    uint64_t mine = pool_of(rig, "weights"), theirs = pool_of(&other, "weights");
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000, .pool = theirs};
    strata_block_t block;
    EXPECT_NE(mine, theirs);
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(rig->s, rig->gpu, theirs));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pool_begin(other.s, other.gpu, mine));
    expect_pool(rig, get_from(rig, mine, NULL, 1000).ref, mine);
}
