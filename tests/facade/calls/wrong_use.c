/* Wrong use: every function that takes a name, with every name that is wrong. Each is an error that says whose the name was,
 * and nothing has changed. */
#include <stdio.h>

#include "facade/open/life.h"
#include "facade/registry/lookup.h"
#include "tests/facade/support/ends.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

enum { LONG = 1000 * 1000 };

/* What calls write into. */
typedef struct room {
    strata_block_t block;
    strata_stream_t stream;
    strata_neighbours_t neighbours;
    char text[64];
} room_t;

/* ---- refs ---- */

#define CALLS_BY_REF(X)                                                                                                            \
    X(strata_free(s, ref))                                                                                                         \
    X(strata_free_on(s, ref, stream))                                                                                              \
    X(strata_release_ref(s, ref))                                                                                                  \
    X(strata_retain(s, ref))                                                                                                       \
    X(strata_record_stream(s, ref, stream))                                                                                        \
    X(strata_erase_stream(s, ref, stream))                                                                                         \
    X(strata_stream_of(s, ref, &r.stream))                                                                                         \
    X(strata_allocation_route(s, ref, r.text, sizeof r.text))                                                                      \
    X(strata_neighbours(s, ref, &r.neighbours))                                                                                    \
    X(strata_stream_work(s, strata_gpu(0), stream, 9, &ref, 1))

/* Every call by a ref that names no live allocation of the facade. */
static void expect_stale(rig_t *rig, strata_ref_t ref, const char *const *words) {
    room_t r = {.neighbours = {.struct_size = sizeof r.neighbours}};
    strata_t s = rig->s;
    strata_stream_t stream = NULL;
    strata_statistics_t before = rig_figures(rig), after;
#define CALL(call)                                                                                                                 \
    EXPECT_STATUS(STRATA_E_STALE, call);                                                                                           \
    EXPECT_EQ(strata_last_error()->status, STRATA_E_STALE);                                                                        \
    for (int w = 0; words[w]; w++) EXPECT_CONTAINS(strata_last_error()->text, words[w]);
    CALLS_BY_REF(CALL)
#undef CALL
    after = rig_figures(rig);
    EXPECT_EQ(memcmp(&before, &after, sizeof before), 0);
    EXPECT_OK(strata_validate(s));
}

static const char *hexadecimal(strata_ref_t ref, char text[32]) {
    snprintf(text, 32, "%#llx", (unsigned long long)ref);
    return text;
}

/* "stream 0x7f..." as the errors have it. */
static const char *stream_word(strata_stream_t stream, char text[48]) {
    snprintf(text, 48, "of stream %p", stream);
    return text;
}

TEST(facade_wrong_use, a_freed_allocation_is_told_with_its_stack_and_tag) {
    for (size_t i = 0; strata_preset_name(i); i++) {
        char ref[32], plain_ref[32], of[48];
        RIG(rig, strata_preset_name(i), 0);
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t plain = rig_allocate(&rig, stream, 3000), tagged = rig_allocate_tagged(&rig, stream, 5000, "weights");
        RIG_FREE(&rig, plain, tagged);
        bool own = strata_ref_home(plain.ref) == rig_stack(&rig, stream)->number;
        if (strcmp(strata_preset_name(i), "strata") == 0) EXPECT_TRUE(own);
        const char *const words[] = {hexadecimal(tagged.ref, ref), "it was already freed", "gpu:0, stack", "tag \"weights\"", NULL};
        expect_stale(&rig, tagged.ref, words);
        const char *const plain_words[] = {hexadecimal(plain.ref, plain_ref), "it was already freed",
                                           own ? stream_word(stream, of) : "gpu:0, stack", NULL};
        expect_stale(&rig, plain.ref, plain_words);
        /* Served again, with a tag or without: the old name is the old one's. */
        (void)rig_allocate(&rig, stream, 5000);
        expect_stale(&rig, tagged.ref, words);
    }
}

