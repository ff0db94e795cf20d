#include "trace/text/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "platform/host/host_memory.h"
#include "trace/text/input.h"
#include "trace/text/partial.h"

enum { BUFFER_BYTES = 65536, PRINT_BYTES = 8192, ENDING_BYTES = 48 };

struct strata_output {
    int file;
    bool standard; /* standard output: no name, nothing to rename */
    bool direct; /* a pipe or character device: written bytes cannot be taken back, and no rename follows */
    bool gzip;
    strata_status_t status; /* the first failure */
    char *path;
    char *part_path; /* the file's name while it is being written */
    strata_partial_t partial;
    size_t length;
    z_stream deflate;
    char buffer[BUFFER_BYTES];
    unsigned char packed[BUFFER_BYTES];
};

static voidpf zlib_new(voidpf unused, uInt count, uInt size) {
    (void)unused;
    return strata_host_new(count, size);
}

static void zlib_delete(voidpf unused, voidpf memory) {
    (void)unused;
    strata_host_delete(memory);
}

static bool ends_with(const char *text, const char *with) {
    size_t length = strlen(text), wanted = strlen(with);
    return length >= wanted && strcmp(text + length - wanted, with) == 0;
}

static void output_delete(strata_output_t *output) {
    if (output->gzip) deflateEnd(&output->deflate);
    if (output->file >= 0 && !output->standard) close(output->file);
    if (output->part_path && output->file >= 0) unlink(output->part_path);
    strata_partial_remove(&output->partial);
    strata_host_delete(output->part_path);
    strata_host_delete(output->path);
    strata_host_delete(output);
}

static strata_status_t fail(const strata_output_t *output, const char *why) {
    return strata_fail(STRATA_E_IO, 0, "%s cannot be written: %s", output->path ? output->path : "standard output", why);
}

/* A reader that could not read the replaced file must not be able to read the new one. */
static bool copy_permissions(int file, const struct stat *replaced) {
    struct stat own;
    mode_t mode = replaced->st_mode & 0777;
    if (fstat(file, &own) != 0) return false;
    bool given = (own.st_uid == replaced->st_uid && own.st_gid == replaced->st_gid) ||
                 fchown(file, replaced->st_uid, replaced->st_gid) == 0;
    if (!given && own.st_gid != replaced->st_gid) mode &= ~(mode_t)S_IRWXG;
    return fchmod(file, mode) == 0;
}

/* If a standard file is closed, its number is the first free one. Everything printed would then be
 * written to this file. */
static int avoid_standard_fd(int file) {
    if (file < 0 || file > STDERR_FILENO) return file;
    int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), why = errno;
    (void)close(file);
    errno = why;
    return moved;
}

