/* STRATA_OPEN_CHECK_STREAM_IDS records the driver's ids of the streams that were used in places and not
 * forgotten. A changed id shows that a handle now names another stream. Without the flag nothing is
 * recorded, and the driver is not asked. */
#ifndef STRATA_FACADE_STREAM_IDS_H
#define STRATA_FACADE_STREAM_IDS_H

#include "facade/registry/facade.h"

/* The effect of a call on the stream that it names. */
typedef enum strata_stream_effect {
    STRATA_STREAM_USED, /* the place records the stream */
    STRATA_STREAM_NAMED /* nothing is recorded */
} strata_stream_effect_t;

/* Creates the table if the facade has the flag; an existing one is kept with its contents. Returns
 * E_HOST_MEMORY if out of memory. */
strata_status_t strata_stream_ids_begin(strata_facade_t *facade);
void strata_stream_ids_end(strata_facade_t *facade);
/* Returns E_UNKNOWN_STREAM if the handle named another stream when the place recorded it. With
 * STRATA_STREAM_USED, also if it no longer names any. Calls are not refused if the driver has no ids.
 * Call it with no lock held. */
strata_status_t strata_stream_ids_check(strata_facade_t *facade, strata_place_t place, strata_stream_t stream,
                                        strata_stream_effect_t effect);
void strata_stream_ids_forget(strata_facade_t *facade, strata_place_t place, strata_stream_t stream);

#endif
