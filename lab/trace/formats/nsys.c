/* Reads memory events of Nsight Systems: the table CUDA_GPU_MEMORY_USAGE_EVENTS of `nsys export --type
 * sqlite`, as CSV with a header. `sqlite3 -header -csv` prints it. The columns and the numbers of
 * ENUM_CUDA_MEM_KIND and ENUM_CUDA_DEV_MEM_EVENT_OPER are those of NVIDIA's schema reference. */
#include <string.h>

#include "lab/trace/formats/gathered.h"
#include "lab/trace/formats/numbers.h"
#include "trace/text/lines.h"

/* X(column, 1 if it is mandatory) */
#define COLUMN_MAP(X)                                                                                                              \
    X(start, 1)                                                                                                                    \
    X(address, 1)                                                                                                                  \
    X(bytes, 1)                                                                                                                    \
    X(memKind, 1)                                                                                                                  \
    X(memoryOperationType, 1)                                                                                                      \
    X(globalPid, 0)                                                                                                                \
    X(deviceId, 0)                                                                                                                 \
    X(streamId, 0)                                                                                                                 \
    X(name, 0)

typedef enum column {
#define COLUMN_ENUM(name, mandatory) COLUMN_##name,
    COLUMN_MAP(COLUMN_ENUM)
#undef COLUMN_ENUM
        COLUMNS
} column_t;

static const char *const names[] = {
#define COLUMN_NAME(name, mandatory) #name,
    COLUMN_MAP(COLUMN_NAME)
#undef COLUMN_NAME
};

static const bool mandatory[] = {
#define COLUMN_MANDATORY(name, mandatory) mandatory,
    COLUMN_MAP(COLUMN_MANDATORY)
#undef COLUMN_MANDATORY
};

enum { ABSENT = UINT8_MAX, KINDS = 7 };

typedef struct table {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    uint32_t field_count;
    uint8_t field_of[COLUMNS];
    uint64_t process;
    bool has_process;
} table_t;

#define WRONG(table, column, ...) strata_lines_fail(&(table)->lines, (table)->lines.columns[(table)->field_of[column]], __VA_ARGS__)

static strata_status_t read_header(table_t *table) {
    strata_lines_t *lines = &table->lines;
    bool end;
    strata_status_t status = strata_lines_next(lines, &end);
    if (status == STRATA_OK) status = strata_lines_split(lines, &table->field_count);
    if (status != STRATA_OK) return status;
    memset(table->field_of, ABSENT, sizeof table->field_of);
    for (uint32_t i = 0; i < table->field_count; i++)
        for (int k = 0; k < COLUMNS; k++)
            if (strcmp(lines->fields[i], names[k]) == 0) table->field_of[k] = (uint8_t)i;
    for (int k = 0; k < COLUMNS; k++)
        if (mandatory[k] && table->field_of[k] == ABSENT)
            return strata_lines_fail(lines, 1, "the column %s is missing; select * from CUDA_GPU_MEMORY_USAGE_EVENTS", names[k]);
    return STRATA_OK;
}

/* A missing or NULL field is 0. SQLite's integers are signed, so 64-bit values may be negative. */
static strata_status_t number_of(const table_t *table, column_t column, uint64_t *number) {
    *number = 0;
    if (table->field_of[column] == ABSENT) return STRATA_OK;
    const char *field = table->lines.fields[table->field_of[column]];
    if (!*field && !mandatory[column]) return STRATA_OK;
    bool negative = *field == '-' && (column == COLUMN_address || column == COLUMN_globalPid);
    if (strata_parse_whole(field + negative, number)) {
        if (negative) *number = 0 - *number;
        return STRATA_OK;
    }
    return WRONG(table, column, "%s is \"%s\"; Nsight Systems writes a number", names[column], strata_excerpt(field).text);
}

/* Another process has its own addresses, so only the events of the first process are read. */
static bool is_others(table_t *table, uint64_t process) {
    if (!table->has_process) table->process = process;
    table->has_process = true;
    return process != table->process;
}

