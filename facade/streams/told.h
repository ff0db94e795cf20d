/* Passes on the work, waits and syncs of the program to layers that take such notices (strata_notice_t). */
#ifndef STRATA_FACADE_TOLD_H
#define STRATA_FACADE_TOLD_H

#include "facade/registry/facade.h"

/* For a call that names a stream: the place is opened, and the stream's id checked. */
strata_status_t strata_told_domain(strata_t handle, strata_place_t place, strata_stream_t stream, strata_domain_t **domain);
/* As the device knows it. NULL is the place's default stream; where memory has no owner, the legacy stream. */
strata_stream_t strata_told_stream(const strata_domain_t *domain, strata_stream_t stream);

/* After it was done. A block that another thread has freed by now is left out of the work. */
void strata_told_work(strata_t handle, strata_domain_t *domain, strata_stream_t stream, uint64_t duration_ns,
                      const strata_ref_t *refs, size_t count);
void strata_told_wait(strata_domain_t *domain, strata_stream_t stream, strata_stream_t other);
void strata_told_sync(strata_domain_t *domain, strata_stream_t stream);

#endif
