/* A program of CUDA's under the preloaded library, with stand-ins for the driver and the runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doors/run.h"
#include "tests/paths.h"

static const char *preloaded(const char *environment, const char *what) { return run_preloaded(STRATA_PROGRAM, environment, what); }

/* Returns the output of `strata run` with these arguments; the exit status must be `expected`. */
static const char *ran(const char *arguments, int expected) {
    static char output[OUTPUT_ROOM];
    char command[4096];
    snprintf(command, sizeof command, "env -u STRATA_STRATEGY -u STRATA_SET -u STRATA_BYPASS '" STRATA_COMMAND "' run %s",
             arguments);
    EXPECT_EQ(run(command, output), expected);
    return output;
}

/* The output has the parts; `lacks` may be NULL. */
typedef struct preload {
    const char *name, *environment, *what;
    const char *parts[5], *lacks;
} preload_t;

static const preload_t preloads[] = {
    {"requests_are_served_and_nothing_else",
     "STRATA_RUN_REPORT=1 STRATA_STRATEGY=strata",
     "serve",
     {"differ 1\naligned 1\nfreed 0\nfreed 0\nfreed 0\nnothing 0\n", "real_mallocs 1\n", /* of 0 bytes */
      "cudaMalloc                            3          1\n", "cudaFree                              3          1\n",
      "gpu:0: 3 requests"},
     NULL},
    {"a_freed_block_is_waited_for_when_it_is_needed",
     "STRATA_STRATEGY=strata",
     "unordered",
     {"pending_after_free 1\npending_after_reuse 0\nsame 1\n"},
     NULL},
    {"a_freed_block_is_waited_for_under_pytorch",
     "STRATA_STRATEGY=pytorch",
     "unordered",
     {"pending_after_free 1\npending_after_reuse 0\nsame 1\n"},
     NULL},
    {"foreign_pointers_go_to_the_real_functions", "", "foreign", {"freed 0\nreal_frees 1\nunknown 1\nown 0\n"}, NULL},
    {"idle_memory_goes_back_to_whoever_else_asks", "", "budget", {"used 1\npitch 0\nserved_beside 0\ntoo_much 2\noom 2\n"}, NULL},
    {"idle_memory_of_chunks_goes_back_too",
     "STRATA_STRATEGY=strata-malloc",
     "budget",
     {"used 1\npitch 0\nserved_beside 0\ntoo_much 2\noom 2\n"},
     NULL},
    {"idle_memory_counts_as_free", "", "mem_info", {"free_again 1\nused 1\ntotal 1024\n"}, NULL},
    {"streams_are_served_in_their_order_and_forgotten",
     "STRATA_RUN_REPORT=1",
     "streams",
     {"on 0\nfreed_on 0\nagain 0\nin_order 1\nfreed_without 0\ndestroyed 0\nlegacy 0\nfreed_on 0\npool_calls 0\n"
      "pool_calls_of_another 1\n",
      "cudaStreamDestroy                     1          0\n"},
     NULL},
    {"memory_of_the_host_and_managed_memory",
     "STRATA_RUN_REPORT=1",
     "host",
     {"pinned 0\nmapped 0\ncombined 0\nmanaged 0\nfreed 0\n",
      "cudaHostAlloc                         1          1\n", /* write-combined memory is CUDA's */
      "cudaFreeHost                          2          1\n", "managed:0: 1 requests", "pinned: 2 requests"},
     NULL},
    {"a_reset_takes_no_memory_that_strata_holds",
     "",
     "reset",
     {"reset 0\nlost 0\nagain 1\nsecond 1\nkept 0\nlost 0\nfreed 0\n"},
     NULL},
    {"a_reset_takes_no_chunks",
     "STRATA_STRATEGY=strata-malloc",
     "reset",
     {"reset 0\nlost 0\nagain 1\nsecond 1\nkept 0\nlost 0\nfreed 0\n"},
     NULL},
    {"a_capture_is_not_broken", "STRATA_STRATEGY=strata", "capture", {"begun 0\nelsewhere 1\nended 0\nafter 1\n"}, NULL},
    {"the_drivers_own_functions",
     "",
     "driver",
     {"without_context 1\nserved 0\nreal_mallocs 0\nfreed 0\npinned 0\ninfo 0\nruntime_calls 0\nin_another_context 1\n"},
     NULL},
    {"threads_together", "", "threads", {"failures 0\n"}, NULL},
    {"a_runtime_that_is_passed_by_is_told",
     "",
     "by_hand",
     {"no memory request reached Strata: its CUDA runtime is linked statically"},
     NULL},
    {"a_runtime_that_is_not_passed_by_is_not_told_of", "", "serve", .lacks = "strata: "},
    {"a_wrong_strategy_serves_nothing_and_says_so",
     "STRATA_STRATEGY=pytroch",
     "serve",
     {"strata: CUDA's own allocator serves this process, because Strata cannot: ", "real_mallocs 4\n"},
     NULL},
    {"an_empty_bypass_is_none", "STRATA_BYPASS=", "serve", {"real_mallocs 1\n"}, "strata: "},
    {"a_bypass_of_0_is_none", "STRATA_BYPASS=0", "serve", {"real_mallocs 1\n"}, "strata: "},
    {"a_false_bypass_is_none", "STRATA_BYPASS=false", "serve", {"real_mallocs 1\n"}, "strata: "},
    {"no_bypass_is_none", "STRATA_BYPASS=No", "serve", {"real_mallocs 1\n"}, "strata: "},
};

