/* Good files with bytes changed, left out and doubled: each is read or refused with its place, and nothing else happens. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "trace/trace.h"

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

/* What trips readers over, put somewhere. */
static size_t mutate(char *bytes, size_t count) {
    static const char *const tokens[] = {"\"", ",",   "\n",   "\r",    "0",    "18446744073709551616",
                                         "-1", "all", "free", "alloc", "work", "\xff"};
    size_t at = draw((uint32_t)count);
    if (draw(3) == 0) {
        bytes[at] = (char)draw(256);
        return count;
    }
    if (draw(2) == 0) {
        size_t gone = 1 + draw(count - at < 40 ? (uint32_t)(count - at) : 40);
        memmove(bytes + at, bytes + at + gone, count - at - gone);
        return count - gone;
    }
    const char *token = tokens[draw(sizeof tokens / sizeof *tokens)];
    size_t length = strlen(token);
    memmove(bytes + at + length, bytes + at, count - at);
    memcpy(bytes + at, token, length);
    return count + length;
}

static void expect_read_or_refused(const char *path, size_t *read) {
    strata_trace_t *trace = NULL;
    strata_status_t status = strata_trace_load(path, &trace);
    *read += status == STRATA_OK;
    strata_trace_delete(trace);
    if (status == STRATA_OK) return;
    char begin[300];
    snprintf(begin, sizeof begin, "%s:%u:%u: ", path, strata_last_error()->line, strata_last_error()->column);
    if (status != STRATA_E_FORMAT || strata_last_error()->column == 0 ||
        strncmp(strata_last_error()->text, begin, strlen(begin)) != 0)
        FAIL_TEST("%s: %s", strata_status_name(status), strata_last_error()->text);
}

static void mutate_often(const char *good, size_t count, int tries, size_t *read) {
    char *bytes CLOSED_BY(text_cleanup) = malloc(count + 8 * 64);
    if (!bytes) return;
    for (int i = 0; i < tries; i++) {
        size_t now = count;
        memcpy(bytes, good, count);
        for (uint32_t k = 1 + draw(4); k > 0 && now > 1; k--) now = mutate(bytes, now);
        expect_read_or_refused(write_file("mutated.csv", bytes, now), read);
    }
}

TEST(trace, mutated_files_are_read_or_refused) {
    char text[4096] = "# strata-trace 1\nop,id,size,stream,time_us,device,place,pool,align,thread,tag,dur_us,other,x_y\n";
    for (int i = 0; i < 20; i++)
        sprintf(text + strlen(text),
                "alloc,%d,%d,%d,%d,%d,gpu,,256,1,\"t%d\",,,a\nborrow,%d,0,3,%d,%d,,,,,,,,\nwork,%d,0,3,%d,%d,,,,,,7,,\n"
                "wait,,0,1,%d,,,,,,,,3,\nfree,%d,0,%d,%d,%d,,,,,,,,\n",
                i, i * 100, i % 3, i, i % 2, i % 5, i, i, i % 2, i, i, i % 2, i, i, i % 3, i, i % 2);
    size_t read = 0;
    mutate_often(text, strlen(text), 4000, &read);
    EXPECT_GT(read, 10);
    EXPECT_LT(read, 3000);
    size_t count;
    char *packed CLOSED_BY(text_cleanup) = read_bytes(write_gzip("mutated.csv.gz", text, strlen(text)), &count);
    ASSERT_NE(packed, NULL);
    read = 0;
    mutate_often(packed, count, 1000, &read);
    EXPECT_LT(read, 100);
}
