#include "tests/security/kept.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/text/output.h"

size_t parts_beside(const char *path) {
    char pattern[400];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s.*.part", path);
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

void expect_kept(const char *path, const char *error, const char *why) {
    size_t count = 0;
    char *bytes = read_bytes(path, &count);
    EXPECT_TRUE(bytes && count == strlen(BEFORE) && memcmp(bytes, BEFORE, count) == 0);
    free(bytes);
    EXPECT_EQ(parts_beside(path), 0);
    EXPECT_CONTAINS(error, path);
    EXPECT_CONTAINS(error, why);
}

strata_status_t write_much(const char *path, size_t bytes) {
    strata_output_t *out;
    strata_status_t status = strata_output_open(path, &out);
    if (status != STRATA_OK) return status;
    uint64_t random = 1;
    for (size_t i = 0; i < bytes; i += 16) {
        random = random * 6364136223846793005u + 1;
        (void)strata_output_print(out, "%016llx", (unsigned long long)random);
    }
    return strata_output_finish(out);
}