TEST_EACH(preload, prints, preload_t, preloads) {
    PRELOADED_OR_SKIP();
    const char *output = preloaded(row->environment, row->what);
    for (size_t i = 0; i < 5 && row->parts[i]; i++) EXPECT_CONTAINS(output, row->parts[i]);
    if (row->lacks) EXPECT_LACKS(output, row->lacks);
}

TEST(preload, nothing_comes_between_without_the_library) {
    static char output[OUTPUT_ROOM];
    EXPECT_EQ(run("'" STRATA_PROGRAM "' serve", output), 0);
    EXPECT_CONTAINS(output, "real_mallocs 4\n");
}

TEST(preload, memory_inside_a_piece_is_not_given_to_other_processes) {
    PRELOADED_OR_SKIP();
    EXPECT_CONTAINS(preloaded("STRATA_STRATEGY=system", "ipc"), "shared 2\nrefused 0\n");
    const char *output = preloaded("STRATA_STRATEGY=strata-malloc", "ipc");
    EXPECT_TRUE(strstr(output, "refused 1\n") || strstr(output, "refused 2\n"));
}

TEST(preload, steps_aside_if_it_is_told_to) {
    PRELOADED_OR_SKIP();
    const char *output = preloaded("STRATA_BYPASS=1 STRATA_STRATEGY=strata STRATA_RUN_REPORT=1", "serve");
    EXPECT_CONTAINS(output, "strata: STRATA_BYPASS is set: CUDA's own allocator serves this process, not Strata\n");
    EXPECT_TRUE(!strstr(strstr(output, "STRATA_BYPASS") + 1, "STRATA_BYPASS"));
    EXPECT_CONTAINS(output, "real_mallocs 4\n");
    EXPECT_CONTAINS(output, "cudaMalloc                            0          4\n");
    EXPECT_CONTAINS(output, "cudaFree                              0          4\n");
    EXPECT_CONTAINS(preloaded("STRATA_BYPASS=yes", "driver"), "real_mallocs 1\n");
}

/* With STRATA_BYPASS every function of both libraries goes to CUDA. */
TEST(preload, steps_aside_in_each_library) {
    PRELOADED_OR_SKIP();
    static const char *const names[] = {"cudaMalloc",      "cuMemAlloc_v2",        "cudaMallocHost",   "cuMemHostAlloc",
                                        "cudaMallocAsync", "cuMemAllocAsync_ptsz", "cudaMallocManaged"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *output = run_preloaded(STRATA_ENTRIES, "STRATA_BYPASS=1 STRATA_RUN_REPORT=1", names[i]);
        EXPECT_CONTAINS(output, "real 1\n");
        EXPECT_TRUE(!strstr(output, " requests, "));
    }
}

/* ---- reports ---- */

/* Returns the contents of a file, or "" if it does not exist. */
static const char *contents(const char *format, const char *folder, int number) {
    static char text[OUTPUT_ROOM];
    char path[256];
    snprintf(path, sizeof path, format, folder, number);
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) fclose(file);
    return text;
}

