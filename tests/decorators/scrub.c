/* scrub: nobody reads what another owner wrote; owners keep their own. */
#include "tests/decorators/decorators.h"

static strata_block_t allocate_for(rig_t *rig, const char *tag, strata_stream_t stream, size_t size) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .tag = tag};
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, stream, &options, &block));
    return block;
}

static uint8_t *bytes_of(rig_t *rig, const strata_block_t *b) {
    return strata_device_host_view(rig->devices[0], (uint64_t)(uintptr_t)b->ptr, b->size);
}

/* Bytes that are neither 0 nor `own`, red zones of a guard below passed over. */
static size_t foreign(rig_t *rig, const strata_block_t *b, uint8_t own) {
    const uint8_t *bytes = bytes_of(rig, b);
    size_t count = 0;
    for (size_t i = 0; i < b->size; i++) count += bytes[i] != 0 && bytes[i] != own && bytes[i] != 0xfd;
    return count;
}

static void open_scrubbed(rig_t *rig, const char *stack) {
    decorated_open(rig, stack, NULL, &(strata_sim_options_t){.contents = true});
}

static uint64_t figure(rig_t *rig, const char *row) { return decorated_figure(rig_stack(rig, NULL), "scrub", row); }

TEST(scrub, another_tag_gets_zeros_and_the_same_one_its_own) {
    RIG_BY(rig, open_scrubbed(&rig, "[retry, stream_safe, scrub, auto_growth, system]"));
    strata_block_t a = allocate_for(&rig, "weights", NULL, 4096);
    memset(bytes_of(&rig, &a), 7, 4096);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t again = allocate_for(&rig, "weights", NULL, 4096);
    EXPECT_EQ(again.ptr, a.ptr);
    EXPECT_EQ(bytes_of(&rig, &again)[100], 7);
    EXPECT_OK(strata_free(rig.s, again.ref));
    strata_block_t other = allocate_for(&rig, "activations", NULL, 4096);
    EXPECT_EQ(other.ptr, a.ptr);
    EXPECT_EQ(foreign(&rig, &other, 0), 0);
    EXPECT_OK(strata_free(rig.s, other.ref));
    /* And back: what `weights` had there is no longer its own. */
    memset(bytes_of(&rig, &other), 9, 4096);
    again = allocate_for(&rig, "weights", NULL, 4096);
    EXPECT_EQ(foreign(&rig, &again, 0), 0);
    EXPECT_OK(strata_free(rig.s, again.ref));
    EXPECT_EQ(figure(&rig, "zeroed"), 3);
    EXPECT_EQ(figure(&rig, "kept_bytes"), 4096);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill), 3);
}

TEST(scrub, a_block_of_two_owners_pieces_is_zeroed) {
    RIG_BY(rig, open_scrubbed(&rig, "[scrub, {auto_growth: {chunk_size: 8KiB}}, system]"));
    strata_block_t b = allocate_for(&rig, "b", NULL, 4096), a = allocate_for(&rig, "a", NULL, 4096);
    memset(bytes_of(&rig, &a), 1, 4096);
    memset(bytes_of(&rig, &b), 2, 4096);
    RIG_FREE(&rig, a, b);
    a = allocate_for(&rig, "a", NULL, 8192);
    EXPECT_EQ(foreign(&rig, &a, 1), 0);
    memset(bytes_of(&rig, &a), 1, 8192);
    EXPECT_OK(strata_free(rig.s, a.ref));
    /* A piece out of the middle of its own. */
    b = allocate_for(&rig, "a", NULL, 2048);
    EXPECT_EQ(bytes_of(&rig, &b)[1000], 1);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Many owners, sizes and streams, caches released now and then: nobody ever sees a byte of another one. */
static void random_owners(const char *stack) {
    static const char *const tags[] = {"one", "two", "three", NULL};
    strata_block_t live[24] = {{0}};
    uint64_t random = 5;
    RIG_BY(rig, open_scrubbed(&rig, stack));
    strata_stream_t streams[] = {rig_stream(&rig), rig_stream(&rig)};
    for (int i = 0; i < 3000 && !strata_test_has_failed(); i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t dice = random >> 33;
        strata_block_t *b = &live[dice % 24];
        if (b->ref) {
            EXPECT_OK(strata_free(rig.s, b->ref));
            b->ref = 0;
        } else {
            uint64_t owner = dice / 24 % 4;
            *b = allocate_for(&rig, tags[owner], streams[dice / 100 % 2], 1 + dice % 20000);
            EXPECT_EQ(foreign(&rig, b, (uint8_t)(owner + 1)), 0);
            memset(bytes_of(&rig, b), (int)owner + 1, b->size);
        }
        if (i % 100 == 99) EXPECT_OK(strata_validate(rig.s));
        if (i % 300 == 299) EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    }
    for (int i = 0; i < 24; i++)
        if (live[i].ref) EXPECT_OK(strata_free(rig.s, live[i].ref));
}

TEST(scrub, nobody_sees_a_byte_of_another_owner) {
    random_owners("[stream_safe, scrub, {auto_growth: {chunk_size: 64KiB}}, system]");
    random_owners("[scrub, {guard: {quarantine: 2, poison: false}}, auto_growth, system]");
    random_owners("[{aligned: {alignment: 1KiB}}, scrub, {auto_growth: {free_idle_chunk: true}}, {fill: {byte: 200}}, system]");
    random_owners("[scrub, {fill: {byte: 200}}, system]");
}

/* The memory that the device hands out may have been another stack's: a growth ends what is known. */
TEST(scrub, knowledge_ends_with_a_growth) {
    RIG_BY(rig, open_scrubbed(&rig, "[scrub, auto_growth, system]"));
    strata_block_t a = allocate_for(&rig, "a", NULL, 4096);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t large = allocate_for(&rig, "a", NULL, MIB);
    a = allocate_for(&rig, "a", NULL, 4096);
    EXPECT_EQ(figure(&rig, "zeroed"), 3);
    EXPECT_OK(strata_free(rig.s, a.ref));
    a = allocate_for(&rig, "a", NULL, 4096);
    EXPECT_EQ(figure(&rig, "zeroed"), 3);
    RIG_FREE(&rig, a, large);
}

TEST(scrub, zeroes_all_without_a_cache_or_when_told_to) {
    static const char *const stacks[] = {"[scrub, system]", "[{scrub: {always: true}}, auto_growth, system]"};
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, open_scrubbed(&rig, stacks[i]));
        for (int n = 1; n <= 3; n++) {
            strata_block_t a = allocate_for(&rig, "a", NULL, 4096);
            EXPECT_EQ(figure(&rig, "zeroed"), n);
            EXPECT_OK(strata_free(rig.s, a.ref));
        }
    }
}

