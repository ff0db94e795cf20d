/* Loads shared objects with layers. Loading one runs its code, so the caller must have permission. */
#ifndef STRATA_STRATEGY_CODE_H
#define STRATA_STRATEGY_CODE_H

#include "strategy/model.h"

enum { STRATA_CODE_LAYERS = 64 /* max in one object */ };

/* Loads the object at `path` (a name without a slash is a file in the current folder) and registers its
 * layers. An object that is already loaded is left unchanged. *layers (may be NULL) receives the object's
 * own table, which ends with NULL. Returns E_IO if it cannot be loaded. Returns E_INVALID if it has no
 * such table, or was linked with another copy of Strata. Otherwise returns the errors of
 * strata_register_layer(). Any thread may call it. */
strata_status_t strata_code_load(const char *path, const strata_layer_type_t *const **layers);

#endif
