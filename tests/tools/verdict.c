/* Tests the printed verdict of a comparison: its sentences, its final command, and the provenance in the JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/sha256.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

#define BATCH   "--device sim:h100 --repeat 1 "
#define COLUMNS "op,id,size,stream,time_us\n"
/* After one second a device call costs less than 1 % of the time. */
#define LATER "step,,,0,1000000\n"
#define ONE   COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,1\n" LATER
#define ROOMY "strategy: roomy\nstack: [stream_safe, auto_growth: {chunk_size: 64MiB}, system]\n"

/* Collapses white space to single blanks, because the column widths depend on the host's times. */
static const char *flat(const char *text) {
    static char flattened[65536];
    char *to = flattened;
    for (const char *at = text ? text : ""; *at && to < flattened + sizeof flattened - 1; at++) {
        bool blank = *at == ' ' || *at == '\n';
        if (!blank || (to > flattened && to[-1] != ' ')) *to++ = blank ? ' ' : *at;
    }
    *to = '\0';
    return flattened;
}

/* ---- words ---- */

/* One block of 300 GB on a device with 80 GB. */
TEST(verdict, none_serves_the_trace) {
    write_text("all_failed.csv", COLUMNS "alloc,1,300000000000,0,0\n");
    ran_t ran = run_well("compare " BATCH "all_failed.csv");
    EXPECT_CONTAINS(ran.out,
                    "all_failed.csv: no strategy serves every request. The nearest is strata, which fails 1 of 1 operations "
                    "and\nneeds a capacity of 279.4 GiB; it had 79.51 GiB. pytorch fails 1 operation, pytorch-expandable "
                    "fails 1\noperation.\nstrata stats --device sim:h100 --strategy strata --at end all_failed.csv\n");
    EXPECT_LACKS(ran.out, "over the rows");
}

/* ds4#585: 25 spans of 1,152 MiB in chunks of 1,792 MiB, on a device of 121.63 GiB of which 68.58 are taken. */
#define CHUNKY "strategy: chunky\nstack: [stream_safe, auto_growth: {chunk_size: 1792MiB}, system]\n"

/* Every second span has `less` fewer bytes. They live all together, or one after another. */
static void write_spans(const char *name, int count, uint64_t size, uint64_t less, bool together) {
    char rows[8192] = COLUMNS;
    for (int i = 1; i <= count; i++) {
        sprintf(rows + strlen(rows), "alloc,%d,%llu,0,%d\n", i, (unsigned long long)(size - (uint64_t)(i % 2) * less), i);
        if (!together) sprintf(rows + strlen(rows), "free,%d,,0,%d\n", i, i);
    }
    for (int i = 1; i <= count && together; i++) sprintf(rows + strlen(rows), "free,%d,,0,%d\n", i, count + i);
    strcat(rows, LATER);
    write_text(name, rows);
}

TEST(verdict, names_a_chunk_size_that_wastes) {
    write_spans("spans.csv", 25, 1152ull << 20, 0, true);
    write_text("chunky.yaml", CHUNKY);
    ran_t ran = run_well("compare " BATCH "--capacity 53.05GiB --strategy chunky.yaml --strategy strata spans.csv");
    EXPECT_CONTAINS(flat(ran.out), "In chunky, the chunks of 1.75 GiB (auto_growth.chunk_size) leave up to 15.62 GiB unused; write "
                                   "auto_growth.chunk_size=1152MiB. ");
    ran = run_well("compare " BATCH
                   "--capacity 53.05GiB --strategy chunky.yaml --set auto_growth.chunk_size=1152MiB --strategy strata spans.csv");
    EXPECT_CONTAINS(flat(ran.out), "chunky used the least memory at equal run time: peak 28.12 GiB, ");
    EXPECT_LACKS(ran.out, "unused");
    /* A strategy that fails is named too. */
    ran = run_command("compare " BATCH "--capacity 40GiB --strategy chunky.yaml --strategy strata spans.csv");
    EXPECT_CONTAINS(flat(ran.out), "chunky fails 3 operations. In chunky, the chunks of 1.75 GiB (auto_growth.chunk_size) leave");
}

