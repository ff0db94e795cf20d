#include "tests/harness/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "tests/harness/test.h"

static char folder[128];

static void remove_folder(void) {
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) fprintf(stderr, "%s is left\n", folder);
}

const char *temporary(const char *name) {
    static char path[256];
    if (!*folder) {
        strcpy(folder, "/tmp/strata-test-XXX"
                       "XXX");
        if (!mkdtemp(folder)) abort();
        atexit(remove_folder);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

const char *write_file(const char *name, const void *bytes, size_t count) {
    const char *path = temporary(name);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(bytes, 1, count, file) == count;
    if (file && fclose(file) != 0) good = false;
    if (!good) FAIL_TEST("%s cannot be written", path);
    return good ? path : NULL;
}

const char *write_text(const char *name, const char *text) { return write_file(name, text, strlen(text)); }

const char *write_gzip(const char *name, const void *bytes, size_t count) {
    const char *path = temporary(name);
    gzFile file = gzopen(path, "wb");
    bool good = file && gzwrite(file, bytes, (unsigned)count) == (int)count;
    if (file && gzclose(file) != Z_OK) good = false;
    if (!good) FAIL_TEST("%s cannot be written", path);
    return good ? path : NULL;
}

char *read_bytes(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    size_t capacity = 1 << 24;
    char *bytes = malloc(capacity);
    *count = bytes ? fread(bytes, 1, capacity, file) : 0;
    fclose(file);
    return bytes;
}
