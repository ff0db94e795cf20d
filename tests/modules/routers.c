/* Routers written with the public header: one that tells its stacks by a value of each, one that takes them in turn. */
#include <strata/layer.h>

/* ---- by how many pages a request has ---- */

typedef struct by_pages_options {
    uint64_t most[7];
} by_pages_options_t;

#define MOST(number)                                                                                                               \
    {                                                                                                                              \
        "most_" #number, STRATA_OPTION_COUNT, offsetof(by_pages_options_t, most) + (number - 1) * sizeof(uint64_t), "0", 0,        \
            1u << 20, NULL, "requests of at most so many pages of 4 KiB"                                                           \
    }

static const strata_option_row_t option_rows[] = {MOST(1), MOST(2), MOST(3), MOST(4), MOST(5), MOST(6), MOST(7), {0}};

static strata_status_t by_pages_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    const by_pages_options_t *options = self->options;
    uint64_t pages = (request->size + 4095) / 4096;
    uint32_t at = 0;
    while (at + 1 < self->below_count && pages > options->most[at]) at++;
    return strata_layer_allocate(self->below[at], request, record);
}

static const strata_layer_type_t by_pages_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "by_pages",
    .doc = "tells its stacks by pages",
    .role = STRATA_ROUTER,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~(uint32_t)STRATA_TRAIT_ANY_MEMORY,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(by_pages_options_t),
    .options = option_rows,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = by_pages_allocate,
    .free = strata_layer_free_below,
};

/* ---- in turn ---- */

typedef struct turns {
    strata_layer_t base;
    uint32_t next;
} turns_t;

/* Under the lock of its stack: the next turn is another's when the lock opens below. */
static strata_status_t turns_allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    turns_t *self = (turns_t *)base;
    return strata_layer_allocate(base->below[self->next++ % base->below_count], request, record);
}

static const strata_layer_type_t turns_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "turns",
    .doc = "takes its stacks in turn",
    .role = STRATA_ROUTER,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~(uint32_t)STRATA_TRAIT_ANY_MEMORY,
    .guarded = true,
    .state_size = sizeof(turns_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = turns_allocate,
    .free = strata_layer_free_below,
};

STRATA_LAYERS(&by_pages_type, &turns_type);
