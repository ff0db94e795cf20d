/* strata stats: what is held at a row of a trace. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

#define STATS "stats --device sim:h100 --capacity 256MiB --strategy mine.yaml "

static void write_files(void) {
    write_text("mine.yaml", "version: 1\nstrategy: mine\nstack:\n  - stream_safe\n  - auto_growth: {chunk_size: 8MiB}\n"
                            "  - limit: {bytes: 100MiB}\n  - system\nplaces:\n  pinned: [stat, system]\n");
    write_text("two.csv", "op,id,size,stream,time_us,place\n"
                          "alloc,1,4194304,7,0,gpu\n" /* row 1 */
                          "alloc,2,1048576,9,10,gpu\n"
                          "alloc,3,1000,7,20,pinned\n"
                          "borrow,1,0,9,30,gpu\n"
                          "free,1,0,7,40,gpu\n" /* row 5: waits for stream 9 */
                          "alloc,4,16777216,7,50,gpu\n" /* row 6: most is reserved */
                          "free,2,0,9,60,gpu\n"
                          "free,4,0,7,70,gpu\n"
                          "release,,0,,80,gpu\n"
                          "free,3,0,7,90,pinned\n");
}

static const char gpu_table[] = "gpu:0                                            all        stream 7        stream 9\n"
                                "  requested_bytes                           1.00 MiB             0 B        1.00 MiB\n"
                                "  allocated_bytes                           1.00 MiB             0 B        1.00 MiB\n"
                                "  peak_requested_bytes                      5.00 MiB        4.00 MiB        1.00 MiB\n"
                                "  peak_allocated_bytes                      5.00 MiB        4.00 MiB        1.00 MiB\n"
                                "  allocations                                      2               1               1\n"
                                "  frees                                            1               1               0\n"
                                "  cache_hits                                       0               0               0\n"
                                "  reserved_bytes                           16.00 MiB        8.00 MiB        8.00 MiB\n"
                                "  deferred_bytes                            4.00 MiB        4.00 MiB             0 B\n"
                                "  peak_reserved_bytes                      16.00 MiB        8.00 MiB        8.00 MiB\n"
                                "  live_allocations                                 1               0               1\n"
                                "  growths                                          2               1               1\n"
                                "  chunks                                           2               1               1\n"
                                "  borrows                                          1               1               0\n"
                                "  deferred_frees                                   1               1               0\n"
                                "  recoveries                                       0               -               -\n"
                                "  out_of_memory                                    0               -               -\n"
                                "  host_waits                                       0               0               0\n"
                                "  quarantined_bytes                              0 B             0 B             0 B\n"
                                "  borrows_waited                                   0               0               0\n"
                                "  paused_bytes                                   0 B             0 B             0 B\n"
                                "  sent_blocks                                      0               0               0\n"
                                "  sent_bytes                                     0 B             0 B             0 B\n"
                                "  limbo_bytes                                    0 B             0 B             0 B\n"
                                "  auto_growth idle_bytes                   11.00 MiB        4.00 MiB        7.00 MiB\n"
                                "  limit limit_bytes                        100.0 MiB               -               -\n"
                                "  limit used_bytes                         16.00 MiB               -               -\n"
                                "  limit peak_bytes                         16.00 MiB               -               -\n"
                                "  limit refused                                    0               -               -\n"
                                "  system oversubscribed                          0 B               -               -\n"
                                "  system refused_by_cap                            0               -               -\n"
                                "  system refused_hints                             0               -               -\n";
static const char pinned_table[] = "pinned                                           all\n"
                                   "  requested_bytes                             1000 B\n"
                                   "  allocated_bytes                             1000 B\n"
                                   "  peak_requested_bytes                        1000 B\n"
                                   "  peak_allocated_bytes                        1000 B\n"
                                   "  allocations                                      1\n"
                                   "  frees                                            0\n"
                                   "  cache_hits                                       0\n"
                                   "  reserved_bytes                              1000 B\n"
                                   "  deferred_bytes                                 0 B\n"
                                   "  peak_reserved_bytes                         1000 B\n"
                                   "  live_allocations                                 1\n"
                                   "  growths                                          0\n"
                                   "  chunks                                           0\n"
                                   "  borrows                                          0\n"
                                   "  deferred_frees                                   0\n"
                                   "  recoveries                                       0\n"
                                   "  out_of_memory                                    0\n"
                                   "  host_waits                                       0\n"
                                   "  quarantined_bytes                              0 B\n"
                                   "  borrows_waited                                   0\n"
                                   "  paused_bytes                                   0 B\n"
                                   "  sent_blocks                                      0\n"
                                   "  sent_bytes                                     0 B\n"
                                   "  limbo_bytes                                    0 B\n"
                                   "  stat current_bytes                          1000 B\n"
                                   "  stat peak_bytes                             1000 B\n"
                                   "  stat live                                        1\n"
                                   "  stat served                                      1\n"
                                   "  system oversubscribed                          0 B\n"
                                   "  system refused_by_cap                            0\n"
                                   "  system refused_hints                             0\n";

