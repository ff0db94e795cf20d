/* Uses that wait BY_SEARCH: one event stands for those of its stream before it, and for no other. */
#include "allocation/uses/uses.h"

#include "tests/allocation/bench.h"

enum { MOST = 20, STREAMS = 2, LONG = 1000 * 1000 };

typedef struct searched {
    bench_t bench;
    strata_uses_t uses;
    strata_stream_t streams[STREAMS];
    uint64_t ends[STREAMS][MOST]; /* when the work before each use is done */
} searched_t;

static strata_call_t enter(searched_t *s) {
    strata_call_t call = {.stack = s->bench.stack};
    strata_lock(&s->bench.stack->lock);
    call.held[0] = s->bench.stack;
    return call;
}

static void begin(searched_t *s) {
    bench_open_cache(&s->bench, 0, NULL);
    ASSERT_OK(strata_uses_init(&s->uses, s->bench.stack, STRATA_USES_BY_SEARCH));
    for (int i = 0; i < STREAMS; i++)
        ASSERT_OK(strata_device_stream_create(s->bench.device, STRATA_STREAM_NON_BLOCKING, 0, &s->streams[i]));
}

static void end(searched_t *s) {
    strata_uses_destroy(&s->uses);
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(strata_device_stream_destroy(s->bench.device, s->streams[i]));
    bench_close(&s->bench);
}

/* A block of so many bytes is freed, of which the stream's work so far may be a use. */
static void append(searched_t *s, int stream, uint64_t bytes) {
    strata_call_t call = enter(s);
    EXPECT_NE(strata_uses_append(&s->uses, strata_uses_user(&s->uses, s->streams[stream]), bytes, &call), 0);
    (void)strata_call_unlock(&call);
}

static void work(searched_t *s, int stream) { ASSERT_OK(strata_device_work(s->bench.device, s->streams[stream], LONG, NULL, 0)); }

/* `count` blocks on each stream, each after work of its own; the sizes tell which they are. */
static void fill(searched_t *s, int streams, int count) {
    for (int i = 0; i < count; i++)
        for (int stream = 0; stream < streams; stream++) {
            work(s, stream);
            append(s, stream, 1ull << (i + stream * MOST));
            s->ends[stream][i] = strata_sim_stream_end(s->bench.device, s->streams[stream]);
        }
}

static uint64_t first_of(int count) { return (1ull << count) - 1; }

static uint64_t taken(searched_t *s, uint32_t (*look)(strata_uses_t *uses)) {
    strata_record_t *record;
    uint64_t bytes, sum = 0;
    strata_call_t call = enter(s);
    for (uint32_t done = look(&s->uses); strata_uses_pop_done(&s->uses, &done, &record, &bytes);) sum += bytes;
    (void)strata_call_unlock(&call);
    EXPECT_OK(strata_uses_validate(&s->uses, "searched"));
    return sum;
}

static uint64_t queries(const searched_t *s) { return atomic_load(&s->bench.device->calls[STRATA_CALL_event_query]); }

/* However far the stream is, and however far it was at the search before. */
TEST(searched_uses, exactly_what_has_passed_is_found) {
    OPENED(searched_t, s, end, begin(&s));
    for (int before = 0; before <= MOST; before++)
        for (int far = 0; far <= MOST; far++) {
            fill(&s, 1, MOST);
            if (before > 0) strata_sim_advance_to(s.bench.world, s.ends[0][before - 1]);
            EXPECT_EQ(taken(&s, strata_uses_poll), first_of(before));
            if (far > 0) strata_sim_advance_to(s.bench.world, s.ends[0][far - 1]);
            EXPECT_EQ(taken(&s, strata_uses_poll), far > before ? first_of(far) & ~first_of(before) : 0);
            strata_sim_advance_to(s.bench.world, s.ends[0][MOST - 1]);
            EXPECT_EQ(s.uses.pending_bytes, first_of(MOST) & ~first_of(far > before ? far : before));
            (void)taken(&s, strata_uses_poll);
            EXPECT_EQ(s.uses.pending_bytes, 0);
        }
}

TEST(searched_uses, one_stream_says_nothing_of_another) {
    OPENED(searched_t, s, end, begin(&s));
    ASSERT_OK(strata_device_work(s.bench.device, s.streams[1], 2 * MOST * LONG, NULL, 0));
    fill(&s, 2, MOST);
    strata_sim_advance_to(s.bench.world, s.ends[0][MOST - 1]);
    EXPECT_EQ(taken(&s, strata_uses_poll), first_of(MOST));
    strata_sim_advance_to(s.bench.world, s.ends[1][0]);
    EXPECT_EQ(taken(&s, strata_uses_poll), 1ull << MOST);
    strata_sim_advance_to(s.bench.world, s.ends[1][MOST - 1]);
    EXPECT_EQ(taken(&s, strata_uses_poll), first_of(2 * MOST) & ~first_of(MOST + 1));
}

