/* strata calibrate: what it writes of a simulated device is that device's profile; what it replaces, and what it refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/tools/calibrate/fit.h"
#include "platform/sim/sim.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

/* ---- what is written ---- */

/* "37.1us" and its like, ns; *rest is what follows. */
static double time_at(const char *text, char **rest) {
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double value = strtod(text, rest);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strncmp(*rest, units[i].unit, strlen(units[i].unit)) == 0) {
            *rest += strlen(units[i].unit);
            return value * units[i].ns;
        }
    return value;
}

/* The cost of a key in a written profile; both NaN if it is not there. */
static strata_sim_cost_t cost_in(const char *profile, const char *key) {
    char line[64], *at;
    strata_sim_cost_t cost = {0, 0};
    snprintf(line, sizeof line, "\n%s: ", key);
    const char *found = strstr(profile, line);
    if (!found) {
        FAIL_TEST("there is no %s in\n%s", key, profile);
        return cost;
    }
    double first = time_at(found + strlen(line), &at);
    bool rate = strncmp(at, "/GiB", 4) == 0;
    *(rate ? &cost.per_mib_ns : &cost.fixed_ns) = rate ? first / 1024 : first;
    if (strncmp(at, " + ", 3) == 0) cost.per_mib_ns = time_at(at + 3, &at) / 1024;
    return cost;
}

static void expect_cost(const char *profile, const char *key, strata_sim_cost_t wanted) {
    strata_sim_cost_t cost = cost_in(profile, key);
    if (cost.fixed_ns < wanted.fixed_ns * 0.998 - 2 || cost.fixed_ns > wanted.fixed_ns * 1.002 + 2)
        FAIL_TEST("%s: %g ns, not %g", key, cost.fixed_ns, wanted.fixed_ns);
    double rate = 1024 * cost.per_mib_ns, right = 1024 * wanted.per_mib_ns;
    if (rate < right * 0.998 - 2 || rate > right * 1.002 + 2) FAIL_TEST("%s: %g ns/GiB, not %g", key, rate, right);
}

TEST(calibrate, a_built_in_profile_is_found_again) {
    for (size_t i = 0; strata_sim_profile_name(i); i++) {
        const strata_sim_profile_t *profile = strata_sim_profile(strata_sim_profile_name(i));
        ran_t ran = run_well("calibrate --repeats 2 --device sim:%s", profile->name);
#define EXPECT(call, meaning) expect_cost(ran.out, #call, profile->call);
        STRATA_SIM_COST_MAP(EXPECT)
#undef EXPECT
        char head[64];
        snprintf(head, sizeof head, "\nprofile: \"calibrated\"\ntotal_bytes: %uGiB ", (unsigned)(profile->total_bytes >> 30));
        EXPECT_CONTAINS(ran.out, head);
    }
}

