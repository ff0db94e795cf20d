/* log: writes a line of text for each request and each free, immediately, so that a program that crashes
 * leaves all of them.
 *
 * Each line is one write(2) to a descriptor in append mode, so lines of several stacks or processes do not
 * mix. The locks of the call are released during the write. A line that cannot be written is counted and
 * dropped; strata_close() reports the first such error. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "allocation/stack/threads.h"
#include "platform/host/file.h"
#include "platform/place.h"

enum { LINE = 512, NAME = 64 };

typedef struct log_options {
    char path[STRATA_OPTION_TEXT_BYTES];
} log_options_t;

static const strata_option_row_t options[] = {
    {"path", STRATA_OPTION_TEXT, offsetof(log_options_t, path), "none", 0, 0, NULL,
     "file to append to, or `stderr`; %p for the process ID; `none` to write nothing and let hits bypass the layer"},
    {0},
};

typedef struct log_layer {
    strata_layer_t base;
    int file; /* only if `writing` */
    bool writing;
    uint64_t lines, lost;
} log_layer_t;

static const strata_stat_row_t stats[] = {
    {"lines", "count", offsetof(log_layer_t, lines), "lines written"},
    {"lost", "count", offsetof(log_layer_t, lost), "lines lost because a write failed"},
    {0},
};

/* ---- a line ---- */

typedef struct line {
    char text[LINE];
    size_t length;
} line_t;

#define APPEND(line, ...) note_appended(line, snprintf((line)->text + (line)->length, LINE - (line)->length, __VA_ARGS__))
static void note_appended(line_t *line, int added) {
    line->length += added > 0 ? (size_t)added : 0;
    if (line->length > LINE - 1) line->length = LINE - 1;
}

/* A name is printed as one word, whatever the program wrote into it. */
static void append_name(line_t *line, const char *key, const char *name) {
    char word[NAME];
    size_t length = 0;
    for (; name && name[length] && length + 1 < sizeof word; length++) {
        unsigned char letter = (unsigned char)name[length];
        word[length] = letter <= ' ' || letter == 0x7f || letter == '=' ? '_' : name[length];
    }
    word[length] = '\0';
    if (length) APPEND(line, " %s=%s", key, word);
}

static void begin(const log_layer_t *self, line_t *line, const char *event, strata_stream_t stream) {
    strata_clock_t *clock = self->base.domain->device->clock;
    char place[STRATA_PLACE_LETTERS];
    strata_place_text(self->base.domain->place, place);
    line->length = 0;
    APPEND(line, "ns=%llu place=%s event=%s thread=%llu stream=%#llx", (unsigned long long)clock->now(clock), place, event,
           (unsigned long long)strata_threads_self(), (unsigned long long)(uintptr_t)stream);
}

/* strata_close() reports the reason. The thread's last error is kept. */
static void note_lost_line(log_layer_t *self, int why) {
    const strata_error_t kept = *strata_last_error();
    if (self->lost++ > 0) return;
    (void)strata_fail(STRATA_E_IO, 0, "log: %s cannot be written: %s", ((const log_options_t *)self->base.options)->path,
                      why ? strerror(why) : "a line was truncated");
    strata_domain_note_unreported(self->base.domain);
    (void)strata_fail_again(&kept);
}

static void write_line(log_layer_t *self, line_t *line, strata_call_t *call) {
    ssize_t written;
    line->text[line->length++] = '\n';
    strata_unlocked_t opened = strata_call_unlock(call);
    do written = write(self->file, line->text, line->length);
    while (written < 0 && errno == EINTR);
    int why = written < 0 ? errno : 0;
    strata_call_lock(call, opened);
    if (written == (ssize_t)line->length) self->lines++;
    else note_lost_line(self, why);
}

/* ---- hits and growth ---- */

typedef struct seen {
    uint64_t hits, growths;
} seen_t;

/* Reads the metrics of the stack. Returns false if its cache is shared, so that they do not show hits. */
static bool read_counts(const log_layer_t *self, seen_t *seen) {
    strata_stack_t *stack = self->base.stack;
    *seen = (seen_t){stack->figures.cache_hits, stack->figures.growths};
    return strata_stack_home(stack) == stack;
}

static const char *how(const log_layer_t *self, const seen_t *before) {
    seen_t after;
    if (!read_counts(self, &after)) return "shared";
    if (after.growths != before->growths) return "growth";
    return after.hits != before->hits ? "hit" : "miss";
}

/* ---- operations ---- */

static void log_request(log_layer_t *self, const strata_request_t *request, const strata_record_t *record, const seen_t *before) {
    line_t line;
    begin(self, &line, record ? "alloc" : "refused", request->stream);
    APPEND(&line, " asked=%zu", request->size);
    if (record)
        APPEND(&line, " ptr=%#llx got=%llu how=%s", (unsigned long long)record->ptr, (unsigned long long)record->size,
               how(self, before));
    else APPEND(&line, " why=%s", strata_status_name(strata_last_error()->status));
    append_name(&line, "tag", request->tag);
    append_name(&line, "operator", request->operator_name);
    write_line(self, &line, request->call);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    log_layer_t *self = (log_layer_t *)base;
    seen_t before;
    (void)read_counts(self, &before);
    strata_status_t status = strata_below_allocate(base, request, record);
    if (status == STRATA_OK && self->writing) (*record)->attention |= base->attention;
    if (self->writing) log_request(self, request, status == STRATA_OK ? *record : NULL, &before);
    return status;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    log_layer_t *self = (log_layer_t *)base;
    record->attention &= (uint16_t)~base->attention;
    if (self->writing) {
        line_t line;
        begin(self, &line, "free", strata_stack_stream(call->stack));
        APPEND(&line, " asked=%llu ptr=%#llx got=%llu", (unsigned long long)strata_record_requested(record),
               (unsigned long long)record->ptr, (unsigned long long)record->size);
        write_line(self, &line, call);
    }
    strata_below_free(record, call);
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    log_layer_t *self = (log_layer_t *)base;
    const char *path = ((const log_options_t *)base->options)->path;
    if (strcmp(path, "none") == 0) return STRATA_OK;
    strata_status_t status = strata_file_append(path, &self->file);
    if (status != STRATA_OK) return status;
    self->writing = true;
    strata_stack_lock_own(base->stack);
    strata_layer_enable_allocate(base, true);
    strata_unlock(&base->stack->lock);
    return STRATA_OK;
}

static void destroy(strata_layer_t *base) {
    const log_layer_t *self = (const log_layer_t *)base;
    if (self->writing) close(self->file);
}

const strata_layer_type_t strata_log_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "log",
    .doc = "writes a text line per request and free, with time, thread, stream, sizes, address, tag and how it was served",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .guarded = true,
    .idle = true,
    .state_size = sizeof(log_layer_t),
    .options_size = sizeof(log_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
};
