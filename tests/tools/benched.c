/* lab/bench/hot_path --json: what reads it finds every key, and the figures that do not depend on the machine are within what
 * docs/architecture.md says. Its times are not looked at. Where the benchmarks are not built
 * there is nothing to run. */
#ifdef STRATA_HOT_PATH
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

static char said[4096];

static bool run_bench(void) {
    FILE *pipe = popen("'" STRATA_HOT_PATH "' --json --quick", "r");
    size_t count = pipe ? fread(said, 1, sizeof said - 1, pipe) : 0;
    said[count] = '\0';
    return pipe && pclose(pipe) == 0;
}

/* NAN: null. */
static double figure(const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(said, quoted);
    if (!at) FAIL_TEST("there is no %s in %s", key, said);
    return at && strncmp(at + strlen(quoted), "null", 4) != 0 ? strtod(at + strlen(quoted), NULL) : NAN;
}

TEST(hot_path, tells_every_figure) {
    static const char *const times[] = {
        "pair_ns",         "pointer_pair_ns",  "allocator_pair_ns", "live_1000_ns",          "live_100000_ns",
        "live_1000000_ns", "borrowed_pair_ns", "two_threads_ratio", "shared_stream_2_ratio", "shared_stream_8_ratio"};
    ASSERT_TRUE(run_bench());
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (!(figure(times[i]) > 0)) FAIL_TEST("%s is no time", times[i]);
    (void)figure("instructions_per_pair");
    (void)figure("mimalloc_pair_ns");
    EXPECT_LE((int)figure("host_mallocs"), 3); /* the slab may double once for each of the three numbers of live blocks */
    EXPECT_TRUE(figure("borrowed_records_per_pair") <= 1.0);
    EXPECT_TRUE(figure("borrowed_queries_per_pair") <= 1.0);
    /* A record has 64 bytes, so less than that means that nothing was measured. The handles of small blocks have the smallest
     * size, and a share of theirs counts too. The figure is null if the kernel does not report memory. */
    double held = figure("bytes_per_live_block");
    EXPECT_TRUE(isnan(held) || (held >= 64 && held <= 144));
}
#endif