typedef struct suited {
    const char *name;
    uint64_t size, less; /* MiB */
    const char *better; /* what to write, or NULL */
    bool apart;
} suited_t;

static const suited_t suited[] = {
    {"two_in_a_chunk", 896, 0, NULL, false},
    {"hardly_one_in_a_chunk", 897, 0, "=897MiB", false},
    {"as_large_as_a_chunk", 1792, 0, NULL, false},
    {"larger_than_a_chunk", 2000, 0, NULL, false},
    {"less_than_a_tenth_of_the_peak", 1620, 0, NULL, false},
    {"more_than_a_tenth_of_the_peak", 1600, 0, "=1600MiB", false},
    {"larger_ones_do_not_matter", 2000, 848, "up to 7.50 GiB unused; write auto_growth.chunk_size=1152MiB", false},
    {"the_smallest_decides", 1300, 100, "=1200MiB", false},
    {"a_rest_that_other_blocks_use", 1200, 640, NULL, false},
    {"one_after_another", 1100, 1, "leave up to 693.0 MiB unused", true}};

TEST_EACH(verdict_chunks, of, suited_t, suited) {
    write_spans("suits.csv", 24, row->size << 20, row->less << 20, !row->apart);
    write_text("chunky.yaml", CHUNKY);
    ran_t ran = run_well("compare " BATCH "--capacity 70GiB --strategy chunky.yaml --strategy strata suits.csv");
    EXPECT_EQ(strstr(ran.out, "auto_growth.chunk_size") != NULL, row->better != NULL);
    if (row->better) EXPECT_CONTAINS(flat(ran.out), row->better);
}

/* rmm#2510: each step synchronizes, and the driver's pool keeps nothing, something or everything then. */
TEST(verdict, names_a_threshold_that_costs_time) {
    static const char *const thresholds[] = {"0", "1MiB", "64GiB", "unlimited"};
    char rows[16384] = COLUMNS, command[256];
    for (int step = 0; step < 20; step++)
        for (int i = 1; i <= 10; i++) {
            int id = step * 10 + i;
            sprintf(rows + strlen(rows), "alloc,%d,%d,0,%d\nfree,%d,,0,%d\n", id, (80 + i) << 20, 200 * id, id, 200 * id + 100);
            if (i == 10) sprintf(rows + strlen(rows), "sync,,,0,%d\n", 200 * id + 150);
        }
    write_text("steps.csv", rows);
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        snprintf(command, sizeof command,
                 "compare " BATCH "--strategy cuda_malloc_async --set cuda_malloc_async.release_threshold=%s --label pool "
                 "--strategy strata steps.csv",
                 thresholds[i]);
        ran_t ran = run_well("%s", command);
        if (i < 2) EXPECT_CONTAINS(flat(ran.out), " of the time, and each wait gives back what the driver's pool has idle beyond ");
        EXPECT_EQ(strstr(flat(ran.out), "write cuda_malloc_async.release_threshold=unlimited. ") != NULL, i < 2);
    }
    /* A program that does little else than to call the pool. */
    strcpy(rows, COLUMNS);
    for (int i = 1; i <= 100; i++) sprintf(rows + strlen(rows), "alloc,%d,1048576,0,%d\nfree,%d,,0,%d\n", i, i, i, i);
    write_text("dense.csv", rows);
    ran_t dense = run_well("compare " BATCH "--strategy cuda_malloc_async --set cuda_malloc_async.release_threshold=1GiB "
                           "--strategy strata dense.csv");
    EXPECT_LACKS(dense.out, "threshold=unlimited");
    write_text("rare.csv", COLUMNS "alloc,1,83886080,0,0\nfree,1,,0,1\nsync,,,0,2\n" LATER);
    EXPECT_LACKS(run_well("compare " BATCH
                          "--strategy cuda_malloc_async --set cuda_malloc_async.release_threshold=0 --strategy strata rare.csv")
                     .out,
                 "threshold=unlimited");
}

