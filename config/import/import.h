/* The strings that people already have for other allocators, as strategies. */
#ifndef STRATA_CONFIG_IMPORT_IMPORT_H
#define STRATA_CONFIG_IMPORT_IMPORT_H

#include <stdio.h>

#include "config/reader/reader.h"

enum {
    STRATA_IMPORT_BYTES = 16384, /* of a string */
    STRATA_IMPORT_SETTINGS = 256, /* in it */
    STRATA_IMPORT_VALUE = 256 /* bytes of one value, the zero behind it included */
};

#define STRATA_IMPORT_PREFIX "import:" /* "import:pytorch": what a strategy is called that the environment's variables say */

typedef struct strata_import_request {
    const char *peer; /* "pytorch", "paddle", "tensorflow"; also with a version behind it: "pytorch@2.9" */
    const char *text; /* NULL: the peer's variables in the environment */
    const char *as_of; /* a version of the peer whose keys alone are allowed; NULL: as `peer` says, else every version */
} strata_import_request_t;

typedef struct strata_import strata_import_t;

/* Takes a string apart and looks its keys up. E_STRATEGY with "<pytorch>:line:column: " (or the variable's name) for a key that
 * there is not, with the nearest; a value that is none; what passes a limit. E_HOST_MEMORY. */
strata_status_t strata_import_new(const strata_import_request_t *request, strata_import_t **import);
/* NULL is allowed. */
void strata_import_delete(strata_import_t *import);

/* Lays the preset that the string means over reader->strategy, and the string over that. Once for each import. */
strata_status_t strata_read_import(strata_reader_t *reader, strata_import_t *import);

/* Behind strata_read_import(). What the string says and this strategy does not do: one line each, "PLACE: KEY has no
 * equivalent: why" or "PLACE: KEY is passed over: why", with `before` in front. The number of lines. */
size_t strata_import_tell(const strata_import_t *import, const char *before, FILE *out);
/* The same strategy as a file. E_IO. */
strata_status_t strata_import_write(const strata_import_t *import, const strata_strategy_t *strategy, FILE *out);

/* Whether a strategy's name is one of these: "import:...". */
bool strata_import_is(const char *name);
/* docs/import.md, made of the tables. E_IO. */
strata_status_t strata_import_page(FILE *out);

#endif
