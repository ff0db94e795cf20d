/* Finds values in a JSON text without building a tree. Every function returns the end of the value, or
 * NULL with scan->wrong and scan->at set. Depth and length are bounded. */
#ifndef STRATA_TRACE_JSON_SCAN_H
#define STRATA_TRACE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct strata_json_scan {
    const char *begin; /* the text, which ends with a zero byte */
    const char *at; /* position of the error */
    const char *error; /* reason for the error */
    /* Lenient, for text as profilers write it. Accepts raw control characters and backslashes in
     * strings, trailing commas, nan and inf. */
    bool lenient;
    const char *within; /* NULL, or the name of an array in the root object. Its elements are visited too, as each is read. */
} strata_json_scan_t;

typedef struct strata_json_slice {
    const char *at;
    size_t length;
} strata_json_slice_t;

/* Called for each member with its unquoted name (`at` is NULL in an array). Returns an error text, or NULL. */
typedef const char *(*strata_json_member_fn)(void *context, strata_json_slice_t name, strata_json_slice_t value);

/* Checks the value after spaces at `at`. For an object or array, calls `member` (may be NULL) for its
 * direct members. If the text ends within the value, scan->at is the end of the text, and `member` was
 * called for every complete member. */
const char *strata_json_value(strata_json_scan_t *scan, const char *at, strata_json_member_fn member, void *context);
/* Skips a byte order mark, if present, and spaces. */
const char *strata_json_begin(const char *text);
/* Returns the position after the spaces. */
const char *strata_json_spaces(const char *at);
/* Returns the line of scan->at, 1-based. */
unsigned strata_json_line(const strata_json_scan_t *scan);
bool strata_json_is(strata_json_slice_t slice, const char *text);

#endif
