/* The road from dlopen to the first answer, in a process of its own with another libcuda.so.1. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness/test.h"

/* What the program prints; "" when it cannot be run. STRATA_CUDA_LIBRARIES holds a folder for each kind of driver. */
static const char *probe(const char *program, const char *driver, const char *environment) {
    static char output[65536];
    char command[4096];
    snprintf(command, sizeof command, "LD_LIBRARY_PATH='" STRATA_CUDA_LIBRARIES "/%s' %s '%s' 2>&1", driver, environment, program);
    output[0] = '\0';
    FILE *pipe = popen(command, "r");
    if (!pipe) return output;
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    int status = pclose(pipe);
    if (status != 0) FAIL_TEST("%s ended with %d: %s", command, status, output);
    return output;
}

TEST(cuda_library, codes_of_init) {
    static const char *const codes[] = {"100", "803", "999", "3"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char environment[64], counted[256], opened[256];
        snprintf(environment, sizeof environment, "FAKE_CUDA_INIT=%s", codes[i]);
        snprintf(counted, sizeof counted, "count STRATA_E_NO_DEVICE %s cuInit: CUDA_ERROR_", codes[i]);
        snprintf(opened, sizeof opened, "(%s): text of the fake for %s\n", codes[i], codes[i]);
        const char *output = probe(STRATA_CUDA_PROBE, "fake", environment);
        EXPECT_CONTAINS(output, counted);
        EXPECT_CONTAINS(output, "\nopen STRATA_E_NO_DEVICE");
        EXPECT_CONTAINS(output, opened);
    }
}

TEST(cuda_library, driver_without_a_device) {
    const char *output = probe(STRATA_CUDA_PROBE, "fake", "FAKE_CUDA_INIT=0");
    EXPECT_CONTAINS(output, "count STRATA_OK");
    EXPECT_CONTAINS(output, "devices 0\n");
    EXPECT_CONTAINS(output, "open STRATA_E_NO_DEVICE 101 there is no gpu:0; the driver reports 0 devices");
}

TEST(cuda_library, driver_older_than_the_base_line) {
    const char *output = probe(STRATA_CUDA_PROBE, "old", "");
    EXPECT_CONTAINS(output, "count STRATA_E_NO_DEVICE 0 the CUDA driver is older than 12.0");
}

TEST(cuda_library, file_that_is_no_library) {
    const char *output = probe(STRATA_CUDA_PROBE, "broken", "");
    EXPECT_CONTAINS(output, "count STRATA_E_NO_DEVICE 0 no CUDA driver: ");
    EXPECT_CONTAINS(output, "libcuda.so.1");
}

TEST(cuda_library, no_driver_at_all) {
    const char *output = probe(STRATA_CUDA_PROBE, "none", "");
    if (strstr(output, "count STRATA_OK")) TEST_SKIP("this machine has a CUDA driver");
    EXPECT_CONTAINS(output, "count STRATA_E_NO_DEVICE");
    if (access("/proc/driver/nvidia", F_OK) != 0) EXPECT_CONTAINS(output, "0 no CUDA driver: libcuda.so.1: cannot open");
}

TEST(cuda_library, stub_of_the_toolkit) {
    if (access(STRATA_CUDA_LIBRARIES "/stub/libcuda.so.1", F_OK) != 0) TEST_SKIP("the CUDA Toolkit here has no stub library");
    const char *output = probe(STRATA_CUDA_PROBE, "stub", "");
    EXPECT_CONTAINS(output, "count STRATA_E_NO_DEVICE 34 ");
    EXPECT_CONTAINS(output, "CUDA_ERROR_STUB_LIBRARY (34)");
}

/* The plain entries, whatever default stream the program was built for. */
TEST(cuda_library, row17_plain_entries_are_asked_for) {
    const char *output = probe(STRATA_CUDA_PROBE, "fake", "FAKE_CUDA_TRACE=1");
    EXPECT_CONTAINS(output, "cuMemAlloc 3020 1\n");
    EXPECT_CONTAINS(output, "cuEventRecord 2000 1\n");
    EXPECT_TRUE(!strstr(output, "_pt") && !strstr(output, "_v"));
    for (const char *line = strstr(output, "cu"); line && strncmp(line, "cu", 2) == 0; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        ASSERT_TRUE(end);
        if (strncmp(end - 2, " 1", 2) != 0) FAIL_TEST("not the plain entry: %.*s", (int)(end - line), line);
    }
}
