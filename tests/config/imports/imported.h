/* Imports a string of another allocator and checks the strategy that it makes. */
#ifndef STRATA_TESTS_CONFIG_IMPORTED_H
#define STRATA_TESTS_CONFIG_IMPORTED_H

#include "config/import/import.h"
#include "tests/config/refused.h"

typedef struct imported {
    strata_status_t status;
    strata_import_t *import;
    strata_strategy_t *strategy; /* NULL unless the status is STRATA_OK */
    char *told, *file; /* the lines about settings without effect, and the strategy's file */
} imported_t;

/* To be ended by delete_imported(). `as_of` may be NULL. */
imported_t import_string(const char *peer, const char *text, const char *as_of);
void delete_imported(imported_t *made);
/* Must be imported; the test fails otherwise, and the strategy is NULL. */
imported_t import_right(const char *peer, const char *text, const char *as_of);
/* Must be refused with this part of a message. */
void expect_not_imported(const char *peer, const char *text, const char *as_of, const char *what);
/* The printed file must be the strategy that was made, without errors. */
void expect_round_trip(const imported_t *made);
/* "retry stream_safe auto_growth system"; the text is good until the next call. */
const char *layers_in(const strata_strategy_t *strategy, strata_place_kind_t place);

#endif
