/* Errors of wrong use. They name the allocation, its stack and its tag if these are recorded. */
#ifndef STRATA_FACADE_DIAGNOSE_H
#define STRATA_FACADE_DIAGNOSE_H

#include "facade/registry/facade.h"

/* Call these functions with no lock held. After strata_record_find() has failed, adds the recorded facts
 * about the ref to its error. */
strata_status_t strata_diagnose_ref(strata_t facade, strata_ref_t ref);
/* Returns E_UNKNOWN_POINTER if no live allocation of the facade matches the pointer; `does` is the
 * missing relation, as in "begins there". The error names what is at the address: another live allocation
 * of any facade, or a freed one. */
strata_status_t strata_diagnose_pointer(strata_facade_t *facade, const void *ptr, const char *does);
/* Returns E_UNKNOWN_STREAM, because the driver now has another id for a stream that a place has recorded. */
strata_status_t strata_diagnose_stream(strata_facade_t *facade, strata_domain_t *domain, strata_stream_t stream);

#endif
