/* The program's free-memory callbacks. They may call any facade function: nothing may be under way that such a call waits for. */
#ifndef STRATA_ALLOCATION_CALLBACKS_H
#define STRATA_ALLOCATION_CALLBACKS_H

#include "allocation/domain.h"

/* Asks them, where the domain has any; the bytes that they say they freed. No lock is held. */
uint64_t strata_callbacks_ask(strata_domain_t *domain, size_t size);
/* Whether the calling thread is in one of them: then a request of its own is under way outside. */
bool strata_callbacks_are_asked(void);

#endif
