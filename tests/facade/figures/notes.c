/* What the program says of its requests, and where that is shown; zeroed requests. */
#include <stdio.h>

#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

typedef struct told {
    char text[1024];
    size_t length;
} told_t;

static void tell(const strata_leak_t *leak, void *context) {
    told_t *told = context;
    told->length += (size_t)snprintf(told->text + told->length, sizeof told->text - told->length, "%zu %s|%s|%llu;",
                                     leak->requested, leak->tag, leak->operator_name, (unsigned long long)leak->step);
}

static void expect_leaks(rig_t *rig, const char *wanted) {
    told_t told = {.length = 0};
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_BUSY, tell, &told));
    EXPECT_STREQ(told.text, wanted);
}

TEST_RIG(facade_notes, leaks_are_told_with_tag_operator_and_step, 0, "strata", "system") {
    char name[] = "weights";
    strata_block_t blocks[6] = {rig_allocate(rig, NULL, 100), rig_allocate_tagged(rig, NULL, 200, name)};
    name[0] = 'W';
    EXPECT_OK(strata_step(rig->s));
    EXPECT_OK(strata_annotate(rig->s, "conv\n1"));
    blocks[2] = rig_allocate(rig, NULL, 300);
    EXPECT_OK(strata_step(rig->s));
    EXPECT_OK(strata_annotate(rig->s, "conv2"));
    blocks[3] = rig_allocate_tagged(rig, NULL, 400, "weights");
    EXPECT_OK(strata_annotate(rig->s, NULL));
    blocks[4] = rig_allocate(rig, NULL, 500);
    EXPECT_OK(strata_free(rig->s, blocks[3].ref));
    blocks[5] = rig_allocate_tagged(rig, NULL, 600, "");
    told_t told = {.length = 0};
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_BUSY, tell, &told));
    EXPECT_CONTAINS(told.text, "100 ||0;");
    EXPECT_CONTAINS(told.text, "200 weights||0;");
    EXPECT_CONTAINS(told.text, "300 |conv?1|1;");
    EXPECT_CONTAINS(told.text, "500 ||0;");
    EXPECT_CONTAINS(told.text, "600 ||0;");
    EXPECT_LACKS(told.text, "400");
}

/* A slot that was noted once is served again without a note. */
TEST_RIG(facade_notes, a_note_ends_with_its_block, 0, "strata") {
    strata_block_t a = rig_allocate_tagged(rig, NULL, 1000, "first");
    EXPECT_OK(strata_free(rig->s, a.ref));
    strata_block_t b = rig_allocate(rig, NULL, 1000);
    EXPECT_EQ(a.ptr, b.ptr);
    expect_leaks(rig, "1000 ||0;");
    EXPECT_OK(strata_retain(rig->s, b.ref));
    expect_leaks(rig, "1000 ||0;");
    EXPECT_OK(strata_free(rig->s, b.ref));
}

TEST(facade_notes, each_facade_of_a_thread_has_its_operator) {
    rig_t rigs[6];
    for (int i = 0; i < 6; i++) rig_open(&rigs[i], "strata", NULL, 0, 0, 1);
    EXPECT_OK(strata_annotate(rigs[0].s, "one"));
    EXPECT_OK(strata_annotate(rigs[1].s, "two"));
    strata_block_t a = rig_allocate(&rigs[0], NULL, 10), b = rig_allocate(&rigs[1], NULL, 20), c = rig_allocate(&rigs[2], NULL, 30);
    expect_leaks(&rigs[0], "10 |one|0;");
    expect_leaks(&rigs[1], "20 |two|0;");
    expect_leaks(&rigs[2], "30 ||0;");
    EXPECT_OK(strata_annotate(rigs[2].s, "three"));
    EXPECT_OK(strata_annotate(rigs[3].s, "four"));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_annotate(rigs[4].s, "five"));
    EXPECT_OK(strata_annotate(rigs[4].s, NULL));
    EXPECT_OK(strata_annotate(rigs[3].s, NULL));
    EXPECT_OK(strata_annotate(rigs[4].s, "five"));
    EXPECT_OK(strata_free(rigs[0].s, a.ref));
    EXPECT_OK(strata_free(rigs[1].s, b.ref));
    EXPECT_OK(strata_free(rigs[2].s, c.ref));
    /* A closed facade leaves its room. */
    rig_close(&rigs[0]);
    EXPECT_OK(strata_annotate(rigs[5].s, "six"));
    for (int i = 1; i < 6; i++) EXPECT_OK(strata_annotate(rigs[i].s, NULL));
    for (int i = 1; i < 6; i++) rig_close(&rigs[i]);
}

