#include "platform/host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static strata_status_t fail(const char *path, const char *why) {
    return strata_fail(STRATA_E_IO, 0, "%.1500s: cannot read the file: %s", path, why);
}

static strata_status_t check_kind(const char *path, const struct stat *found, bool regular) {
    if (S_ISREG(found->st_mode)) return STRATA_OK;
    if (S_ISDIR(found->st_mode)) return fail(path, strerror(EISDIR));
    if (!regular && (S_ISFIFO(found->st_mode) || S_ISCHR(found->st_mode))) return STRATA_OK;
    return fail(path, regular ? "it is not a regular file" : "it is neither a file nor a pipe nor a character device");
}

strata_status_t strata_file_is_regular(const char *path) {
    struct stat found;
    if (stat(path, &found) != 0) return fail(path, strerror(errno));
    return check_kind(path, &found, true);
}

/* A pipe without a writer opens and is then at its end. A pipe with a writer is read as its bytes arrive. */
strata_status_t strata_file_open(const char *path, strata_file_named_t named, int *file) {
    bool regular = named == STRATA_FILE_NAMED_BY_FILE;
    struct stat found;
    strata_status_t status = regular ? strata_file_is_regular(path) : STRATA_OK;
    if (status != STRATA_OK) return status;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (opened < 0) return fail(path, strerror(errno));
    int flags = fcntl(opened, F_GETFL);
    bool ready = fstat(opened, &found) == 0 && flags >= 0 && fcntl(opened, F_SETFL, flags & ~O_NONBLOCK) == 0;
    status = ready ? check_kind(path, &found, regular) : fail(path, strerror(errno));
    if (status == STRATA_OK) *file = opened;
    else close(opened);
    return status;
}

strata_status_t strata_file_scratch(const char *directory, int *file) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/strata-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof path) return strata_fail(STRATA_E_INVALID, 0, "the directory name is too long");
    int opened = mkostemp(path, O_CLOEXEC);
    if (opened < 0) return strata_fail(STRATA_E_IO, 0, "%.1500s: cannot create a file there: %s", directory, strerror(errno));
    (void)unlink(path);
    *file = opened;
    return STRATA_OK;
}

void strata_file_expand(const char *pattern, char *path, size_t capacity) {
    size_t length = 0;
    for (; *pattern && length + 24 < capacity; pattern++) {
        bool process = pattern[0] == '%' && pattern[1] == 'p';
        if (process) pattern++;
        if (process) length += (size_t)snprintf(path + length, capacity - length, "%ld", (long)getpid());
        else path[length++] = *pattern;
    }
    path[length] = '\0';
}

int strata_file_write_end(int descriptor) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool is_open_to_append(const char *path, int *file) {
    struct stat found = {0};
    bool named = strcmp(path, "stderr") != 0;
    *file = named ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW, 0666)
                  : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (*file < 0 || !named || fstat(*file, &found) != 0) return *file >= 0;
    if (S_ISREG(found.st_mode) || S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode)) return true;
    close(*file);
    errno = ENODEV;
    return false;
}

strata_status_t strata_file_append(const char *pattern, int *file) {
    char path[4096];
    if (strlen(pattern) >= sizeof path / 2) return strata_fail(STRATA_E_INVALID, 0, "the path of the file is too long");
    strata_file_expand(pattern, path, sizeof path);
    if (is_open_to_append(path, file)) return STRATA_OK;
    return strata_fail(STRATA_E_IO, 0, "%.1500s: cannot append to the file: %s", path, strerror(errno));
}
