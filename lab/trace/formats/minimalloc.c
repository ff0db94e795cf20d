/* Reads buffers with their lives, as MiniMalloc and other planners take them. The file is CSV with `lower`
 * (or begin, start), `upper` (or `end`, the last moment) and `size`. A name (id, buffer, buffer_id, name)
 * becomes the tag, and other columns are not read. A moment of the plan becomes a microsecond. A buffer that
 * ends at a moment makes room for those that begin there. planning/file reads the same files as problems. */
#include <stdlib.h>
#include <string.h>

#include "lab/trace/formats/gathered.h"
#include "lab/trace/formats/numbers.h"
#include "platform/host/host_memory.h"
#include "trace/text/lines.h"

enum { LOWER, UPPER, SIZE, NAME, FIELDS, NOWHERE = STRATA_TRACE_FIELDS };

typedef struct moment {
    uint64_t time, size;
    uint32_t buffer;
    bool begins;
    char name[STRATA_TRACE_TAG_BYTES / 4];
} moment_t;

typedef struct plan {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    uint32_t at[FIELDS]; /* the field of each column, or NOWHERE */
    uint32_t fields; /* of the header */
    bool inclusive; /* the header has `end`, not `upper` */
    moment_t *moments;
    size_t count, capacity;
} plan_t;

static int field_of(const char *word, bool *inclusive) {
    static const struct {
        const char *word;
        int field;
    } words[] = {{"lower", LOWER}, {"begin", LOWER}, {"start", LOWER}, {"upper", UPPER},    {"end", UPPER},
                 {"size", SIZE},   {"id", NAME},     {"buffer", NAME}, {"buffer_id", NAME}, {"name", NAME}};
    *inclusive = strcmp(word, "end") == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) return words[i].field;
    return FIELDS;
}

static strata_status_t read_header(plan_t *plan) {
    bool end;
    strata_status_t status = strata_lines_next(&plan->lines, &end);
    if (status == STRATA_OK) status = strata_lines_split(&plan->lines, &plan->fields);
    if (status != STRATA_OK) return status;
    for (int i = 0; i < FIELDS; i++) plan->at[i] = NOWHERE;
    for (uint32_t i = 0; i < plan->fields; i++) {
        bool inclusive;
        int field = field_of(plan->lines.fields[i], &inclusive);
        if (field == FIELDS) continue;
        if (plan->at[field] != NOWHERE)
            return strata_lines_fail(&plan->lines, plan->lines.columns[i],
                                     "a second column has the same meaning; write only one of them");
        plan->at[field] = i;
        if (field == UPPER) plan->inclusive = inclusive;
    }
    for (int i = LOWER; i <= SIZE; i++)
        if (plan->at[i] == NOWHERE) return strata_lines_fail(&plan->lines, 1, "a column is missing; write lower, upper and size");
    return STRATA_OK;
}

static strata_status_t number(const plan_t *plan, int field, uint64_t *value) {
    const char *text = plan->lines.fields[plan->at[field]];
    if (strata_parse_whole(text, value) && *value <= STRATA_TRACE_TIME_MAX) return STRATA_OK;
    return strata_lines_fail(&plan->lines, plan->lines.columns[plan->at[field]], "\"%s\" is not a number from 0 to 10^15",
                             strata_excerpt(text).text);
}