TEST(facade_notes, names_beyond_the_most_are_one) {
    strata_names_t names;
    strata_names_init(&names);
    uint32_t first, number, again;
    char name[300];
    EXPECT_OK(strata_names_number(&names, "first", &first));
    for (int i = 0; i < STRATA_NAMES + 10; i++) {
        snprintf(name, sizeof name, "n%d", i);
        EXPECT_OK(strata_names_number(&names, name, &number));
    }
    EXPECT_STREQ(strata_names_text(&names, number), "(other names)");
    EXPECT_OK(strata_names_number(&names, "first", &again));
    EXPECT_EQ(first, again);
    EXPECT_OK(strata_names_number(&names, "n77", &number));
    EXPECT_STREQ(strata_names_text(&names, number), "n77");
    strata_names_destroy(&names);
    strata_names_init(&names);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    EXPECT_OK(strata_names_number(&names, name, &number));
    EXPECT_EQ(strlen(strata_names_text(&names, number)), STRATA_NAME_LENGTH);
    EXPECT_STREQ(strata_names_text(&names, 0), "");
    strata_names_destroy(&names);
}

TEST_RIG(facade_notes, without_host_memory_the_note_is_lost_not_the_request, 0, "strata") {
    strata_block_t warm = rig_allocate(rig, NULL, 10);
    strata_host_fail_at(1, 1);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_annotate(rig->s, "op"));
    (void)rig_allocate_tagged(rig, NULL, 1000, "tag");
    strata_host_fail_at(0, 0);
    EXPECT_OK(strata_free(rig->s, warm.ref));
    expect_leaks(rig, "1000 ||0;");
}

/* ---- zeroed requests ---- */

static void expect_zeroed(rig_t *rig, strata_place_t place, strata_stream_t stream) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 5000};
    strata_block_t a, b;
    EXPECT_OK(strata_allocate_with(rig->s, place, stream, &options, &a));
    uint64_t at = (uint64_t)(uintptr_t)a.ptr;
    unsigned char *seen = strata_device_host_view(rig->devices[0], at, a.size);
    if (!seen) seen = a.ptr;
    memset(seen, 0xab, a.size);
    EXPECT_OK(strata_free(rig->s, a.ref));
    options.flags = STRATA_ZERO;
    EXPECT_OK(strata_allocate_with(rig->s, place, stream, &options, &b));
    EXPECT_EQ(a.ptr, b.ptr);
    EXPECT_OK(strata_stream_synchronize(rig->s, rig->gpu, stream));
    for (size_t i = 0; i < b.size; i++)
        if (seen[i] != 0) {
            FAIL_TEST("byte %zu is %u", i, seen[i]);
            break;
        }
    EXPECT_OK(strata_free(rig->s, b.ref));
}

TEST_BY(facade_notes, zeroed_requests_are_zero,
        rig_open_with(rig, "strata", &(strata_sim_options_t){.devices = 1, .capacity = 256 * MIB, .contents = true}, 0)) {
    expect_zeroed(rig, rig->gpu, NULL);
    expect_zeroed(rig, rig->gpu, rig_stream(rig));
    expect_zeroed(rig, strata_managed(0), NULL);
    expect_zeroed(rig, strata_pinned(), NULL);
    expect_zeroed(rig, strata_host(), NULL);
    strata_allocate_options_t nothing = {.struct_size = sizeof nothing, .flags = STRATA_ZERO};
    strata_block_t none;
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &nothing, &none));
    EXPECT_OK(strata_free(rig->s, none.ref));
}

TEST_RIG(facade_notes, a_fill_that_is_refused_fails_the_request, 0, "strata") {
    (void)rig_allocate(rig, NULL, 10);
    strata_block_t b = {.ref = 7};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 5000, .flags = STRATA_ZERO};
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_fill, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &b));
    EXPECT_EQ(b.ref, 7);
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}

enum { OTHER_NAMES = 1 }; /* in every facade that has names */

/* Who tells of an old ref asks for names by number: of a facade that is gone, or never was, there are none. */
TEST(facade_notes, names_are_of_the_facade_that_is_asked_for) {
    rig_t rig;
    char text[32] = "";
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_t gone = rig.s;
    EXPECT_OK(strata_free(rig.s, rig_allocate_tagged(&rig, NULL, 100, "of the first").ref));
    EXPECT_TRUE(strata_facade_name(gone, OTHER_NAMES, text, sizeof text));
    EXPECT_STREQ(text, "(other names)");
    EXPECT_FALSE(strata_facade_name(gone, 0, text, sizeof text));
    rig_close(&rig);
    EXPECT_FALSE(strata_facade_name(gone, OTHER_NAMES, text, sizeof text));
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    EXPECT_EQ(rig.s % STRATA_FACADES, gone % STRATA_FACADES);
    EXPECT_OK(strata_free(rig.s, rig_allocate_tagged(&rig, NULL, 100, "of the second").ref));
    EXPECT_FALSE(strata_facade_name(gone, OTHER_NAMES, text, sizeof text));
    EXPECT_FALSE(strata_facade_name(rig.s + STRATA_FACADES - 1, OTHER_NAMES, text, sizeof text));
    EXPECT_TRUE(strata_facade_name(rig.s, OTHER_NAMES, text, sizeof text));
    rig_close(&rig);
}
