/* Streams with names: which stack serves them, and where the name shows. */
#include <pthread.h>

#include "tests/facade/support/fixture.h"

#define NAMED                                                                                                                      \
    "strategy: named\n"                                                                                                            \
    "stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"                                                              \
    "places: {managed: [system]}\n"                                                                                                \
    "pools: {weights: }\n"                                                                                                         \
    "streams:\n"                                                                                                                   \
    "  \"copy*\": {stack: [buffered, system]}\n"                                                                                   \
    "  \"nccl:*\": {places: {managed: [buffered, system]}}\n"

enum { SIZE = 100 * 1000 };

static strata_stream_t stream_called(rig_t *rig, const char *name) {
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, stream, name));
    return stream;
}

static void expect_served_by(rig_t *rig, strata_place_t place, strata_stream_t stream, const char *wanted) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(rig->s, place, stream, SIZE, &block));
    expect_route(rig, block, wanted);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

TEST_RIG(facade_streams, a_name_chooses_the_stack, 0, NAMED) {
    strata_stream_t copy = stream_called(rig, "copy0"), nccl = stream_called(rig, "nccl:0"), other = stream_called(rig, "xcopy");
    EXPECT_OK(strata_stream_name(rig->s, strata_managed(0), nccl, "nccl:0"));
    expect_served_by(rig, rig->gpu, copy, "buffered | system");
    expect_served_by(rig, rig->gpu, nccl, "stream_safe > auto_growth | system");
    expect_served_by(rig, rig->gpu, other, "stream_safe > auto_growth | system");
    expect_served_by(rig, rig->gpu, NULL, "stream_safe > auto_growth | system");
    expect_served_by(rig, strata_managed(0), nccl, "buffered | system");
    expect_served_by(rig, strata_managed(0), copy, "system");
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics(rig->s, rig->gpu, copy, &f));
    EXPECT_EQ(f.allocations, 1);
}

TEST_RIG(facade_streams, streams_of_one_pattern_have_a_stack_each, 0, NAMED) {
    strata_stream_t one = stream_called(rig, "copy0"), two = stream_called(rig, "copy1");
    strata_stack_t *first = rig_stack(rig, one), *second = rig_stack(rig, two);
    EXPECT_NE(first, second);
    EXPECT_EQ(first->group, second->group);
    EXPECT_STREQ(first->group->name, "copy*");
    EXPECT_NE(rig_stack(rig, NULL)->group, first->group);
    /* A pool's stack is the pool's, whatever the stream is called. */
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE};
    EXPECT_OK(strata_pool(rig->s, "weights", &options.pool));
    expect_route(rig, rig_allocate_with(rig, one, &options), "stream_safe > auto_growth | system");
}

TEST_RIG(facade_streams, a_name_comes_before_the_first_request, 0, NAMED) {
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, stream, "compute"));
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, stream, "copy0"));
    expect_served_by(rig, rig->gpu, stream, "buffered | system");
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, stream, "copy0"));
    EXPECT_SAYS(STRATA_E_BUSY, strata_stream_name(rig->s, rig->gpu, stream, "copy1"), "was already served as \"copy0\"");
    strata_stream_t late = rig_stream(rig);
    expect_served_by(rig, rig->gpu, late, "stream_safe > auto_growth | system");
    EXPECT_STATUS(STRATA_E_BUSY, strata_stream_name(rig->s, rig->gpu, late, "copy0"));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_name(rig->s, rig->gpu, NULL, "copy0"));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_name(rig->s, rig->gpu, STRATA_STREAM_LEGACY, "copy0"));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_name(rig->s, rig->gpu, STRATA_STREAM_PER_THREAD, "copy0"));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_name(rig->s, rig->gpu, rig_stream(rig), ""));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_name(rig->s, rig->gpu, rig_stream(rig), NULL));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_stream_name(rig->s, strata_pinned(), stream, "copy0"));
    EXPECT_STATUS(STRATA_E_INVALID, strata_stream_name(rig->s, strata_gpu(7), stream, "copy0"));
}

/* ---- stacks of each thread ---- */

typedef struct other_thread {
    rig_t *rig;
    strata_stream_t stream;
    strata_status_t status;
} other_thread_t;

