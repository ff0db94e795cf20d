/* Checks a layer from outside the tree. The tree's own layers are known to follow these rules. */
#ifndef STRATA_STRATEGY_VET_H
#define STRATA_STRATEGY_VET_H

#include "strategy/model.h"

/* Fills *full from a type as declared in its author's header, with NULL for operations that header lacks. Returns E_INVALID or
 * E_UNSUPPORTED with the reason. The registry checks that no other layer has the name. */
strata_status_t strata_vet_layer(const strata_layer_type_t *type, strata_layer_type_t *full);

#endif
