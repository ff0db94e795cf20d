/* Planning problems and plans as CSV: MiniMalloc's columns, and some more (docs/planning.md).
 *
 * Reading treats the file as hostile: invalid input is refused with E_FORMAT and "file:line:column: what
 * is wrong; what to write". */
#ifndef STRATA_PLANNING_TABLE_H
#define STRATA_PLANNING_TABLE_H

#include "strata/plan.h"

/* X(column, other names) */
#define STRATA_PLAN_COLUMN_MAP(X)                                                                                                  \
    X(id, "buffer buffer_id name")                                                                                                 \
    X(lower, "begin start")                                                                                                        \
    X(upper, "")                                                                                                                   \
    X(end, "")                                                                                                                     \
    X(size, "")                                                                                                                    \
    X(alignment, "align")                                                                                                          \
    X(offset, "")                                                                                                                  \
    X(kind, "")                                                                                                                    \
    X(fork, "")                                                                                                                    \
    X(branch, "stream")                                                                                                            \
    X(output, "")                                                                                                                  \
    X(held, "")                                                                                                                    \
    X(gaps, "")                                                                                                                    \
    X(hint, "")

typedef enum strata_plan_column {
#define STRATA_PLAN_COLUMN_ENUM(name, others) STRATA_PLAN_COLUMN_##name,
    STRATA_PLAN_COLUMN_MAP(STRATA_PLAN_COLUMN_ENUM)
#undef STRATA_PLAN_COLUMN_ENUM
        STRATA_PLAN_COLUMNS
} strata_plan_column_t;

typedef struct strata_plan_table {
    strata_plan_buffer_t *buffers; /* buffers with an offset in the file are fixed there */
    size_t *name_at; /* by buffer: offset of its name in `names` */
    uint32_t *lines; /* by buffer: its line in the file, or 0 without a file */
    uint32_t line; /* line of the next buffer to add */
    size_t count, capacity;
    char *names;
    size_t name_bytes, name_capacity;
} strata_plan_table_t; /* all zeros is an empty table */

/* Sets *is to true if the header of a file is that of buffers, not of a trace. Such a header has a column
 * `lower`, `begin` or `start`. Returns E_IO, E_FORMAT or E_HOST_MEMORY. */
strata_status_t strata_plan_table_detect(const char *path, bool *is);
/* Reads a file. On failure the table is empty. Returns E_IO, E_FORMAT, E_LIMIT or E_HOST_MEMORY. */
strata_status_t strata_plan_table_read(const char *path, strata_plan_table_t *table);
/* Adds a buffer and copies `name`. Returns E_LIMIT or E_HOST_MEMORY, and then leaves the table unchanged. */
strata_status_t strata_plan_table_add(strata_plan_table_t *table, const strata_plan_buffer_t *buffer, const char *name);
static inline const char *strata_plan_table_name(const strata_plan_table_t *table, size_t buffer) {
    return table->names + table->name_at[buffer];
}
/* Writes the buffers with these offsets. A path that ends in .gz is compressed; "-" is standard output.
 * Returns E_IO or E_HOST_MEMORY. */
strata_status_t strata_plan_table_write(const strata_plan_table_t *table, const uint64_t *offsets, const char *path);
void strata_plan_table_delete(strata_plan_table_t *table);

#endif