/* Pinned memory has a stack of its own. */
TEST(verdict, names_no_chunk_size_for_pinned_blocks) {
    write_text("pinned.csv",
               "op,id,size,stream,time_us,place\nalloc,1,1207959552,0,0,pinned\nalloc,2,1048576,0,0,\nstep,,,0,1000000,\n");
    write_text("chunky.yaml", CHUNKY);
    ran_t ran = run_well("compare " BATCH "--strategy chunky.yaml --strategy strata pinned.csv");
    EXPECT_LACKS(ran.out, "auto_growth.chunk_size");
}

/* The minimum capacity of a failing strategy is above the given one. The row is also there if none is found. */
TEST(verdict, smallest_is_part_of_it) {
    write_text("two.csv", COLUMNS "alloc,1,9437184,0,0\nfree,1,0,0,1\nalloc,2,5242880,0,2\nalloc,3,5242880,0,3\n" LATER);
    write_text("roomy.yaml", ROOMY);
    ran_t ran = run_well("compare " BATCH "--smallest --capacity 8MiB --strategy system --strategy roomy.yaml two.csv");
    EXPECT_CONTAINS(flat(ran.out), " smallest_device_bytes 12.00 MiB 64.00 MiB ");
    EXPECT_CONTAINS(flat(ran.out), "The minimum capacity that serves every request is 12.00 MiB, with system.");
    write_text("align.csv", "op,id,size,stream,time_us,align\nalloc,1,100,0,0,4096\n");
    ran = run_command("compare " BATCH "--smallest --strategy paddle --strategy pytorch align.csv");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(flat(ran.out), " smallest_device_bytes - - ");
    EXPECT_CONTAINS(flat(ran.out), "fails 1 of 1 operations, none of them for lack of memory.");
}

TEST(verdict, pinned_figures_are_shown) {
    write_text("pinned_only.csv",
               "op,id,size,stream,time_us,dur_us,other,place\nalloc,1,100,0,0,,,pinned\nborrow,1,,1,1,,,\nfree,1,,0,2,,,\n");
    ran_t ran = run_well("compare " BATCH "pinned_only.csv");
    EXPECT_CONTAINS(flat(ran.out), " pinned_requested_bytes 100 B pinned_reserved_bytes 8.00 MiB ");
    EXPECT_LACKS(ran.out, "host_requested");
    EXPECT_CONTAINS(ran.out, "  strata also covers pytorch, pytorch-expandable: their stacks are equal for this trace.\n");
    EXPECT_CONTAINS(ran.out, "\npinned_only.csv: the trace requests no device memory, only pinned memory (at most 100 B). strata ");
    EXPECT_CONTAINS(ran.out, "\nstrata stats --device sim:h100 --strategy strata --at end pinned_only.csv\n");
    EXPECT_LACKS(ran.out, "over the rows");
}

TEST(verdict, empty_traces_say_so) {
    write_text("empty.csv", COLUMNS);
    ran_t ran = run_well("compare " BATCH "empty.csv");
    EXPECT_CONTAINS(ran.out, "\nempty.csv: the trace has no rows, so there is nothing to compare.\n");
    EXPECT_LACKS(ran.out, "strata stats");
    write_text("marks.csv", COLUMNS "step,,,0,0\nrelease,,,0,1\n");
    ran = run_well("compare " BATCH "marks.csv");
    EXPECT_CONTAINS(ran.out, "\nmarks.csv: the trace requests no memory, so there is nothing to compare.\n");
    EXPECT_LACKS(ran.out, "strata stats");
}