TEST(scrub, on_the_stream_of_the_new_owner) {
    RIG_BY(rig, open_scrubbed(&rig, "[scrub, auto_growth, system]"));
    strata_stream_t stream = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t a = allocate_for(&rig, "a", stream, 4096);
    EXPECT_GT(strata_sim_stream_end(rig.devices[0], stream), strata_sim_stream_end(rig.devices[0], other));
    EXPECT_OK(strata_free(rig.s, a.ref));
}

TEST(scrub, a_failing_zero_serves_nothing_and_is_not_forgotten) {
    RIG_BY(rig, open_scrubbed(&rig, "[scrub, auto_growth, system]"));
    strata_block_t a = allocate_for(&rig, "a", NULL, 4096), none = {.ref = 3};
    memset(bytes_of(&rig, &a), 1, 4096);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4096, .tag = "b"};
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_fill, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate_with(rig.s, rig.gpu, NULL, &options, &none));
    EXPECT_EQ(none.ref, 3);
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    a = allocate_for(&rig, "b", NULL, 4096);
    EXPECT_EQ(foreign(&rig, &a, 0), 0);
    EXPECT_OK(strata_free(rig.s, a.ref));
}

/* Memory without an owner stream the host itself makes zero, before anybody has it. */
TEST(scrub, host_memory_without_a_device_call) {
    strata_place_t places[] = {strata_host(), strata_pinned()};
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, decorated_open(&rig, "[system]", "[scrub, auto_growth, system]", &(strata_sim_options_t){.contents = true}));
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4096, .tag = "weights"};
        strata_block_t a, b;
        ASSERT_OK(strata_allocate_with(rig.s, places[i], NULL, &options, &a));
        memset(a.ptr, 7, 4096);
        EXPECT_OK(strata_free(rig.s, a.ref));
        options.tag = "activations";
        uint64_t calls = strata_sim_calls(rig.devices[0]);
        ASSERT_OK(strata_allocate_with(rig.s, places[i], NULL, &options, &b));
        EXPECT_EQ(b.ptr, a.ptr);
        for (size_t k = 0; k < b.size; k++) EXPECT_EQ(((const unsigned char *)b.ptr)[k], 0);
        EXPECT_EQ(strata_sim_calls(rig.devices[0]), calls);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* Zeros that a graph writes when it is launched are none when the block is served. */
TEST(scrub, on_a_captured_stream_a_block_of_another_owner_is_refused) {
    RIG_BY(rig, open_scrubbed(&rig, "[scrub, auto_growth, system]"));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t a = allocate_for(&rig, "a", stream, 4096), b;
    memset(bytes_of(&rig, &a), 7, 4096);
    EXPECT_OK(strata_free(rig.s, a.ref));
    rig_begin_capture(&rig, stream);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4096, .tag = "b"};
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate_with(rig.s, rig.gpu, stream, &options, &b));
    rig_end_capture(&rig, stream);
    b = allocate_for(&rig, "b", stream, 4096);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(foreign(&rig, &b, 0), 0);
    EXPECT_OK(strata_free(rig.s, b.ref));
}
