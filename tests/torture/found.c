/* What programs have found, and what was mended then. */
#include <stdio.h>

#include "tests/harness/test.h"
#include "tests/torture/opened.h"

static const uint32_t first[] = {0};

/* A guard of the stream's own stack lets go of what it kept when the stream ends, and fills it for that; the layer of the whole
 * device below must hear of the end after that, or its free is before the fill. */
TEST(torture_found, a_quarantine_that_ends_with_its_stream) {
    OPENED(opened_t, o, opened_end,
           opened_begin(&o,
                        "stack:\n  - guard: {quarantine: 2, report: false}\n"
                        "  - guard: {quarantine: 0, synchronise: false, report: false}\n"
                        "  - guard: {quarantine: 8, poison: false, synchronise: false, report: false}\n"
                        "  - stream_safe\n  - cuda_malloc_async\n",
                        1, 0));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 1, &(torture_request_t){.size = 1});
    torture_work(&o.world, 1, 50, first, 1, 1);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_renew(&o.world, 1);
}

/* Two small blocks of one fresh segment, for two streams: what lies below was filled, or is valid, in the order of the first. */
static void one_segment_for_two_streams(const char *below) {
    char text[160];
    snprintf(text, sizeof text, "stack: [stream_safe, caching: {streams: ignored}, %s]\n", below);
    OPENED(opened_t, o, opened_end, opened_begin(&o, text, 1, 0));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 3, &(torture_request_t){.size = 1});
    torture_work(&o.world, 3, 50, (const uint32_t[]){1}, 1, 1);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_free(&o.world, 1, STRATA_TORTURE_NO_STREAM, true, false);
}

TEST(torture_found, a_fresh_segment_of_a_cache_that_ignores_streams) {
    one_segment_for_two_streams("cuda_malloc_async");
    one_segment_for_two_streams("fill, system");
    one_segment_for_two_streams("system");
}

/* Both layers know borrows, and one record has them: the cache's own, of a stream that took what a destroyed one left, is not to be
 * taken for the other's. */
TEST(torture_found, what_a_destroyed_stream_left_under_two_layers_that_know_borrows) {
    OPENED(opened_t, o, opened_end, opened_begin(&o, "stack: [stream_safe, caching, system]\n", 1, 0));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_synchronise(&o.world, 2);
    torture_renew(&o.world, 2);
    torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_work(&o.world, 2, 50, (const uint32_t[]){1}, 1, 1);
    torture_order(&o.world, 3, 2);
    torture_borrow(&o.world, 1, 3);
    torture_work(&o.world, 3, 500, (const uint32_t[]){1}, 1, 1);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_free(&o.world, 1, STRATA_TORTURE_NO_STREAM, true, false);
    torture_allocate(&o.world, 2, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_work(&o.world, 2, 50, (const uint32_t[]){2}, 1, 1);
    torture_free(&o.world, 2, STRATA_TORTURE_NO_STREAM, true, false);
    torture_query_place(&o.world, STRATA_TORTURE_GPU);
}

/* Before any wait of the host too, what two streams used and merged is several users'. */
TEST(torture_found, what_two_streams_used_merges_before_the_first_wait) {
    OPENED(opened_t, o, opened_end, opened_begin(&o, "stack: [naive_best_fit: {streams: ignored, fraction: 0.5}, system]\n", 1, 0));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_work(&o.world, 2, 50, first, 1, 1);
    torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 3, &(torture_request_t){.size = 1});
    torture_free(&o.world, 1, STRATA_TORTURE_NO_STREAM, true, false);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_allocate(&o.world, 2, STRATA_TORTURE_GPU, 3, &(torture_request_t){.size = 1});
    torture_work(&o.world, 3, 50, (const uint32_t[]){2}, 1, 1);
    torture_free(&o.world, 2, STRATA_TORTURE_NO_STREAM, true, false);
}

/* A chunk that a layer below filled on one stream, in two pieces for two. */
static void one_chunk_for_two_streams(const char *text) {
    OPENED(opened_t, o, opened_end, opened_begin(&o, text, 1, 512u << 20));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 3, &(torture_request_t){.size = 1});
    torture_work(&o.world, 3, 50, (const uint32_t[]){1}, 1, 1);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_free(&o.world, 1, STRATA_TORTURE_NO_STREAM, true, false);
}

