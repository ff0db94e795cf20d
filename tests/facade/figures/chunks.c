/* The chunks of a place as text. */
#include <stdio.h>

#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"

static char text[1 << 16], wanted[4096];

static const char *chunks(rig_t *rig) {
    size_t needed = 0;
    EXPECT_OK(strata_chunks_text(rig->s, rig->gpu, text, sizeof text, &needed));
    EXPECT_EQ(needed, strlen(text) + 1);
    return text;
}

TEST_RIG(facade_chunks, tell_every_block_of_every_chunk, 0, "strata-malloc") {
    EXPECT_STREQ(chunks(rig), "");
    strata_stream_t stream = rig_stream(rig), busy = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, NULL, 4 * MIB), b = rig_allocate(rig, NULL, 2 * MIB - 100);
    strata_block_t c = rig_allocate(rig, NULL, MIB), d = rig_allocate(rig, stream, 30 * MIB);
    uintptr_t base = (uintptr_t)a.ptr - 16 * MIB;
    EXPECT_OK(strata_free(rig->s, b.ref));
    rig_work(rig, busy, 1000 * 1000, c.ref);
    EXPECT_OK(strata_record_stream(rig->s, c.ref, busy));
    EXPECT_OK(strata_free(rig->s, c.ref));
    strata_block_t e = rig_allocate(rig, NULL, 1000000);
    snprintf(wanted, sizeof wanted,
             "chunk 0x%" PRIxPTR " 20MiB, stream 0x0: used 6243072 (3), free 14728448 (2), largest free 13MiB\n"
             "  0x%" PRIxPTR " 13MiB free\n"
             "  0x%" PRIxPTR " 1MiB waiting for other streams\n"
             "  0x%" PRIxPTR " 1096960 free\n"
             "  0x%" PRIxPTR " 1000192 live, requested 1000000\n"
             "  0x%" PRIxPTR " 4MiB live\n"
             "chunk 0x%" PRIxPTR " 30MiB, stream 0x%" PRIxPTR ": used 30MiB (1), free 0 (0)\n"
             "  0x%" PRIxPTR " 30MiB live\n",
             base, base, (uintptr_t)(base + 13 * MIB), (uintptr_t)(base + 14 * MIB), (uintptr_t)e.ptr, (uintptr_t)a.ptr,
             (uintptr_t)d.ptr, (uintptr_t)stream, (uintptr_t)d.ptr);
    EXPECT_STREQ(chunks(rig), wanted);
    /* A short buffer gets the beginning, and the length of it all. */
    char few[9];
    size_t needed = 0;
    EXPECT_OK(strata_chunks_text(rig->s, rig->gpu, few, sizeof few, &needed));
    EXPECT_EQ(needed, strlen(wanted) + 1);
    EXPECT_STREQ(few, "chunk 0x");
    EXPECT_OK(strata_chunks_text(rig->s, rig->gpu, NULL, 0, &needed));
    EXPECT_EQ(needed, strlen(wanted) + 1);
}

/* What lies in no chunk is its own; more blocks in a chunk than were ever collected before. */
TEST_RIG(facade_chunks, are_blocks_where_there_is_no_cache, 0, "system") {
    strata_block_t a = rig_allocate(rig, NULL, 3 * MIB), b = rig_allocate(rig, NULL, 5 * MIB);
    snprintf(wanted, sizeof wanted,
             "chunk 0x%" PRIxPTR " 3MiB, stream 0x0: used 3MiB (1), free 0 (0)\n  0x%" PRIxPTR " 3MiB live\n"
             "chunk 0x%" PRIxPTR " 5MiB, stream 0x0: used 5MiB (1), free 0 (0)\n  0x%" PRIxPTR " 5MiB live\n",
             (uintptr_t)a.ptr, (uintptr_t)a.ptr, (uintptr_t)b.ptr, (uintptr_t)b.ptr);
    EXPECT_STREQ(chunks(rig), wanted);
}

TEST_RIG(facade_chunks, of_many_blocks_are_told_line_by_line, 0, "strata-malloc") {
    strata_ref_t refs[500];
    for (size_t i = 0; i < 500; i++) refs[i] = rig_allocate(rig, NULL, 1024).ref;
    size_t lines = 0;
    for (const char *at = chunks(rig); (at = strchr(at, '\n')) != NULL; at++) lines++;
    EXPECT_EQ(lines, 1 + 500 + 1);
    EXPECT_CONTAINS(text, "used 500KiB (500), free 19980KiB (1)\n");
    for (size_t i = 0; i < 500; i++) EXPECT_OK(strata_free(rig->s, refs[i]));
}

TEST_RIG(facade_chunks, need_host_memory_and_an_open_facade, 0, "strata") {
    (void)rig_allocate(rig, NULL, 1000);
    size_t needed = 77;
    for (uint64_t k = 1; k <= 3; k++) {
        strata_host_fail_at(k, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_chunks_text(rig->s, rig->gpu, text, sizeof text, &needed));
        strata_host_fail_at(0, 0);
        EXPECT_EQ(needed, 77);
    }
    EXPECT_STATUS(STRATA_E_INVALID, strata_chunks_text(rig->s, strata_gpu(9), text, sizeof text, &needed));
    EXPECT_STATUS(STRATA_E_STALE, strata_chunks_text(rig->s + 1, rig->gpu, text, sizeof text, &needed));
}
