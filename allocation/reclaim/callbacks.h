/* The program's free-memory callbacks. They may call any facade function, so no operation may be in
 * progress that such a call would wait for. */
#ifndef STRATA_ALLOCATION_CALLBACKS_H
#define STRATA_ALLOCATION_CALLBACKS_H

#include "allocation/domain/domain.h"

/* Calls the callbacks, if the domain has any. Returns the bytes that they report as freed. No lock is held. */
uint64_t strata_callbacks_call(strata_domain_t *domain, size_t size);

#endif
