/* The library's own host memory comes from one place, where each allocation can be failed in turn and counted. */
#include <stdlib.h>

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/house/house.h"

/* Each with the one reason why it may. */
static const char *const may_take[] = {
    "platform/host/host_memory.c", /* the place */
    "platform/status.c", /* a thread's last error: a failure there could not be told, and is lived with */
    "platform/lock.c", /* the checker of debug builds, which ends the program otherwise */
    "platform/cuda/cuda_memory.c", /* what is served to the program as host memory, by its own refusals */
    "platform/sim/", /* the books of a simulated driver: a real one's are not Strata's either */
    "facade/open/about.c", /* strata_explain() prints to a stream of the C library's, which keeps its own memory */
    "config/load/source.c", /* what an import warns of, likewise: without memory it warns of nothing */
    NULL,
};

static const char *const calls[] = {"malloc",         "calloc",         "realloc",  "reallocarray", "strdup",   "strndup",
                                    "aligned_alloc",  "posix_memalign", "memalign", "valloc",       "asprintf", "vasprintf",
                                    "open_memstream", "fmemopen",       "getline",  "getdelim",     NULL};

static void check_memory(const char *path, const char *text, report_t *report) {
    report_calls(path, text, calls, may_take, report);
}

TEST(house, host_memory_comes_from_one_place) { expect_clean(c_files, check_memory); }

TEST(house, host_memory_rule_can_fail) {
    expect_found(check_memory, "config/x.c", "    char *text = strdup(name);\n", "config/x.c: calls strdup()");
    expect_found(check_memory, "allocation/layers/x.c", "if (!(p = calloc(1, 8))) return;\n", "calls calloc()");
    expect_found(check_memory, "facade/x.c", "\tFILE *out = open_memstream(&text, &length);\n", "calls open_memstream()");
    expect_found(check_memory, "platform/simple.c", "return malloc(size);\n", "calls malloc()");
    expect_nothing(check_memory, "platform/sim/x.c", "return malloc(size);\n");
    expect_nothing(check_memory, "tests/x.c", "return malloc(size);\n");
    expect_nothing(check_memory, "facade/x.c",
                   "d->malloc(d, 8); strata_device_malloc(d, 8); strata_host_strdup(a); /* as calloc() does */\n");
}

/* An exception that no file needs any more goes. */
TEST(house, exceptions_of_host_memory_are_needed) {
    static report_t report;
    for (size_t i = 0; may_take[i]; i++) {
        if (ends_with(may_take[i], "/")) continue;
        report = (report_t){.count = 0};
        char *text CLOSED_BY(text_cleanup) = tree_read(may_take[i]);
        if (text) report_calls(may_take[i], text, calls, (const char *[]){NULL}, &report);
        if (report.count == 0) FAIL_TEST("%s takes no host memory by itself", may_take[i]);
    }
}
