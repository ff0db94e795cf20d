/* Shared objects that bring layers. Loading one runs its code: whoever calls this was told that it may. */
#ifndef STRATA_STRATEGY_CODE_H
#define STRATA_STRATEGY_CODE_H

#include "strategy/model.h"

enum { STRATA_CODE_LAYERS = 64 /* in one object */ };

/* Loads the object at `path` (a name without a slash is a file of the current folder) and registers its layers; one that
 * is loaded already is left as it is. *layers (may be NULL) gets the object's own table, closed by NULL. E_IO: it cannot be
 * loaded; E_INVALID: it has no such table, or was linked with another copy of Strata; else as strata_register_layer(). Any
 * thread. */
strata_status_t strata_code_load(const char *path, const strata_layer_type_t *const **layers);

#endif
