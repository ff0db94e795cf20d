#include "config/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/tree.h"
#include "platform/host/host_memory.h"

enum { READ_AT_ONCE = 65536 };

static ssize_t read_some(int file, char *bytes) {
    ssize_t got;
    do { got = read(file, bytes, READ_AT_ONCE); } while (got < 0 && errno == EINTR);
    return got;
}

strata_status_t strata_config_read_whole(const char *path, strata_file_named_t named, char **text, size_t *length) {
    char *bytes = NULL;
    size_t used = 0;
    int file;
    strata_status_t status = strata_file_open(path, named, &file);
    if (status) return status;
    ssize_t got = 1;
    while (status == STRATA_OK && got > 0 && used <= STRATA_TREE_BYTES) {
        char *larger = strata_host_resize(bytes, used + READ_AT_ONCE, 1);
        if (larger) bytes = larger;
        got = larger ? read_some(file, bytes + used) : 0;
        if (!larger) status = STRATA_E_HOST_MEMORY;
        else if (got < 0) status = strata_fail(STRATA_E_IO, 0, "%.1500s: cannot read the file: %s", path, strerror(errno));
        else used += (size_t)got;
    }
    close(file);
    *text = bytes;
    *length = used;
    return status;
}

void strata_config_short_name(const char *path, char *name, size_t capacity) {
    const char *slash = strrchr(path, '/');
    snprintf(name, capacity, "%.*s", (int)capacity - 1, slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) *dot = '\0';
}

bool strata_path_relative_to(const char *name, const char *base, char *path, size_t capacity) {
    const char *slash = base && name[0] != '/' ? strrchr(base, '/') : NULL;
    int folder = slash ? (int)(slash - base + 1) : 0;
    int length = snprintf(path, capacity, "%.*s%s", folder, folder ? base : "", name);
    return length > 0 && (size_t)length < capacity;
}
