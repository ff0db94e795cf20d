#include "tests/records/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "platform/place.h"
#include "tests/harness/test.h"

static char text[1 << 16];
static strata_trace_notes_t notes;

static strata_status_t put_row(void *context, const strata_trace_record_t *record) {
    size_t *length = context;
    size_t room = sizeof text - *length;
    int written = snprintf(text + *length, room, "%s", strata_trace_op_name(record->op));
    if (record->has_id) written += snprintf(text + *length + written, room - (size_t)written, " %" PRIu64, record->id);
    if (record->op == STRATA_TRACE_alloc)
        written += snprintf(text + *length + written, room - (size_t)written, " %" PRIu64, record->size);
    written += snprintf(text + *length + written, room - (size_t)written, " @%" PRIu64 " t%" PRIu64, record->stream,
                        record->time_us);
    if (record->device) written += snprintf(text + *length + written, room - (size_t)written, " gpu:%u", record->device);
    if (record->place)
        written += snprintf(text + *length + written, room - (size_t)written, " %s", strata_place_name(record->place));
    if (*record->tag) written += snprintf(text + *length + written, room - (size_t)written, " '%s'", record->tag);
    written += snprintf(text + *length + written, room - (size_t)written, "\n");
    *length += (size_t)written;
    return *length + 512 < sizeof text ? STRATA_OK : strata_fail(STRATA_E_LIMIT, 0, "more rows than a test looks at");
}

const char *rows_of(const char *path) {
    strata_trace_reader_t *reader;
    strata_trace_t *trace;
    size_t length = 0;
    text[0] = '\0';
    strata_status_t status = strata_trace_reader_open(path, &reader);
    if (status == STRATA_OK) {
        notes = strata_trace_reader_notes(reader);
        status = strata_trace_load_from(reader, path, put_row, &length, &trace);
        strata_trace_reader_close(reader);
    }
    if (status == STRATA_OK) strata_trace_delete(trace);
    if (status == STRATA_OK) return text;
    FAIL_TEST("%s", strata_last_error()->text);
    return "";
}

const strata_trace_notes_t *rows_notes(void) { return &notes; }

void expect_refused(const char *path, const char *part) {
    strata_trace_t *trace = NULL;
    strata_status_t status = strata_trace_load(path, &trace);
    if (status == STRATA_OK) {
        strata_trace_delete(trace);
        FAIL_TEST("accepted; \"%s\" was wanted", part);
        return;
    }
    EXPECT_EQ(status, STRATA_E_FORMAT);
    EXPECT_CONTAINS(strata_last_error()->text, path);
    EXPECT_CONTAINS(strata_last_error()->text, part);
}
