/* A valid value for each parameter of the public functions, over an open facade with something of everything. */
#ifndef STRATA_TESTS_HOUSE_VALUES_H
#define STRATA_TESTS_HOUSE_VALUES_H

#include <stdint.h>

#include "tests/house/declarations.h"

/* Opens everything, in a process that has opened nothing. False: `why` says what failed. */
bool values_make(char *why, size_t capacity);
/* The bytes of a struct that begins with struct_size, by its name; 0: it is not known. */
size_t values_size(const char *name);
/* Where a field of such a struct is that is a pointer; SIZE_MAX: it is not known. *required: it may not be NULL. */
size_t values_field(const char *name, const char *field, bool *required);
/* The words of a parameter: how many, 0 if there is no value for it. */
size_t values_of(const function_t *function, const parameter_t *parameter, uint64_t *words);
/* Calls it with these words, as many as it takes; what it returns. */
uint64_t values_call(const function_t *function, const uint64_t *words);
/* Whether what was opened is as it was. */
bool values_are_unchanged(char *why, size_t capacity);

#endif
