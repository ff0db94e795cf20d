/* The table of open facades. strata_facade_of() and similar functions (facade/registry/facade.h) read it;
 * opening and closing write it. */
#ifndef STRATA_FACADE_REGISTRY_H
#define STRATA_FACADE_REGISTRY_H

#include "facade/registry/facade.h"

extern strata_facade_t *_Atomic strata_facades[STRATA_FACADES];

/* Adds a facade with a new handle and zeros in every other field. Returns E_HOST_MEMORY or E_LIMIT. */
strata_status_t strata_registry_add(strata_facade_t **facade);
/* Destroys the facade's names and its handle. Every thread must look up its cached stacks again. */
void strata_registry_remove(strata_facade_t *facade);

#endif
