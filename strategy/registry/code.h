/* Shared objects that bring layers. Loading one runs its code: the caller must have been allowed to. */
#ifndef STRATA_STRATEGY_CODE_H
#define STRATA_STRATEGY_CODE_H

#include "strategy/model.h"

enum { STRATA_CODE_LAYERS = 64 /* in one object */ };

/* Loads the object at `path` (a name without a slash is a file in the current folder) and registers its layers. One that is already
 * loaded is left as it is. *layers (may be NULL) receives the object's own table, which ends with NULL. E_IO: it cannot be loaded;
 * E_INVALID: it has no such table, or was linked with another copy of Strata; else as strata_register_layer(). Any thread. */
strata_status_t strata_code_load(const char *path, const strata_layer_type_t *const **layers);

#endif
