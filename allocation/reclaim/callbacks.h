/* The program's free-memory callbacks. They may call any facade function: nothing may be under way that such a call waits for. */
#ifndef STRATA_ALLOCATION_CALLBACKS_H
#define STRATA_ALLOCATION_CALLBACKS_H

#include "allocation/domain/domain.h"

/* Calls them, if the domain has any; returns the bytes that they say they freed. No lock is held. */
uint64_t strata_callbacks_ask(strata_domain_t *domain, size_t size);

#endif
