/* What becomes of torch.profiler's traces, of logs of RMM and Umpire, and of MiniMalloc's buffers; and of files that are none. */
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/paths.h"
#include "tests/records/rows.h"
#include "trace/text/input.h"

#define SAMPLE STRATA_SOURCE_DIR "/tests/records/samples/profiler_cpu.json.gz"

static const char *text(const char *bytes) { return write_text("record", bytes); }

/* ---- torch.profiler ---- */

#define MEMORY(ts, bytes, more) "{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":" ts ",\"tid\":4,\"args\":{\"Bytes\":" bytes more "}}"
#define ON_GPU(address, device) ",\"Addr\":" address ",\"Device Type\":1,\"Device Id\":" device
#define PROFILE(events)         "{\"schemaVersion\":1,\"traceEvents\":[" events "]}"

TEST(profiles, memory_events_are_rows_in_order_of_time) {
    const char *rows = rows_of(text(PROFILE(
        "{\"name\":\"aten::mm\",\"ph\":\"X\",\"ts\":1,\"args\":{\"Bytes\":4}}," MEMORY("20.5", "-512", ON_GPU("77", "0")) "," MEMORY(
            "10.25", "512",
            ON_GPU("77",
                   "0")) "," MEMORY("10.125", "1024",
                                    ON_GPU(
                                        "78",
                                        "1")) "," MEMORY("11", "99",
                                                         ",\"Addr\":5,\"Device Type\":0,\"Device Id\":-1") "," MEMORY("30", "-4",
                                                                                                                      ON_GPU(
                                                                                                                          "\"0x9\"",
                                                                                                                          "0")))));
    EXPECT_STREQ(rows, "alloc 2 4 @0 t0\nalloc 0 1024 @0 t0 gpu:1\nalloc 1 512 @0 t0\nfree 1 @0 t10\nfree 2 @0 t20\n");
    EXPECT_EQ(rows_notes()->other_memory, 1);
    EXPECT_EQ(rows_notes()->older, 1);
}

TEST(profiles, what_the_allocator_held_is_summed_over_devices) {
    (void)rows_of(text(PROFILE(MEMORY("1", "5", ON_GPU("1", "0") ",\"Total Reserved\":100") "," MEMORY(
        "2", "5", ON_GPU("2", "0") ",\"Total Reserved\":70") "," MEMORY("3", "5", ON_GPU("1", "1") ",\"Total Reserved\":30"))));
    EXPECT_EQ(rows_notes()->reserved_peak, 130);
}

TEST(profiles, a_bare_list_of_events_is_one_too) {
    EXPECT_STREQ(rows_of(text("[" MEMORY("1", "5", ON_GPU("1", "0")) "]")), "alloc 0 5 @0 t0\n");
}

/* As PyTorch 2.15 writes it: two steps of a small network on a CPU (make_profile.py). It has no GPU's events; told as one's they are
 * a program. */
TEST(profiles, a_real_one_is_read) {
    static const char of_cpu[] = "\"Device Id\": -1, \"Device Type\": 0", of_gpu[] = "\"Device Id\":  0, \"Device Type\": 1";
    strata_input_t *input;
    char *text = NULL;
    size_t count = 0;
    expect_refused(SAMPLE, "no GPU memory events");
    ASSERT_OK(strata_input_open(SAMPLE, &input));
    EXPECT_OK(strata_input_read_all(input, 1 << 20, &text, &count));
    strata_input_close(input);
    for (char *at = text; (at = strstr(at, of_cpu)) != NULL;) memcpy(at, of_gpu, strlen(of_gpu));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    EXPECT_OK(strata_trace_load(write_file("real.json", text, count), &trace));
    strata_host_delete(text);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->count, 48);
    EXPECT_EQ(trace->notes.never_live, 0);
    EXPECT_EQ(trace->notes.freed_unseen, 0);
}

TEST(profiles, a_zero_byte_is_refused) { expect_refused(write_file("record", "{}\0", 3), "the file contains a zero byte"); }

/* ---- RMM ---- */

#define RMM "Thread,Time,Action,Pointer,Size,Stream\n"