static strata_status_t add(plan_t *plan, const moment_t *moment) {
    if (plan->count == plan->capacity) {
        size_t larger = plan->capacity * 2 + 256;
        moment_t *grown = strata_host_resize(plan->moments, larger, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        plan->moments = grown;
        plan->capacity = larger;
    }
    plan->moments[plan->count++] = *moment;
    return STRATA_OK;
}

static strata_status_t read_row(plan_t *plan) {
    uint64_t lower = 0, upper = 0, size = 0;
    uint32_t count;
    strata_status_t status = strata_lines_split(&plan->lines, &count);
    if (status == STRATA_OK && count != plan->fields)
        return strata_lines_fail(&plan->lines, 1, "%u fields, but the header has %u", count, plan->fields);
    if (status == STRATA_OK) status = number(plan, LOWER, &lower);
    if (status == STRATA_OK) status = number(plan, UPPER, &upper);
    if (status == STRATA_OK) status = number(plan, SIZE, &size);
    if (status != STRATA_OK) return status;
    upper += plan->inclusive;
    if (lower >= upper)
        return strata_lines_fail(&plan->lines, plan->lines.columns[plan->at[UPPER]], "the buffer ends before it begins");
    if (plan->count >= 2 * (size_t)STRATA_TRACE_EVENTS / 4)
        return strata_lines_fail(&plan->lines, 1, "more buffers than a trace can hold");
    moment_t moment = {.time = lower, .size = size, .buffer = (uint32_t)(plan->count / 2), .begins = true};
    if (plan->at[NAME] != NOWHERE) strncpy(moment.name, plan->lines.fields[plan->at[NAME]], sizeof moment.name - 1);
    status = add(plan, &moment);
    moment.time = upper;
    moment.begins = false;
    return status == STRATA_OK ? add(plan, &moment) : status;
}

static strata_status_t read_rows(plan_t *plan) {
    bool end = false;
    strata_status_t status = read_header(plan);
    while (status == STRATA_OK) {
        status = strata_lines_next(&plan->lines, &end);
        if (status != STRATA_OK || end) break;
        if (*plan->lines.text) status = read_row(plan);
    }
    return status;
}

static int in_order(const void *a, const void *b) {
    const moment_t *one = a, *other = b;
    if (one->time != other->time) return one->time < other->time ? -1 : 1;
    if (one->begins != other->begins) return one->begins ? 1 : -1;
    return one->buffer < other->buffer ? -1 : 1;
}

static strata_status_t emit_events(plan_t *plan) {
    strata_status_t status = STRATA_OK;
    if (plan->count) qsort(plan->moments, plan->count, sizeof *plan->moments, in_order);
    for (size_t i = 0; i < plan->count && status == STRATA_OK; i++) {
        const moment_t *moment = &plan->moments[i];
        strata_gathered_event_t event = {
            .time_us = moment->time, .address = moment->buffer, .size = moment->size, .tag = moment->name};
        status = moment->begins ? strata_gathered_alloc(plan->gathered, &event)
                                : strata_gathered_free(plan->gathered, &event, false);
    }
    return status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    plan_t plan = {.gathered = gathered};
    strata_status_t status = strata_lines_init(&plan.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_rows(&plan);
    if (status == STRATA_OK) status = emit_events(&plan);
    strata_lines_release(&plan.lines);
    strata_host_delete(plan.moments);
    return status;
}

static strata_status_t open_plan(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* Returns true if a header, which has no quotes, has this column. */
static bool has_column(const char *head, size_t length, const char *word) {
    size_t wanted = strlen(word);
    for (const char *at = head; at < head + length; at += strcspn(at, ",\n") + 1)
        if (strcspn(at, ",\r\n") == wanted && strncmp(at, word, wanted) == 0) return true;
    return false;
}

static bool recognises(const char *head, size_t count) {
    size_t length = strcspn(head, "\n");
    (void)count;
    bool begins = has_column(head, length, "lower") || has_column(head, length, "begin") || has_column(head, length, "start");
    return begins && has_column(head, length, "size") && (has_column(head, length, "upper") || has_column(head, length, "end"));
}

const strata_trace_format_t strata_trace_minimalloc = {.name = "minimalloc",
                                                       .meaning = "buffers with their lives, a row each (lower, upper, size)",
                                                       .recognises = recognises,
                                                       .open = open_plan,
                                                       .read = strata_gathered_read,
                                                       .columns = strata_gathered_columns,
                                                       .notes = strata_gathered_notes,
                                                       .close = strata_gathered_close};
