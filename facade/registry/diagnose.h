/* Errors of wrong use: they name the allocation, its stack and its tag as far as these are known. */
#ifndef STRATA_FACADE_DIAGNOSE_H
#define STRATA_FACADE_DIAGNOSE_H

#include "facade/registry/facade.h"

/* No lock is held by any of them. After strata_record_find() has failed: adds what is known of the ref to its error. */
strata_status_t strata_diagnose_ref(strata_t facade, strata_ref_t ref);
/* E_UNKNOWN_POINTER: no live allocation of the facade does what `does` says ("begins there"). The error says what is there: another
 * live allocation, of this facade or another, or one that was freed. */
strata_status_t strata_diagnose_pointer(strata_facade_t *facade, const void *ptr, const char *does);
/* E_UNKNOWN_STREAM: the driver now has another id for a stream that a place knows. */
strata_status_t strata_diagnose_stream(strata_facade_t *facade, strata_domain_t *domain, strata_stream_t stream);

#endif