TEST(run_command, each_process_writes_its_own_report) {
    PRELOADED_OR_SKIP();
    char folder[] = "/tmp/strata_reports_XXXXXX", arguments[512], line[128];
    int all[3];
    ASSERT_TRUE(mkdtemp(folder));
    snprintf(arguments, sizeof arguments, "--report=%s/r-%%p.txt -- '" STRATA_PROGRAM "' children", folder);
    const char *output = ran(arguments, 0), *told = strstr(output, "processes ");
    EXPECT_CONTAINS(output, "forked 1\n");
    EXPECT_TRUE(!strstr(output, "answered by Strata"));
    ASSERT_TRUE(told && sscanf(told, "processes %d %d %d", &all[0], &all[1], &all[2]) == 3);
    static const char *const rows[] = {"cudaMalloc                            1          0\n",
                                       "cudaMalloc                            0          1\n",
                                       "cudaMalloc                            3          1\n"};
    for (int i = 0; i < 3; i++) {
        const char *text = contents("%s/r-%d.txt", folder, all[i]);
        snprintf(line, sizeof line, "strata: report of process %d (stand_in_program)\n", all[i]);
        EXPECT_EQ(strncmp(text, line, strlen(line)), 0);
        EXPECT_CONTAINS(text, rows[i]);
    }
    snprintf(arguments, sizeof arguments, "ls '%s' | wc -l; rm -r '%s'", folder, folder);
    static char count[OUTPUT_ROOM];
    EXPECT_EQ(run(arguments, count), 0);
    EXPECT_STREQ(count, "3\n"); /* no partial files */
}

TEST(run_command, processes_share_one_report) {
    PRELOADED_OR_SKIP();
    char folder[] = "/tmp/strata_reports_XXXXXX", arguments[512];
    ASSERT_TRUE(mkdtemp(folder));
    snprintf(arguments, sizeof arguments, "--report='%s/all' -- '" STRATA_PROGRAM "' children", folder);
    for (int again = 0; again < 2; again++) { /* a file of an earlier run is emptied */
        ran(arguments, 0);
        const char *text = contents("%s/all", folder, 0);
        int reports = 0;
        for (const char *at = text; (at = strstr(at, "strata: report of process ")) != NULL; at++) reports++;
        EXPECT_EQ(reports, 3);
    }
    snprintf(arguments, sizeof arguments, "rm -r '%s'", folder);
    EXPECT_EQ(system(arguments), 0);
    EXPECT_CONTAINS(ran("--report=/no/such/folder/r -- true", 2), "/no/such/folder/r: No such file");
    EXPECT_CONTAINS(ran("--report=/no/such/folder/%p -- true", 2), "/no/such/folder/%p: No such file");
    EXPECT_CONTAINS(ran("--report= -- true", 2), "--report");
    const char *output = ran("--report -- '" STRATA_PROGRAM "' serve", 0);
    EXPECT_CONTAINS(output, "strata: report of process ");
    EXPECT_CONTAINS(output, " (stand_in_program)\nstrata: function, calls served by Strata, by CUDA\n");
}

/* Real kernels must not get made-up addresses: the devices that a strategy names are not asked for here. */
TEST(preload, a_simulated_device_is_never_opened) {
    PRELOADED_OR_SKIP();
    char path[] = "/tmp/strata_simulated_XXXXXX.yaml", environment[128];
    int file = mkstemps(path, 5);
    ASSERT_TRUE(file >= 0);
    FILE *out = fdopen(file, "w");
    fputs("version: 1\nstrategy: simulated\ndevices: sim\nextends: strata\n", out);
    fclose(out);
    snprintf(environment, sizeof environment, "STRATA_STRATEGY=%s STRATA_RUN_REPORT=1", path);
    const char *output = preloaded(environment, "mem_info");
    EXPECT_CONTAINS(output, "total 1024\n");
    EXPECT_CONTAINS(output, "used 1\n"); /* of the stand-in's device */
    remove(path);
}

/* ---- strata run ---- */

TEST(run_command, preloads_and_sets) {
    PRELOADED_OR_SKIP();
    const char *output = ran("--strategy paddle --set auto_growth.chunk_size=20MiB --report -- '" STRATA_PROGRAM "' serve", 0);
    EXPECT_CONTAINS(output, "gpu:0: 3 requests, 2 from the cache, at most 20MiB reserved and 3MiB allocated");
}

