/* Profiles and logs as their writers produce them: names that are not valid JSON, truncated files, moved blocks, older formats. */
#include <stdio.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/paths.h"
#include "tests/records/rows.h"

#define SEED(name) STRATA_SOURCE_DIR "/tests/fuzz/seeds/" name

static const char *text(const char *bytes) { return write_text("log", bytes); }

/* ---- torch.profiler ---- */

#define INSTANT(name, ts, args) "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"" name "\",\"ts\":" ts ",\"tid\":4,\"args\":{" args "}}"
#define GPU(bytes, address)     "\"Device Id\":0,\"Device Type\":1,\"Addr\":" address ",\"Bytes\":" bytes
#define MEMORY(ts, bytes, addr) INSTANT("[memory]", ts, GPU(bytes, addr))
#define BEGIN                   "{\"schemaVersion\":1,\"traceEvents\":["
#define ONE                     "alloc 0 5 @0 t0\n"

/* The profiler does not escape names. */
TEST(written_profiles, names_may_have_line_breaks_and_backslashes) {
    static const char *const names[] = {"_lib = Library(\n(1): <module>",
                                        "tab\there\r\n",
                                        "C:\\Users\\new\\table.py(3): run",
                                        "ends with C:\\dir\\",
                                        "C:\\a\\",
                                        "\\",
                                        "\\\\",
                                        "a \\\"quoted\\\" name",
                                        "{\\\"a\\\":\\\"b\\\"}",
                                        "x\\\", y",
                                        "\x01\x1f",
                                        "\\u12",
                                        "\\x\\q",
                                        "[memory",
                                        "\\\\\\",
                                        "\\\"",
                                        "C:\\a\\, b: C:\\d\\"};
    EXPECT_STREQ(rows_of(SEED("profiler/line_break.json")), "alloc 0 1048576 @0 t0\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[1024];
        snprintf(file, sizeof file, BEGIN "{\"name\":\"%s\",\"args\": {\"Call stack\":\"%s\" , \"file\":\"%s\"}}, %s]}", names[i],
                 names[i], names[i], MEMORY("1", "5", "77"));
        EXPECT_STREQ(rows_of(text(file)), ONE);
    }
}

TEST(written_profiles, a_request_that_failed_has_no_address) {
    EXPECT_STREQ(
        rows_of(text(BEGIN MEMORY("1", "5", "77") "," INSTANT(
            "[OutOfMemory]", "2.5",
            "\"Device Id\":0,\"Device "
            "Type\":1,\"Bytes\":900,\"Total "
            "Allocated\":5,\"Total Reserved\":64") "," INSTANT("[OutOfMemory]", "3",
                                                               "\"Device Id\":-1,\"Device Type\":0,\"Bytes\":900") "," MEMORY("4",
                                                                                                                              "-5",
                                                                                                                              "77") "]}")),
        ONE "alloc 1 900 @0 t1\nfree 1 @0 t1\nfree 0 @0 t3\n");
    EXPECT_EQ(rows_notes()->failed, 1);
    EXPECT_EQ(rows_notes()->other_memory, 1);
    EXPECT_EQ(rows_notes()->reserved_peak, 64);
}