/* In a trace with late frees, the device's used memory decides, not the reserved bytes of a pool. */
TEST(verdict, the_device_decides) {
    char text[32768] = "op,id,size,stream,time_us,dur_us,other\n";
    int time = 0;
    for (int i = 1; i <= 100; i++)
        sprintf(
            text + strlen(text),
            "alloc,%d,1073741824,1,%d,,\nwork,%d,,1,%d,100,\nwait,,,0,%d,,1\nborrow,%d,,0,%d,,\nwork,%d,,0,%d,1000,\nfree,%d,,1,%d,,\n",
            i, time + 2, i, time + 4, time + 6, i, time + 8, i, time + 10, i, time + 12),
            time += 12;
    write_text("async.csv", text);
    ran_t ran = run_well("compare " BATCH "--strategy cuda_malloc_async --strategy strata async.csv");
    EXPECT_CONTAINS(ran.out, "strata stats --device sim:h100 --strategy strata async.csv\n");
    EXPECT_CONTAINS(flat(ran.out), "peak 2.00 GiB, ");
}

/* ---- shared columns ---- */

TEST(verdict, equal_strategies_share_a_column) {
    write_text("one.csv", ONE);
    ran_t ran = run_well("compare " BATCH "--strategy strata --strategy strata --strategy system one.csv");
    EXPECT_CONTAINS(ran.out, "  strata also covers strata#2: their stacks are equal for this trace.\n");
    EXPECT_CONTAINS(ran.out, "strata#2 has the same stacks as strata for this trace.");
    ran = run_well("compare " BATCH "--strategy strata --strategy strata --set stream_safe.poll=block one.csv");
    EXPECT_LACKS(ran.out, "also covers");
    ran = run_well("compare " BATCH "--json same.json --strategy strata --strategy host_huge one.csv");
    char *json CLOSED_BY(text_cleanup) = written_text("same.json");
    EXPECT_CONTAINS(json, "\"order\": [[\"strata\", \"host_huge\"]]");
    EXPECT_CONTAINS(json, "\"label\": \"host_huge\"");
}

TEST(verdict, all_presets_are_compared) {
    write_text("one.csv", ONE);
    ran_t ran = run_well("compare " BATCH "--json - --strategy all one.csv");
    for (const char *const *name = (const char *const[]){"strata", "paddle", "tinytorch", "cuda_malloc_async", NULL}; *name;
         name++) {
        char label[64];
        snprintf(label, sizeof label, "\"label\": \"%s\"", *name);
        EXPECT_CONTAINS(ran.out, label);
    }
    EXPECT_STREQ(ran.errors, "");
    write_text("plain.yaml", "profile: plain\nextends: h100\nvirtual_memory: false\n");
    ran = run_well("compare --device sim:plain.yaml --repeat 1 --strategy all one.csv");
    EXPECT_CONTAINS(ran.errors, "strata: --strategy all: paddle-vmm is left out: ");
    EXPECT_LACKS(ran.errors, "all: strata is");
    EXPECT_LACKS(ran.out, "paddle-vmm");
    EXPECT_CONTAINS(ran.out, " pytorch");
    expect_wrong_use("compare " BATCH "--strategy all --set a.b=1 one.csv", "--set a.b=1 follows --strategy all");
    expect_wrong_use("compare " BATCH "--strategy all --label x one.csv", "--label x follows --strategy all");
    expect_wrong_use("stats --device sim --strategy all one.csv", "takes one strategy");
}

/* ---- the final command ---- */

/* Runs the last line, which must show the trace under the strategy. */
static void expect_next_line(const char *out, const char *line, const char *shown) {
    size_t length = out ? strlen(out) : 0;
    ASSERT_GT(length, 1);
    char *last CLOSED_BY(text_cleanup) = strdup(out);
    last[length - 1] = '\0';
    char *begin = strrchr(last, '\n');
    ASSERT_NE(begin, NULL);
    EXPECT_STREQ(begin + 1, line);
    ran_t ran = run_line(begin + 1);
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_STREQ(ran.errors, "");
    EXPECT_CONTAINS(ran.out, shown);
}

