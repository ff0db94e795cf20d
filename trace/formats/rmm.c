/* Logs of RMM's logging_resource_adaptor: Thread,Time,Action,Pointer,Size,Stream. Time is the local time of day, without a date.
 * `allocate` stands after the upstream's call and `free` before it, so an address's rows are in order under threads too. */
#include <string.h>

#include "platform/arithmetic.h"
#include "trace/formats/gathered.h"
#include "trace/formats/numbers.h"
#include "trace/text/lines.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define DAY_US UINT64_C(86400000000)
enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, FIELDS };

typedef struct log {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    uint64_t days; /* that have passed, in microseconds */
    uint64_t last; /* time of day */
} log_t;

#define WRONG(log, field, ...) strata_lines_wrong(&(log)->lines, (log)->lines.columns[field], __VA_ARGS__)

/* HH:MM:SS.ffffff; until 2021 a colon stood before the microseconds. */
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

/* The clock's small steps back are the gathered's to smooth. Half a day back is midnight. */
static strata_status_t read_time(log_t *log, uint64_t *us) {
    uint64_t time;
    if (!parse_time(log->lines.fields[TIME], &time))
        return WRONG(log, TIME, "the time is \"%s\"; RMM writes HH:MM:SS.ffffff", strata_shown(log->lines.fields[TIME]).text);
    if (log->last > time && log->last - time > DAY_US / 2) log->days += DAY_US;
    log->last = time;
    *us = log->days + time;
    return STRATA_OK;
}

static strata_status_t read_numbers(log_t *log, strata_gathered_event_t *event) {
    char *const *fields = log->lines.fields;
    uint64_t thread = 0;
    if (!strata_parse_whole(fields[THREAD], &thread))
        return WRONG(log, THREAD, "the thread is \"%s\"; RMM writes a number", strata_shown(fields[THREAD]).text);
    if (!strata_parse_whole(fields[SIZE], &event->size))
        return WRONG(log, SIZE, "the size is \"%s\"; RMM writes bytes", strata_shown(fields[SIZE]).text);
    if (strcmp(fields[POINTER], "(nil)") != 0 && !strata_parse_address(fields[POINTER], &event->address))
        return WRONG(log, POINTER, "the pointer is \"%s\"; RMM writes 0x... or (nil)", strata_shown(fields[POINTER]).text);
    if (!strata_parse_address(fields[STREAM], &event->stream))
        return WRONG(log, STREAM, "the stream is \"%s\"; RMM writes 0x...", strata_shown(fields[STREAM]).text);
    event->thread = (uint32_t)thread;
    return STRATA_OK;
}

static strata_status_t read_row(log_t *log) {
    const char *action = log->lines.fields[ACTION];
    strata_gathered_event_t event = {.device = 0};
    strata_status_t status = read_time(log, &event.time_us);
    if (status == STRATA_OK) status = read_numbers(log, &event);
    if (status != STRATA_OK) return status;
    if (strcmp(action, "allocate failure") == 0) return strata_gathered_failed(log->gathered, &event);
    if (strcmp(action, "allocate") == 0) return strata_gathered_alloc(log->gathered, &event);
    if (strcmp(action, "free") == 0) return event.address ? strata_gathered_free(log->gathered, &event, false) : STRATA_OK;
    return WRONG(log, ACTION, "the action is \"%s\"; RMM writes allocate, allocate failure or free", strata_shown(action).text);
}

static strata_status_t read_rows(log_t *log) {
    bool end = false;
    strata_status_t status = strata_lines_next(&log->lines, &end); /* the header, by which the format was recognised */
    while (status == STRATA_OK) {
        uint32_t count;
        status = strata_lines_next(&log->lines, &end);
        if (status != STRATA_OK || end) break;
        if (!*log->lines.text) continue;
        status = strata_lines_split(&log->lines, &count);
        if (status == STRATA_OK && count != FIELDS)
            return strata_lines_wrong(&log->lines, 1, "%u fields, but the header has %d", count, FIELDS);
        if (status == STRATA_OK) status = read_row(log);
    }
    return status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    log_t log = {.gathered = gathered};
    strata_status_t status = strata_lines_over(&log.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_rows(&log);
    strata_lines_release(&log.lines);
    return status;
}

static strata_status_t open_log(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

static bool recognises(const char *head, size_t count) {
    static const char mark[] = "\xef\xbb\xbf";
    if (strncmp(head, mark, sizeof mark - 1) == 0) head += sizeof mark - 1;
    (void)count;
    return strncmp(head, HEADER, sizeof HEADER - 1) == 0;
}

const strata_trace_format_t strata_trace_rmm = {.name = "rmm",
                                                .meaning = "a log of RMM's logging_resource_adaptor",
                                                .recognises = recognises,
                                                .open = open_log,
                                                .read = strata_gathered_read,
                                                .columns = strata_gathered_columns,
                                                .notes = strata_gathered_notes,
                                                .close = strata_gathered_close};
