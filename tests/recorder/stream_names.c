/* The file has each stream name once, and a replay selects the stacks by these names. */
#include "trace/stream_names.h"
#include "lab/replay/run/run.h"
#include "lab/replay/timeline/names.h"
#include "tests/recorder/recording.h"

#define STACK "trace: {path: \"%s\", events: %u, when_full: %s}\n  - stream_safe\n  - auto_growth\n  - system\n"

static const strata_trace_stream_t *named(const strata_trace_t *trace, const char *name) {
    for (uint32_t i = 0; i < trace->stream_count; i++)
        if (trace->streams[i].name && strcmp(trace->streams[i].name, name) == 0) return &trace->streams[i];
    return NULL;
}

/* Uses the default stream, two named streams, and one without a name. */
static strata_trace_t *record(const char *file) {
    recording_t r;
    recording_open(&r, file, STACK, 1024, "write");
    strata_stream_t copy = rig_stream(&r.rig), other = rig_stream(&r.rig), late = rig_stream(&r.rig);
    EXPECT_OK(strata_stream_name(r.rig.s, r.rig.gpu, copy, "copy0"));
    EXPECT_OK(strata_stream_name(r.rig.s, r.rig.gpu, late, "a,\"b\""));
    strata_block_t a = rig_allocate(&r.rig, NULL, MIB), b = rig_allocate(&r.rig, copy, 2 * MIB),
                   c = rig_allocate(&r.rig, other, 3 * MIB);
    strata_block_t d = rig_allocate(&r.rig, copy, 2 * MIB);
    EXPECT_OK(strata_record_stream(r.rig.s, a.ref, late));
    RIG_FREE(&r.rig, a, b, c, d);
    return recording_end(&r);
}

TEST(recorder_stream_names, each_is_once_in_the_file) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record("named.csv");
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->stream_count, 4);
    ASSERT_TRUE(named(trace, "copy0"));
    ASSERT_TRUE(named(trace, "a,\"b\""));
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->stream_count; i++) count += trace->streams[i].name != NULL;
    EXPECT_EQ(count, 2);
    size_t bytes;
    char *text CLOSED_BY(text_cleanup) = read_bytes(temporary("named.csv"), &bytes);
    ASSERT_TRUE(text);
    char *first = memmem(text, bytes, "copy0", 5);
    ASSERT_TRUE(first);
    EXPECT_EQ(memmem(first + 1, bytes - (size_t)(first + 1 - text), "copy0", 5), NULL);
    char name[STRATA_TRACE_TAG_BYTES];
    EXPECT_FALSE(strata_stream_names_find(1, name));
}

/* The stream "copy0" has a stack without a cache, so each of its two blocks costs a device call. The other blocks share chunks. */
TEST(recorder_stream_names, a_replay_serves_a_named_stream_by_its_stack) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record("served.csv");
    ASSERT_TRUE(trace);
    static const struct {
        const char *streams, *unmatched;
        uint64_t mallocs;
    } rows[] = {{"{\"copy*\": [stream_safe, system]}", NULL, 4},
                {"{\"copies*\": [stream_safe, system]}", "copies*", 3},
                {"{\"copy0\": [stream_safe, system], \"copy*\": [stream_safe, system]}", "copy*", 4},
                {"{\"0\": [stream_safe, system]}", NULL, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        snprintf(text, sizeof text, "stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, system]\nstreams: %s\n",
                 rows[i].streams);
        strata_strategy_t *strategy = rig_strategy(text, NULL, 0);
        strata_run_result_t result;
        strata_run_options_t options = {.target = {.profile = strata_sim_profile("h100")}};
        ASSERT_OK(strata_run(trace, strategy, &options, &result));
        EXPECT_EQ(result.figures.device_calls.made[STRATA_CALL_malloc], rows[i].mallocs);
        uint32_t at = 0;
        const char *unmatched = strata_names_unmatched(strategy, trace, &at);
        if (rows[i].unmatched) EXPECT_STREQ(unmatched ? unmatched : "(none)", rows[i].unmatched);
        else EXPECT_EQ(unmatched, NULL);
        EXPECT_EQ(strata_names_unmatched(strategy, trace, &at), NULL);
        strata_strategy_delete(strategy);
    }
}

/* A later name replaces an earlier one of the same owner. The latest owner's name wins, and each owner removes only its own. */
TEST(recorder_stream_names, owners_are_independent) {
    char name[STRATA_TRACE_TAG_BYTES];
    int one = 1, two = 2;
    strata_stream_names_set(&one, 77, "first");
    strata_stream_names_set(&one, 77, "second");
    ASSERT_TRUE(strata_stream_names_find(77, name));
    EXPECT_STREQ(name, "second");
    strata_stream_names_set(&two, 77, "third");
    ASSERT_TRUE(strata_stream_names_find(77, name));
    EXPECT_STREQ(name, "third");
    EXPECT_FALSE(strata_stream_names_find(78, name));
    strata_stream_names_forget(&two);
    ASSERT_TRUE(strata_stream_names_find(77, name));
    EXPECT_STREQ(name, "second");
    strata_stream_names_forget(&one);
    EXPECT_FALSE(strata_stream_names_find(77, name));
}
