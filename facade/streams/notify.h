/* Passes the program's work, waits and syncs to the layers that accept such notices (strata_notice_t). */
#ifndef STRATA_FACADE_NOTIFY_H
#define STRATA_FACADE_NOTIFY_H

#include "facade/registry/facade.h"

/* Begins a call that names a stream: opens the place and checks the stream's id. */
strata_status_t strata_notify_domain(strata_t handle, strata_place_t place, strata_stream_t stream, strata_domain_t **domain);
/* Returns the stream for the device. NULL becomes the place's default stream, or the legacy stream if
 * memory has no owner. */
strata_stream_t strata_notify_stream(const strata_domain_t *domain, strata_stream_t stream);

/* Report an event after it happened. A block that another thread has freed by now is left out of the work. */
void strata_notify_work(strata_t handle, strata_domain_t *domain, strata_stream_t stream, uint64_t duration_ns,
                        const strata_ref_t *refs, size_t count);
void strata_notify_wait(strata_domain_t *domain, strata_stream_t stream, strata_stream_t other);
void strata_notify_sync(strata_domain_t *domain, strata_stream_t stream);

#endif
