/* Reads logs of RMM's logging_resource_adaptor: Thread,Time,Action,Pointer,Size,Stream. Time is the local
 * time of day, without a date. `allocate` is logged after the upstream's call and `free` before it. So the
 * rows of an address are in order even with several threads. */
#include <string.h>

#include "lab/trace/formats/gathered.h"
#include "lab/trace/formats/numbers.h"
#include "platform/arithmetic.h"
#include "trace/text/lines.h"

#define DAY_US UINT64_C(86400000000)
enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

static const char *const names[] = {"Thread", "Time", "Action", "Pointer", "Size", "Stream"};

typedef struct log {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    uint32_t field_count;
    uint8_t field_of[COLUMNS];
    uint64_t days; /* days passed, in microseconds */
    uint64_t last; /* time of day */
} log_t;

#define WRONG(log, column, ...) strata_lines_fail(&(log)->lines, (log)->lines.columns[(log)->field_of[column]], __VA_ARGS__)

static const char *field(const log_t *log, int column) { return log->lines.fields[log->field_of[column]]; }

/* Parses HH:MM:SS.ffffff. Until 2021 a colon preceded the microseconds. */
static bool parse_time(const char *text, uint64_t *us) {
    static const unsigned width[] = {2, 2, 2, 6};
    static const uint64_t most[] = {23, 59, 60, 999999}, factor[] = {24, 60, 60, 1000000};
    *us = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t part = 0;
        for (unsigned k = 0; k < width[i]; k++, text++) {
            if (*text < '0' || *text > '9') return false;
            part = part * 10 + (uint64_t)(*text - '0');
        }
        if (part > most[i]) return false;
        *us = *us * factor[i] + part;
        bool separated = *text == ':' || (i == 2 && *text == '.');
        if (i < 3 && !separated) return false;
        text += i < 3;
    }
    return *text == '\0';
}

/* gathered.c smooths the clock's small steps back. A step back of more than half a day is midnight. */
static strata_status_t read_time(log_t *log, uint64_t *us) {
    uint64_t time;
    if (!parse_time(field(log, TIME), &time))
        return WRONG(log, TIME, "the time is \"%s\"; RMM writes HH:MM:SS.ffffff", strata_excerpt(field(log, TIME)).text);
    if (log->last > time && log->last - time > DAY_US / 2) log->days += DAY_US;
    log->last = time;
    *us = log->days + time;
    return STRATA_OK;
}

static strata_status_t read_numbers(log_t *log, strata_gathered_event_t *event) {
    const char *thread_field = field(log, THREAD), *size = field(log, SIZE);
    const char *pointer = field(log, POINTER), *stream = field(log, STREAM);
    uint64_t thread = 0;
    if (!strata_parse_whole(thread_field, &thread))
        return WRONG(log, THREAD, "the thread is \"%s\"; RMM writes a number", strata_excerpt(thread_field).text);
    if (!strata_parse_whole(size, &event->size))
        return WRONG(log, SIZE, "the size is \"%s\"; RMM writes bytes", strata_excerpt(size).text);
    if (!strata_parse_address(pointer, &event->address))
        return WRONG(log, POINTER, "the pointer is \"%s\"; RMM writes 0x... or (nil)", strata_excerpt(pointer).text);
    if (!strata_parse_address(stream, &event->stream))
        return WRONG(log, STREAM, "the stream is \"%s\"; RMM writes 0x...", strata_excerpt(stream).text);
    event->thread = (uint32_t)thread;
    return STRATA_OK;
}

static strata_status_t read_row(log_t *log) {
    const char *action = field(log, ACTION);
    strata_gathered_event_t event = {.device = 0};
    strata_status_t status = read_time(log, &event.time_us);
    if (status == STRATA_OK) status = read_numbers(log, &event);
    if (status != STRATA_OK) return status;
    if (strcmp(action, "allocate failure") == 0) return strata_gathered_failed(log->gathered, &event);
    if (strcmp(action, "allocate") == 0) return strata_gathered_alloc(log->gathered, &event);
    if (strcmp(action, "free") == 0) return event.address ? strata_gathered_free(log->gathered, &event, false) : STRATA_OK;
    return WRONG(log, ACTION, "the action is \"%s\"; RMM writes allocate, allocate failure or free", strata_excerpt(action).text);
}

/* Finds the field index of each column. Unknown columns are ignored. */
static strata_status_t read_header(log_t *log) {
    memset(log->field_of, COLUMNS, sizeof log->field_of);
    for (int column = 0; column < COLUMNS; column++) {
        uint32_t at = 0;
        while (at < log->field_count && strcmp(log->lines.fields[at], names[column]) != 0) at++;
        if (at == log->field_count)
            return strata_lines_fail(&log->lines, 1, "the column %s is missing; RMM writes Thread,Time,Action,Pointer,Size,Stream",
                                     names[column]);
        log->field_of[column] = (uint8_t)at;
    }
    return STRATA_OK;
}

/* Concatenated logs repeat the header. No data row has a field with only this word. */
static bool is_header(const log_t *log, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(log->lines.fields[i], names[ACTION]) == 0) return true;
    return false;
}

static strata_status_t read_rows(log_t *log) {
    bool end = false;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK) {
        uint32_t count;
        status = strata_lines_next(&log->lines, &end);
        if (status != STRATA_OK || end) break;
        if (!*log->lines.text) continue;
        status = strata_lines_split(&log->lines, &count);
        if (status != STRATA_OK) break;
        bool header = is_header(log, count);
        if (header) log->field_count = count;
        if (count != log->field_count)
            return strata_lines_fail(&log->lines, 1, "%u fields, but the header has %u", count, log->field_count);
        status = header ? read_header(log) : read_row(log);
    }
    return status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    log_t log = {.gathered = gathered};
    strata_status_t status = strata_lines_init(&log.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_rows(&log);
    if (strata_lines_is_truncated(&log.lines, status)) {
        gathered->notes.cut_off = 1;
        status = STRATA_OK;
    }
    strata_lines_release(&log.lines);
    return status;
}

static strata_status_t open_log(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* The first line has the names of all columns, in any order. */
static bool recognises(const char *head, size_t count) {
    size_t length = strcspn(head, "\r\n");
    (void)count;
    for (int column = 0; column < COLUMNS; column++) {
        const char *found = memmem(head, length, names[column], strlen(names[column]));
        if (!found || (found > head && found[-1] != ',')) return false;
    }
    return true;
}

const strata_trace_format_t strata_trace_rmm = {.name = "rmm",
                                                .meaning = "a log of RMM's logging_resource_adaptor",
                                                .recognises = recognises,
                                                .open = open_log,
                                                .read = strata_gathered_read,
                                                .columns = strata_gathered_columns,
                                                .notes = strata_gathered_notes,
                                                .close = strata_gathered_close};
