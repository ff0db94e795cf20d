/* A trace of 1.1 million events: under 300 MB, and hardly more where the happens-before checker watches. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "platform/clock.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

enum { EVENTS = 1100000, LIVE = 20000 };

/* Allocations and frees in an order that looks like a program's: most blocks die young. Sizes of 256 bytes to 1 MiB. */
static bool write_large(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    static uint32_t live[LIVE];
    uint32_t count = 0, next = 0;
    uint64_t random = 1;
    fprintf(file, "op,id,size,stream,time_us\n");
    for (uint32_t row = 0; row < EVENTS; row++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t draw = (uint32_t)(random >> 33);
        if (count < LIVE && (count == 0 || draw % 2 == 0)) {
            fprintf(file, "alloc,%u,%u,0,%u\n", next, 256u << (draw >> 8) % 13, row);
            live[count++] = next++;
        } else {
            uint32_t young = count < 64 ? count : 64, at = count - 1 - (draw >> 8) % young;
            fprintf(file, "free,%u,0,0,%u\n", live[at], row);
            live[at] = live[--count];
        }
    }
    return fclose(file) == 0;
}

/* Its time is printed and not asserted. Answers the most memory that a process of this one's took. */
static long replay_large(const char *what, const char *arguments, const char *wanted) {
    uint64_t began = strata_real_now();
    ran_t ran = run_command("%s large.csv", arguments);
    double seconds = (double)(strata_real_now() - began) / 1e9;
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_CONTAINS(ran.out, "\"operations\": 1100000,");
    EXPECT_CONTAINS(ran.out, wanted);
    printf("%s of %d events: %.2f s, at most %ld MB\n", what, EVENTS, seconds, usage.ru_maxrss / 1024);
    return usage.ru_maxrss / 1024;
}

/* Three repeats take about 2 s on 2 cores. */
TEST(command, a_large_trace_is_small) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost memory");
    ASSERT_TRUE(write_large(temporary("large.csv")));
    EXPECT_LT(replay_large("3 repeats", "replay --device sim --strategy strata --json -", "\"hazards\": null"), 300);
}

/* What it keeps is for each block and stream, not for each event. */
TEST(command, a_large_trace_is_checked) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost memory");
    ASSERT_TRUE(write_large(temporary("large.csv")));
    long plain = replay_large("1 run", "replay --repeat 1 --device sim --strategy strata --json -", "\"hazards\": null");
    long checked = replay_large("1 checked run", "replay --check --repeat 1 --device sim --strategy strata --json -",
                                "\"hazards\": 0");
    EXPECT_LT(checked, plain + 40);
}
