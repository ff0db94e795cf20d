/* Records that are cut off or damaged anywhere, and a host without memory: refused with a reason, or a lawful trace; nothing is lost. */
#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "trace/trace.h"

#define SEEDS STRATA_SOURCE_DIR "/tests/fuzz/seeds/"

static const char *const records[] = {
    SEEDS "pytorch/protocol2.pickle", SEEDS "pytorch/protocol4.pickle", SEEDS "rmm/rmm.csv",   SEEDS "umpire/umpire.stats",
    SEEDS "profiler/profiler.json",   SEEDS "minimalloc/buffers.csv",   SEEDS "nsys/whole.csv"};
enum { RECORDS = sizeof records / sizeof *records };

static void expect_loads_or_refuses(const char *path) {
    strata_trace_t *trace = NULL;
    strata_status_t status = strata_trace_load(path, &trace);
    if (status == STRATA_OK) strata_trace_delete(trace);
    else if (status != STRATA_E_FORMAT) FAIL_TEST("%s", strata_last_error()->text);
    else EXPECT_NE(strata_last_error()->text[0], '\0');
}

TEST(broken_records, whole_ones_are_read) {
    for (size_t i = 0; i < RECORDS; i++) {
        strata_trace_t *trace = NULL;
        ASSERT_OK(strata_trace_load(records[i], &trace));
        EXPECT_NE(strcmp(trace->format, "trace"), 0);
        EXPECT_GT(trace->count, 1);
        strata_trace_delete(trace);
    }
}

TEST(broken_records, cut_off_anywhere) {
    for (size_t i = 0; i < RECORDS; i++) {
        size_t count = 0;
        char *bytes = read_bytes(records[i], &count);
        ASSERT_NE(bytes, NULL);
        for (size_t cut = 0; cut < count; cut += 1 + count / 400) expect_loads_or_refuses(write_file("cut", bytes, cut));
        free(bytes);
    }
}

TEST(broken_records, one_byte_is_another) {
    static const char others[] = {0, '"', '{', ',', '9', '-', (char)0x80, (char)0xff};
    for (size_t i = 0; i < RECORDS; i++) {
        size_t count = 0;
        char *bytes = read_bytes(records[i], &count);
        ASSERT_NE(bytes, NULL);
        for (size_t at = 0; at < count; at += 1 + count / 400) {
            char was = bytes[at];
            bytes[at] = others[at % sizeof others];
            expect_loads_or_refuses(write_file("changed", bytes, count));
            bytes[at] = was;
        }
        free(bytes);
    }
}

TEST(broken_records, each_host_allocation_fails_in_turn) {
    for (size_t i = 0; i < RECORDS; i++) {
        strata_status_t status = STRATA_E_HOST_MEMORY;
        for (uint64_t k = 1; status != STRATA_OK && k < 500; k++) {
            strata_trace_t *trace = NULL;
            strata_host_fail_at(k, 0);
            status = strata_trace_load(records[i], &trace);
            strata_host_fail_at(0, 0);
            if (status == STRATA_OK) strata_trace_delete(trace);
            else EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        }
        EXPECT_OK(status);
    }
}
