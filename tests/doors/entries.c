/* Calls each function that the preloaded library intercepts, alone: stand_in/entries.c makes the call and prints the results. The counts in the
 * report prove that the call used this entry and no other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/preload/table.h"
#include "tests/doors/run.h"
#include "tests/harness/test.h"

typedef struct entry_case {
    const char *name;
    int served, passed_on; /* the report's row of the function */
    const char *place; /* the report's row of a place, or NULL */
    const char *output; /* of the stand-in program */
} entry_case_t;

#define FREED_BUT_NOT_TWICE(last_error, nothing)                                                                                   \
    "code 0\nreal 0\nfreed 0\nreal_frees 0\nagain 1\nlast_error " last_error "\npassed_on_as_it_is 0\nnothing " nothing "\n"
#define NO_BYTES "room 0\ntries 2\nroom 1\ntries 1\n"
#define FOREIGN(flags)                                                                                                             \
    "foreign 0\nreal 1\nflags " flags "\nforeign_freed 0\npassed_on_as_it_is 1\nroom 0\ntries 2\nroom 2\ntries 1\n"
#define DEVICE_FREE "got 0\naway 0\nother_kind 1\ninside 1\nmanaged 0\nreal 2\nmine 0\nof_another_device 0\nreal 2\nrest 0\n"
#define HOST_FREE   "got 0\naway 0\nother_kind 1\ninside 1\nmanaged 1\nreal 3\nmine 0\nof_another_device 0\nreal 3\nrest 0\n"
#define ON_STREAM   "code 0\nreal 0\nfreed 0\nagain 0\nsame 1\npending 1\nlast 0\nof_another_device 1\n"
#define FREED_ON_STREAM(nothing)                                                                                                   \
    "freed 0\nreal 0\nsame 1\nfreed 0\nagain 1\nreal 1\npassed_on_as_it_is 0\nnothing " nothing "\npinned 1\nstill_live 0\n"
#define INFO                                                                                                                       \
    "code 0\ntotal 1024\nlive_300 724\ncode 0\ntotal 1024\nlive_100 924\ncode 0\ntotal 1024\nof_the_second_device 924\nreal 3\n"   \
    "failed 999\nuntouched 0\nrefused 1\n"
#define DESTROYED "code 0\nreal 1\nof_the_stream 1\nnext 0\nsame 1\nused 300\n"
#define CAPTURED(graph, nodes, edges, count, mode)                                                                                 \
    "refused 900\nwaited_for 1\n"                                                                                                  \
    "begun 0\nwaited_for 0\nended 0\nwaited_for 1\nbegun 0\nwaited_for 0\nended 901\nwaited_for 1\n"                               \
    "begun 0\nwaited_for 0\nended 904\nwaited_for 1\nbegun 0\nwaited_for 0\nended 1\nwaited_for 0\n"                               \
    "real 5\nreal_ends 4\nargument " graph "\nargument " nodes "\nargument " edges "\nargument " count "\nargument " mode          \
    "\ngraph 1\n"
#define PLAINLY  CAPTURED("2", "0", "0", "0", "0") /* the mode is the second argument */
#define TO_GRAPH CAPTURED("7", "3", "4", "5", "2")
#define RESET    "while_the_other_device_is_used 0\nreal 0\nalone 0\nreal 1\ndevice 0\nlost 0\nused 0\nfree_of_lost 1\nagain 0\n"
#define IPC      "refused 1\nforeign 0\nreal 1\nof_the_address 1\n"
/* -1: the address of a description or of the pitch; -2: another address. */
#define RETRIED(last_error, a, b, c, d, e, f)                                                                                      \
    "code 0\nreal 2\nlast_error 0\nused 600\nargument " #a "\nargument " #b "\nargument " #c "\nargument " #d "\nargument " #e     \
    "\nargument " #f "\ntoo_much 2\nused 600\nlast_error " #last_error "\n"

