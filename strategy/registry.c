/* The registry of layers: strategy/layers.def as an array. */
#include <string.h>

#include "strategy/model.h"

#define X(name) extern const strata_layer_type_t strata_##name##_type;
#include "strategy/layers.def"
#undef X

static const strata_layer_type_t *const layers[] = {
#define X(name) &strata_##name##_type,
#include "strategy/layers.def"
#undef X
};

const strata_layer_type_t *strata_layer_at(size_t index) {
    return index < sizeof layers / sizeof *layers ? layers[index] : NULL;
}

const strata_layer_type_t *strata_layer_find(const char *name) {
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i]->name, name) == 0) return layers[i];
    return NULL;
}
