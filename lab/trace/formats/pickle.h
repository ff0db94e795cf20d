/* Python's pickles, protocols 2 to 5, of plain data alone: None, bool, int, float, str, bytes, list, tuple, dict.
 *
 * A pickle is a program, and most of its instructions exist to call what the file names. This reader has none of these: an
 * instruction that could import, call or build anything is refused by its name and place, and so is every other that plain data
 * does not need. Nothing is ever looked up or run. Lengths, depth, the memo and all memory are bounded.
 */
#ifndef STRATA_TRACE_PICKLE_H
#define STRATA_TRACE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

typedef enum strata_pickle_kind {
    STRATA_PICKLE_ABSENT, /* no value */
    STRATA_PICKLE_NONE,
    STRATA_PICKLE_BOOL, /* integer: 0 or 1 */
    STRATA_PICKLE_INTEGER,
    STRATA_PICKLE_UNSIGNED, /* an integer from 2^63 to 2^64 - 1; `integer` has its bits */
    STRATA_PICKLE_LARGE, /* an integer that does not fit into 64 bits */
    STRATA_PICKLE_REAL,
    STRATA_PICKLE_TEXT, /* bytes of UTF-8 as they stand in the file */
    STRATA_PICKLE_BYTES,
    STRATA_PICKLE_LIST,
    STRATA_PICKLE_TUPLE,
    STRATA_PICKLE_DICT
} strata_pickle_kind_t;

typedef struct strata_pickle_value {
    strata_pickle_kind_t kind;
    uint32_t length; /* of text and bytes */
    union {
        int64_t integer;
        double real;
        const char *text; /* within the file's bytes; not closed by a zero */
        struct strata_pickle_items *items;
    };
} strata_pickle_value_t;

/* Of a list, tuple or dict. A list may hold itself. */
typedef struct strata_pickle_items {
    strata_pickle_value_t *all; /* of a dict: name, value, name, value ... */
    size_t count, capacity;
} strata_pickle_items_t;

typedef struct strata_pickle strata_pickle_t;

/* Reads one object from bytes, which must stay as long as the pickle. `path` is for messages: "path: byte N: ...". E_FORMAT, E_LIMIT
 * (it would need too much memory), E_HOST_MEMORY. */
strata_status_t strata_pickle_read(const char *path, const char *bytes, size_t count, strata_pickle_t **pickle);
const strata_pickle_value_t *strata_pickle_root(const strata_pickle_t *pickle);
void strata_pickle_delete(strata_pickle_t *pickle);

/* The member of a dict; one without a kind if `dict` is none, or has none of that name. Of several the last counts, as in Python. */
strata_pickle_value_t strata_pickle_member(const strata_pickle_value_t *dict, const char *name);
bool strata_pickle_is(const strata_pickle_value_t *value, const char *text);
/* How many items a list or tuple has; 0 of anything else. */
size_t strata_pickle_count(const strata_pickle_value_t *list);

#endif