TEST_RIG(facade_wrong_use, another_ones_tag_is_not_told, 0, "strata-malloc") {
    strata_block_t first = rig_allocate_tagged(rig, NULL, 5000, "first");
    EXPECT_OK(strata_free(rig->s, first.ref));
    strata_block_t second = rig_allocate_tagged(rig, NULL, 5000, "second");
    EXPECT_EQ(strata_ref_slot(first.ref), strata_ref_slot(second.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, first.ref));
    EXPECT_LACKS(strata_last_error()->text, "second");
    EXPECT_OK(strata_free(rig->s, second.ref));
    EXPECT_SAYS(STRATA_E_STALE, strata_free(rig->s, second.ref), "second");
}

TEST_RIG(facade_wrong_use, what_waits_for_other_streams_is_freed_all_the_same, 0, "strata") {
    strata_stream_t other = rig_stream(rig);
    strata_block_t a = rig_allocate_tagged(rig, NULL, 5000, "batch");
    rig_borrow(rig, a.ref, other, LONG);
    EXPECT_OK(strata_free(rig->s, a.ref));
    static const char *const words[] = {"it was already freed, and is in use by other streams", "tag \"batch\"", NULL};
    expect_stale(rig, a.ref, words);
    rig_advance(rig, 2 * LONG);
}

TEST(facade_wrong_use, another_facades_allocation_is_told_with_all_that_it_is) {
    rig_t rig, other;
    char facade[64], place[64];
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    rig_open(&other, "system", NULL, 0, 0, 1);
    strata_block_t theirs = rig_allocate_tagged(&other, NULL, 5000, "kv cache");
    snprintf(facade, sizeof facade, "belongs to another facade, facade %#llx", (unsigned long long)other.s);
    snprintf(place, sizeof place, "%zu bytes at %p", theirs.size, theirs.ptr);
    const char *const words[] = {facade, place, "gpu:0, stack", "tag \"kv cache\"", NULL};
    expect_stale(&rig, theirs.ref, words);
    EXPECT_EQ(rig_figures(&other).live_allocations, 1);
    EXPECT_OK(strata_free(other.s, theirs.ref));
    rig_close(&other);
    static const char *const ended[] = {"its stack was closed", NULL};
    expect_stale(&rig, theirs.ref, ended);
    rig_close(&rig);
}

TEST_RIG(facade_wrong_use, another_facades_freed_allocation_is_told_with_its_stack_and_tag, 0, "strata") {
    char facade[96], of[48];
    RIG(other, "strata", 0);
    strata_stream_t stream = rig_stream(&other), third = rig_stream(&other);
    strata_block_t theirs = rig_allocate_tagged(&other, stream, 5000, "kv cache");
    strata_block_t waiting = rig_allocate_tagged(&other, stream, 700, "batch");
    rig_borrow(&other, waiting.ref, third, LONG);
    RIG_FREE(&other, theirs, waiting);
    snprintf(facade, sizeof facade, "belongs to another facade, facade %#llx, where it was already freed",
             (unsigned long long)other.s);
    const char *const words[] = {facade, "gpu:0, stack", stream_word(stream, of), "tag \"kv cache\"", NULL};
    expect_stale(rig, theirs.ref, words);
    const char *const deferred[] = {facade, "freed, and is in use by other streams; gpu:0", "tag \"batch\"", NULL};
    expect_stale(rig, waiting.ref, deferred);
    /* Served again, it is the new one that lives. */
    strata_block_t again = rig_allocate_tagged(&other, stream, 5000, "next");
    EXPECT_EQ(strata_ref_slot(again.ref), strata_ref_slot(theirs.ref));
    expect_stale(rig, theirs.ref, (const char *const[]){facade, "gpu:0, stack", NULL});
    EXPECT_LACKS(strata_last_error()->text, "next");
    EXPECT_OK(strata_free(other.s, again.ref));
    rig_advance(&other, 2 * LONG);
}

