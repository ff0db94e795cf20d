/* The fuzz targets. Each takes any bytes, does with them what a hostile or broken file could make the library do, and aborts where
 * a promise is broken; crashes, leaks and undefined behaviour are the sanitizers' to find.
 *
 * A target is fuzz_NAME() in a file NAME.c (those of one pattern share one), one row here, and the folder seeds/NAME. Under libFuzzer each is a program of its
 * own (entry.c); in test_fuzz all of them are run over their seeds by any compiler (replay.c).
 */
#ifndef STRATA_TESTS_FUZZ_FUZZ_H
#define STRATA_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "strata/strata.h"

/* X(target, what the bytes are) */
#define FUZZ_TARGET_MAP(X)                                                                                                         \
    X(strategy, "a strategy file, checked, loaded, explained and served")                                                          \
    X(settings, "--set strings over a preset, one a line")                                                                         \
    X(environment, "STRATA_STRATEGY in the first line, then STRATA_SET")                                                           \
    X(imports, "a peer in the first line, then a string of it")                                                                    \
    X(devices, "what names the devices, for the library and the command")                                                          \
    X(trace, "a trace, plain or gzip, read, written and read again")                                                               \
    X(quick, "rows of a trace under a header of all columns, read the quick way and the long one")                                 \
    X(pytorch, "a memory snapshot of PyTorch, a pickle")                                                                           \
    X(profiler, "a trace of torch.profiler, JSON")                                                                                 \
    X(rmm, "a log of RMM")                                                                                                         \
    X(umpire, "a replay log of Umpire")                                                                                            \
    X(minimalloc, "a table of buffers and their lives")                                                                            \
    X(nsys, "memory events of Nsight Systems, a table")                                                                            \
    X(plan, "a planning problem, read, planned by every planner, written and read again")                                          \
    X(report, "a comparison as JSON")                                                                                              \
    X(calls, "calls of the C API over two small simulated devices")                                                                \
    X(profile, "the numbers of a device profile")                                                                                  \
    X(profiles, "a device profile as a file, read, written and read again")

#define FUZZ_DECLARE(name, meaning) void fuzz_##name(const uint8_t *bytes, size_t count);
FUZZ_TARGET_MAP(FUZZ_DECLARE)
#undef FUZZ_DECLARE

/* A promise that holds for every input. */
#define FUZZ_EXPECT(condition)                                                                                                     \
    do {                                                                                                                           \
        if (!(condition)) fuzz_broken(__FILE__, __LINE__, #condition);                                                             \
    } while (0)
#define FUZZ_EXPECT_OK(call)                                                                                                       \
    do {                                                                                                                           \
        if ((call) != STRATA_OK) fuzz_broken(__FILE__, __LINE__, #call);                                                           \
    } while (0)

/* Says what is broken, with the thread's last error, and aborts. */
_Noreturn void fuzz_broken(const char *file, int line, const char *what);
/* The bytes with a zero after them, to be freed. */
char *fuzz_text(const uint8_t *bytes, size_t count);
/* The path of a file with these bytes, in memory alone. Valid until the next call. */
const char *fuzz_file(const uint8_t *bytes, size_t count);
/* A stream that forgets what is written to it. */
FILE *fuzz_nowhere(void);

#endif