static void *name_it(void *argument) {
    other_thread_t *other = argument;
    other->status = strata_stream_name(other->rig->s, other->rig->gpu, other->stream, "copy0");
    if (other->status != STRATA_OK) EXPECT_CONTAINS(strata_last_error()->text, "was already served as \"\"");
    return NULL;
}

/* Whoever asked first: the name is the stream's in all threads. */
TEST_RIG(facade_streams, a_name_comes_before_the_first_request_of_any_thread, GIB,
         "strategy: own\nstack: [thread_local, system]\nstreams: {\"copy*\": {stack: [buffered, system]}}\n") {
    other_thread_t early = {.rig = rig, .stream = rig_stream(rig)}, late = {.rig = rig, .stream = rig_stream(rig)};
    in_another_thread(name_it, &early);
    EXPECT_EQ(early.status, STRATA_OK);
    expect_served_by(rig, rig->gpu, early.stream, "buffered | system");
    expect_served_by(rig, rig->gpu, late.stream, "thread_local | system");
    in_another_thread(name_it, &late);
    EXPECT_EQ(late.status, STRATA_E_BUSY);
    expect_served_by(rig, rig->gpu, late.stream, "thread_local | system");
}

static void *make_it_the_default(void *argument) {
    other_thread_t *other = argument;
    rig_t *rig = other->rig;
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, other->stream));
    EXPECT_EQ(rig_stack(rig, NULL)->stream, other->stream);
    EXPECT_EQ(rig_stack(rig, NULL)->figures.growths, 0);
    return NULL;
}

/* NULL meant the legacy stream from the first, of the thread that opened, which has what was got ahead. */
TEST_RIG(facade_streams, a_default_one_set_after_the_first_stack_of_any_thread_gets_nothing_ahead, GIB,
         "strategy: own\nstack: [stream_safe, auto_growth: {preallocate: 64MiB}, thread_local, system]\n") {
    EXPECT_GT(rig_stack(rig, NULL)->figures.growths, 0);
    other_thread_t other = {.rig = rig, .stream = rig_stream(rig)};
    in_another_thread(make_it_the_default, &other);
}

TEST_RIG(facade_streams, a_forgotten_streams_name_is_forgotten, 0, NAMED) {
    strata_stream_t stream = stream_called(rig, "copy0");
    expect_served_by(rig, rig->gpu, stream, "buffered | system");
    rig_end_stream(rig, stream);
    strata_stream_t again = rig_stream(rig);
    EXPECT_EQ(again, stream);
    expect_served_by(rig, rig->gpu, again, "stream_safe > auto_growth | system");
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, again));
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, again, "copy1"));
    expect_served_by(rig, rig->gpu, again, "buffered | system");
}

TEST_RIG(facade_streams, many_names_and_their_bound, 0, NAMED) {
    char name[16];
    for (uintptr_t i = 0; i < 4096; i++) {
        snprintf(name, sizeof name, "s%u", (unsigned)i);
        EXPECT_OK(strata_stream_name(rig->s, rig->gpu, (strata_stream_t)(0x100000 + 16 * i), name));
    }
    EXPECT_STATUS(STRATA_E_LIMIT, strata_stream_name(rig->s, rig->gpu, (strata_stream_t)16, "one more"));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, (strata_stream_t)0x100000));
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, (strata_stream_t)16, "one more"));
}

TEST_RIG(facade_streams, names_show_in_figures_and_in_the_report, 64 * MIB, NAMED) {
    static char text[65536];
    strata_stream_t stream = stream_called(rig, "copy \"0\"\n");
    (void)rig_allocate(rig, stream, 40 * MIB);
    EXPECT_OK(strata_statistics_json(rig->s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "\", \"name\": \"copy \\\"0\\\"?\", \"thread\": 0, ");
    EXPECT_SAYS(STRATA_E_NO_MEMORY, rig_try(rig, stream, 30 * MIB), " \"copy \"0\"?\": ");
    EXPECT_CONTAINS(strata_last_error()->text, " \"copy \"0\"?\": reserved 40MiB, allocated 40MiB");
}