TEST(stats, tells_places_streams_and_layers_after_a_row) {
    char wanted[8192];
    write_files();
    ran_t ran = run_well(STATS "--at 5 two.csv");
    EXPECT_STREQ(ran.errors, "");
    snprintf(wanted, sizeof wanted, "two.csv after row 5 of 10 (line 6): mine on sim:h100\n\n%s\n%s", gpu_table, pinned_table);
    EXPECT_STREQ(ran.out, wanted);
}

static const session_t sessions[] = {
    {"finds_the_peak_and_the_end",
     .runs = {{STATS "two.csv", 0,
               .out = {"two.csv after row 6 of 10 (line 7): mine on sim:h100\n",
                       "  reserved_bytes                           32.00 MiB       24.00 MiB        8.00 MiB\n"}},
              {STATS "--at=peak two.csv", 0, .out = {"after row 6 of 10"}},
              {STATS "--at end two.csv", 0,
               .out = {"two.csv after row 10 of 10 (line 11)", "  peak_reserved_bytes                      32.00 MiB",
                       "  requested_bytes                                0 B             0 B             0 B\n"}}},
     .prepare = write_files},
    {"json_has_streams_blocks_and_the_facades_own",
     .runs = {{STATS "--at 5 --json two.csv", 0,
               .out = {"{\"schema\": 1, \"trace\": \"two.csv\", \"row\": 5, \"rows\": 10, \"line\": 6, \"strategy\": \"mine\", "
                       "\"device\": \"sim:h100\",\n\"failed_operations\": 0, \"oom_count\": 0,\n\"streams\": [{\"number\": 7, "
                       "\"device\": 0, \"stream\": \"0x",
                       "\n\"statistics\": {\"places\": [\n  {\"place\": \"gpu:0\", \"total\": {\"requested_bytes\": 1048576, ",
                       "{\"layer\": \"limit\", \"type\": \"limit\", \"number\": 3, \"figures\": {\"limit_bytes\": 104857600, "
                       "\"used_bytes\": 16777216, "},
               .lacks = {"\"blocks\""}},
              {STATS "--at 5 --json --blocks two.csv", 0,
               .out = {"\"size\": 4194304, \"requested\": 0, \"state\": \"deferred\"},\n",
                       "\"size\": 4194304, \"requested\": 0, \"state\": \"free\"},\n",
                       "\"size\": 1048576, \"requested\": 1048576, \"state\": \"live\"},\n",
                       "{\"place\": \"pinned\", \"stream\": \"0x0\", \"chunk\": ",
                       "\"size\": 1000, \"requested\": 1000, \"state\": \"live\"}],\n\"statistics\": "}}},
     .prepare = write_files},
    {"blocks_chunk_by_chunk",
     .runs = {{STATS "--at 5 --blocks two.csv", 0,
               .out = {"\n  chunks and blocks\n  chunk 0x", " 8MiB, stream 7: used 4MiB (1), free 4MiB (1)\n    0x",
                       " 4MiB free\n    0x", " 4MiB waiting for other streams\n  chunk 0x",
                       " 8MiB, stream 9: used 1MiB (1), free 7MiB (1)\n    0x", " 7MiB free\n    0x", " 1MiB live\n\npinned ",
                       " 1000, default: used 1000 (1), free 0 (0)\n    0x", " 1000 live\n"}}},
     .prepare = write_files},
    /* Rows that are one kernel are not cut in two, and failures so far are told. */
    {"kernels_are_whole_and_failures_are_told",
     .files = {{"kernel.csv",
                "op,id,size,stream,time_us,dur_us\nalloc,1,1000,0,0,\nalloc,2,1000,0,0,\nwork,1,0,0,5,10\nwork,2,0,0,5,10\n"
                "free,1,0,0,50,\nfree,2,0,0,50,\n"},
               {"early.csv",
                "op,id,size,stream,time_us,dur_us\nalloc,1,1000,0,0,\nwork,1,0,0,5,10\nwork,1,0,0,5,10\nwork,1,0,0,5,10\n"
                "free,1,0,0,50,\n"},
               {"large.csv", "op,id,size,stream,time_us\nalloc,1,1000,0,0\nalloc,2,200000000,0,1\n"},
               {"align.csv", "op,id,size,stream,time_us,align\nalloc,1,100,0,0,4096\n"}},
     .runs = {{STATS "--at 3 kernel.csv", 0, .out = {"kernel.csv after row 4 of 6 (line 5)"}},
              {STATS "--at 2 early.csv", 0, .out = {"early.csv after row 4 of 5 (line 5)"}}, /* longer than all that is before it */
              {STATS "--at end large.csv", 0,
               .out = {"\n1 request has failed for lack of memory so far\nthe first at row 2 (line 3): out of memory in gpu:0 ",
                       "live blocks: ", "  out_of_memory                                    1               -\n"}},
              {STATS "--at end align.csv", 1, .errors = {"strata: align.csv:2: alloc failed: "}}},
     .prepare = write_files},
    {"refuses_wrong_usage",
     .files = {{"nothing.csv", "op,id,size,stream,time_us\n"}, {"step.csv", "op,id,size,stream,time_us\nstep,,0,,1\n"}},
     .wrong = {{"stats two.csv", "--strategy is missing"},
               {"stats --strategy paddle", "no trace"},
               {"stats --strategy paddle two.csv two.csv", "takes one trace"},
               {"stats --strategy paddle --strategy strata two.csv", "--strategy is given twice"},
               {"stats --strategy paddle --at 0 two.csv", "--at 0: write the number of a row from 1, peak or end"},
               {"stats --strategy paddle --at top two.csv", "--at top: write the number"},
               {"stats --strategy paddle --device sim --at 11 two.csv", "--at 11: two.csv has 10 rows; write 1 to 10, peak or end"},
               {"stats --strategy paddle --json --prometheus two.csv", "--json and --prometheus exclude each other"},
               {"stats --strategy paddle --blocks --prometheus two.csv", "--prometheus cannot print blocks; write --json --blocks"},
               {"stats --strategy paddle --json=x two.csv", "--json takes no value"},
               {"stats --strategy paddle --repeat 3 two.csv", "unknown option --repeat"},
               {"stats --strategy paddle --block two.csv", "unknown option --block; did you mean --blocks"},
               {"stats --strategy paddle --device sim nothing.csv", "nothing.csv: the trace has no rows"},
               {"stats --strategy paddle --device sim step.csv", "--at peak: step.csv reserves no device memory; write --at end"},
               {"compare --strategy paddle --at 3 two.csv", "unknown option --at"}},
     .prepare = write_files},
};

