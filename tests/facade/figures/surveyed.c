/* Who is shown to hold, to use and to await what: blocks of shared caches, tags over several steps, streams with one handle. */
#include <stdio.h>

#include "facade/report/survey.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

#define MILLISECOND (1000ull * 1000)

/* ---- snapshot ---- */

typedef struct sought {
    strata_block_t block;
    strata_stream_t stream;
    uint32_t found;
} sought_t;

static void see(const strata_snapshot_row_t *row, void *context) {
    sought_t *sought = context;
    for (int n = 0; n < 2; n++) {
        if (row->block.ref != sought[n].block.ref) continue;
        EXPECT_EQ(row->stream, sought[n].stream);
        EXPECT_EQ(row->requested, sought[n].block.size);
        sought[n].found++;
    }
}

/* A cache of all streams has the blocks; whose each is stands in its row. */
TEST_RIG(facade_surveyed, a_live_block_is_shown_as_that_of_the_stream_which_it_serves, 0, "stack: [caching, system]",
         "stack: [bfc: {allow_growth: true}, system]", "stack: [auto_growth, system]", "stack: [cuda_malloc_async]",
         "stack: [system]") {
    sought_t sought[2];
    for (int n = 0; n < 2; n++) {
        strata_stream_t stream = rig_stream(rig);
        sought[n] = (sought_t){.block = rig_allocate(rig, stream, 4 * MIB), .stream = stream};
    }
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see, sought));
    for (int n = 0; n < 2; n++) {
        EXPECT_EQ(sought[n].found, 1);
        EXPECT_OK(strata_free(rig->s, sought[n].block.ref));
    }
}

/* ---- survey ---- */

/* The block of the later step takes the place of one in front of the earlier one's, or after it. */
TEST(facade_surveyed, a_tag_is_told_with_its_first_step_and_its_last) {
    static const char *const stacks[] = {"stack: [auto_growth, system]", "stack: [caching, system]"};
    static strata_survey_t survey;
    for (int i = 0; i < 2; i++)
        for (int after = 0; after < 2; after++) {
            strata_block_t place, last;
            RIG(rig, stacks[i], 0);
            EXPECT_OK(strata_step(rig.s));
            if (after) place = rig_allocate(&rig, NULL, 100000);
            (void)rig_allocate_tagged(&rig, NULL, 100000, "weights");
            if (!after) place = rig_allocate(&rig, NULL, 100000);
            (void)rig_allocate(&rig, NULL, 100000);
            EXPECT_OK(strata_free(rig.s, place.ref));
            for (int n = 0; n < 2; n++) EXPECT_OK(strata_step(rig.s));
            last = rig_allocate_tagged(&rig, NULL, 100000, "weights");
            EXPECT_EQ(last.ptr, place.ptr);
            strata_survey_for_t whom = {.stack = rig_stack(&rig, NULL), .size = MIB};
            strata_survey_make(rig_domain(&rig), &whom, &survey);
            const strata_owner_t *owner = &survey.owners[survey.owners[0].note.tag ? 0 : 1];
            EXPECT_EQ(owner->blocks, 2);
            EXPECT_EQ(owner->note.step, 1);
            EXPECT_EQ(owner->last_step, 3);
            if (strata_test_has_failed()) FAIL_TEST("%s, %d", stacks[i], after);
        }
}

/* The chunk of 28 MiB has 21 free MiB that are too large to be split for the request, 2 that another stream uses, and 5 free ones
 * behind them. */
TEST_RIG(facade_surveyed, a_run_begins_after_a_free_block_that_does_not_serve, 0,
         "stack: [caching: {large_segment: 28MiB, max_split_size: 20MiB}, system]") {
    static strata_survey_t survey;
    static const size_t sizes[] = {9 * MIB, 9 * MIB, 3 * MIB, 2 * MIB};
    strata_block_t blocks[4];
    strata_stream_t user = rig_stream(rig);
    for (size_t i = 0; i < 4; i++) {
        blocks[i] = rig_allocate(rig, NULL, sizes[i]);
        if (i > 0) ASSERT_EQ((uintptr_t)blocks[i].ptr, (uintptr_t)blocks[i - 1].ptr + sizes[i - 1]);
    }
    rig_borrow(rig, blocks[3].ref, user, 100 * MILLISECOND);
    RIG_FREE(rig, blocks[0], blocks[1], blocks[2], blocks[3]);
    strata_survey_for_t whom = {.stack = rig_stack(rig, NULL), .size = 6 * MIB};
    strata_survey_make(rig_domain(rig), &whom, &survey);
    EXPECT_EQ(survey.idle_by[STRATA_IDLE_UNSPLIT].bytes, 21 * MIB);
    EXPECT_EQ(survey.deferred_here, 2 * MIB);
    EXPECT_EQ(survey.later_run, 7 * MIB);
}

