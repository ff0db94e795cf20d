/* What every public function checks in its arguments first. */
#ifndef STRATA_PLATFORM_ARGUMENTS_H
#define STRATA_PLATFORM_ARGUMENTS_H

#include <stddef.h>

#include "platform/status.h"

/* Ends the function with E_INVALID, with the argument's name, before anything has happened. */
#define STRATA_REFUSE_NULL(argument)                                                                                               \
    do {                                                                                                                           \
        if (!(argument)) return strata_fail(STRATA_E_INVALID, 0, "%s: `%s` is NULL", __func__, #argument);                         \
    } while (0)
/* The same for an array of so many: if there are none it may be NULL. */
#define STRATA_REFUSE_NULL_ARRAY(argument, count)                                                                                  \
    do {                                                                                                                           \
        if (!(argument) && (count) > 0)                                                                                            \
            return strata_fail(STRATA_E_INVALID, 0, "%s: `%s` is NULL and `%s` is not 0", __func__, #argument, #count);            \
    } while (0)

/* The same for a struct whose `struct_size` is not set, or fits no struct of this or a later version. */
enum { STRATA_LARGEST_STRUCT = 4096 };
#define STRATA_REFUSE_SIZE(argument, least)                                                                                        \
    do {                                                                                                                           \
        size_t size_ = (argument)->struct_size;                                                                                    \
        if (size_ < (least) || size_ > STRATA_LARGEST_STRUCT)                                                                      \
            return strata_fail(STRATA_E_INVALID, 0, "%s: struct_size is %zu, not that of `%s`", __func__, size_, #argument);       \
    } while (0)

#endif