TEST(logs_of_rmm, rows_are_rows) {
    const char *rows = rows_of(text(RMM
                                    "7,23:59:59.999998,allocate,0x7f00,1000,0x0\n8,23:59:59.999999,allocate,0x9f00,24,0x55d0\n\n"
                                    "7,00:00:00.000001,free,0x7f00,1000,0x0\n7,00:00:00:000003,allocate failure,(nil),5000,0x2\n"
                                    "7,00:00:00.000004,free,0x1200,9,0\n7,00:00:00.000004,free,(nil),0,0\n"));
    EXPECT_STREQ(
        rows,
        "alloc 3 9 @0 t0\nalloc 0 1000 @0 t0\nalloc 1 24 @21968 t1\nfree 0 @0 t3\nalloc 2 5000 @2 t5\nfree 2 @2 t5\nfree 3 @0 "
        "t6\n");
    EXPECT_EQ(rows_notes()->failed, 1);
    EXPECT_EQ(rows_notes()->older, 1);
}

/* As RMM 26.10 writes it (make_rmm.py): 12 requests, one that fails, 11 frees. */
TEST(logs_of_rmm, a_real_one_is_read) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(STRATA_SOURCE_DIR "/tests/records/samples/rmm.csv", &trace));
    EXPECT_STREQ(trace->format, "rmm");
    EXPECT_EQ(trace->lifetimes, 13);
    EXPECT_EQ(trace->count, 13 + 12);
    EXPECT_EQ(trace->notes.failed, 1);
    EXPECT_EQ(trace->notes.older, 0);
    EXPECT_EQ(trace->notes.never_live, 0);
    EXPECT_EQ(trace->notes.freed_unseen, 0);
}

/* ---- Nsight Systems ---- */

#define NSYS "start,globalPid,deviceId,contextId,address,pc,bytes,memKind,memoryOperationType,name,correlationId,streamId\n"

TEST(tables_of_nsight_systems, events_are_rows) {
    const char *rows = rows_of(text(NSYS "1000000,7,0,1,4096,0,1048576,2,0,,11,\r\n1002500,7,0,1,8192,0,64,4,0,\"a, b\",12,\n"
                                         "1003000,7,1,1,4096,0,512,2,0,,13,9\n1004000,7,1,1,12288,0,32,1,0,,14,\n"
                                         "1005000,7,0,1,12288,0,32,1,1,,15,\n1006000,7,1,1,4096,0,512,2,1,,16,9\n"
                                         "1006001,7,0,1,77,0,16,2,1,,17,\n"));
    EXPECT_STREQ(rows, "alloc 4 16 @0 t0\nalloc 0 1048576 @0 t0\nalloc 1 64 @0 t2 managed 'a, b'\nalloc 2 512 @9 t3 gpu:1\n"
                       "alloc 3 32 @0 t4 pinned\nfree 3 @0 t5 pinned\nfree 2 @9 t6 gpu:1\nfree 4 @0 t6\n");
    EXPECT_EQ(rows_notes()->older, 1);
}

/* Other memory, another process, an operation of a later release. */
TEST(tables_of_nsight_systems, what_is_no_allocators_is_counted) {
    const char *rows = rows_of(text(NSYS
                                    "1000,7,0,1,4096,0,64,2,0,,1,\n1000,8,0,1,4096,0,64,2,0,,1,\n1000,7,0,1,5000,0,64,0,0,,1,\n"
                                    "1000,7,0,1,5000,0,64,5,0,,1,\n1000,7,0,1,5000,0,64,9,0,,1,\n1000,7,0,1,4096,0,64,2,2,,1,\n"
                                    "1000,7,0,1,5000,0,64,6,0,,1,\n1000,7,0,1,5000,0,64,7,0,,1,\n"));
    EXPECT_STREQ(rows, "alloc 0 64 @0 t0\n");
    EXPECT_EQ(rows_notes()->other_memory, 6);
    EXPECT_EQ(rows_notes()->other_actions, 1);
}

/* By device, then by address; a name that a free has is not the block's. */
TEST(tables_of_nsight_systems, what_is_older_stands_by_device_and_address) {
    EXPECT_STREQ(rows_of(text(NSYS "1000,7,1,1,4096,0,1,2,1,here,1,\n2000,7,0,1,8192,0,2,2,1,,1,\n3000,7,0,1,4096,0,3,2,1,,1,\n")),
                 "alloc 2 3 @0 t0\nalloc 1 2 @0 t0\nalloc 0 1 @0 t0 gpu:1\nfree 0 @0 t0 gpu:1\nfree 1 @0 t1\nfree 2 @0 t2\n");
}

/* ---- Umpire ---- */

