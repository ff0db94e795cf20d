/* idle: the settings of `idle:` beside a stack. */
#include <stddef.h>

#include "allocation/domain/layer.h"

static const strata_option_row_t options[] = {
    {"after", STRATA_OPTION_TIME, offsetof(strata_idle_config_t, after), "1s", 10000000, 86400000000000, NULL,
     "time from the last request until idle memory is given back; release begins after 7/8 of it"},
    {"keep", STRATA_OPTION_FRACTION, offsetof(strata_idle_config_t, keep), "0.1", 0, 10000000, NULL,
     "share of live bytes that may remain idle"},
    {"keep_least", STRATA_OPTION_SIZE, offsetof(strata_idle_config_t, keep_least), "0", 0, 1ull << 50, NULL,
     "min idle bytes to keep, however few bytes are live"},
    {0},
};

/* The layer only holds options. The core releases the memory (allocation/reclaim/idle.h). */
static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_below_allocate(self, request, record);
}

const strata_layer_type_t strata_idle_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "idle",
    .doc = "sets when and how much its stack gives back while the program is idle, as `idle:` beside the stack",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .idle = true,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(strata_idle_config_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
};
