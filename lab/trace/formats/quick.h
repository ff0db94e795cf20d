/* The fast path for Strata's own format: plain rows of numbers and short words, read straight from the bytes
 * of the file.
 *
 * It takes a row only if there is no doubt about it, and then makes the same record as own.c. All other rows,
 * and all messages about errors, are left to own.c. So a row that the fast path does not support costs only
 * time. */
#ifndef STRATA_TRACE_QUICK_H
#define STRATA_TRACE_QUICK_H

#include "trace/text/lines.h"
#include "trace/trace.h"

typedef struct strata_quick {
    struct {
        uint64_t word, mask; /* with the comma that follows, as in memory; 0 if the name is too long */
        uint32_t length;
    } ops[STRATA_TRACE_OPS];
    uint8_t column_of[STRATA_TRACE_FIELDS]; /* strata_trace_column_t, or STRATA_TRACE_COLUMNS for an x_ column */
    uint32_t field_count;
    uint64_t numbers; /* bit i is set if field i is a number */
    size_t reach; /* reading a row touches fewer bytes than this from its beginning */
    bool optional; /* there is a column of numbers that is optional for every operation */
    /* The values of the current row, by column. Each row fills the same ones, so the others stay empty. */
    uint64_t value[STRATA_TRACE_COLUMNS];
    strata_trace_op_t op;
    strata_place_kind_t place;
    char tag[STRATA_TRACE_TAG_BYTES];
} strata_quick_t;

/* Sets the columns of a file, by field. */
void strata_quick_begin(strata_quick_t *quick, const uint8_t *column_of, uint32_t field_count);
/* Reads the row at the beginning of `count` bytes, after a row with `last_time`. `record->line` stays 0.
 * Returns the length of the row with its end. Returns 0 if it needs the slow path; the record is then
 * unchanged. */
size_t strata_quick_row(strata_quick_t *quick, const char *bytes, size_t count, uint64_t last_time, strata_trace_record_t *record);
/* Returns the number of the row's call stack, which may be 0, or UINT64_MAX for none. The record has no stack yet. */
static inline uint64_t strata_quick_stack(const strata_quick_t *quick) { return quick->value[STRATA_COLUMN_stack]; }
/* For errors: returns the column at which field `field` of the row begins, counted in characters from 1. */
uint32_t strata_quick_column(const char *row, uint32_t field);

#endif