#define LINE(name, numeric, string, tags, ns)                                                                                      \
    "{\"category\":\"operation\",\"name\":\"" name "\",\"numeric_args\":{" numeric "},\"string_args\":{" string                    \
    "},\"tags\":{" tags "},\"timestamp\":" ns "}\n"
#define REF(ref)              "\"allocator_ref\":\"" ref "\""
#define MAKES(ref, name)      LINE("make_memory_resource", "", REF(ref), "\"allocator_name\":\"" name "\"", "1")
#define POOL(ref, name, over) LINE("make_allocator", "", REF(ref) ",\"arg0\":\"" over "\"", "\"allocator_name\":\"" name "\"", "2")

TEST(logs_of_umpire, memory_lies_where_the_lowest_allocator_says) {
    const char *rows = rows_of(text(
        MAKES("0x1", "HOST") MAKES("0x2", "DEVICE::1") MAKES("0x3", "UM") POOL("0x4", "pool", "DEVICE::1")
            POOL("0x5", "over", "pool") LINE("allocate", "\"size\":10", REF("0x1") ",\"pointer\":\"0xa0\"", "", "1000") "\n" LINE(
                "allocate", "\"size\":20", REF("0x5") ",\"pointer\":\"0xa1\"", "\"replay\":\"true\"", "2000")
                LINE("named_allocate", "\"size\":30", REF("0x3") ",\"pointer\":\"0xa2\",\"allocation_name\":\"grid\"", "", "3000")
                    LINE("reallocate", "\"size\":99", REF("0x3") ",\"current_ptr\":\"0xa2\"", "", "3500")
                        LINE("deallocate", "", REF("0x5") ",\"pointer\":\"0xa1\"", "", "4000")
                            LINE("release", "", REF("0x5"), "", "5000")
                                LINE("deallocate", "", REF("0x5") ",\"pointer\":\"0x0\"", "", "6000")));
    EXPECT_STREQ(rows, "alloc 0 10 @0 t0 host\nalloc 1 20 @0 t1 gpu:1\nalloc 2 30 @0 t2 managed 'grid'\nfree 1 @0 t3 gpu:1\n"
                       "release @0 t4 gpu:1\n");
}

/* ---- MiniMalloc ---- */

TEST(buffers, lives_are_allocs_and_frees) {
    EXPECT_STREQ(rows_of(text("id,lower,upper,size\nb1,0,3,10\nb2,3,9,20\nb3,1,3,30\n")),
                 "alloc 0 10 @0 t0 'b1'\nalloc 1 30 @0 t1 'b3'\nfree 0 @0 t3\nfree 1 @0 t3\nalloc 2 20 @0 t3 'b2'\nfree 2 @0 "
                 "t9\n");
    EXPECT_STREQ(rows_of(text("start,end,size,offset\n4,4,10,0\n")), "alloc 0 10 @0 t0\nfree 0 @0 t1\n");
}

TEST(buffers, the_instances_of_the_project_are_read) {
    strata_trace_t *trace = NULL;
    ASSERT_OK(strata_trace_load(STRATA_SOURCE_DIR "/traces/planning/minimalloc-A.csv.gz", &trace));
    EXPECT_STREQ(trace->format, "minimalloc");
    EXPECT_EQ(trace->count, 2 * (size_t)trace->lifetimes);
    EXPECT_GT(trace->lifetimes, 100);
    strata_trace_delete(trace);
}

/* ---- what is refused ---- */