typedef struct next {
    const char *name;
    const char *file; /* the strategy file */
    const char *trace;
    const char *arguments; /* arguments of the comparison, which a shell runs */
    const char *line;
    const char *shown;
} next_t;

static const next_t nexts[] = {
    {"a_strategy_of_another_name", "named_otherwise.yaml", "t.csv",
     "compare " BATCH "--capacity 24GiB --strategy pytorch --strategy named_otherwise.yaml t.csv",
     "strata stats --device sim:h100 --capacity 24GiB --strategy named_otherwise.yaml t.csv", "something-else on sim:h100"},
    {"values_set_by_hand", "mine.yaml", "t.csv",
     "compare --repeat 1 --set stream_safe.poll=block --device sim:a100 --strategy pytorch --strategy mine.yaml --set auto_growth.order=any t.csv",
     "strata stats --device sim:a100 --strategy mine.yaml --set stream_safe.poll=block --set auto_growth.order=any t.csv",
     "something-else on sim:a100"},
    {"every_other_option", "mine.yaml", "t.csv",
     "compare --repeat 1 --device sim --capacity 1.5GiB --gpu-lag 2ms --host-jitter 7 --legacy-default-stream --allow-code "
     "--strategy pytorch --strategy mine.yaml t.csv",
     "strata stats --device sim --capacity 1.5GiB --gpu-lag 2ms --host-jitter 7 --legacy-default-stream --allow-code --strategy "
     "mine.yaml t.csv",
     "something-else on sim:h100"},
    {"names_that_need_quotes", "it's \"mine\" $HOME.yaml", "a b;c.csv",
     "compare " BATCH "--strategy pytorch --strategy \"it's \\\"mine\\\" \\$HOME.yaml\" 'a b;c.csv'",
     "strata stats --device sim:h100 --strategy 'it'\\''s \"mine\" $HOME.yaml' 'a b;c.csv'", "something-else on sim:h100"},
    {"a_trace_that_begins_with_a_dash", "mine.yaml", "-t.csv",
     "X=1 -- compare " BATCH "--strategy pytorch --strategy mine.yaml -- -t.csv",
     "strata stats --device sim:h100 --strategy mine.yaml -- -t.csv", "something-else on sim:h100"},
    {"bytes_that_a_terminal_obeys", "mine.yaml", "\033[31m.csv",
     "compare " BATCH "--strategy pytorch --strategy mine.yaml \"$(printf '\\033[31m.csv')\"",
     "strata stats --device sim:h100 --strategy mine.yaml \"$(printf %b '\\0033\\013331m.csv')\"", "something-else on sim:h100"},
};

/* The name of the file differs from the name of the strategy, which cannot be looked up. With pytorch the trace leaves memory idle. */
TEST_EACH(next_line, runs, next_t, nexts) {
    write_text(row->file, "version: 1\nstrategy: something-else\nextends: strata\nstack:\n"
                          "  - retry: {timeout: 100ms, wait_first: true}\n  - stream_safe: {poll: seldom}\n"
                          "  - auto_growth: {chunk_size: 2MiB, order: address, smaller_growth: true}\n  - system: {}\n");
    write_text(row->trace, COLUMNS "alloc,1,2097152,0,0\nalloc,2,2097152,0,1\nfree,1,0,0,2\n" LATER);
    ran_t ran = run_well("%s", row->arguments);
    expect_next_line(ran.out, row->line, row->shown);
}

/* The variable may set options that only another strategy has. The command has the values instead. */
TEST(next_line, runs_without_the_environment) {
    write_text("one.csv", ONE);
    ran_t ran = run_well("STRATA_SET=caching.max_split_size=1GiB,stream_safe.poll=block -- compare " BATCH
                         "--strategy pytorch --strategy strata one.csv");
    expect_next_line(ran.out,
                     "env -u STRATA_SET strata stats --device sim:h100 --strategy strata --set stream_safe.poll=block one.csv",
                     "strata on sim:h100");
}