TEST(searched_uses, few_questions_find_many) {
    OPENED(searched_t, s, end, begin(&s));
    for (int round = 0; round < 4; round++) {
        fill(&s, 1, MOST);
        uint64_t before = queries(&s);
        EXPECT_EQ(taken(&s, strata_uses_poll), 0);
        EXPECT_LE(queries(&s) - before, round == 0 ? 1 : 6);
        strata_sim_advance_to(s.bench.world, s.ends[0][MOST - 1]);
        before = queries(&s);
        EXPECT_EQ(taken(&s, strata_uses_poll), first_of(MOST));
        EXPECT_LE(queries(&s) - before, 7);
    }
}

/* What waited at the glance before is found by one question, and what came later is not asked for. */
TEST(searched_uses, a_glance_asks_for_what_the_one_before_has_seen) {
    OPENED(searched_t, s, end, begin(&s));
    fill(&s, 1, MOST / 2);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), 0);
    EXPECT_EQ(queries(&s), 0);
    fill(&s, 1, MOST);
    strata_sim_advance_to(s.bench.world, s.ends[0][0] - LONG - 1);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), 0);
    EXPECT_EQ(queries(&s), 1);
    strata_sim_advance_to(s.bench.world, s.ends[0][0] - LONG);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), first_of(MOST / 2));
    EXPECT_EQ(s.uses.pending_bytes, first_of(MOST));
    EXPECT_EQ(queries(&s), 2);
    strata_sim_advance_to(s.bench.world, s.ends[0][MOST - 1]);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), first_of(MOST));
    EXPECT_EQ(queries(&s), 3);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), 0);
    EXPECT_EQ(queries(&s), 3);
}

/* What the glance would ask for has passed by a poll, and its place in the tables is another's. */
TEST(searched_uses, a_glance_forgets_what_a_poll_has_found) {
    OPENED(searched_t, s, end, begin(&s));
    fill(&s, 1, 3);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), 0);
    strata_sim_advance_to(s.bench.world, s.ends[0][2]);
    EXPECT_EQ(taken(&s, strata_uses_poll), first_of(3));
    fill(&s, 1, 3);
    uint64_t before = queries(&s);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief), 0);
    EXPECT_EQ(queries(&s), before);
    EXPECT_EQ(s.uses.pending_bytes, first_of(3));
}

/* A capture that nobody announced: what its events stand for is never done, wherever it lies among the others. */
TEST(searched_uses, what_was_recorded_in_a_capture_is_lost_alone) {
    for (int captured = 0; captured < 5; captured++)
        for (int look = 0; look < 2; look++) {
            OPENED(searched_t, s, end, begin(&s));
            for (int i = 0; i < 5; i++) {
                strata_handle_t graph;
                if (i == captured) ASSERT_OK(strata_device_capture_begin(s.bench.device, s.streams[0], STRATA_CAPTURE_RELAXED));
                append(&s, 0, 1ull << i);
                if (i != captured) continue;
                ASSERT_OK(strata_device_capture_end(s.bench.device, s.streams[0], &graph));
                EXPECT_OK(strata_device_graph_destroy(s.bench.device, graph));
            }
            uint64_t others = first_of(5) & ~(1ull << captured), found = look ? taken(&s, strata_uses_poll_brief) : 0;
            for (int i = 0; i < 4; i++) found |= taken(&s, look ? strata_uses_poll_brief : strata_uses_poll);
            EXPECT_EQ(found, others);
            EXPECT_EQ(s.uses.pending_bytes, 0);
            EXPECT_EQ(s.bench.stack->figures.quarantined_bytes, 1ull << captured);
        }
}

/* All that a stream that ends has left is marked by one event. */
TEST(searched_uses, a_stream_that_ends_is_searched_too) {
    OPENED(searched_t, s, end, begin(&s));
    fill(&s, 1, 3);
    strata_call_t call = enter(&s);
    strata_uses_stream_destroyed(&s.uses, s.streams[0], &call);
    (void)strata_call_unlock(&call);
    EXPECT_EQ(taken(&s, strata_uses_poll), 0);
    strata_sim_advance_to(s.bench.world, s.ends[0][1]);
    EXPECT_EQ(taken(&s, strata_uses_poll), first_of(2));
    strata_sim_advance_to(s.bench.world, s.ends[0][2]);
    EXPECT_EQ(taken(&s, strata_uses_poll_brief) | taken(&s, strata_uses_poll_brief), first_of(3) & ~first_of(2));
    EXPECT_EQ(s.uses.users.index.count, 0);
}
