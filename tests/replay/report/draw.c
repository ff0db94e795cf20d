/* Maps as they are drawn: signs, widths, bounds. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/replay/draw/draw.h"
#include "platform/host/host_memory.h"
#include "tests/harness/test.h"

enum { FREE, LIVE, WAITS };
#define KIB 1024ull
#define SPAN(bytes, what)                                                                                                          \
    { .size = bytes, .state = what }

/* A map of one chunk, of blocks of so many KiB: the states by turns. */
static void one_chunk(strata_map_t *map, strata_map_chunk_t *chunk, strata_map_span_t *spans, size_t count) {
    *chunk = (strata_map_chunk_t){.place = "gpu:0", .stream = "stream 7", .count = count};
    for (size_t i = 0; i < count; i++) {
        chunk->size += spans[i].size;
        chunk->bytes[spans[i].state] += spans[i].size;
        chunk->blocks[spans[i].state]++;
    }
    *map = (strata_map_t){.rows = 3, .chunks = chunk, .chunk_count = 1, .spans = spans, .span_count = count};
}

static char *drawn(size_t width, bool unicode, unsigned what, const strata_map_t *maps, size_t count, strata_status_t *status) {
    static char *text;
    static const char *const labels[] = {"one", "two, whose name is longer than its side", "three"};
    size_t length;
    free(text);
    FILE *out = open_memstream(&text, &length);
    strata_draw_t draw = {.out = out, .width = width, .unicode = unicode, .what = what};
    *status = strata_draw_maps(&draw, maps, labels, count, 9);
    fclose(out);
    return text;
}

/* Whoever has seven eighths names a sign; a single block that begins in it is shown. */
TEST(draw_maps, a_sign_is_what_most_of_its_bytes_are) {
    strata_map_t map;
    strata_map_chunk_t chunk;
    strata_status_t status;
    strata_map_span_t spans[] = {
        SPAN(256, LIVE), SPAN(512, LIVE), SPAN(224, FREE), SPAN(32, LIVE),   SPAN(200, FREE),
        SPAN(56, WAITS), SPAN(1, LIVE),   SPAN(255, LIVE), SPAN(300, WAITS), SPAN(100, FREE),
    };
    one_chunk(&map, &chunk, spans, sizeof spans / sizeof *spans);
    const char *text = drawn(40, false, STRATA_DRAW_LARGEST, &map, 1, &status);
    EXPECT_OK(status);
    EXPECT_CONTAINS(text,
                    "\nlargest: gpu:0, stream 7\n1.89 KiB, 256 B per character\nfree 524 B in 3 pieces\n[[#.+#~+\n\n[ a live");
    text = drawn(40, true, STRATA_DRAW_LARGEST, &map, 1, &status);
    EXPECT_CONTAINS(text, "\n\u2590\u2590\u2588\u00b7\u2584\u2588\u2592\u2584\n\n\u2590 a live");
}

TEST(draw_maps, a_long_name_is_cut_and_three_take_two_rows) {
    strata_map_t maps[3];
    strata_map_chunk_t chunks[3];
    strata_status_t status;
    strata_map_span_t spans[] = {SPAN(256, LIVE)};
    for (int i = 0; i < 3; i++) one_chunk(&maps[i], &chunks[i], spans, 1);
    const char *text = drawn(75, false, STRATA_DRAW_ALL, maps, 3, &status);
    EXPECT_OK(status);
    EXPECT_EQ(strncmp(text, "one                                    two, whose name is longer than its s\n", 76), 0);
    EXPECT_CONTAINS(text, "\n|[                                     |[\n\nthree\n");
    text = drawn(1, false, STRATA_DRAW_ALL, maps, 1, &status);
    EXPECT_CONTAINS(text, "\nall chun\n|[\n");
}

/* A chunk that is free as a whole is not fragmented, whatever its size. */
TEST(draw_maps, the_fragmented_chunk_is_one_in_use) {
    strata_map_span_t spans[] = {SPAN(64 * KIB, FREE), SPAN(KIB, LIVE), SPAN(3 * KIB, FREE), SPAN(KIB, LIVE),
                                 SPAN(KIB, FREE),      SPAN(KIB, LIVE), SPAN(2 * KIB, FREE)};
    strata_map_chunk_t chunks[] = {
        {.place = "gpu:0",
         .stream = "idle",
         .size = 64 * KIB,
         .largest_free = 64 * KIB,
         .bytes = {64 * KIB},
         .blocks = {1},
         .count = 1},
        {.place = "gpu:0",
         .stream = "whole",
         .size = 4 * KIB,
         .largest_free = 3 * KIB,
         .bytes = {3 * KIB, KIB},
         .blocks = {1, 1},
         .first = 1,
         .count = 2},
        {.place = "gpu:0",
         .stream = "pieces",
         .size = 5 * KIB,
         .largest_free = 2 * KIB,
         .bytes = {3 * KIB, 2 * KIB},
         .blocks = {2, 2},
         .first = 3,
         .count = 4},
    };
    strata_map_t map = {.rows = 1, .chunks = chunks, .chunk_count = 3, .spans = spans, .span_count = 7};
    strata_status_t status;
    const char *text = drawn(80, false, STRATA_DRAW_FRAGMENTED | STRATA_DRAW_LARGEST, &map, 1, &status);
    EXPECT_CONTAINS(text,
                    "fragmented: gpu:0, pieces\n5.00 KiB, 256 B per character\nfree 3.00 KiB in 2 pieces\n[###....[###........\n");
    EXPECT_CONTAINS(text, "largest: gpu:0, idle\n");
}

TEST(draw_maps, very_many_chunks_are_counted_after_the_last_line) {
    enum { CHUNKS = 2000 };
    static strata_map_chunk_t chunks[CHUNKS];
    static strata_map_span_t spans[CHUNKS];
    strata_status_t status;
    for (size_t i = 0; i < CHUNKS; i++) {
        spans[i] = (strata_map_span_t)SPAN(KIB, LIVE);
        chunks[i] = (strata_map_chunk_t){.size = KIB, .bytes = {0, KIB}, .blocks = {0, 1}, .first = i, .count = 1};
    }
    strata_map_t map = {.rows = 1, .chunks = chunks, .chunk_count = CHUNKS, .spans = spans, .span_count = CHUNKS};
    const char *text = drawn(40, false, STRATA_DRAW_ALL, &map, 1, &status);
    EXPECT_OK(status);
    EXPECT_CONTAINS(text, "all chunks, 1.00 KiB per character\n|[|[|[");
    EXPECT_CONTAINS(text, "\nand 1059 more chunks\n\n");
}

TEST(draw_maps, need_host_memory) {
    strata_map_t map;
    strata_map_chunk_t chunk;
    strata_status_t status = STRATA_OK;
    strata_map_span_t spans[] = {SPAN(256, LIVE)};
    one_chunk(&map, &chunk, spans, 1);
    for (uint64_t k = 1; k <= 2; k++) {
        strata_host_fail_at(k, 0);
        (void)drawn(40, false, STRATA_DRAW_ALL, &map, 1, &status);
        strata_host_fail_at(0, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, status);
    }
}
