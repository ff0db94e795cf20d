/* Whether a layer from outside can be served: checks what the tree's own layers are known to fulfil. */
#ifndef STRATA_STRATEGY_VET_H
#define STRATA_STRATEGY_VET_H

#include "strategy/model.h"

/* Makes *full from a type as its author's header had it; what it lacks is NULL. E_INVALID or E_UNSUPPORTED with the reason. The
 * registry checks that no other layer has the name. */
strata_status_t strata_vet_layer(const strata_layer_type_t *type, strata_layer_type_t *full);

#endif
