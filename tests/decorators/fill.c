/* fill: every byte of every request, once, in stream order; and fault: requests that fail on order. */
#include <stdio.h>

#include "tests/decorators/decorators.h"

static bool all_are(rig_t *rig, const strata_block_t *b, uint8_t byte) {
    const uint8_t *view = strata_device_host_view(rig->devices[0], (uint64_t)(uintptr_t)b->ptr, b->size);
    for (size_t i = 0; view && i < b->size; i++)
        if (view[i] != byte) return false;
    return view != NULL;
}

/* Paddle's alloc_fill_value: each block holds the value when it is served, a cached one too. The peer fills once in every layer
 * of the stack; here it is once. */
TEST(fill, paddle_alloc_fill_value) {
    RIG_BY(rig, decorated_open(&rig, "[retry, {fill: {byte: 171}}, stream_safe, auto_growth, system]", NULL,
                               &(strata_sim_options_t){.contents = true}));
    for (int i = 0; i < 3; i++) {
        strata_block_t b = rig_allocate(&rig, NULL, 1000);
        EXPECT_TRUE(all_are(&rig, &b, 171));
        memset(strata_device_host_view(rig.devices[0], (uint64_t)(uintptr_t)b.ptr, b.size), 5, b.size);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill), 3);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
}

/* Paddle's sync_after_alloc. */
TEST(fill, paddle_sync_after_alloc) {
    for (int synchronise = 0; synchronise < 2; synchronise++) {
        DECORATED(rig, synchronise ? "[{fill: {synchronise: true}}, auto_growth, system]" : "[fill, auto_growth, system]", 0);
        strata_stream_t other = rig_stream(&rig);
        rig_work(&rig, other, 50 * 1000 * 1000, 0);
        uint64_t done = strata_sim_stream_end(rig.devices[0], other);
        strata_block_t b = rig_allocate(&rig, NULL, 1000);
        EXPECT_EQ(strata_sim_now(rig.world) >= done, synchronise);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), (uint64_t)synchronise);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(fill, is_on_the_stream_of_the_request) {
    DECORATED(rig, "[fill, auto_growth, system]", 0);
    strata_stream_t stream = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t b = rig_allocate(&rig, stream, 1000);
    EXPECT_GT(strata_sim_stream_end(rig.devices[0], stream), strata_sim_stream_end(rig.devices[0], other));
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(fill, host_memory_without_a_device_call) {
    RIG_BY(rig, decorated_open(&rig, "[system]", "[{fill: {byte: 7}}, system]", &(strata_sim_options_t){0}));
    strata_place_t places[] = {strata_host(), strata_pinned()};
    for (int i = 0; i < 2; i++) {
        strata_block_t b;
        ASSERT_OK(strata_allocate(rig.s, places[i], NULL, 1000, &b));
        const uint8_t *bytes = b.ptr;
        EXPECT_TRUE(bytes[0] == 7 && bytes[500] == 7 && bytes[999] == 7);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill), 0);
}

TEST(fill, a_failing_fill_gives_the_block_back) {
    strata_block_t b = {.ref = 3};
    DECORATED(rig, "[{fill: {synchronise: true}}, system]", 0);
    static const strata_device_call_t calls[] = {STRATA_CALL_fill, STRATA_CALL_synchronise};
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(strata_sim_fail(rig.devices[0], calls[i], 1, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, 1000, &b));
        EXPECT_EQ(b.ref, 3);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        strata_sim_clear_faults(rig.devices[0]);
    }
}

/* ---- fault ---- */

/* Which of 200 requests of 1, 2, ... KiB fail, as a text of . and x. */
static void draw(const char *layer, char *text) {
    char stack[128];
    snprintf(stack, sizeof stack, "[%s, system]", layer);
    DECORATED(rig, stack, 0);
    strata_allocate_options_t options = {.struct_size = sizeof options, .flags = STRATA_NO_RETRY};
    uint64_t failed = 0;
    for (size_t i = 0; i < 200; i++) {
        strata_block_t b;
        options.size = (i + 1) * 1024;
        strata_status_t status = strata_allocate_with(rig.s, rig.gpu, NULL, &options, &b);
        text[i] = status == STRATA_OK ? '.' : 'x';
        failed += status != STRATA_OK;
        if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
        else EXPECT_STATUS(strstr(layer, "device") ? STRATA_E_DEVICE : STRATA_E_NO_MEMORY, status);
    }
    text[200] = 0;
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "fault", "requests"), 200);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "fault", "failed"), failed);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 200 - failed);
}

static size_t failures(const char *text) {
    size_t count = 0;
    for (; *text; text++) count += *text == 'x';
    return count;
}

TEST(fault, by_count_and_by_size) {
    char text[201];
    draw("{fault: {}}", text);
    EXPECT_EQ(failures(text), 0);
    draw("{fault: {at: 7}}", text);
    EXPECT_TRUE(failures(text) == 1 && text[6] == 'x');
    draw("{fault: {at: 190, onward: true, says: device}}", text);
    EXPECT_TRUE(failures(text) == 11 && text[189] == 'x' && text[199] == 'x');
    draw("{fault: {every: 50}}", text);
    EXPECT_TRUE(failures(text) == 4 && text[49] == 'x' && text[199] == 'x');
    draw("{fault: {above: 150KiB}}", text);
    EXPECT_TRUE(failures(text) == 50 && text[149] == '.' && text[150] == 'x');
}

TEST(fault, at_random_by_the_seed_alone) {
    char one[201], again[201], other[201];
    draw("{fault: {probability: 0.25, seed: 42}}", one);
    draw("{fault: {probability: 0.25, seed: 42}}", again);
    draw("{fault: {probability: 0.25, seed: 43}}", other);
    EXPECT_STREQ(one, again);
    EXPECT_NE(strcmp(one, other), 0);
    EXPECT_NEAR(failures(one), 50, 20);
    EXPECT_NEAR(failures(other), 50, 20);
    draw("{fault: {probability: 1}}", one);
    EXPECT_EQ(failures(one), 200);
}

/* What a caller sees of one refusal: nothing, for the ladder tries again. */
TEST(fault, one_refusal_is_the_ladders) {
    DECORATED(rig, "[retry, stream_safe, auto_growth, {fault: {at: 2}}, system]", 0);
    strata_block_t a = rig_allocate(&rig, NULL, MIB), b = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "fault", "failed"), 1);
    RIG_FREE(&rig, a, b);
}

/* A fill there would be done at each launch of the program's graph, and not now. */
TEST(fill, a_captured_stream_is_not_filled_on) {
    RIG_BY(rig,
           decorated_open(&rig, "[{fill: {byte: 171}}, auto_growth, system]", NULL, &(strata_sim_options_t){.contents = true}));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t b;
    rig_begin_capture(&rig, stream);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate(rig.s, rig.gpu, stream, 1000, &b));
    rig_end_capture(&rig, stream);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill), 0);
    b = rig_allocate(&rig, stream, 1000);
    EXPECT_TRUE(all_are(&rig, &b, 171));
    EXPECT_OK(strata_free(rig.s, b.ref));
}
