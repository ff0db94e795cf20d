#include "trace/text/input.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "platform/host/file.h"
#include "platform/host/host_memory.h"
#include "trace/text/prefetch.h"

/* After this many unpacked bytes a thread unpacks the rest. By then zlib has all the memory it needs,
 * and a small file needs no thread. */
enum { BUFFER_BYTES = 65536, THREAD_THRESHOLD = 1 << 20 };

struct strata_input {
    int file;
    bool gzip;
    bool started;
    bool file_end;
    bool member_open; /* inside a gzip member; if the file ends now, it was cut off */
    bool damaged; /* inflate has failed, and will fail again */
    bool thread_tried; /* a thread was tried */
    strata_prefetch_t *prefetch; /* if set, its thread owns the file and zlib */
    size_t unpacked; /* bytes unpacked without a thread */
    z_stream inflate;
    size_t head_count; /* bytes of the head that are not read yet */
    size_t unread_count; /* unread bytes of the piece in which the head ended */
    const char *unread;
    char head[STRATA_INPUT_HEAD];
    unsigned char in[BUFFER_BYTES];
    char out[BUFFER_BYTES];
};

static voidpf zlib_new(voidpf unused, uInt count, uInt size) {
    (void)unused;
    return strata_host_new(count, size);
}

static void zlib_delete(voidpf unused, voidpf memory) {
    (void)unused;
    strata_host_delete(memory);
}

strata_status_t strata_input_open(const char *path, strata_input_t **input) {
    int file;
    strata_status_t status = strata_file_open(path, STRATA_FILE_NAMED_BY_USER, &file);
    if (status != STRATA_OK) return status;
    strata_input_t *made = strata_host_new(1, sizeof *made);
    if (!made) {
        close(file);
        return STRATA_E_HOST_MEMORY;
    }
    made->file = file;
    made->inflate.zalloc = zlib_new;
    made->inflate.zfree = zlib_delete;
    *input = made;
    return STRATA_OK;
}

void strata_input_close(strata_input_t *input) {
    if (!input) return;
    strata_prefetch_end(input->prefetch);
    if (input->gzip) inflateEnd(&input->inflate);
    close(input->file);
    strata_host_delete(input);
}

/* Fills `in` after the bytes that are still in it. Adds nothing at the end of the file. */
static strata_status_t fill(strata_input_t *input) {
    z_stream *z = &input->inflate;
    if (z->avail_in) memmove(input->in, z->next_in, z->avail_in);
    z->next_in = input->in;
    ssize_t got;
    do { got = read(input->file, input->in + z->avail_in, BUFFER_BYTES - z->avail_in); } while (got < 0 && errno == EINTR);
    if (got < 0) return strata_fail(STRATA_E_IO, 0, "cannot read the file: %s", strerror(errno));
    input->file_end = got == 0;
    z->avail_in += (uInt)got;
    return STRATA_OK;
}

/* gzip is recognized by two bytes. A file of one byte is plain. */
static strata_status_t start(strata_input_t *input) {
    z_stream *z = &input->inflate;
    do {
        strata_status_t status = fill(input);
        if (status != STRATA_OK) return status;
    } while (z->avail_in < 2 && !input->file_end);
    input->started = true;
    if (z->avail_in < 2 || input->in[0] != 0x1f || input->in[1] != 0x8b) return STRATA_OK;
    if (inflateInit2(z, MAX_WBITS + 16) != Z_OK)
        return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory while unpacking gzip");
    input->gzip = input->member_open = true;
    return STRATA_OK;
}

static strata_status_t read_plain(strata_input_t *input, const char **bytes, size_t *count) {
    z_stream *z = &input->inflate;
    if (z->avail_in == 0 && !input->file_end) {
        strata_status_t status = fill(input);
        if (status != STRATA_OK) return status;
    }
    *bytes = (const char *)z->next_in;
    *count = z->avail_in;
    z->avail_in = 0;
    return STRATA_OK;
}

/* Makes one call of inflate, and returns the status that follows from its result. */
static strata_status_t inflate_some(strata_input_t *input) {
    z_stream *z = &input->inflate;
    if (!input->member_open) {
        if (inflateReset(z) != Z_OK) return strata_fail(STRATA_E_FORMAT, 0, "the gzip data cannot be unpacked");
        input->member_open = true;
    }
    switch (inflate(z, Z_NO_FLUSH)) {
    case Z_OK:
    case Z_BUF_ERROR: return STRATA_OK;
    case Z_STREAM_END: input->member_open = false; return STRATA_OK;
    case Z_MEM_ERROR: return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory while unpacking gzip");
    default:
        input->damaged = true;
        return strata_fail(STRATA_E_FORMAT, 0, "the gzip data is damaged (%s); copy the file again, or check it with gzip -t",
                           z->msg ? z->msg : "no gzip stream");
    }
}