/* A pipe cannot be read again. */
TEST(next_line, is_left_out_for_a_pipe) {
    write_text("one.csv", ONE);
    write_text("pipe.sh",
               "cat one.csv | strata compare " BATCH "--json piped.json --strategy system --strategy paddle /dev/stdin\n");
    ran_t ran = run_line("sh pipe.sh");
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_LACKS(ran.out, "strata stats");
    char *json CLOSED_BY(text_cleanup) = written_text("piped.json");
    EXPECT_CONTAINS(json, "\"path\": \"/dev/stdin\", \"sha256\": null}");
    EXPECT_CONTAINS(json, "\"next\": null}");
}

/* ---- provenance ---- */

static void expect_hash(const char *json, const char *bytes, const char *before) {
    char digest[STRATA_SHA256_TEXT], member[512];
    strata_sha256_t hash;
    strata_sha256_begin(&hash);
    strata_sha256_add(&hash, bytes, strlen(bytes));
    strata_sha256_finish(&hash, digest);
    snprintf(member, sizeof member, "%s\"sha256\": \"%s\"", before, digest);
    EXPECT_CONTAINS(json, member);
}

/* Writes the text of the first strategy in the JSON to a file. */
static char *strategy_text(const char *json) {
    const char *at = strstr(json, "\"text\": \"version: 1");
    if (!at) return NULL;
    char *text = strdup(at + strlen("\"text\": \"")), *to = text;
    for (const char *from = text; *from && *from != '"'; from++) {
        bool line = strncmp(from, "\\u000a", 6) == 0;
        if (line) from += 5;
        else if (*from == '\\') from++;
        *to++ = *from;
        if (line) to[-1] = '\n';
    }
    *to = '\0';
    return text;
}

TEST(provenance, stands_in_the_json) {
    write_text("one.csv", ONE);
    run_well("compare --capacity 24GiB --host-jitter 7 " BATCH "--json from.json --strategy strata --set stream_safe.poll=block "
             "--strategy 'paddle' one.csv");
    char *json CLOSED_BY(text_cleanup) = written_text("from.json");
    ASSERT_NE(json, NULL);
    EXPECT_CONTAINS(json, "\"provenance\": [{\"version\": \"");
    EXPECT_CONTAINS(json,
                    "\"command\": \"strata compare --capacity 24GiB --host-jitter 7 --device sim:h100 --repeat 1 --json from.json "
                    "--strategy strata --set stream_safe.poll=block --strategy paddle one.csv\"");
    EXPECT_CONTAINS(json, "\"device\": \"sim:h100\", \"capacity_bytes\": 25769803776, \"seed\": 7");
    EXPECT_CONTAINS(json, "{\"candidate\": \"paddle\", \"given\": \"paddle\", \"sha256\": \"");
    expect_hash(json, ONE, "{\"trace\": \"one.csv\", \"path\": \"one.csv\", ");
    char *text CLOSED_BY(text_cleanup) = strategy_text(json);
    ASSERT_NE(text, NULL);
    EXPECT_CONTAINS(text, "poll: block");
    expect_hash(json, text, "{\"candidate\": \"strata\", \"given\": \"strata\", ");
    write_text("again.yaml", text);
    run_well("compare " BATCH "--capacity 24GiB --host-jitter 7 --json again.json --strategy again.yaml --label strata one.csv");
    char *again CLOSED_BY(text_cleanup) = written_text("again.json");
    expect_hash(again, text, "{\"candidate\": \"strata\", \"given\": \"again.yaml\", ");
    ran_t ran = run_well("merge from.json"); /* a merge keeps it */
    EXPECT_CONTAINS(ran.out, "\"provenance\": [{\"version\": \"");
    EXPECT_CONTAINS(ran.out, "\"verdicts\": [{\"trace\": \"one.csv\"");
}