/* That it is in another facade is all that is true of a name that this one never gave either. */
TEST_RIG(facade_wrong_use, what_another_facade_never_gave_was_not_freed_there, 0, "strata") {
    RIG(other, "strata", 0);
    strata_block_t theirs = rig_allocate_tagged(&other, NULL, 5000, "kv cache");
    const strata_ref_t refs[] = {theirs.ref + 1, strata_ref_make(strata_ref_home(theirs.ref), 0, 0),
                                 strata_ref_make(strata_ref_home(theirs.ref), STRATA_SLAB_SLOTS - 1, 0)};
    static const char *const words[] = {"belongs to another facade, facade 0x", NULL};
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        expect_stale(rig, refs[i], words);
        EXPECT_LACKS(strata_last_error()->text, "freed");
        EXPECT_LACKS(strata_last_error()->text, "tag");
    }
}

TEST_RIG(facade_wrong_use, names_that_nobody_gave, 0, "strata") {
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    strata_stack_t *shared = rig_domain(rig)->first_stack;
    const strata_ref_t refs[] = {0,
                                 1,
                                 UINT64_MAX,
                                 a.ref + 1,
                                 a.ref - 1,
                                 a.ref ^ (1ull << 63),
                                 a.ref + (1ull << 28),
                                 strata_ref_make(strata_ref_home(a.ref), STRATA_SLAB_SLOTS - 1, 0),
                                 strata_ref_make(strata_ref_home(a.ref), 0, 0),
                                 strata_ref_of(strata_slab_record(&shared->slab, 1)) /* a chunk */};
    static const char *const words[] = {"ref 0x", NULL}, *const none[] = {"it was never allocated", NULL};
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        expect_stale(rig, refs[i], i == 0 ? none : words);
        EXPECT_LACKS(strata_last_error()->text, ", facade ");
    }
    uint64_t random = 99;
    for (int i = 0; i < 2000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        strata_ref_t ref = i % 2 ? random : a.ref ^ (random >> 40);
        if (ref != a.ref) EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, ref));
    }
}

/* ---- pointers ---- */

#define CALLS_BY_POINTER(X)                                                                                                        \
    X(strata_free_pointer(s, ptr))                                                                                                 \
    X(strata_block_of(s, ptr, &block))                                                                                             \
    X(strata_base_pointer(s, ptr, &block))

/* `inside`: an address within a block is none for the first two, and found by the third. */
static void expect_unknown(rig_t *rig, void *ptr, bool inside, const char *const *words) {
    strata_t s = rig->s;
    strata_block_t block = {.ref = 7};
    strata_statistics_t before = rig_figures(rig), after;
    int number = 0;
#define CALL(call)                                                                                                                 \
    if (inside && ++number == 3) {                                                                                                 \
        EXPECT_OK(call);                                                                                                           \
    } else {                                                                                                                       \
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, call);                                                                             \
        for (int w = 0; words[w]; w++) EXPECT_CONTAINS(strata_last_error()->text, words[w]);                                       \
        EXPECT_EQ(block.ref, 7);                                                                                                   \
    }
    CALLS_BY_POINTER(CALL)
#undef CALL
    after = rig_figures(rig);
    EXPECT_EQ(memcmp(&before, &after, sizeof before), 0);
    EXPECT_OK(strata_validate(s));
}

TEST(facade_wrong_use, unknown_pointers_are_told_with_whose_memory_it_is) {
    for (size_t i = 0; strata_preset_name(i); i++) {
        char at[64];
        RIG(rig, strata_preset_name(i), 0);
        strata_block_t a = rig_allocate_tagged(&rig, NULL, 5000, "weights");
        (void)rig_allocate(&rig, NULL, 5000);
        strata_block_t b = rig_allocate_tagged(&rig, NULL, 700, "gone");
        EXPECT_OK(strata_free_pointer(rig.s, b.ptr));
        static const char *const none[] = {"no live allocation of this facade", NULL};
        expect_unknown(&rig, &rig, false, none);
        expect_unknown(&rig, (void *)1, false, none);
        expect_unknown(&rig, (void *)UINTPTR_MAX, false, none);
        snprintf(at, sizeof at, "it is 256 bytes inside %zu bytes at %p", a.size, a.ptr);
        const char *const inside[] = {at, "gpu:0, stack", "tag \"weights\"", NULL};
        expect_unknown(&rig, (char *)a.ptr + 256, true, inside);
        static const char *const freed[] = {"was freed", "gpu:0, stack", "tag \"gone\"", NULL};
        expect_unknown(&rig, b.ptr, false, freed);
    }
}