/* Unpacks `room` bytes, or fewer at the end. Bytes before damaged data are delivered first. */
static strata_status_t unpack(strata_input_t *input, char *bytes, size_t room, size_t *count) {
    z_stream *z = &input->inflate;
    z->next_out = (Bytef *)bytes;
    z->avail_out = (uInt)room;
    while (z->avail_out == room) {
        strata_status_t status = STRATA_OK;
        if (z->avail_in == 0 && !input->file_end) status = fill(input);
        if (status == STRATA_OK && z->avail_in == 0 && input->file_end && !input->damaged) {
            if (!input->member_open) break;
            return strata_fail(STRATA_E_FORMAT, 0, "the gzip data is cut off; copy the file again, or check it with gzip -t");
        }
        if (status == STRATA_OK) status = inflate_some(input);
        if (status != STRATA_OK && z->avail_out == room) return status;
    }
    *count = room - z->avail_out;
    return STRATA_OK;
}

static strata_status_t unpack_prefetch(void *input, char *bytes, size_t *count) {
    return unpack(input, bytes, STRATA_PREFETCH_BYTES, count);
}

static strata_status_t read_gzip(strata_input_t *input, const char **bytes, size_t *count) {
    if (input->unpacked >= THREAD_THRESHOLD && !input->thread_tried) {
        input->thread_tried = true;
        input->prefetch = strata_prefetch_begin(unpack_prefetch, input);
    }
    if (input->prefetch) return strata_prefetch_next(input->prefetch, bytes, count);
    strata_status_t status = unpack(input, input->out, BUFFER_BYTES, count);
    *bytes = input->out;
    if (status == STRATA_OK) input->unpacked += *count;
    return status;
}

static strata_status_t read_piece(strata_input_t *input, const char **bytes, size_t *count) {
    if (!input->started) {
        strata_status_t status = start(input);
        if (status != STRATA_OK) return status;
    }
    return input->gzip ? read_gzip(input, bytes, count) : read_plain(input, bytes, count);
}

strata_status_t strata_input_read(strata_input_t *input, const char **bytes, size_t *count) {
    if (input->head_count > 0) {
        *bytes = input->head;
        *count = input->head_count;
        input->head_count = 0;
        return STRATA_OK;
    }
    if (input->unread_count > 0) {
        *bytes = input->unread;
        *count = input->unread_count;
        input->unread_count = 0;
        return STRATA_OK;
    }
    return read_piece(input, bytes, count);
}

/* Damage after the first byte is found again by later reads. */
strata_status_t strata_input_peek(strata_input_t *input, const char **bytes, size_t *count) {
    while (input->head_count < STRATA_INPUT_HEAD) {
        size_t room = STRATA_INPUT_HEAD - input->head_count, got;
        strata_status_t status = read_piece(input, &input->unread, &got);
        if (status != STRATA_OK && input->head_count == 0) return status;
        if (status != STRATA_OK || got == 0) break;
        size_t taken = got < room ? got : room;
        memcpy(input->head + input->head_count, input->unread, taken);
        input->head_count += taken;
        input->unread += taken;
        input->unread_count = got - taken;
    }
    *bytes = input->head;
    *count = input->head_count;
    return STRATA_OK;
}

strata_status_t strata_input_read_all(strata_input_t *input, size_t most, char **bytes, size_t *count) {
    size_t capacity = 0, length = 0, got = 1;
    char *all = NULL;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && got > 0) {
        const char *piece;
        status = strata_input_read(input, &piece, &got);
        if (status == STRATA_OK && got > most - length)
            status = strata_fail(STRATA_E_LIMIT, 0, "the file has more than %zu bytes, the maximum", most);
        if (status == STRATA_OK && length + got >= capacity) {
            capacity = capacity * 2 + got + 1;
            char *grown = strata_host_resize(all, capacity, 1);
            if (grown) all = grown;
            if (!grown) status = STRATA_E_HOST_MEMORY;
        }
        if (status != STRATA_OK) break;
        memcpy(all + length, piece, got);
        length += got;
    }
    if (status != STRATA_OK) {
        strata_host_delete(all);
        return status;
    }
    all[length] = '\0';
    *bytes = all;
    *count = length;
    return STRATA_OK;
}