TEST_EACH(stats, prints, session_t, sessions) { expect_session(row); }

/* What a comparison calls the peak is what is reserved at the row that is found. */
TEST(stats, the_peak_is_the_comparisons) {
    enum { SAME = 3 };
    static const char *const names[SAME] = {"alexnet-training.csv.gz", "streams-sharded-training.csv.gz",
                                            "lm-small-bf16-forward.csv.gz"};
    for (int i = 0; i < SAME; i++) {
        ran_t ran = run_command("replay --device sim --repeat 1 --strategy strata --json - %s", project_trace_path(names[i]));
        const char *at = ran.out ? strstr(ran.out, "\"peak_reserved_bytes\": ") : NULL;
        ASSERT_NE(at, NULL);
        unsigned long long peak = strtoull(at + strlen("\"peak_reserved_bytes\": "), NULL, 10);
        ran = run_well("stats --device sim --strategy strata --json %s", project_trace_path(names[i]));
        at = ran.out ? strstr(ran.out, "\"reserved_bytes\": ") : NULL;
        ASSERT_NE(at, NULL);
        EXPECT_EQ(strtoull(at + strlen("\"reserved_bytes\": "), NULL, 10), peak);
        EXPECT_GT(peak, 0);
    }
}

TEST(stats, prometheus_text) {
    write_files();
    ran_t ran = run_well(STATS "--at 5 --prometheus two.csv");
    EXPECT_EQ(strncmp(ran.out, "# HELP strata_requested_bytes ", 30), 0);
    EXPECT_CONTAINS(ran.out, "\nstrata_requested_bytes{place=\"gpu:0\"} 1048576\n");
    EXPECT_CONTAINS(ran.out, "\nstrata_layer_limit_used_bytes{place=\"gpu:0\",layer=\"limit\",number=\"3\"} 16777216\n");
}

/* More streams than stand beside one another, and two layers of one name. */
TEST(stats, many_streams_take_several_tables) {
    static char rows[4096];
    size_t length = (size_t)sprintf(rows, "op,id,size,stream,time_us\n");
    for (int i = 0; i < 8; i++) length += (size_t)sprintf(rows + length, "alloc,%d,%d,%d,%d\n", i, (i + 1) * 256, 100 + i, i);
    write_text("many.csv", rows);
    write_text("twice.yaml", "stack:\n  - stat\n  - stat\n  - auto_growth\n  - system\n");
    ran_t ran = run_well("stats --device sim --strategy twice.yaml --at end many.csv");
    EXPECT_CONTAINS(ran.out, "stream 105\n");
    EXPECT_CONTAINS(ran.out, "\ngpu:0                                            all      stream 106      stream 107\n"
                             "  requested_bytes                           9.00 KiB        1.75 KiB        2.00 KiB\n");
    EXPECT_CONTAINS(ran.out, "  stat#1 current_bytes                      9.00 KiB        1.75 KiB        2.00 KiB\n");
    EXPECT_CONTAINS(ran.out, "  stat#2 current_bytes                      9.00 KiB        1.75 KiB        2.00 KiB\n");
}