TEST(run_command, exit_status_is_the_programs) {
    PRELOADED_OR_SKIP();
    ran("-- sh -c 'exit 7'", 7);
    EXPECT_CONTAINS(ran("-- sh -c 'echo $LD_PRELOAD' ", 0), "libstrata_preload.so");
}

TEST(run_command, a_wrong_strategy_stops_it_before_the_program) {
    EXPECT_CONTAINS(ran("--strategy pytroch -- echo begun", 2), "write pytorch");
    EXPECT_CONTAINS(ran("--set auto_growth_vmm.chunk=1 -- echo begun", 2), "strata");
    EXPECT_TRUE(!strstr(ran("--strategy pytroch -- echo begun", 2), "begun"));
    EXPECT_CONTAINS(ran("", 2), "no program; write");
    EXPECT_CONTAINS(ran("-- ./no/such/program", 2), "there is no such program");
}

TEST(run_command, a_runtime_linked_statically_is_told_before) {
    PRELOADED_OR_SKIP();
    EXPECT_CONTAINS(ran("-- '" STRATA_OWN_RUNTIME "'", 0), "links its CUDA runtime statically");
    EXPECT_CONTAINS(ran("-- '" STRATA_STATIC "'", 2), "is linked statically, so no library can be preloaded into it");
    EXPECT_TRUE(!strstr(ran("-- '" STRATA_PROGRAM "' serve", 0), "statically"));
}

/* The loader ignores LD_PRELOAD for a program that changes its user or group. */
TEST(run_command, a_program_that_changes_its_user_is_named_before) {
    PRELOADED_OR_SKIP();
    char folder[] = "/tmp/strata_setuid_XXXXXX", arguments[512];
    static char output[OUTPUT_ROOM];
    ASSERT_TRUE(mkdtemp(folder));
    snprintf(arguments, sizeof arguments,
             "cp /bin/true '%s/own' && cp '%s/own' '%s/other' && chmod u+s '%s/own' && chown %d '%s/other'", folder, folder, folder,
             folder, 65534, folder);
    bool may_change_owner = run(arguments, output) == 0;
    snprintf(arguments, sizeof arguments, "chmod u+s '%s/other'", folder);
    EXPECT_EQ(run(arguments, output), 0);
    snprintf(arguments, sizeof arguments, "-- '%s/own'", folder);
    EXPECT_CONTAINS(ran(arguments, 0), "so the loader ignores LD_PRELOAD unless its own user runs it, as now\n");
    snprintf(arguments, sizeof arguments, "-- '%s/other'", folder);
    if (may_change_owner)
        EXPECT_CONTAINS(ran(arguments, 0), "so the loader ignores LD_PRELOAD, and Strata serves none of its requests\n");
    EXPECT_TRUE(!strstr(ran("-- true", 0), "LD_PRELOAD"));
    snprintf(arguments, sizeof arguments, "rm -r '%s'", folder);
    EXPECT_EQ(system(arguments), 0);
}

/* The table of docs/integrations.md is the command's. */
TEST(run_command, the_page_has_the_table) {
    const char *table = ran("--table", 0);
    FILE *file = fopen(STRATA_SOURCE_DIR "/docs/integrations.md", "r");
    static char page[65536];
    ASSERT_TRUE(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    EXPECT_CONTAINS(table, "| `cudaMalloc` | served |");
    EXPECT_CONTAINS(page, table);
}

/* And what the library shows is what the table has. */
TEST(run_command, the_library_shows_what_the_table_has) {
    static char output[OUTPUT_ROOM];
    char line[200];
    size_t rows = 0, shown = 0;
    for (const char *at = strstr(ran("--table", 0), "| `"); at; at = strstr(at + 1, "\n| `")) rows++;
    EXPECT_EQ(run("nm -D --defined-only '" STRATA_PRELOAD "' | awk '{ print $3 }'", output), 0);
    for (char *name = strtok(output, "\n"); name; name = strtok(NULL, "\n"), shown++) {
        snprintf(line, sizeof line, "| `%s` |", name);
        if (!strstr(ran("--table", 0), line)) FAIL_TEST("%s is in no row", name);
    }
    EXPECT_EQ(shown, rows);
}