static strata_status_t read_event(table_t *table, strata_gathered_event_t *event, uint64_t *kind, uint64_t *operation,
                                  uint64_t *process) {
    uint64_t start;
    strata_status_t status = number_of(table, COLUMN_start, &start);
    if (status == STRATA_OK) status = number_of(table, COLUMN_address, &event->address);
    if (status == STRATA_OK) status = number_of(table, COLUMN_bytes, &event->size);
    if (status == STRATA_OK) status = number_of(table, COLUMN_memKind, kind);
    if (status == STRATA_OK) status = number_of(table, COLUMN_memoryOperationType, operation);
    if (status == STRATA_OK) status = number_of(table, COLUMN_deviceId, &event->device);
    if (status == STRATA_OK) status = number_of(table, COLUMN_streamId, &event->stream);
    if (status == STRATA_OK) status = number_of(table, COLUMN_globalPid, process);
    if (status != STRATA_OK) return status;
    event->time_us = start / 1000;
    if (table->field_of[COLUMN_name] != ABSENT) event->tag = table->lines.fields[table->field_of[COLUMN_name]];
    return STRATA_OK;
}

/* An allocator does not serve pageable memory or arrays, and static variables live as long as their module. */
static strata_status_t read_row(table_t *table) {
    static const struct {
        bool served;
        strata_place_kind_t place;
    } kinds[KINDS] = {[1] = {true, STRATA_PLACE_PINNED}, [2] = {true, STRATA_PLACE_GPU}, [4] = {true, STRATA_PLACE_MANAGED}};
    strata_gathered_event_t event = {.device = 0};
    uint64_t kind, operation, process;
    strata_status_t status = read_event(table, &event, &kind, &operation, &process);
    if (status != STRATA_OK) return status;
    if (kind >= KINDS || !kinds[kind].served || is_others(table, process)) {
        table->gathered->notes.other_memory++;
        return STRATA_OK;
    }
    event.place = kinds[kind].place;
    if (event.place == STRATA_PLACE_PINNED) event.device = 0; /* the recorded one is only the current device */
    if (operation == 0) return strata_gathered_alloc(table->gathered, &event);
    event.tag = NULL;
    if (operation == 1) return strata_gathered_free(table->gathered, &event, false);
    table->gathered->notes.other_actions++;
    return STRATA_OK;
}

static strata_status_t read_rows(table_t *table) {
    bool end = false;
    strata_status_t status = read_header(table);
    while (status == STRATA_OK) {
        uint32_t count;
        status = strata_lines_next(&table->lines, &end);
        if (status != STRATA_OK || end) break;
        if (!*table->lines.text) continue;
        status = strata_lines_split(&table->lines, &count);
        if (status == STRATA_OK && count != table->field_count)
            return strata_lines_fail(&table->lines, 1, "%u fields, but the header has %u", count, table->field_count);
        if (status == STRATA_OK) status = read_row(table);
    }
    return status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    table_t table = {.gathered = gathered};
    strata_status_t status = strata_lines_init(&table.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_rows(&table);
    if (strata_lines_is_truncated(&table.lines, status)) {
        gathered->notes.cut_off = 1;
        status = STRATA_OK;
    }
    strata_lines_release(&table.lines);
    return status;
}

static strata_status_t open_table(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* No other table has this column in its header. */
static bool recognises(const char *head, size_t count) {
    const char *end = memchr(head, '\n', count), *column = strstr(head, "memoryOperationType");
    return column && end && column < end && *head != '{' && *head != '[';
}

const strata_trace_format_t strata_trace_nsys = {.name = "nsys",
                                                 .meaning = "memory events of Nsight Systems, as CSV",
                                                 .recognises = recognises,
                                                 .open = open_table,
                                                 .read = strata_gathered_read,
                                                 .columns = strata_gathered_columns,
                                                 .notes = strata_gathered_notes,
                                                 .close = strata_gathered_close};