TEST(torture_found, a_chunk_that_was_filled_below_a_cache_of_several_streams) {
    one_chunk_for_two_streams("stack: [bfc, fill, system]\n");
    one_chunk_for_two_streams("stack: [naive_best_fit: {streams: ignored, initial: 2MiB}, fill, system]\n");
    one_chunk_for_two_streams("stack: [bfc, naive_best_fit: {initial: 4MiB}, fill, system]\n");
}

/* Below what all streams share, a cache that every stream would have its own of serves all of them. */
TEST(torture_found, a_cache_of_one_stream_below_a_shared_one) {
    one_chunk_for_two_streams("stack: [caching, naive_best_fit: {streams: own, initial: 4MiB}, cuda_malloc_async]\n");
    one_chunk_for_two_streams("stack: [bfc, naive_best_fit: {streams: own, initial: 4MiB}, fill, system]\n");
}

/* What one stream had filled below it waits before another stream gets a part of it. */
TEST(torture_found, two_chunks_of_one_that_was_filled_below_a_cache_of_one_stream) {
    OPENED(
        opened_t, o, opened_end,
        opened_begin(&o, "stack: [caching: {streams: ignored}, naive_best_fit: {initial: 64MiB}, fill, system]\n", 1, 512u << 20));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 3, &(torture_request_t){.size = 5u << 20});
    torture_work(&o.world, 3, 50, (const uint32_t[]){1}, 1, 1);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_free(&o.world, 1, STRATA_TORTURE_NO_STREAM, true, false);
}

/* What a thread's stacks share is above what all share, and its lock comes first; a debug build aborts where it does not. */
TEST(torture_found, a_decorator_between_a_cache_of_a_thread_and_one_of_all) {
    one_chunk_for_two_streams("stack: [thread_local: {streams: ignored}, aligned: {alignment: 512}, "
                              "naive_best_fit: {streams: ignored}, system]\n");
}

/* A segment that another stream used goes back in the order of the stream that it was asked for by. */
static void given_back_by_another_stream(const char *text) {
    OPENED(opened_t, o, opened_end, opened_begin(&o, text, 1, 0));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 0, &(torture_request_t){.size = 1});
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
    torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_work(&o.world, 2, 50, (const uint32_t[]){1}, 1, 1);
    torture_free(&o.world, 1, STRATA_TORTURE_NO_STREAM, true, false);
    torture_release(&o.world, STRATA_TORTURE_GPU);
}

TEST(torture_found, a_segment_goes_back_when_all_streams_are_done_with_it) {
    given_back_by_another_stream("stack: [caching: {streams: ignored}, cuda_malloc_async]\n");
    given_back_by_another_stream("stack: [bfc, cuda_malloc_async]\n");
    given_back_by_another_stream("stack: [bfc, fallback: {stacks: [[cuda_malloc_async], [system: {memory: pinned}]]}]\n");
    given_back_by_another_stream("stack: [caching: {streams: ignored}, fallback: {stacks: [[cuda_malloc_async], [system]]}]\n");
    given_back_by_another_stream("stack: [naive_best_fit: {streams: ignored, initial: 2MiB}, cuda_malloc_async]\n");
}

/* What a decorator fills at the free is another stream's as long as one borrows, whichever layer below has noted that. */
static void freed_under_a_borrow(const char *text) {
    OPENED(opened_t, o, opened_end, opened_begin(&o, text, 1, 0));
    torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 2, &(torture_request_t){.size = 1});
    torture_order(&o.world, 1, 2);
    torture_work(&o.world, 1, 50, first, 1, 0);
    torture_borrow(&o.world, 0, 1);
    torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
}

TEST(torture_found, a_borrowed_block_is_not_poisoned_over_any_layer) {
    freed_under_a_borrow("stack: [guard: {report: false}, caching, system]\n");
    freed_under_a_borrow("stack: [aligned, guard: {report: false}, stat, caching, system]\n");
    freed_under_a_borrow("stack: [guard: {report: false}, fallback: {stacks: [[caching, cuda_malloc_async], [system]]}]\n");
    freed_under_a_borrow("stack: [guard: {report: false}, stream_safe, auto_growth, system]\n");
    freed_under_a_borrow("stack: [guard: {report: false}, cuda_malloc_async]\n");
}
