/* JSON as a reader of a page sees it: strict, and found by name or number. Every function takes a value where it begins. */
#ifndef STRATA_TESTS_REPLAY_JSON_READ_H
#define STRATA_TESTS_REPLAY_JSON_READ_H

#include <stddef.h>
#include <stdint.h>

/* Behind the value and the blanks after it; NULL: it is no JSON. */
const char *json_after(const char *value);
/* NULL (also of NULL): there is none. */
const char *json_member(const char *object, const char *name);
const char *json_item(const char *array, size_t index);
size_t json_count(const char *array);
/* The number at a path such as "runs", "#1", "peaks", "reserved", closed by NULL; NaN and a failed test if there is none. */
double json_number_at(const char *value, const char *const *path);
#define JSON_NUMBER(value, ...) json_number_at(value, (const char *const[]){__VA_ARGS__, NULL})
const char *json_at(const char *value, const char *const *path);
#define JSON_AT(value, ...) json_at(value, (const char *const[]){__VA_ARGS__, NULL})
/* The values of an array that is written as differences; at most `most`. */
size_t json_sums(const char *array, double *values, size_t most);

#endif
