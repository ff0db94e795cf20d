/* Whether a layer from outside can be served: what the tree's own layers are known to hold. */
#ifndef STRATA_STRATEGY_VET_H
#define STRATA_STRATEGY_VET_H

#include "strategy/model.h"

/* Makes *full of a type as its author's header had it: what it lacks is NULL. E_INVALID or E_UNSUPPORTED with the reason. That
 * no other layer has the name is the registry's to say. */
strata_status_t strata_vet_layer(const strata_layer_type_t *type, strata_layer_type_t *full);

#endif