/* Nothing is known any more of what was served by a stream that has ended, beside live memory of another. */
TEST_RIG(facade_wrong_use, a_pointer_of_a_stream_that_has_ended_is_unknown, 0, "stack: [auto_growth: {chunk_size: 0}, system]\n") {
    static const char *const none[] = {"no live allocation of this facade", NULL};
    strata_stream_t gone = rig_stream(rig);
    strata_block_t first = rig_allocate(rig, gone, 1000), beside = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_free_pointer(rig->s, first.ptr));
    rig_forget(rig, gone);
    EXPECT_GT(rig_release(rig), 0);
    EXPECT_EQ(rig_domain(rig)->orphans, 0);
    expect_unknown(rig, first.ptr, false, none);
    EXPECT_LACKS(strata_last_error()->text, "was freed");
    EXPECT_OK(strata_free_pointer(rig->s, beside.ptr));
}

TEST(facade_wrong_use, another_facades_pointer_is_told_as_such) {
    strata_sim_options_t options = {.devices = 1};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy("strata", NULL, 0);
    strata_t other = 0;
    char facade[64];
    RIG_BY(rig, rig_open_on(&rig, strategy, &options, 0));
    ASSERT_OK(strata_facade_open_on(strategy, rig.devices, 1, 0, &other));
    strata_block_t theirs = {0};
    strata_allocate_options_t asked = {.struct_size = sizeof asked, .size = 4000, .tag = "their own"};
    EXPECT_OK(strata_allocate_with(other, rig.gpu, NULL, &asked, &theirs));
    snprintf(facade, sizeof facade, "of facade %#llx", (unsigned long long)other);
    const char *const words[] = {facade, "tag \"their own\"", "gpu:0, stack", NULL};
    expect_unknown(&rig, theirs.ptr, false, words);
    EXPECT_OK(strata_free(other, theirs.ref));
    EXPECT_OK(strata_close(other, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* ---- streams ---- */

TEST_BY(facade_wrong_use, a_recycled_handle_is_told_with_what_its_old_stack_holds,
        rig_open_with(rig, "strata", &(strata_sim_options_t){0}, STRATA_OPEN_CHECK_STREAM_IDS)) {
    strata_stream_t stream = rig_stream(rig), old = stream;
    strata_block_t a = rig_allocate_tagged(rig, stream, 5000, "activations"), none = {.ref = 7};
    strata_block_t mine = rig_allocate(rig, NULL, 100);
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
    stream = rig_stream(rig);
    EXPECT_EQ(stream, old);
    strata_status_t answers[3];
    for (int i = 0; i < 3; i++) {
        strata_allocate_options_t asked = {.struct_size = sizeof asked, .size = 10};
        answers[i] = i == 0   ? strata_allocate(rig->s, rig->gpu, stream, 10, &none)
                     : i == 1 ? strata_allocate_with(rig->s, rig->gpu, stream, &asked, &none)
                              : strata_record_stream(rig->s, mine.ref, stream);
        EXPECT_EQ(answers[i], STRATA_E_UNKNOWN_STREAM);
        const char *text = strata_last_error()->text;
        EXPECT_CONTAINS(text, "strata_stream_forget");
        EXPECT_CONTAINS(text, "of gpu:0 was destroyed");
        EXPECT_CONTAINS(text, "has 1 allocations");
        EXPECT_CONTAINS(text, "tag \"activations\"");
        EXPECT_EQ(none.ref, 7);
    }
    /* What is live can be freed, and the handle is the new stream's once the old one is forgotten. */
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_record_stream(rig->s, mine.ref, stream));
    RIG_FREE(rig, a, mine);
    strata_block_t b = rig_allocate(rig, stream, 10);
    EXPECT_OK(strata_free(rig->s, b.ref));
}

/* ---- facades and places ---- */

TEST(facade_wrong_use, a_facade_that_is_not_open_is_told_by_every_function) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    strata_stream_t stream = rig_stream(&rig);
    strata_t closed = rig.s;
    rig_close_by_force(&rig);
    const struct {
        strata_t handle;
        const char *why;
    } handles[] = {{closed, "it was closed"},
                   {0, "0 is not a facade"},
                   {UINT64_MAX, "it was never opened"},
                   {closed + (1ull << 40), "it was never opened"}};
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        ends_t ends = {.s = handles[i].handle, .place = strata_gpu(0), .stream = stream, .block = a};
        const char *name;
        strata_status_t status = STRATA_OK;
        for (size_t call = 0; (name = ends_call(&ends, call, &status)) != NULL; call++) {
            if (status != STRATA_E_STALE) FAIL_TEST("%s answered %s", name, strata_status_name(status));
            if (!strstr(strata_last_error()->text, handles[i].why)) FAIL_TEST("%s: %s", name, strata_last_error()->text);
        }
        EXPECT_STATUS(STRATA_E_STALE, strata_facade_ready(handles[i].handle));
        EXPECT_STATUS(STRATA_E_STALE, strata_close(handles[i].handle, STRATA_CLOSE_FORCE, NULL, NULL));
    }
}