static const entry_case_t cases[] = {
    {"cudaMalloc", 1, 2, "gpu:0: 1 requests", FREED_BUT_NOT_TWICE("1", "0") NO_BYTES},
    {"cuMemAlloc_v2", 1, 2, "gpu:0: 1 requests", FREED_BUT_NOT_TWICE("0", "1") NO_BYTES},
    {"cudaMallocHost", 1, 2, "pinned: 1 requests", FREED_BUT_NOT_TWICE("1", "0") NO_BYTES},
    {"cuMemAllocHost_v2", 1, 2, "pinned: 1 requests", FREED_BUT_NOT_TWICE("0", "1") NO_BYTES},
    {"cudaMallocManaged", 1, 3, "managed:0: 1 requests", FREED_BUT_NOT_TWICE("1", "0") FOREIGN("2")},
    {"cuMemAllocManaged", 1, 3, "managed:0: 1 requests", FREED_BUT_NOT_TWICE("0", "1") FOREIGN("2")},
    {"cudaHostAlloc", 1, 3, "pinned: 1 requests", FREED_BUT_NOT_TWICE("1", "0") FOREIGN("4")},
    {"cuMemHostAlloc", 1, 3, "pinned: 1 requests", FREED_BUT_NOT_TWICE("0", "1") FOREIGN("4")},
    {"cudaFree", 3, 2, "managed:0: 1 requests", DEVICE_FREE},
    {"cuMemFree_v2", 3, 2, "managed:0: 1 requests", DEVICE_FREE},
    {"cudaFreeHost", 2, 3, "pinned: 2 requests", HOST_FREE},
    {"cuMemFreeHost", 2, 3, "pinned: 2 requests", HOST_FREE},
    {"cudaMallocAsync", 2, 1, "gpu:0: 2 requests, 1 from the cache", ON_STREAM},
    {"cudaMallocAsync_ptsz", 1, 1, "gpu:0: 2 requests, 1 from the cache", ON_STREAM},
    {"cuMemAllocAsync", 1, 1, "gpu:0: 2 requests, 1 from the cache", ON_STREAM},
    {"cuMemAllocAsync_ptsz", 1, 1, "gpu:0: 2 requests, 1 from the cache", ON_STREAM},
    {"cudaFreeAsync", 2, 3, "gpu:0: 2 requests, 1 from the cache", FREED_ON_STREAM("0")},
    {"cudaFreeAsync_ptsz", 2, 3, "gpu:0: 2 requests, 1 from the cache", FREED_ON_STREAM("0")},
    {"cuMemFreeAsync", 2, 3, "gpu:0: 2 requests, 1 from the cache", FREED_ON_STREAM("0")},
    {"cuMemFreeAsync_ptsz", 2, 3, "gpu:0: 2 requests, 1 from the cache", FREED_ON_STREAM("0")},
    {"cudaMemGetInfo", 3, 0, "at most 300MiB reserved and 300MiB allocated", INFO},
    {"cuMemGetInfo_v2", 3, 0, "at most 300MiB reserved and 300MiB allocated", INFO},
    {"cudaStreamDestroy", 1, 0, "gpu:0: 2 requests, 1 from the cache", DESTROYED},
    {"cuStreamDestroy_v2", 1, 0, "gpu:0: 2 requests, 1 from the cache", DESTROYED},
    {"cudaStreamBeginCapture", 5, 0, NULL, PLAINLY},
    {"cudaStreamBeginCapture_ptsz", 5, 0, NULL, PLAINLY},
    {"cudaStreamBeginCaptureToGraph", 5, 0, NULL, TO_GRAPH},
    {"cudaStreamBeginCaptureToGraph_ptsz", 5, 0, NULL, TO_GRAPH},
    {"cuStreamBeginCapture_v2", 5, 0, NULL, PLAINLY},
    {"cuStreamBeginCapture_v2_ptsz", 5, 0, NULL, PLAINLY},
    {"cuStreamBeginCaptureToGraph", 5, 0, NULL, TO_GRAPH},
    {"cuStreamBeginCaptureToGraph_ptsz", 5, 0, NULL, TO_GRAPH},
    {"cudaDeviceReset", 1, 1, NULL, RESET},
    {"cuDevicePrimaryCtxReset_v2", 1, 1, NULL, RESET},
    {"cudaIpcGetMemHandle", 1, 2, NULL, IPC},
    {"cuIpcGetMemHandle", 1, 2, NULL, IPC},
    {"cudaMallocPitch", 0, 2, NULL, RETRIED(2, -1, 1048576, 600, 0, 0, 0)},
    {"cudaMalloc3D", 0, 2, NULL, RETRIED(2, 600, 1024, 1024, 0, 0, 0)},
    {"cudaMallocArray", 0, 2, NULL, RETRIED(2, -1, 1048576, 600, 5, 0, 0)},
    {"cudaMalloc3DArray", 0, 2, NULL, RETRIED(2, -1, 600, 1024, 1024, 5, 0)},
    {"cudaMallocMipmappedArray", 0, 2, NULL, RETRIED(2, -1, 600, 1024, 1024, 6, 5)},
    {"cudaMallocFromPoolAsync", 0, 2, NULL, RETRIED(2, 629145600, 3, 4, 0, 0, 0)},
    {"cudaMallocFromPoolAsync_ptsz", 0, 2, NULL, RETRIED(2, 629145600, 3, 4, 0, 0, 0)},
    {"cuMemAllocPitch_v2", 0, 2, NULL, RETRIED(0, -1, 1048576, 600, 4, 0, 0)},
    {"cuArrayCreate_v2", 0, 2, NULL, RETRIED(0, -1, 0, 0, 0, 0, 0)},
    {"cuArray3DCreate_v2", 0, 2, NULL, RETRIED(0, -1, 0, 0, 0, 0, 0)},
    {"cuMipmappedArrayCreate", 0, 2, NULL, RETRIED(0, -1, 6, 0, 0, 0, 0)},
    {"cuMemAllocFromPoolAsync", 0, 2, NULL, RETRIED(0, 629145600, 3, 4, 0, 0, 0)},
    {"cuMemAllocFromPoolAsync_ptsz", 0, 2, NULL, RETRIED(0, 629145600, 3, 4, 0, 0, 0)},
    {"cuMemCreate", 0, 2, NULL, RETRIED(0, 629145600, -2, 0, 0, 0, 0)},
    {"looked_up", 0, 0, "gpu:0: 1 requests",
     "everywhere 0\nreal 0\nfreed 0\nhandled 0\nreal 1\nfreed 0\nreal_frees 1\nasked 0\nby_entry 0\nfreed 0\nreal_frees 1\n"},
};

