/* What the targets share. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

void fuzz_broken(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: broken: %s\n    last error: %s: %s\n", file, line, what,
            strata_status_name(strata_last_error()->status), strata_last_error()->text);
    abort();
}

char *fuzz_text(const uint8_t *bytes, size_t count) {
    char *text = malloc(count + 1);
    if (!text) abort();
    if (count) memcpy(text, bytes, count);
    text[count] = '\0';
    return text;
}

const char *fuzz_file(const uint8_t *bytes, size_t count) {
    static int file = -1;
    static char path[64];
    if (file < 0) file = memfd_create("fuzzed", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes, count, 0) != (ssize_t)count) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

FILE *fuzz_nowhere(void) {
    static FILE *out;
    if (!out) out = fopen("/dev/null", "we");
    if (!out) abort();
    return out;
}