/* So the report is the same whatever table the owners were found in. */
TEST_RIG(facade_surveyed, owners_of_equal_bytes_are_told_as_they_were_named, 0, "stack: [auto_growth, system]") {
    enum { TAGS = 12, OPERATORS = 2 };
    static strata_survey_t survey;
    for (int named = TAGS; named-- > 0;) {
        char tag[16];
        snprintf(tag, sizeof tag, "tag %d", named);
        for (int i = 0; i < OPERATORS; i++) {
            EXPECT_OK(strata_annotate(rig->s, i == 0 ? "first" : "second"));
            (void)rig_allocate_tagged(rig, NULL, 100000, tag);
        }
    }
    EXPECT_OK(strata_annotate(rig->s, NULL));
    strata_survey_for_t whom = {.stack = rig_stack(rig, NULL), .size = MIB};
    strata_survey_make(rig_domain(rig), &whom, &survey);
    for (int i = 1; i < TAGS * OPERATORS; i++) {
        const strata_note_t *before = &survey.owners[i - 1].note, *note = &survey.owners[i].note;
        EXPECT_EQ(survey.owners[i].blocks, 1);
        if (i % OPERATORS == 0) EXPECT_GT(note->tag, before->tag);
        else EXPECT_TRUE(note->tag == before->tag && note->operator_name > before->operator_name);
    }
}

/* A stream that was destroyed and the one that has its handle now are two. */
TEST(facade_surveyed, who_waits_for_a_destroyed_stream_does_not_wait_for_the_next_of_its_handle) {
    static const char *const stacks[] = {"stack: [stream_safe, auto_growth, system]", "stack: [caching, system]"};
    static strata_survey_t survey;
    for (int i = 0; i < 2; i++) {
        RIG(rig, stacks[i], 0);
        strata_stream_t owner = rig_stream(&rig), old = rig_stream(&rig);
        (void)rig_free_deferred(&rig, owner, old, 4 * MIB, 20 * MILLISECOND);
        rig_end_stream(&rig, old);
        strata_stream_t fresh = rig_stream(&rig);
        ASSERT_EQ(fresh, old);
        (void)rig_free_deferred(&rig, owner, fresh, 6 * MIB, 20 * MILLISECOND);
        strata_survey_for_t whom = {.stack = rig_stack(&rig, NULL), .size = MIB};
        strata_survey_make(rig_domain(&rig), &whom, &survey);
        ASSERT_EQ(survey.awaited_count, 2);
        for (uint32_t n = 0; n < 2; n++) {
            EXPECT_EQ(survey.awaited[n].bytes, survey.awaited[n].destroyed ? 4 * MIB : 6 * MIB);
            if (!survey.awaited[n].destroyed) EXPECT_EQ(survey.awaited[n].stream, fresh);
        }
        EXPECT_NE(survey.awaited[0].destroyed, survey.awaited[1].destroyed);
        rig_advance(&rig, 90 * MILLISECOND);
    }
}

/* ---- ids ---- */

/* Work alone tells a place nothing of a stream: the next of its handle is none that was not forgotten. */
TEST_BY(facade_surveyed, a_stream_that_only_worked_need_not_be_forgotten,
        rig_open_with(rig, "strata", &(strata_sim_options_t){.devices = 1}, STRATA_OPEN_CHECK_STREAM_IDS)) {
    strata_stream_t old = rig_stream(rig);
    rig_work(rig, old, 1000, 0);
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, old));
    strata_stream_t fresh = rig_stream(rig);
    ASSERT_EQ(fresh, old);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, fresh, 1000).ref));
}