static const struct {
    const char *text, *part;
} wrong[] = {
    /* torch.profiler. */
    {"{\"schema\":1,\"runs\":[]}", "no list \"traceEvents\""},
    {PROFILE(""), "no GPU memory events; record it with torch.profiler.profile(profile_memory=True)"},
    {PROFILE(MEMORY("1", "5", "")), "a memory event has no Addr"},
    {PROFILE(MEMORY("true", "5", ON_GPU("1", "0"))), "a memory event has no ts"},
    {PROFILE(MEMORY("1", "true", ON_GPU("1", "0"))), "a memory event has no Bytes"},
    {"{\"traceEvents\":[\n{\"name\":\"x\"},\n{]}", ":3:1: expected a string"},
    {"{\"traceEvents\":[{\"name\":\"x", ":1:1: unterminated string"},
    {"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "nested too deep"},
    /* RMM. */
    {RMM "x,00:00:00.000001,allocate,0x1,1,0x0\n", ":2:1: the thread is \"x\""},
    {RMM "1,00:00:00.00001,allocate,0x1,1,0x0\n", ":2:3: the time is \"00:00:00.00001\""},
    {RMM "1,24:00:00.000001,allocate,0x1,1,0x0\n", ":2:3: the time is "},
    {RMM "1,00:00:00.000001,take,0x1,1,0x0\n", ":2:19: the action is \"take\""},
    {RMM "1,00:00:00.000001,allocate,0xg,1,0x0\n", ":2:28: the pointer is \"0xg\""},
    {RMM "1,00:00:00.000001,allocate,0x1,-1,0x0\n", ":2:32: the size is \"-1\""},
    {RMM "1,00:00:00.000001,allocate,0x1,1,one\n", ":2:34: the stream is \"one\""},
    {RMM "1,00:00:00.000001,allocate,0x1,1\n", ":2:1: 5 fields"},
    {RMM "1,00:00:00.000001,allocate,0x1,999999999999999,0x0\n", "size 999999999999999 is more than"},
    /* Nsight Systems. */
    {"start,address,memKind,memoryOperationType\n1,2,2,0\n", ":1:1: the column bytes is missing"},
    {NSYS "x,7,0,1,4096,0,64,2,0,,1,\n", ":2:1: start is \"x\""},
    {NSYS "1,7,-1,1,4096,0,64,2,0,,1,\n", ":2:5: deviceId is \"-1\""},
    {NSYS "1,7,0,1,,0,64,2,0,,1,\n", ":2:9: address is \"\""},
    {NSYS "1,7,0,1,4096,0,64,2,0\n", ":2:1: 9 fields"},
    /* Umpire. */
    {MAKES("0x1", "HOST") "{\"category\": 1\n", ":2:15: expected a comma or the end"},
    {MAKES("0x1", "HOST") "{} {}\n", ":2:4: text follows the object"},
    {LINE("allocate", "\"size\":10", REF("0x1"), "", "1"), ":1:1: the line has no pointer"},
    {LINE("allocate", "\"size\":-10", REF("0x1") ",\"pointer\":\"0x1\"", "", "1"), ":1:1: the line has no size"},
    {LINE("allocate", "\"size\":10", REF("0x1") ",\"pointer\":\"0x1\"", "", "\"now\""), ":1:1: the line has no timestamp"},
    /* MiniMalloc. */
    {"lower,upper,size\n3,3,1\n", ":2:3: the buffer ends before it begins"},
    {"lower,upper,size\n3,x,1\n", ":2:3: \"x\" is not a number"},
    {"lower,begin,upper,size\n", ":1:7: a second column has the same meaning"},
    {"lower,upper,size\n1,2\n", ":2:1: 2 fields"},
};

TEST(records, wrong_ones_are_refused_at_their_place) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) expect_refused(text(wrong[i].text), wrong[i].part);
}

/* ---- what is what ---- */

TEST(formats, an_archive_is_refused_with_what_to_do) {
    expect_refused(write_file("record", "PK\3\4\0\0", 6), "a zip archive, as torch.save() writes; unpack it");
}

/* Nothing is known of the name: only the contents tell. A trace with a column of one's own is a trace. */
TEST(formats, are_told_from_the_contents) {
    static const struct {
        const char *format, *text;
    } files[] = {{"trace", "op,id,size,stream,time_us\n"},
                 {"trace", "# strata-trace 1\nop,id,size,stream,time_us,x_begin,x_end\n"},
                 {"rmm", RMM},
                 {"rmm", "\xef\xbb\xbf" RMM},
                 {"minimalloc", "lower,upper,size\n"},
                 {"minimalloc", "size,end,begin\r\n1,2,1\r\n"},
                 {"umpire", MAKES("0x1", "HOST")},
                 {"profiler", " \n" PROFILE(MEMORY("1", "5", ON_GPU("1", "0")))}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        strata_trace_reader_t *reader = NULL;
        for (int packed = 0; packed < 2; packed++) {
            const char *path = packed ? write_gzip("what", files[i].text, strlen(files[i].text))
                                      : write_text("what", files[i].text);
            ASSERT_OK(strata_trace_reader_open(path, &reader));
            EXPECT_STREQ(strata_trace_reader_format(reader), files[i].format);
            strata_trace_reader_close(reader);
        }
    }
}