/* A price for each call that no other has. Of what has no size only the fixed part can be found. */
static void write_priced(char *text, size_t capacity, int seed) {
    size_t used = (size_t)snprintf(text, capacity,
                                   "extends: h100\ntotal_bytes: 24GiB\ngranule_bytes: 1MiB\npack_below_bytes: 64KiB\n"
                                   "pool_chunk_bytes: 12MiB\nfree_waits: false\n");
    int i = 0;
#define PRICE(name, meaning)                                                                                                       \
    i++;                                                                                                                           \
    used += (size_t)snprintf(text + used, capacity - used, "%s: %dns + %dns/MiB\n", #name, 1000 * seed + 10 * i, 7 * i);
    STRATA_SIM_COST_MAP(PRICE)
#undef PRICE
}

static bool has_size(const char *key) {
    static const char *const without[] = {"event_create", "event_destroy",  "event_record",   "event_query",
                                          "stream_wait",  "stream_create",  "stream_destroy", "synchronise",
                                          "mem_info",     "capture_status", "launch",         "peer"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(without[i], key) == 0) return false;
    return true;
}

TEST(calibrate, any_profile_is_found_again) {
    static char text[8192];
    for (int seed = 1; seed <= 50; seed += 7) {
        write_priced(text, sizeof text, seed);
        write_text("priced.yaml", text);
        ran_t ran = run_well("calibrate --repeats 1 --device sim:priced.yaml");
        int i = 0;
#define EXPECT(name, meaning)                                                                                                      \
    i++;                                                                                                                           \
    expect_cost(ran.out, #name, (strata_sim_cost_t){1000 * seed + 10 * i, has_size(#name) ? 7 * i : 0});
        STRATA_SIM_COST_MAP(EXPECT)
#undef EXPECT
        EXPECT_CONTAINS(ran.out, "\ntotal_bytes: 24GiB ");
        EXPECT_CONTAINS(ran.out, "\ngranule_bytes: 1MiB ");
        EXPECT_CONTAINS(ran.out, "\npool_chunk_bytes: 12MiB ");
        EXPECT_CONTAINS(ran.out, "\nfree_waits: false ");
    }
}

/* What it wrote serves as a device, and measured again it is the same. */
TEST(calibrate, a_written_profile_is_a_device) {
    size_t count;
    write_text("t.csv", "op,id,size,stream,time_us\nalloc,1,4096,0,0\nfree,1,0,0,9\n");
    (void)run_well("calibrate --repeats 2 --device sim:a100 -o my-gpu.yaml --csv rows.csv");
    char *first CLOSED_BY(text_cleanup) = read_bytes(temporary("my-gpu.yaml"), &count);
    ASSERT_NE(first, NULL);
    first[count] = '\0';
    EXPECT_CONTAINS(first, "# strata calibrate: sim:a100, medians of 2 calls.");
    EXPECT_CONTAINS(first, "\nprofile: \"my-gpu\"\n");
    EXPECT_CONTAINS(first, "at most 0 % off\n");
    EXPECT_CONTAINS(first, "# maximum number of mappings; not measured: as in h100\n");
    char *rows CLOSED_BY(text_cleanup) = read_bytes(temporary("rows.csv"), &count);
    ASSERT_NE(rows, NULL);
    rows[count] = '\0';
    EXPECT_CONTAINS(rows, "call,size_bytes,handles,chunk_bytes,samples,median_ns,min_ns,max_ns\nmalloc,4096,0,0,2,");
    EXPECT_CONTAINS(rows, "\nset_access,2097152,8,0,2,");
    ran_t ran = run_well("replay --device sim:my-gpu.yaml --repeat 1 --strategy system t.csv");
    EXPECT_CONTAINS(ran.out, " sim:my-gpu\n");
    (void)run_well("calibrate --repeats 2 --device sim:my-gpu.yaml -o my-gpu.yaml");
    char *second CLOSED_BY(text_cleanup) = read_bytes(temporary("my-gpu.yaml"), &count);
    ASSERT_NE(second, NULL);
    second[count] = '\0';
    EXPECT_STREQ(strstr(second, "\nprofile:"), strstr(first, "\nprofile:"));
}

TEST(calibrate, a_small_device_is_measured_as_far_as_it_goes) {
    write_text("small.yaml", "extends: h100\ntotal_bytes: 520MiB\nmalloc: 5us + 1us/MiB\n");
    ran_t ran = run_well("calibrate --repeats 1 --device sim:small.yaml --csv - -o small2.yaml");
    EXPECT_CONTAINS(ran.out, "\nmalloc,2097152,0,0,1,7000,7000,7000\n");
    EXPECT_LACKS(ran.out, "malloc,16777216,");
    size_t count;
    char *text CLOSED_BY(text_cleanup) = read_bytes(temporary("small2.yaml"), &count);
    ASSERT_NE(text, NULL);
    text[count] = '\0';
    EXPECT_CONTAINS(text, "\ntotal_bytes: 520MiB ");
    (void)run_well("calibrate --repeats 1 --device sim:small2.yaml");
}

/* ---- what is refused ---- */

TEST(calibrate, files_of_others_stay) {
    size_t count;
    write_text("mine.yaml", "stack: [system]\n");
    write_text("t.csv", "op,id,size,stream,time_us\n");
    expect_wrong_use("calibrate --device sim -o mine.yaml", "-o mine.yaml: the file exists and is not of this command");
    expect_wrong_use("calibrate --device sim --csv t.csv -o p.yaml", "--csv t.csv: the file exists and is not of this command");
    char *text CLOSED_BY(text_cleanup) = read_bytes(temporary("mine.yaml"), &count);
    ASSERT_NE(text, NULL);
    EXPECT_EQ(count, strlen("stack: [system]\n"));
    EXPECT_NE(access(temporary("p.yaml"), F_OK), 0);
}

TEST(calibrate, wrong_use_is_told) {
    expect_wrong_use("calibrate -o gpu.txt", "-o gpu.txt: the name of a profile must end in .yaml");
    expect_wrong_use("calibrate -o gpu.yamlx2", "must end in .yaml");
    expect_wrong_use("calibrate p.yaml", "takes only options; to write to a file, use -o p.yaml");
    expect_wrong_use("calibrate --repeats 0", "--repeats");
    expect_wrong_use("calibrate --repeats 1001", "--repeats");
    expect_wrong_use("calibrate --device cpu", "\"cpu\" is not a device; write gpu, gpu:0 to gpu:15, sim, sim:");
    expect_wrong_use("calibrate --device sim:none.yaml", "none.yaml: cannot read the file");
}

TEST(calibrate, without_a_gpu_it_says_so_and_writes_nothing) {
    ran_t ran = run_command("calibrate -o none.yaml");
    if (ran.exit_status == 0) TEST_SKIP("there is a GPU");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "no GPU to measure: ");
    EXPECT_CONTAINS(ran.errors, "; to try the command, write --device sim:h100\n");
    EXPECT_NE(access(temporary("none.yaml"), F_OK), 0);
}

/* ---- the line ---- */

static double line_of(const strata_fit_point_t *points, size_t count, strata_sim_cost_t *cost) {
    *cost = (strata_sim_cost_t){-1, -1};
    return strata_fit_line(points, count, cost);
}

TEST(calibrate, a_line_is_found) {
    static const strata_fit_point_t exact[] = {{0.0039, 1000.39}, {1, 1100}, {128, 13800}, {1024, 103400}};
    strata_sim_cost_t cost;
    EXPECT_NEAR(line_of(exact, 4, &cost), 0, 1e-9);
    EXPECT_NEAR(cost.fixed_ns, 1000, 1e-6);
    EXPECT_NEAR(cost.per_mib_ns, 100, 1e-6);
    static const strata_fit_point_t alone[] = {{2, 500}, {2, 500}};
    EXPECT_NEAR(line_of(alone, 2, &cost), 0, 1e-9);
    EXPECT_NEAR(cost.fixed_ns, 500, 1e-9);
    EXPECT_NEAR(cost.per_mib_ns, 0, 1e-12);
    static const strata_fit_point_t nothing[] = {{1, 0}, {2, 0}};
    EXPECT_NEAR(line_of(nothing, 2, &cost), 0, 1e-9);
    EXPECT_NEAR(cost.fixed_ns + cost.per_mib_ns, 0, 1e-12);
}

/* A call that gets cheaper with its size has a flat cost; one that is free at no size costs by the size alone. */
TEST(calibrate, no_term_of_a_line_is_negative) {
    static const strata_fit_point_t falling[] = {{1, 120}, {100, 80}}, through[] = {{1, 50}, {10, 1000}};
    strata_sim_cost_t cost;
    EXPECT_NEAR(line_of(falling, 2, &cost), 0.2308, 1e-3);
    EXPECT_NEAR(cost.fixed_ns, 92.308, 1e-3); /* the mean by weight */
    EXPECT_NEAR(cost.per_mib_ns, 0, 1e-12);
    (void)line_of(through, 2, &cost);
    EXPECT_NEAR(cost.fixed_ns, 0, 1e-12);
    EXPECT_NEAR(cost.per_mib_ns, 60, 1e-9);
}

/* What an H100 showed of cudaMalloc (docs/profiles.md), at 4 KiB to 1 GiB: large sizes do not drown small ones. */
TEST(calibrate, the_measured_cost_of_malloc_is_that_of_the_profile) {
    static const strata_fit_point_t points[] = {{1.0 / 256, 41594}, {1.0 / 16, 36856}, {1, 36917},    {2, 35290},
                                                {16, 37445},        {128, 46499},      {1024, 111424}};
    const strata_sim_profile_t *h100 = strata_sim_profile("h100");
    strata_sim_cost_t cost;
    EXPECT_NEAR(line_of(points, 7, &cost), 0.107, 1e-3);
    EXPECT_NEAR(cost.fixed_ns, h100->malloc.fixed_ns, 50);
    EXPECT_NEAR(cost.per_mib_ns, h100->malloc.per_mib_ns, 0.05);
}

/* ---- where the built-in figures come from ---- */

/* One row of the file; what a pool took or gave back is not in it: chunks of 32 MiB, or the request. */
static bool take_row(const char *line, strata_measured_row_t *row, char *call) {
    unsigned long long size, handles, samples, median;
    if (sscanf(line, "%31[a-z_],%llu,%llu,%llu,%llu,", call, &size, &handles, &samples, &median) != 5) return false;
    bool chunk = strcmp(call, "malloc_async_cold") == 0 || strcmp(call, "pool_trim") == 0;
    *row = (strata_measured_row_t){.call = call, .size = size, .handles = handles, .samples = samples, .median = median};
    if (chunk) row->chunk = size > 32 << 20 ? size : 32 << 20;
    return true;
}

static void expect_kept(const char *name, double kept, double found) {
    if (kept < 0.97 * found || kept > 1.03 * found) FAIL_TEST("%s: the profile says %g ns, the rows %g", name, kept, found);
}

/* docs/gpu/h100-device-calls-2026-11-22.csv has what an H100 was seen to cost; all but launch, prefetch and peer. */
TEST(calibrate, the_profile_h100_is_what_was_measured) {
    static strata_measure_t measure;
    static strata_fitted_t fitted;
    static char calls[STRATA_ROWS_MAX][32];
    strata_device_t device = {.capabilities = {.granularity = 2 << 20, .virtual_memory = true}};
    const strata_sim_profile_t *h100 = strata_sim_profile("h100");
    FILE *file = fopen(STRATA_SOURCE_DIR "/docs/gpu/h100-device-calls-2026-11-22.csv", "r");
    ASSERT_NE(file, NULL);
    measure = (strata_measure_t){.device = &device, .total_bytes = h100->total_bytes};
    for (char line[256]; fgets(line, sizeof line, file) && measure.count < STRATA_ROWS_MAX;)
        measure.count += take_row(line, &measure.rows[measure.count], calls[measure.count]);
    fclose(file);
    EXPECT_EQ(measure.count, 159);
    strata_fit_profile(&measure, strata_sim_profile("a100"), &fitted);
#define KEPT(name, meaning)                                                                                                        \
    if (strncmp(strata_fit_note(#name, &fitted), "measured", 8) == 0) {                                                            \
        expect_kept(#name, h100->name.fixed_ns, fitted.profile.name.fixed_ns);                                                     \
        if (h100->name.per_mib_ns > 0) expect_kept(#name " a MiB", h100->name.per_mib_ns, fitted.profile.name.per_mib_ns);         \
        measure.count++;                                                                                                           \
    }
    measure.count = 0;
    STRATA_SIM_COST_MAP(KEPT)
#undef KEPT
    EXPECT_EQ(measure.count, 27); /* of 30 */
}