/* ---- --keep-going ---- */

#define KEEP "compare " BATCH "--keep-going --json kept.json --strategy strata --strategy system "

TEST(keep_going, leaves_wrong_traces_out) {
    write_text("good.csv", ONE);
    write_text("bad.csv", COLUMNS "alloc,1,nonsense,0,0\n");
    write_text("last.csv", COLUMNS "alloc,1,2097152,0,0\n" LATER);
    ran_t ran = run_command(KEEP "good.csv bad.csv missing.csv last.csv");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.errors, "bad.csv:2:");
    EXPECT_CONTAINS(ran.errors, "missing.csv");
    EXPECT_CONTAINS(ran.out, "\ngood.csv: ");
    EXPECT_CONTAINS(ran.out, "\nlast.csv: ");
    EXPECT_CONTAINS(ran.out, "\nstrata stats --device sim:h100 --strategy strata last.csv\n");
    char *json CLOSED_BY(text_cleanup) = written_text("kept.json");
    EXPECT_CONTAINS(json, "\"errors\": [\n  {\"trace\": \"bad.csv\", \"error\": \"bad.csv:2:");
    EXPECT_CONTAINS(json, ",\n  {\"trace\": \"missing.csv\", \"error\": \"");
    EXPECT_CONTAINS(json, "\"trace\": \"last.csv\"");
    ran = run_command("merge kept.json");
    EXPECT_CONTAINS(ran.out, "\"errors\": [{\"trace\": \"bad.csv\"");
    EXPECT_EQ(run_command("compare " BATCH "--strategy strata good.csv bad.csv").exit_status, 2);
}

TEST(keep_going, goes_on_with_a_page_and_curves) {
    write_text("good.csv", ONE);
    write_text("bad.csv", COLUMNS "free,1,0,0,0\n");
    ran_t ran = run_command("compare " BATCH
                            "--keep-going --curve --report kept.html --strategy strata --strategy system bad.csv good.csv");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "\ngood.csv, over the rows");
    char *page CLOSED_BY(text_cleanup) = written_text("kept.html");
    EXPECT_CONTAINS(page, "\"verdicts\": [\n  {\"trace\": \"good.csv\"");
    ran = run_command("report " BATCH "--keep-going -o all-kept.html good.csv bad.csv");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "all-kept.html: 2 strategies on 1 trace\n");
}

/* A strategy that cannot be opened for lack of memory fails on every trace. */
TEST(keep_going, lists_what_cannot_be_replayed) {
    write_text("good.csv", ONE);
    write_text("large.yaml", "strategy: large\nstack: [auto_growth: {preallocate: 1GiB}, system]\n");
    ran_t ran = run_command("compare " BATCH
                            "--keep-going --curve --report none.html --json kept.json --capacity 512MiB --strategy system "
                            "--strategy large.yaml good.csv");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.errors, "auto_growth.preallocate");
    char *json CLOSED_BY(text_cleanup) = written_text("kept.json");
    EXPECT_CONTAINS(json, "\"errors\": [\n  {\"trace\": \"good.csv\"");
    EXPECT_CONTAINS(json, "\"runs\": []");
}

TEST(keep_going, of_nothing_but_wrong_traces_lists_them) {
    write_text("bad.csv", COLUMNS "free,1,0,0,0\n");
    ran_t ran = run_command(KEEP "bad.csv");
    EXPECT_EQ(ran.exit_status, 1);
    char *json CLOSED_BY(text_cleanup) = written_text("kept.json");
    EXPECT_CONTAINS(json, "{\"schema\": 1, \"provenance\": ");
    EXPECT_CONTAINS(json, "\"errors\": [\n  {\"trace\": \"bad.csv\"");
    EXPECT_CONTAINS(json, "\"runs\": []}\n");
}
