/* Valid values for all parameters of the public functions, from an open facade with one object of each kind. */
#ifndef STRATA_TESTS_HOUSE_VALUES_H
#define STRATA_TESTS_HOUSE_VALUES_H

#include <stdint.h>

#include "tests/house/declarations.h"

/* Opens everything, in a fresh process. On failure returns false with the reason in `why`. */
bool values_make(char *why, size_t capacity);
/* Returns the size of a struct that begins with struct_size, by name; 0: unknown. */
size_t values_size(const char *name);
/* Returns the offset of a pointer field of such a struct; SIZE_MAX: unknown. *required: it may not be NULL. */
size_t values_field(const char *name, const char *field, bool *required);
/* Writes the words of a parameter. Returns their number, or 0 if it has no value. */
size_t values_of(const function_t *function, const parameter_t *parameter, uint64_t *words);
/* Calls the function with these words and returns its result. */
uint64_t values_call(const function_t *function, const uint64_t *words);
/* Returns true if the opened objects are unchanged. */
bool values_are_unchanged(char *why, size_t capacity);

#endif
