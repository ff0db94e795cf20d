/* idle: the settings of `idle:` beside a stack. */
#include <stddef.h>

#include "allocation/domain/layer.h"

static const strata_option_row_t options[] = {
    {"after", STRATA_OPTION_TIME, offsetof(strata_idleness_t, after), "1s", 10000000, 86400000000000, NULL,
     "so long after the last request what lies idle has gone back; it begins to go when an eighth of that time is left"},
    {"keep", STRATA_OPTION_FRACTION, offsetof(strata_idleness_t, keep), "0.1", 0, 10000000, NULL,
     "the share of the live bytes that may stay idle"},
    {"keep_least", STRATA_OPTION_SIZE, offsetof(strata_idleness_t, keep_least), "0", 0, 1ull << 50, NULL,
     "so many idle bytes stay, however little is live"},
    {0},
};

/* The layer only holds options. The core releases the memory (allocation/reclaim/idle.h). */
static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_below_allocate(self, request, record);
}

const strata_layer_type_t strata_idle_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "idle",
    .doc = "says what its stack gives back when the program is idle, as `idle:` beside the stack does",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .idle = true,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(strata_idleness_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
};
