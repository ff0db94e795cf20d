/* Describes the library: its version, its lists, and the stacks of a facade as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "facade/registry/facade.h"
#include "platform/arguments.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *strata_version(void) {
    return TEXT(STRATA_VERSION_MAJOR) "." TEXT(STRATA_VERSION_MINOR) "." TEXT(STRATA_VERSION_PATCH);
}

uint32_t strata_abi_version(void) { return STRATA_ABI_VERSION; }

const char *strata_strategy_name(size_t index) { return strata_preset_name(index); }

const char *strata_layer_name(size_t index) {
    const strata_layer_type_t *type = strata_layer_at(index);
    return type ? type->name : NULL;
}

strata_status_t strata_explain(strata_t handle, char *text, size_t capacity, size_t *needed) {
    STRATA_REFUSE_NULL_ARRAY(text, capacity);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    char *whole = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&whole, &length);
    if (!out) return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for the text");
    strata_status_t status = strata_config_explain(facade->strategy, out);
    if (fclose(out) != 0 && status == STRATA_OK) status = strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for the text");
    if (status == STRATA_OK) {
        if (needed) *needed = length + 1;
        if (capacity > 0) snprintf(text, capacity, "%s", whole);
    }
    free(whole);
    return status;
}
