/* Rows of Strata's own format as most are: plain numbers and short words, read straight from the bytes of the file.
 *
 * It takes a row only if nothing about it is in doubt, and then gives the same record as own.c, which reads every other row and says
 * what is wrong with it. So it knows no message, and what it does not know costs time alone.
 */
#ifndef STRATA_TRACE_QUICK_H
#define STRATA_TRACE_QUICK_H

#include "trace/text/lines.h"
#include "trace/trace.h"

typedef struct strata_quick {
    struct {
        uint64_t word, mask; /* with the comma that follows, as they stand in memory; 0: too long for it */
        uint32_t length;
    } ops[STRATA_TRACE_OPS];
    uint8_t column_of[STRATA_TRACE_FIELDS]; /* strata_trace_column_t; STRATA_TRACE_COLUMNS: an x_ column */
    uint32_t field_count;
    uint64_t numbers; /* bit i: field i is one */
    size_t reach; /* a look at a row touches fewer bytes from its beginning on */
    bool optional; /* it has a column of numbers that every operation may have and need not have */
    /* What the fields of the row in hand say, by column. Each row fills the same ones, so the others stay empty. */
    uint64_t value[STRATA_TRACE_COLUMNS];
    strata_trace_op_t op;
    strata_place_kind_t place;
    char tag[STRATA_TRACE_TAG_BYTES];
} strata_quick_t;

/* The columns of a file, by field. */
void strata_quick_begin(strata_quick_t *quick, const uint8_t *column_of, uint32_t field_count);
/* The row that `count` bytes begin with, the one before having had `last_time`; `record->line` stays 0. Returns the bytes that it takes
 * with its end; 0: it must be read the long way, and the record is untouched. */
size_t strata_quick_row(strata_quick_t *quick, const char *bytes, size_t count, uint64_t last_time, strata_trace_record_t *record);
/* The number of its call stack, 0 too; UINT64_MAX: it has none. The record has no stack yet. */
static inline uint64_t strata_quick_stack(const strata_quick_t *quick) { return quick->value[STRATA_COLUMN_stack]; }
/* For errors: where field `field` of a row that was taken begins, 1 and the characters before it. */
uint32_t strata_quick_column(const char *row, uint32_t field);

#endif
