/* binning: sends small requests to one stack and larger ones to others. The route is recorded, so a free
 * follows the route of its request. */
#include "allocation/domain/layer.h"
#include "allocation/stack/plan.h"

enum { LIMITS = STRATA_PLAN_BRANCHES - 1 };

typedef struct binning_options {
    uint64_t up_to[LIMITS];
} binning_options_t;

#define UP_TO(number, text)                                                                                                        \
    {                                                                                                                              \
        "up_to_" #number, STRATA_OPTION_SIZE, offsetof(binning_options_t, up_to) + (number - 1) * sizeof(uint64_t), "0", 0,        \
            1ull << 44, NULL, text                                                                                                 \
    }

static const strata_option_row_t options[] = {
    UP_TO(1, "max request size of the first route"),
    UP_TO(2, "max request size of the second route"),
    UP_TO(3, "max request size of this route"),
    UP_TO(4, "max request size of this route"),
    UP_TO(5, "max request size of this route"),
    UP_TO(6, "max request size of this route"),
    UP_TO(7, "max request size of this route; the last route takes all other requests"),
    {0},
};

static strata_status_t check(const void *given, strata_place_kind_t place, const char **option) {
    const binning_options_t *o = given;
    (void)place;
    for (uint32_t i = 0; i < LIMITS; i++) {
        uint64_t before = i > 0 ? o->up_to[i - 1] : 0;
        if (o->up_to[i] == 0) return STRATA_OK;
        if (o->up_to[i] > before) continue;
        *option = options[i].name;
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "not above the previous route's, so no request would match; write a larger "
                           "size");
    }
    return STRATA_OK;
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    const binning_options_t *o = self->options;
    uint32_t route = 0;
    while (route + 1 < self->below_count && request->size > o->up_to[route]) route++;
    return strata_layer_allocate(self->below[route], request, record);
}

const strata_layer_type_t strata_binning_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "binning",
    .doc = "assigns each request to one of several stacks by its size",
    .role = STRATA_ROUTER,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~(uint32_t)(STRATA_TRAIT_ANY_MEMORY | STRATA_TRAIT_HANDLE_SOURCE),
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(binning_options_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
    .check = check,
};