/* Creates a file with an unused name. On failure errno has the reason. */
static void create_part(strata_output_t *output, size_t length, mode_t mode) {
    enum { TRIES = 100 };
    sigset_t before;
    strata_partial_block_signals(&before);
    for (int i = 0; i < TRIES && output->file < 0; i++) {
        snprintf(output->part_path + length, ENDING_BYTES, ".%ld.%d.part", (long)getpid(), i);
        output->file = open(output->part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (output->file < 0 && errno != EEXIST) break;
    }
    bool made = output->file >= 0;
    output->file = avoid_standard_fd(output->file);
    int why = errno;
    if (made && output->file < 0) (void)unlink(output->part_path);
    if (output->file >= 0) strata_partial_add(&output->partial, output->part_path);
    strata_partial_unblock_signals(&before);
    errno = why;
}

/* Opens a temporary name beside the file. If several writers write one file, the last to finish wins,
 * with its whole file. `replaced` is the existing file, or NULL if there is none. */
static strata_status_t open_part(strata_output_t *output, const struct stat *replaced) {
    size_t length = strlen(output->path);
    output->part_path = strata_host_new(length + ENDING_BYTES, 1);
    if (!output->part_path) return STRATA_E_HOST_MEMORY;
    memcpy(output->part_path, output->path, length);
    create_part(output, length, replaced ? 0600 : 0666);
    if (output->file < 0 || (replaced && !copy_permissions(output->file, replaced))) return fail(output, strerror(errno));
    return STRATA_OK;
}

/* A pipe without a reader is an error, not a wait. */
static strata_status_t open_direct(strata_output_t *output) {
    output->direct = true;
    output->file = avoid_standard_fd(open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    int flags = output->file < 0 ? -1 : fcntl(output->file, F_GETFL);
    if (flags < 0 || fcntl(output->file, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return fail(output, errno == ENXIO ? "the pipe has no reader" : strerror(errno));
    return STRATA_OK;
}

/* A rename over a link would lose it, and following it may lead to another user's file. So a caller
 * must name the target instead. */
static strata_status_t open_path(strata_output_t *output) {
    struct stat named, meant;
    if (lstat(output->path, &named) != 0) return open_part(output, NULL);
    if (S_ISREG(named.st_mode)) return open_part(output, &named);
    if (stat(output->path, &meant) == 0 && (S_ISFIFO(meant.st_mode) || S_ISCHR(meant.st_mode))) return open_direct(output);
    if (S_ISLNK(named.st_mode)) return fail(output, "it is a symbolic link; write the name of its target");
    return fail(output, S_ISDIR(named.st_mode) ? strerror(EISDIR) : "it is neither a file nor a pipe nor a character device");
}

strata_status_t strata_output_open(const char *path, strata_output_t **output) {
    strata_output_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    made->file = -1;
    strata_status_t status = STRATA_OK;
    made->standard = strcmp(path, "-") == 0;
    if (made->standard) {
        made->file = STDOUT_FILENO;
    } else {
        made->path = strata_host_strdup(path);
        status = made->path ? open_path(made) : STRATA_E_HOST_MEMORY;
    }
    if (status == STRATA_OK && ends_with(path, ".gz")) {
        made->deflate.zalloc = zlib_new;
        made->deflate.zfree = zlib_delete;
        made->gzip = deflateInit2(&made->deflate, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
        if (!made->gzip) status = strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory while compressing gzip");
    }
    if (status != STRATA_OK) {
        output_delete(made);
        return status;
    }
    *output = made;
    return STRATA_OK;
}

static strata_status_t write_to_file(strata_output_t *output, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count > 0) {
        ssize_t put = write(output->file, at, count);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail(output, strerror(errno));
        at += put;
        count -= (size_t)put;
    }
    return STRATA_OK;
}

static strata_status_t compress_buffer(strata_output_t *output, int flush) {
    z_stream *z = &output->deflate;
    z->next_in = (Bytef *)output->buffer;
    z->avail_in = (uInt)output->length;
    do {
        z->next_out = output->packed;
        z->avail_out = BUFFER_BYTES;
        if (deflate(z, flush) == Z_STREAM_ERROR) return fail(output, "compression failed");
        strata_status_t status = write_to_file(output, output->packed, BUFFER_BYTES - z->avail_out);
        if (status != STRATA_OK) return status;
    } while (z->avail_out == 0);
    return STRATA_OK;
}

static void flush(strata_output_t *output, bool end) {
    if (output->status != STRATA_OK) return;
    if (output->gzip) {
        output->status = compress_buffer(output, end ? Z_FINISH : Z_NO_FLUSH);
    } else {
        output->status = write_to_file(output, output->buffer, output->length);
    }
    output->length = 0;
}

strata_status_t strata_output_write(strata_output_t *output, const char *bytes, size_t count) {
    while (count > 0 && output->status == STRATA_OK) {
        size_t room = BUFFER_BYTES - output->length, part = count < room ? count : room;
        memcpy(output->buffer + output->length, bytes, part);
        output->length += part;
        bytes += part;
        count -= part;
        if (output->length == BUFFER_BYTES) flush(output, false);
    }
    return output->status;
}

strata_status_t strata_output_print(strata_output_t *output, const char *format, ...) {
    char text[PRINT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (output->status == STRATA_OK && (written < 0 || written >= PRINT_BYTES))
        output->status = strata_fail(STRATA_E_LIMIT, 0, "a line of more than %d bytes cannot be written", PRINT_BYTES - 1);
    return output->status == STRATA_OK ? strata_output_write(output, text, (size_t)written) : output->status;
}

/* Ends the member of a compressed file. Another member follows. */
static strata_status_t end_member(strata_output_t *output) {
    flush(output, true);
    if (output->status == STRATA_OK && output->gzip && deflateReset(&output->deflate) != Z_OK)
        output->status = fail(output, "compression failed");
    return output->status;
}

static strata_status_t copy_all(strata_input_t *input, strata_output_t *to) {
    for (;;) {
        const char *bytes;
        size_t count;
        strata_status_t status = strata_input_read(input, &bytes, &count);
        if (status == STRATA_OK && count > 0) status = strata_output_write(to, bytes, count);
        if (status != STRATA_OK || count == 0) return status;
    }
}

strata_status_t strata_output_copy(strata_output_t *output, const char *path) {
    strata_input_t *input;
    strata_output_t *to;
    if (output->standard || output->direct)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "output to a pipe or device cannot be copied");
    strata_status_t status = end_member(output);
    if (status == STRATA_OK) status = strata_input_open(output->part_path, &input);
    if (status != STRATA_OK) return status;
    status = strata_output_open(path, &to);
    if (status == STRATA_OK) {
        status = copy_all(input, to);
        if (status == STRATA_OK) status = strata_output_finish(to);
        else strata_output_abandon(to);
    }
    strata_input_close(input);
    return status;
}

/* Some file systems report that they are full only at the end, or when they are forced to write. */
static strata_status_t rename_into_place(strata_output_t *output) {
    bool kept = output->direct || fsync(output->file) == 0 || errno == EINVAL;
    int why = errno;
    bool closed = close(output->file) == 0;
    output->file = -1;
    if (kept && !closed) why = errno;
    bool placed = kept && closed && (output->direct || rename(output->part_path, output->path) == 0);
    if (placed) return STRATA_OK;
    strata_status_t status = fail(output, strerror(kept && closed ? errno : why));
    if (!output->direct) unlink(output->part_path);
    return status;
}

strata_status_t strata_output_finish(strata_output_t *output) {
    flush(output, true);
    strata_status_t status = output->status;
    if (status == STRATA_OK && !output->standard) status = rename_into_place(output);
    output_delete(output);
    return status;
}

void strata_output_abandon(strata_output_t *output) {
    if (output) output_delete(output);
}
