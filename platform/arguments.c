#include "platform/arguments.h"

#include <string.h>

#include "platform/arithmetic.h"

/* Returns the size in the first field, which every such struct has. */
static size_t size_of(const void *sized) {
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

static strata_status_t refuse_size(size_t size, const char *function, const char *name) {
    return strata_fail(STRATA_E_INVALID, 0, "%s: struct_size of `%s` is %zu; write sizeof the struct", function, name, size);
}

strata_status_t strata_check_options(const void *options, size_t least, size_t known, const char *function, const char *name) {
    size_t size = size_of(options);
    if (size < least || size > STRATA_LARGEST_STRUCT) return refuse_size(size, function, name);
    for (size_t at = known; at < size; at++)
        if (((const unsigned char *)options)[at])
            return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s: `%s` is newer than this library, and byte %zu of it is not 0",
                               function, name, at);
    return STRATA_OK;
}

strata_status_t strata_check_result(const void *result, const char *function, const char *name) {
    size_t size = size_of(result);
    bool fits = size >= sizeof size && size <= STRATA_LARGEST_STRUCT;
    return fits ? STRATA_OK : refuse_size(size, function, name);
}

void strata_fill_result(void *result, const void *full, size_t size) {
    size_t own = size_of(result);
    memcpy(result, full, strata_min(own, size));
    if (own > size) memset((unsigned char *)result + size, 0, own - size);
    memcpy(result, &own, sizeof own);
}
