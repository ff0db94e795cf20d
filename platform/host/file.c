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
    return strata_fail(STRATA_E_IO, 0, "%.1500s: the file cannot be read: %s", path, why);
}

static strata_status_t check_kind(const char *path, const struct stat *found, bool regular) {
    if (S_ISREG(found->st_mode)) return STRATA_OK;
    if (S_ISDIR(found->st_mode)) return fail(path, strerror(EISDIR));
    if (!regular && (S_ISFIFO(found->st_mode) || S_ISCHR(found->st_mode))) return STRATA_OK;
    return fail(path, regular ? "it is no regular file" : "it is neither a file nor a pipe nor a character device");
}

strata_status_t strata_file_is_regular(const char *path) {
    struct stat found;
    if (stat(path, &found) != 0) return fail(path, strerror(errno));
    return check_kind(path, &found, true);
}

/* A pipe without a writer is opened and is then at its end; one with a writer is read as its bytes come. */
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
    if (length < 0 || (size_t)length >= sizeof path)
        return strata_fail(STRATA_E_INVALID, 0, "the name of the directory is too long");
    int opened = mkostemp(path, O_CLOEXEC);
    if (opened < 0) return strata_fail(STRATA_E_IO, 0, "%.1500s: no file can be made there: %s", directory, strerror(errno));
    (void)unlink(path);
    *file = opened;
    return STRATA_OK;
}
