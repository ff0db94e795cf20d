/* Reads Python's pickles, protocols 2 to 5, of plain data only: None, bool, int, float, str, bytes, list,
 * tuple, dict.
 *
 * A pickle is a program, and most of its instructions exist to call functions that the file names. This
 * reader has none of these. It refuses, by name and position, every instruction that could import, call or
 * build anything. It also refuses every other one that plain data does not need. Nothing is ever looked up or
 * run. Lengths, depth, the memo and all memory are bounded. */
#ifndef STRATA_TRACE_PICKLE_H
#define STRATA_TRACE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

typedef enum strata_pickle_kind {
    STRATA_PICKLE_ABSENT, /* no value */
    STRATA_PICKLE_NONE,
    STRATA_PICKLE_BOOL, /* `integer` is 0 or 1 */
    STRATA_PICKLE_INTEGER,
    STRATA_PICKLE_UNSIGNED, /* an integer from 2^63 to 2^64 - 1; `integer` has its bits */
    STRATA_PICKLE_LARGE, /* an integer that does not fit into 64 bits */
    STRATA_PICKLE_REAL,
    STRATA_PICKLE_TEXT, /* bytes of UTF-8 as in the file */
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
        const char *text; /* within the file's bytes; not zero-terminated */
        struct strata_pickle_items *items;
    };
} strata_pickle_value_t;

/* Items of a list, tuple or dict. A list may contain itself. */
typedef struct strata_pickle_items {
    strata_pickle_value_t *all; /* of a dict: name, value, name, value and so on */
    size_t count, capacity;
} strata_pickle_items_t;

typedef struct strata_pickle strata_pickle_t;

/* Reads one object from bytes, which must live as long as the pickle. `path` is for messages: "path: byte N:
 * ...". Fails with E_FORMAT, with E_LIMIT if it would need too much memory, or with E_HOST_MEMORY. */
strata_status_t strata_pickle_read(const char *path, const char *bytes, size_t count, strata_pickle_t **pickle);
const strata_pickle_value_t *strata_pickle_root(const strata_pickle_t *pickle);
void strata_pickle_delete(strata_pickle_t *pickle);

/* Returns the member of a dict. Returns a value without a kind if `dict` is not a dict, or has no such
 * member. If there are several, the last one counts, as in Python. */
strata_pickle_value_t strata_pickle_member(const strata_pickle_value_t *dict, const char *name);
bool strata_pickle_is(const strata_pickle_value_t *value, const char *text);
/* Returns the number of items of a list or tuple, or 0 for anything else. */
size_t strata_pickle_count(const strata_pickle_value_t *list);

#endif
