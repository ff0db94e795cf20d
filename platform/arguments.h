/* Checks of pointers and struct sizes, with which every public function begins. */
#ifndef STRATA_PLATFORM_ARGUMENTS_H
#define STRATA_PLATFORM_ARGUMENTS_H

#include <stddef.h>

#include "platform/status.h"

/* Returns from the function with the error E_INVALID if the argument is NULL. `name` is the parameter's
 * name in the header. The remaining argument is the value to return; leave it empty in a function that
 * returns void. */
#define STRATA_REFUSE_NULL_AS(argument, name, ...)                                                                                 \
    do {                                                                                                                           \
        if (__builtin_expect(!(argument), 0)) {                                                                                    \
            (void)strata_fail(STRATA_E_INVALID, 0, "%s: `%s` is NULL", __func__, name);                                            \
            return __VA_ARGS__;                                                                                                    \
        }                                                                                                                          \
    } while (0)
#define STRATA_REFUSE_NULL(argument) STRATA_REFUSE_NULL_AS(argument, #argument, STRATA_E_INVALID)
/* Refuses a NULL array of `count` items in the same way. NULL is allowed if `count` is 0. */
#define STRATA_REFUSE_NULL_ARRAY_AS(argument, name, count)                                                                         \
    do {                                                                                                                           \
        if (!(argument) && (count) > 0)                                                                                            \
            return strata_fail(STRATA_E_INVALID, 0, "%s: `%s` is NULL and `%s` is not 0", __func__, name, #count);                 \
    } while (0)
#define STRATA_REFUSE_NULL_ARRAY(argument, count) STRATA_REFUSE_NULL_ARRAY_AS(argument, #argument, count)

/* No version of any struct is larger. */
enum { STRATA_LARGEST_STRUCT = 4096 };

/* Checks an options struct, which begins with its size. Fails with E_INVALID if it is smaller than
 * `least`, the first version's size, or too large. A struct larger than `known` comes from a newer
 * header. It fails with E_UNSUPPORTED unless all bytes beyond `known` are 0. */
strata_status_t strata_check_options(const void *options, size_t least, size_t known, const char *function, const char *name);
#define STRATA_REFUSE_OPTIONS(argument, least)                                                                                     \
    do {                                                                                                                           \
        strata_status_t checked_ = strata_check_options(argument, least, sizeof *(argument), __func__, #argument);                 \
        if (checked_ != STRATA_OK) return checked_;                                                                                \
    } while (0)

/* Checks the size that the program set at the beginning of a result struct. Fails with E_INVALID if no
 * such struct has that size. */
strata_status_t strata_check_result(const void *result, const char *function, const char *name);
#define STRATA_REFUSE_RESULT_AS(argument, name)                                                                                    \
    do {                                                                                                                           \
        strata_status_t checked_ = strata_check_result(argument, __func__, name);                                                  \
        if (checked_ != STRATA_OK) return checked_;                                                                                \
    } while (0)
#define STRATA_REFUSE_RESULT(argument) STRATA_REFUSE_RESULT_AS(argument, #argument)
/* Fills a result struct up to its struct_size, which is kept. Sets the bytes beyond `size` to 0 if the
 * program's struct is larger. */
void strata_fill_result(void *result, const void *full, size_t size);

#endif