/* An address from 2^63 on is negative. */
TEST(written_profiles, numbers_of_every_writer_are_read) {
    static const char *const pairs[][2] = {{"-4096", "-4096"},
                                           {"-4096", "18446744073709547520"},
                                           {"-4096", "\"0xfffffffffffff000\""},
                                           {"-9223372036854775808", "9223372036854775808"},
                                           {"139944000000000.0", "139944000000000"},
                                           {"1.39944e+14", "139944000000000"},
                                           {"0", "0e400"},
                                           {"12e-1", "1"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char file[512];
        snprintf(file, sizeof file,
                 BEGIN INSTANT("[memory]", "1.7e+9", GPU("5e0", "%s")) "," INSTANT("[memory]", "1700000000.001e0",
                                                                                   GPU("-5.000", "%s")) "]}",
                 pairs[i][0], pairs[i][1]);
        EXPECT_STREQ(rows_of(text(file)), ONE "free 0 @0 t0\n");
    }
    static const char *const wrong[] = {"-", "1e401", "0e401", "18446744073709551616", "1e20", "1e", "1e+", "\"0x\"", "\"-0x1\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char file[512];
        snprintf(file, sizeof file, BEGIN INSTANT("[memory]", "1", GPU("5", "%s")) "]}", wrong[i]);
        strata_trace_t *trace = NULL;
        EXPECT_EQ(strata_trace_load(text(file), &trace), STRATA_E_FORMAT);
    }
}

TEST(written_profiles, a_file_that_ends_early_is_read_up_to_there) {
    static const char *const ends[] = {"",
                                       ",",
                                       ",\n",
                                       ",{\"name\":\"x",
                                       ",{\"name\":\"C:\\",
                                       ",{\"name\":",
                                       ",{\"ts\":1",
                                       ",{\"ts\":-",
                                       ",{\"ts\":1.",
                                       ",{\"ts\":1e",
                                       ",{\"a\":tru",
                                       ",{\"name\":\"x \\\"y\\\" z\"",
                                       "]",
                                       "],\"x\":[",
                                       ",{\"a\":{\"b\":[",
                                       ",{"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char file[512];
        snprintf(file, sizeof file, BEGIN "%s%s", MEMORY("1", "5", "77"), ends[i]);
        EXPECT_STREQ(rows_of(text(file)), ONE);
        EXPECT_EQ(rows_notes()->cut_off, 1);
        if (ends[i][0] == ']') continue;
        snprintf(file, sizeof file, "[%s%s", MEMORY("1", "5", "77"), ends[i]);
        EXPECT_STREQ(rows_of(text(file)), ONE);
        EXPECT_EQ(rows_notes()->cut_off, 1);
    }
    EXPECT_STREQ(rows_of(text("\xef\xbb\xbf" BEGIN MEMORY("1", "5", "77") ",\r\n],\r\n}")), ONE);
    EXPECT_EQ(rows_notes()->cut_off, 0);
    EXPECT_STREQ(rows_of(text(BEGIN "{\"a\":nan,\"b\":-inf,\"c\":[NaN,-Infinity,-nan]}," MEMORY("1", "5", "77") "]}")), ONE);
    EXPECT_EQ(rows_notes()->cut_off, 0);
    expect_refused(text(BEGIN MEMORY("1", "5", "77") ",{\"a\":nul}"), "expected a value");
    expect_refused(text(BEGIN "{\"a\":1},{"), ":1:1: expected a string");
}

TEST(written_profiles, a_device_above_15_has_another_number) {
    EXPECT_STREQ(rows_of(text(BEGIN INSTANT("[memory]", "1",
                                            "\"Device Id\":16,\"Device Type\":1,\"Addr\":1,\"Bytes\":5,"
                                            "\"Total Reserved\":7") "," INSTANT("[memory]", "1",
                                                                                "\"Device Id\":15,\"Device "
                                                                                "Type\":1,\"Addr\":1,\"Bytes\":6,"
                                                                                "\"Total Reserved\":30") "]}")),
                 "alloc 0 5 @0 t0 gpu:15\nalloc 1 6 @0 t0 gpu:14\n");
    EXPECT_EQ(rows_notes()->renumbered, 2);
    EXPECT_EQ(rows_notes()->reserved_peak, 37);
}

/* ---- RMM ---- */

#define RMM   "Thread,Time,Action,Pointer,Size,Stream\n"
#define FIRST "1,00:00:00.000001,allocate,0x1000,10,0x0\n"

TEST(written_logs_of_rmm, a_log_that_ends_within_a_line_is_read_up_to_there) {
    static const char last[] = "1,00:00:00.000002,free,0x1000,10,0x0";
    for (size_t length = 1; length < sizeof last; length++) {
        char file[256];
        snprintf(file, sizeof file, RMM FIRST "%.*s", (int)length, last);
        bool whole = length >= sizeof last - 3; /* the stream may be 0, or 0x0 cut after any character */
        const char *rows = rows_of(text(file));
        if (length == sizeof last - 1) EXPECT_STREQ(rows, "alloc 0 10 @0 t0\nfree 0 @0 t1\n");
        if (!whole) EXPECT_STREQ(rows, "alloc 0 10 @0 t0\n");
        if (!whole) EXPECT_EQ(rows_notes()->cut_off, 1);
    }
    expect_refused(text(RMM "1,00:00:00.000002,free,0x1000\n"), ":2:1: 4 fields, but the header has 6");
    expect_refused(text(RMM "x,00:00:00.000002,free,0x1000,10,0x0\n" FIRST), ":2:1: the thread is");
    EXPECT_STREQ(rows_of(text(RMM "1,00:0")), "");
    EXPECT_EQ(rows_notes()->cut_off, 1);
    EXPECT_STREQ(rows_of(text(RMM FIRST)), "alloc 0 10 @0 t0\n");
    EXPECT_EQ(rows_notes()->cut_off, 0);
}

TEST(written_logs_of_rmm, columns_have_any_order_and_logs_follow_each_other) {
    EXPECT_STREQ(
        rows_of(text("\xef\xbb\xbfStream,Size,Pointer,Action,Time,Thread\r\n0x5,10,0x1000,allocate,00:00:00.000001,1\r\n")),
        "alloc 0 10 @5 t0\n");
    EXPECT_STREQ(rows_of(text(RMM FIRST RMM "1,00:00:00.000002,allocate,0x2000,20,0x0\n"
                                            "Action,Thread,Time,Size,Pointer,Stream,Note\n"
                                            "free,1,00:00:00.000003,10,0x1000,0x0,\"a, b\"\n")),
                 "alloc 0 10 @0 t0\nalloc 1 20 @0 t1\nfree 0 @0 t2\n");
    expect_refused(text(RMM FIRST "Action,Thread,Time,Size,Pointer,Flow\n"), ":3:1: the column Stream is missing");
    expect_refused(text("MyThread,Time,Action,Pointer,Size,Stream\n"), "unknown column \"MyThread\"");
    expect_refused(text("Thread,Time,Action,Pointer,Size,Streams\n"), ":1:1: the column Stream is missing");
    expect_refused(text("Thread,Time,Action,Pointer,Size\n"), "unknown column \"Thread\"");
}

/* A clock that steps back stands still. More than half a day back, it has passed midnight. */
TEST(written_logs_of_rmm, a_small_step_back_is_no_midnight) {
    static const struct {
        const char *first, *second;
        unsigned long long passed;
    } rows[] = {{"00:00:00.000005", "00:00:00.000003", 0},
                {"12:00:00.000000", "00:00:00.000000", 0},
                {"12:00:00.000001", "00:00:00.000000", 43199999999},
                {"23:59:59.999999", "00:00:00.000000", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char file[256], wanted[80];
        snprintf(file, sizeof file, RMM "1,%s,allocate,0x1000,1,0x0\n1,%s,allocate,0x2000,2,0x0\n", rows[i].first, rows[i].second);
        snprintf(wanted, sizeof wanted, "alloc 0 1 @0 t0\nalloc 1 2 @0 t%llu\n", rows[i].passed);
        EXPECT_STREQ(rows_of(text(file)), wanted);
    }
}

/* ---- Umpire ---- */

#define LINE(name, numeric, string, ns)                                                                                            \
    "{\"category\":\"operation\",\"name\":\"" name "\",\"numeric_args\":{" numeric "},\"string_args\":{" string                    \
    "},\"tags\":{\"replay\":\"true\"},\"timestamp\":" ns "}\n"
#define REF(ref) "\"allocator_ref\":\"" ref "\""
#define MAKES(ref, name)                                                                                                           \
    "{\"category\":\"operation\",\"name\":\"make_memory_resource\",\"numeric_args\":{},\"string_args\":{" REF(                     \
        ref) "},\"tags\":{\"allocator_name\":\"" name "\"},\"timestamp\":1}\n"
#define GETS(ref, at, ns, size)  LINE("allocate", "\"size\":" size, REF(ref) ",\"pointer\":\"" at "\"", ns)
#define ENDS(ref, at, ns)        LINE("deallocate", "", REF(ref) ",\"pointer\":\"" at "\"", ns)
#define MOVES(ref, at, ns, size) LINE("reallocate", "\"size\":" size, REF(ref) ",\"current_ptr\":\"" at "\"", ns)
#define MOVED(ref, at, ns)       LINE("reallocate", "", REF(ref) ",\"new_ptr\":\"" at "\"", ns)

TEST(written_logs_of_umpire, a_block_that_is_reallocated_moves) {
    static const struct {
        const char *name, *lines, *rows;
    } logs[] = {
        {"elsewhere", MOVES("0x1", "0xa0", "2000", "99") MOVED("0x1", "0xb0", "3000") ENDS("0x1", "0xb0", "4000"),
         "free 0 @0 t2 host\nalloc 1 99 @0 t2 host\nfree 1 @0 t3 host\n"},
        {"in place", MOVES("0x1", "0xa0", "2000", "99") MOVED("0x1", "0xa0", "3000") ENDS("0x1", "0xa0", "4000"),
         "free 0 @0 t2 host\nalloc 1 99 @0 t2 host\nfree 1 @0 t3 host\n"},
        {"by an allocation and a free of Umpire's own",
         MOVES("0x1", "0xa0", "2000", "99") GETS("0x1", "0xb0", "2500", "99") ENDS("0x1", "0xa0", "2600")
             MOVED("0x1", "0xb0", "3000"),
         "alloc 1 99 @0 t1 host\nfree 0 @0 t1 host\n"},
        {"the same where the old block lay",
         MOVES("0x1", "0xa0", "2000", "99") ENDS("0x1", "0xa0", "2500") GETS("0x1", "0xa0", "2600", "99")
             MOVED("0x1", "0xa0", "3000"),
         "free 0 @0 t1 host\nalloc 1 99 @0 t1 host\n"},
        {"from nothing", MOVES("0x1", "(nil)", "2000", "99") MOVED("0x1", "0xb0", "3000"), "alloc 1 99 @0 t2 host\n"},
        {"from 0", MOVES("0x1", "0x0", "2000", "99") MOVED("0x1", "0xb0", "3000"), "alloc 1 99 @0 t2 host\n"},
        {"one that is older than the log", MOVES("0x1", "0xe0", "2000", "99") MOVED("0x1", "0xf0", "3000"),
         "free 1 @0 t2 host\nalloc 2 99 @0 t2 host\n"},
        {"without an end", MOVES("0x1", "0xa0", "2000", "99") ENDS("0x1", "0xa0", "2600"), "free 0 @0 t1 host\n"},
        {"of two at once",
         MOVES("0x1", "0xa0", "2000", "99") MOVES("0x2", "(nil)", "2000", "7") MOVED("0x1", "0xb0", "3000")
             MOVED("0x2", "0xc0", "4000"),
         "free 0 @0 t2 host\nalloc 1 99 @0 t2 host\nalloc 2 7 @0 t3 managed\n"},
        {"where another block has taken its place",
         MOVES("0x1", "0xa0", "2000", "99") ENDS("0x1", "0xa0", "2500") GETS("0x1", "0xa0", "2600", "5")
             MOVED("0x1", "0xb0", "3000"),
         "free 0 @0 t1 host\nalloc 1 5 @0 t1 host\nalloc 2 99 @0 t2 host\n"},
        {"of two of one allocator, with the old address",
         GETS("0x1", "0xa1", "1000", "6") MOVES("0x1", "0xa0", "2000", "99") MOVES("0x1", "0xa1", "2000", "7")
             LINE("reallocate", "", REF("0x1") ",\"current_ptr\":\"0xa0\",\"new_ptr\":\"0xb0\"", "3000"),
         "alloc 1 6 @0 t0 host\nfree 0 @0 t2 host\nalloc 2 99 @0 t2 host\n"},
        {"to no bytes", MOVES("0x1", "0xa0", "2000", "0") MOVED("0x1", "0xa0", "3000"),
         "free 0 @0 t2 host\nalloc 1 0 @0 t2 host\n"},
    };
    EXPECT_STREQ(rows_of(SEED("umpire/moves.stats")),
                 "alloc 0 4096 @0 t0 host\nfree 0 @0 t10 host\nalloc 1 1048576 @0 t10 host\nfree 1 @0 t15 host\n"
                 "alloc 2 64 @0 t20 host\nfree 2 @0 t25 host\n");
    EXPECT_EQ(rows_notes()->freed_unseen, 0);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        char file[4096], wanted[512];
        bool older = strstr(logs[i].name, "older") != NULL;
        snprintf(file, sizeof file, "%s%s", MAKES("0x1", "HOST") MAKES("0x2", "UM") GETS("0x1", "0xa0", "1000", "10"),
                 logs[i].lines);
        snprintf(wanted, sizeof wanted, "%salloc 0 10 @0 t0 host\n%s", older ? "alloc 1 0 @0 t0 host\n" : "", logs[i].rows);
        if (strcmp(rows_of(text(file)), wanted) != 0) FAIL_TEST("%s: %s", logs[i].name, rows_of(text(file)));
        EXPECT_EQ(rows_notes()->freed_unseen, 0);
        EXPECT_EQ(rows_notes()->never_live, 0);
    }
    EXPECT_STREQ(rows_of(text(MOVED("0x1", "0xb0", "3000"))), "");
    EXPECT_EQ(rows_notes()->other_actions, 1);
    expect_refused(text(LINE("reallocate", "\"size\":4", REF("0x1"), "1")), ":1:1: the line has no address");
    expect_refused(text(LINE("reallocate", "", REF("0x1") ",\"current_ptr\":\"0xa0\"", "1")), ":1:1: the line has no size");
}

/* Only the whole name of a resource, or one with a number, says where memory lies. */
TEST(written_logs_of_umpire, a_name_that_begins_as_a_resource_is_none) {
    EXPECT_STREQ(rows_of(text(MAKES("0x1", "HOSTS") MAKES("0x2", "UM::") MAKES("0x3", "PINNED:1") MAKES("0x4", "HOST")
                                  GETS("0x1", "0xa0", "1000", "1") GETS("0x2", "0xa1", "1000", "2") GETS("0x3", "0xa2", "1000", "3")
                                      GETS("0x4", "0xa3", "1000", "4"))),
                 "alloc 0 1 @0 t0\nalloc 1 2 @0 t0\nalloc 2 3 @0 t0\nalloc 3 4 @0 t0 host\n");
}

TEST(written_logs_of_umpire, allocators_are_bounded) {
    enum { MOST = 4096 };
    char *file = malloc((MOST + 1) * (sizeof MAKES("0x1234", "HOST"))), *end = file;
    for (int i = 0; i < MOST; i++) end += sprintf(end, MAKES("0x%x", "HOST"), i + 1);
    EXPECT_STREQ(rows_of(text(file)), "");
    sprintf(end, MAKES("0x%x", "HOST"), MOST + 1);
    expect_refused(text(file), ":4097:1: more than 4096 allocators; split the log");
    free(file);
}

/* With 65 in progress, the first is dropped. */
TEST(written_logs_of_umpire, reallocations_in_progress_are_bounded) {
    char file[24000] = "";
    for (int i = 0; i < 65; i++) sprintf(file + strlen(file), MOVES("0x%x", "(nil)", "1000", "%d"), 1 + i, 0x100 + i);
    for (int i = 0; i < 3; i++) sprintf(file + strlen(file), MOVED("0x%x", "0xa%d", "2000"), 0x100 + 32 * i, i);
    EXPECT_STREQ(rows_of(text(file)), "alloc 0 33 @0 t0\nalloc 1 65 @0 t0\n");
    EXPECT_EQ(rows_notes()->other_actions, 1);
}

TEST(written_logs_of_umpire, a_reused_name_or_reference_has_its_latest_meaning) {
    char name[80], file[4096];
    memset(name, 'n', 70);
    name[70] = '\0';
    snprintf(file, sizeof file, "%s%s%s%s%s%s", MAKES("0x1", "HOST") GETS("0x1", "0xa0", "1000", "1"), MAKES("0x1", "DEVICE"),
             GETS("0x1", "0xb0", "2000", "2"), MAKES("0x2", "PINNED") ENDS("0x1", "0xb0", "3000"), GETS("0x2", "0xc0", "3000", "3"),
             GETS("0x9", "0xd0", "4000", "4"));
    EXPECT_STREQ(rows_of(text(file)),
                 "alloc 0 1 @0 t0 host\nalloc 1 2 @0 t1\nfree 1 @0 t2\nalloc 2 3 @0 t2 pinned\nalloc 3 4 @0 t3\n");
    /* Two names that differ in their 71st character. */
    snprintf(
        file, sizeof file,
        MAKES("0x1", "HOST") MAKES("0x2", "UM") "{\"category\":\"operation\",\"name\":\"make_allocator\",\"string_args\":{" REF(
            "0x3") ",\"arg0\":\"HOST\"},\"tags\":{\"allocator_name\":\"%s1\"},\"timestamp\":1}\n"
                   "{\"category\":\"operation\",\"name\":\"make_allocator\",\"string_args\":{" REF(
                       "0x4") ",\"arg0\":\"UM\"},\"tags\":{\"allocator_name\":\"%s2\"},\"timestamp\":1}\n"
                              "{\"category\":\"operation\",\"name\":\"make_allocator\",\"string_args\":{" REF(
                                  "0x5") ",\"arg0\":\"%s1\"},\"tags\":{\"allocator_name\":\"over\"},\"timestamp\":1}\n" GETS("0x5",
                                                                                                                             "0xa0",
                                                                                                                             "1000",
                                                                                                                             "1"),
        name, name, name);
    EXPECT_STREQ(rows_of(text(file)), "alloc 0 1 @0 t0 host\n");
}

#define OLD(event, payload, more, ns)                                                                                              \
    "{ \"kind\":\"replay\", \"uid\":100, \"timestamp\":" ns ", \"event\": \"" event "\", \"payload\": { " payload " }" more " }\n"
#define AT(ref)     "\"allocator_ref\": \"" ref "\""
#define RESULT(ptr) ", \"result\": { \"memory_ptr\": \"" ptr "\" }"

TEST(written_logs_of_umpire, logs_before_2022_are_read) {
    EXPECT_STREQ(rows_of(SEED("umpire/old.stats")), "alloc 0 1024 @0 t0\nfree 0 @0 t100\n");
    EXPECT_STREQ(
        rows_of(text(
            OLD("version", "\"major\":3", "", "1") OLD("makeMemoryResource", "\"name\": \"HOST\"", ", \"result\": \"0x1\"", "2")
                OLD("makeMemoryResource", "\"name\": \"UM\"", ", \"result\": \"0x2\"", "2") OLD(
                    "makeAllocator",
                    "\"type\":\"x\", \"with_introspection\":true, \"allocator_name\":\"p\", \"args\": [ \"UM\", 5 ]", "", "3")
                    OLD("makeAllocator", "\"allocator_name\":\"p\", \"args\": [ \"UM\", \"HOST\" ]",
                        ", \"result\": { \"allocator_ref\":\"0x3\" }", "3") OLD("allocate", AT("0x3") ", \"size\": 30", "", "1000")
                        OLD("allocation_map_insert", "\"ptr\": \"0xa0\", \"record_size\": \"30\"", "",
                            "1000") OLD("allocate", AT("0x3") ", \"size\": 30", RESULT("0xa0"), "2000")
                            OLD("reallocate", "\"ptr\": \"0\", \"size\": 8, " AT("0x1"), "", "3000")
                                OLD("allocate", AT("0x1") ", \"size\": 8", "", "3000") OLD("allocate", AT("0x1") ", \"size\": 8",
                                                                                           RESULT("0xb0"), "3000")
                                    OLD("reallocate", "\"ptr\": \"0\", \"size\": 8, " AT("0x1"), RESULT("0xb0"), "4000")
                                        OLD("reallocate", "\"ptr\": \"0xb0\", \"size\": 16, " AT("0x1"), "", "5000")
                                            OLD("reallocate", "\"ptr\": \"0xb0\", \"size\": 16, " AT("0x1"), RESULT("0xc0"), "6000")
                                                OLD("deallocate", AT("0x3") ", \"memory_ptr\": \"0xa0\"", "", "7000")
                                                    OLD("release", AT("0x3"), "", "8000"))),
        "alloc 0 30 @0 t0 managed\nalloc 1 8 @0 t1 host\nfree 1 @0 t4 host\nalloc 2 16 @0 t4 host\nfree 0 @0 t5 managed\n"
        "release @0 t6 managed\n");
    EXPECT_EQ(rows_notes()->freed_unseen, 0);
    expect_refused(text("REPLAY,17,makeAllocator,HOST\n"), "a replay log of Umpire before 2019");
}

TEST(written_logs_of_umpire, lines_that_are_no_objects_are_comments) {
    EXPECT_STREQ(rows_of(text("# a comment\r\n// another\n\n" GETS("0x1", "0xa0", "1000", "1") "# end\nnot JSON\n")),
                 "alloc 0 1 @0 t0\n");
    expect_refused(text("{\"category\": 1"), ":1:15: expected a comma or the end");
    EXPECT_STREQ(rows_of(text(GETS("0x1", "0xa0", "1000", "1") "{\"category\":\"oper")), "alloc 0 1 @0 t0\n");
    EXPECT_EQ(rows_notes()->cut_off, 1);
}

/* ---- Nsight Systems ---- */

#define NSYS "start,deviceId,address,bytes,memKind,memoryOperationType\n"

/* SQLite's integers are signed. */
TEST(written_tables, addresses_may_be_negative_and_the_last_row_cut) {
    EXPECT_STREQ(rows_of(text(NSYS "1000,16,-4096,64,2,0\n2000,16,18446744073709547520,64,2,1\n3000,0,77,64,2,")),
                 "alloc 0 64 @0 t0 gpu:15\nfree 0 @0 t1 gpu:15\n");
    EXPECT_EQ(rows_notes()->cut_off, 1);
    expect_refused(text("start,address,memKind,memoryOperationType\n"), ":1:1: the column bytes is missing");
    expect_refused(text("start,address,memKind,memoryOperationType\n1"), ":1:1: the column bytes is missing");
}

/* ---- files that no reader can convert ---- */

TEST(strangers, are_refused_by_their_names) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *part;
    } files[] = {
#define ROW(bytes, part) {bytes, sizeof bytes - 1, part}
        ROW("PK\3\4\0\0", "a zip archive, as torch.save() writes; unpack it"),
        ROW("SQLite format 3\0\x10", "an SQLite database, as nsys export writes"),
        ROW("\xff\xfeT\0h\0", "a text in UTF-16, as a redirection of PowerShell writes; save it as UTF-8"),
        ROW("\xfe\xff\0T", "a text in UTF-16; save it as UTF-8"),
        ROW("(dp0\nS'segments'\n", "a pickle of protocol 0; write it with protocol 2 or later"),
        ROW("}q\0(U\x08segments", "a pickle of protocol 1; write it with protocol 2 or later"),
        ROW("{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 7, \"nodes\": [", "an execution trace of PyTorch (Chakra)"),
        ROW(" {\n  \"schema\": \"1.0.1\",\n \"nodes\": []}", "an execution trace of PyTorch (Chakra)"),
        ROW("\x07\x0a\x05"
            "0.0.4\x1b\x08\x01\x12",
            "an execution trace in Chakra's format"),
        ROW("\x0a\x0b\x08\x01\x12\x07/host:C\0\0", "a profile of TensorFlow or JAX (xplane.pb)"),
        ROW("\x0a\x09GPU_0_bfc\x12\x04\x08\0\x10\0", "TensorFlow's dump of an allocator's memory"),
        ROW("\x0a\x04\x08\x01\x10\x02\0\0", "a message of protocol buffers"),
        ROW("2026-01-01 12:00:00.1: W tensorflow/core/common_runtime/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out",
            "a log of TensorFlow's BFC allocator"),
        ROW("BFCAllocator dump for GPU_0_bfc\nBin (256):\n", "TensorFlow's report of an allocator that is out of memory"),
        ROW("{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":[",
            "a timeline of TensorFlow's or JAX's"),
        ROW("InUse at 7f5e00000000 of size 1280 next 1\n", "TensorFlow's map of an allocator's memory"),
        ROW("Bin (256): \tTotal Chunks: 12, Chunks in use: 9.\n", "TensorFlow's report of an allocator that is out of memory"),
        ROW("\x08\x01\x12\x09\x0a\x07model.x", "a message of protocol buffers"),
        ROW("{\"segments\": [], \"device_traces\": [[]]}", "a memory snapshot of PyTorch as JSON; write it as a pickle"),
        ROW("REPLAY,1,makeAllocator", "a replay log of Umpire before 2019"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        expect_refused(write_file("stranger", files[i].bytes, files[i].count), files[i].part);
    expect_refused(text("{\"schemaVersion\":1,\"nodes\":1}"), "no list \"traceEvents\"");
    expect_refused(write_file("stranger", "\x0a\x00", 2), "the line contains a zero byte");
}

TEST(strangers, are_not_searched_in_the_rows_of_a_trace) {
    static const char *const tags[] = {"bfc_allocator.cc:497", "BFCAllocator dump for x", "InUse at 1 of size 2",
                                       "Total Chunks: 1 Bin (2)"};
    static const char *const heads[] = {"op,id,size,stream,time_us,tag\n", "# strata-trace 1\nop,id,size,stream,time_us,tag\r\n",
                                        "\xef\xbb\xbfid,op,size,stream,time_us,tag\n"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
            char file[256];
            snprintf(file, sizeof file, "%s%s,5,0,0,%s\n", heads[k], k == 2 ? "1,alloc" : "alloc,1", tags[i]);
            char row[128];
            snprintf(row, sizeof row, "alloc 1 5 @0 t0 '%s'\n", tags[i]);
            EXPECT_STREQ(rows_of(text(file)), row);
        }
}
