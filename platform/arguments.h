/* The checks of pointers and struct sizes that every public function makes before anything else. */
#ifndef STRATA_PLATFORM_ARGUMENTS_H
#define STRATA_PLATFORM_ARGUMENTS_H

#include <stddef.h>

#include "platform/status.h"

/* Ends the function with `answer` and the error E_INVALID, which has the argument's name, before anything has happened. `name` is that
 * of the header. Without an `answer` the function returns nothing. */
#define STRATA_REFUSE_NULL_AS(argument, name, ...)                                                                                 \
    do {                                                                                                                           \
        if (__builtin_expect(!(argument), 0)) {                                                                                    \
            (void)strata_fail(STRATA_E_INVALID, 0, "%s: `%s` is NULL", __func__, name);                                            \
            return __VA_ARGS__;                                                                                                    \
        }                                                                                                                          \
    } while (0)
#define STRATA_REFUSE_NULL(argument) STRATA_REFUSE_NULL_AS(argument, #argument, STRATA_E_INVALID)
/* The same for an array of so many: if there are none it may be NULL. */
#define STRATA_REFUSE_NULL_ARRAY_AS(argument, name, count)                                                                         \
    do {                                                                                                                           \
        if (!(argument) && (count) > 0)                                                                                            \
            return strata_fail(STRATA_E_INVALID, 0, "%s: `%s` is NULL and `%s` is not 0", __func__, name, #count);                 \
    } while (0)
#define STRATA_REFUSE_NULL_ARRAY(argument, count) STRATA_REFUSE_NULL_ARRAY_AS(argument, #argument, count)

/* A struct beyond this size is none of any version. */
enum { STRATA_LARGEST_STRUCT = 4096 };

/* Options that a program gives begin with their size. Shorter than `least`, the first version's, or too large: E_INVALID. A longer
 * struct comes from a newer header: E_UNSUPPORTED, unless everything beyond what this library knows is 0. */
strata_status_t strata_check_options(const void *options, size_t least, size_t known, const char *function, const char *name);
#define STRATA_REFUSE_OPTIONS(argument, least)                                                                                     \
    do {                                                                                                                           \
        strata_status_t checked_ = strata_check_options(argument, least, sizeof *(argument), __func__, #argument);                 \
        if (checked_ != STRATA_OK) return checked_;                                                                                \
    } while (0)

/* A struct that a program receives begins with its size, which the program sets. E_INVALID: no size that such a struct may have. */
strata_status_t strata_check_result(const void *result, const char *function, const char *name);
#define STRATA_REFUSE_RESULT_AS(argument, name)                                                                                    \
    do {                                                                                                                           \
        strata_status_t checked_ = strata_check_result(argument, __func__, name);                                                  \
        if (checked_ != STRATA_OK) return checked_;                                                                                \
    } while (0)
#define STRATA_REFUSE_RESULT(argument) STRATA_REFUSE_RESULT_AS(argument, #argument)
/* Fills it: a shorter one only up to its size, the rest of a longer one with zeros. Its struct_size stays. */
void strata_fill_result(void *result, const void *full, size_t size);

#endif
