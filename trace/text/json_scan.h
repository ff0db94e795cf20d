/* Finding values in a JSON text without making a tree of it. Every function returns where the value ends, or NULL with scan->wrong
 * and scan->at set; depth and length are bounded. */
#ifndef STRATA_TRACE_JSON_SCAN_H
#define STRATA_TRACE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct strata_json_scan {
    const char *begin; /* the text, which ends with a zero byte */
    const char *at; /* where it is wrong */
    const char *wrong; /* why */
    bool loose; /* lenient: accepts raw control characters and backslashes in strings, trailing commas, nan and inf, as profilers write them */
    const char *within; /* NULL, or the name of an array in the root object whose elements are visited, too, as each is read */
} strata_json_scan_t;

typedef struct strata_json_slice {
    const char *at;
    size_t length;
} strata_json_slice_t;

/* Called for each member with its unquoted name (`at` is NULL in an array). Returns an error text, or NULL. */
typedef const char *(*strata_json_member_fn)(void *context, strata_json_slice_t name, strata_json_slice_t value);

/* Checks the value after spaces at `at`. For an object or array, calls `member` (may be NULL) for its direct members. If the text ends within
 * the value, scan->at is the end of the text, and `member` was called for every complete member. */
const char *strata_json_value(strata_json_scan_t *scan, const char *at, strata_json_member_fn member, void *context);
/* Skips a byte order mark, if present, and spaces. */
const char *strata_json_begin(const char *text);
/* The place after the spaces. */
const char *strata_json_spaces(const char *at);
/* The line of scan->at, 1-based. */
unsigned strata_json_line(const strata_json_scan_t *scan);
bool strata_json_is(strata_json_slice_t slice, const char *text);

#endif