/* The cases of the functions that begin a capture also call the ones that end it. */
static const char *const by_others[] = {"cudaStreamEndCapture", "cudaStreamEndCapture_ptsz", "cuStreamEndCapture",
                                        "cuStreamEndCapture_ptsz"};

TEST_EACH(preload_entry, by_itself, entry_case_t, cases) {
    PRELOADED_OR_SKIP();
    char row_of_report[96];
    const char *output = run_preloaded(STRATA_ENTRIES, "STRATA_STRATEGY=pytorch STRATA_RUN_REPORT=1", row->name);
    EXPECT_CONTAINS(output, row->output);
    if (row->place) EXPECT_CONTAINS(output, row->place);
    snprintf(row_of_report, sizeof row_of_report, "  %-28s %10d %10d\n", row->name, row->served, row->passed_on);
    if (row->served + row->passed_on) EXPECT_CONTAINS(output, row_of_report);
}

TEST(preload_entry, each_function_of_the_table_has_a_case) {
    static const char *const names[] = {
#define NAME(treatment, name, arguments, passed, text) #name,
        STRATA_PRELOAD_MAP(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) found = found || strcmp(cases[k].name, names[i]) == 0;
        for (size_t k = 0; k < sizeof by_others / sizeof *by_others; k++) found = found || strcmp(by_others[k], names[i]) == 0;
        if (!found) FAIL_TEST("%s has no case", names[i]);
    }
}