/* The thread knows where the facade's pointers are found; that ends with the facade. */
TEST(facade_wrong_use, a_thread_that_freed_by_pointer_is_told_that_the_facade_was_closed) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_block_t kept = rig_allocate(&rig, NULL, 1000), freed = rig_allocate(&rig, NULL, 1000);
    strata_t closed = rig.s;
    EXPECT_OK(strata_free_pointer(rig.s, freed.ptr));
    uint32_t before = atomic_load(&strata_lookup_epoch);
    rig_close_by_force(&rig);
    EXPECT_NE(atomic_load(&strata_lookup_epoch), before);
    EXPECT_SAYS(STRATA_E_STALE, strata_free_pointer(closed, kept.ptr), "it was closed");
    EXPECT_SAYS(STRATA_E_STALE, strata_free_pointer(closed, freed.ptr), "it was closed");
}

/* Kinds that there are not, devices that the facade has not. */
TEST_RIG(facade_wrong_use, a_place_that_is_none_is_told_by_every_function, 0, "strata") {
    const strata_place_t places[] = {strata_place((strata_place_kind_t)9, 0), strata_gpu(1), strata_gpu(15), strata_gpu(0xffff),
                                     strata_place(STRATA_PLACE_PINNED, 3),    UINT32_MAX};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *name;
        strata_status_t status = STRATA_OK;
        ends_t ends = {.s = rig->s, .place = places[i]};
        for (size_t call = 0; (name = ends_call(&ends, call, &status)) != NULL; call++) {
            if (!strstr(name, "(s, place")) continue;
            if (status != STRATA_E_INVALID && status != STRATA_E_UNSUPPORTED)
                FAIL_TEST("%s answered %s in place %#x", name, strata_status_name(status), (unsigned)places[i]);
        }
    }
}

TEST_RIG(facade_wrong_use, the_operator_that_asked_is_told_with_its_step, 0, "strata") {
    EXPECT_OK(strata_step(rig->s));
    EXPECT_OK(strata_annotate(rig->s, "conv1"));
    strata_block_t tagged = rig_allocate_tagged(rig, NULL, 5000, "weights"), plain = rig_allocate(rig, NULL, 3000);
    EXPECT_OK(strata_annotate(rig->s, NULL));
    RIG_FREE(rig, tagged, plain);
    const char *const words[] = {"it was already freed", "tag \"weights\", operator \"conv1\" of step 1", NULL};
    expect_stale(rig, tagged.ref, words);
    expect_stale(rig, plain.ref, (const char *const[]){"it was already freed", ", operator \"conv1\" of step 1", NULL});
}
