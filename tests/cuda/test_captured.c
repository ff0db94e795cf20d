/* Facades beside a capture that the program began and told nobody of: what a free or a wait does must leave it alone. */
#include "facade/registry/facade.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

enum { SIZE = 4 << 20 };

typedef struct captured {
    strata_t s;
    strata_place_t place;
    strata_stream_t stream, other;
    CUstream borrower;
    strata_block_t block;
} captured_t;

/* A facade of `stack`, a block of a stream of its own, and a stream of the program's that is being captured. */
static void begin(captured_t *c, const char *stack) {
    strata_cuda_driver_t program = fake_table();
    CUcontext popped;
    fake_reset();
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = stack, .devices = "gpu:0", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    *c = (captured_t){.place = strata_gpu(0)};
    ASSERT_OK(strata_open(&options, &c->s));
    ASSERT_OK(strata_stream_create(c->s, c->place, 0, &c->stream));
    ASSERT_OK(strata_stream_create(c->s, c->place, 0, &c->other));
    ASSERT_OK(strata_allocate(c->s, c->place, c->stream, SIZE, &c->block));
    program.CtxPushCurrent(fake_context(0));
    EXPECT_EQ(program.StreamCreateWithPriority(&c->borrower, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    EXPECT_EQ(program.StreamBeginCapture(c->borrower, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    program.CtxPopCurrent(&popped);
}

static void end_capture(captured_t *c) {
    strata_cuda_driver_t program = fake_table();
    CUcontext popped;
    CUgraph graph;
    program.CtxPushCurrent(fake_context(0));
    EXPECT_EQ(program.StreamEndCapture(c->borrower, &graph), CUDA_SUCCESS);
    program.CtxPopCurrent(&popped);
}

/* Until now the capture was whole, and nobody has waited for the device. */
static void end_whole_capture(captured_t *c) {
    EXPECT_EQ(fake_capture_of(c->borrower), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(fake_count("CtxSynchronize"), 0);
    end_capture(c);
}

static void leave(captured_t *c) {
    EXPECT_OK(strata_close(c->s, STRATA_CLOSE_FORCE, NULL, NULL));
    fake_reset();
}

static void end(captured_t *c) {
    end_whole_capture(c);
    leave(c);
}

static strata_statistics_t figures(const captured_t *c) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c->s, c->place, &figures));
    return figures;
}

static bool serves_the_same_memory(captured_t *c, strata_stream_t stream) {
    strata_block_t next;
    EXPECT_OK(strata_allocate(c->s, c->place, stream, SIZE, &next));
    EXPECT_OK(strata_free(c->s, next.ref));
    return next.ptr == c->block.ptr;
}

TEST(cuda_captured, a_free_that_would_wait_on_the_host_for_a_captured_stream_quarantines_the_block) {
    OPENED(captured_t, c, end, begin(&c, "stack: [{auto_growth: {chunk_size: 4MiB}}, {system: {}}]\n"));
    EXPECT_OK(strata_record_stream(c.s, c.block.ref, c.borrower));
    EXPECT_OK(strata_free(c.s, c.block.ref));
    EXPECT_EQ(figures(&c).quarantined_bytes, c.block.size);
    EXPECT_FALSE(serves_the_same_memory(&c, c.stream));
}

TEST(cuda_captured, a_captured_stream_is_forgotten_without_a_wait_for_the_device) {
    OPENED(captured_t, c, end, begin(&c, "stack: [{auto_growth: {chunk_size: 4MiB}}, {system: {}}]\n"));
    EXPECT_OK(strata_record_stream(c.s, c.block.ref, c.borrower));
    EXPECT_OK(strata_stream_forget(c.s, c.place, c.borrower));
}

/* The block's use is an event of the capture, which is never waited for. */
TEST(cuda_captured, caching_that_is_out_of_memory_waits_for_no_captured_use_but_for_those_of_other_streams) {
    strata_block_t large, second;
    OPENED(captured_t, c, end, begin(&c, "stack: [caching, system]\n"));
    ASSERT_OK(strata_allocate(c.s, c.place, c.stream, SIZE, &second));
    EXPECT_OK(strata_record_stream(c.s, c.block.ref, c.borrower));
    EXPECT_OK(strata_record_stream(c.s, second.ref, c.other));
    EXPECT_OK(strata_free(c.s, c.block.ref));
    fake_submit((CUstream)c.other);
    EXPECT_OK(strata_free(c.s, second.ref));
    EXPECT_EQ(figures(&c).deferred_bytes, c.block.size + second.size);
    fake_fail("MemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(strata_allocate(c.s, c.place, c.stream, 16 * SIZE, &large));
    EXPECT_TRUE(fake_failed());
    EXPECT_EQ(fake_count("EventSynchronize"), 1);
    EXPECT_EQ(figures(&c).deferred_bytes, 0);
    EXPECT_EQ(figures(&c).quarantined_bytes, c.block.size);
    EXPECT_OK(strata_free(c.s, large.ref));
}

/* Each request does. */
static void poll(captured_t *c) {
    strata_block_t small;
    EXPECT_OK(strata_allocate(c->s, c->place, c->stream, 256, &small));
    EXPECT_OK(strata_free(c->s, small.ref));
}

/* What a graph may still use is nobody's; what the stream used outside waits for the stream alone. */
static void free_in_a_capture_and_after_it(const char *stack) {
    captured_t c;
    strata_block_t later;
    begin(&c, stack);
    ASSERT_OK(strata_allocate(c.s, c.place, c.stream, 2 * SIZE, &later));
    EXPECT_OK(strata_record_stream(c.s, c.block.ref, c.borrower));
    EXPECT_OK(strata_record_stream(c.s, c.block.ref, c.other));
    EXPECT_OK(strata_free(c.s, c.block.ref));
    end_whole_capture(&c);
    EXPECT_OK(strata_record_stream(c.s, later.ref, c.borrower));
    fake_submit(c.borrower);
    EXPECT_OK(strata_free(c.s, later.ref));
    poll(&c);
    EXPECT_EQ(figures(&c).deferred_bytes, later.size);
    fake_run(c.borrower);
    poll(&c);
    EXPECT_EQ(figures(&c).deferred_bytes, 0);
    EXPECT_EQ(figures(&c).quarantined_bytes, c.block.size);
    EXPECT_OK(strata_validate(c.s));
    leave(&c);
}

TEST(cuda_captured, a_block_freed_in_a_capture_does_not_hold_back_those_that_the_stream_used_after_it) {
    free_in_a_capture_and_after_it("stack: [stream_safe, auto_growth: {chunk_size: 16MiB}, system]\n");
    free_in_a_capture_and_after_it("stack: [caching, system]\n");
}

/* The stream that frees borrowed blocks would be drawn into the capture by waiting for the borrower. */
TEST(cuda_captured, a_driver_pools_free_stream_stays_out_of_the_borrowers_capture) {
    strata_block_t later;
    OPENED(captured_t, c, end, begin(&c, "stack: [cuda_malloc_async]\n"));
    ASSERT_OK(strata_allocate(c.s, c.place, c.stream, SIZE, &later));
    EXPECT_OK(strata_record_stream(c.s, c.block.ref, c.borrower));
    EXPECT_OK(strata_record_stream(c.s, later.ref, c.other));
    EXPECT_OK(strata_free(c.s, c.block.ref));
    EXPECT_EQ(figures(&c).quarantined_bytes, c.block.size);
    fake_submit((CUstream)c.other);
    EXPECT_OK(strata_free(c.s, later.ref));
    EXPECT_EQ(figures(&c).deferred_bytes, later.size);
    EXPECT_EQ(fake_last("MemFreeAsync")->value, (uint64_t)(uintptr_t)later.ptr);
}
