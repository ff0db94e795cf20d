/* STRATA_OPEN_CHECK_STREAM_IDS: the driver's ids of the streams that places were told of and have not forgotten. They show when a
 * handle names another stream now. Without the flag nothing is kept and no driver is asked. */
#ifndef STRATA_FACADE_STREAM_IDS_H
#define STRATA_FACADE_STREAM_IDS_H

#include "facade/registry/facade.h"

/* What a call does with the stream that it names. */
typedef enum strata_stream_said {
    STRATA_STREAM_USED, /* from now on the place knows it */
    STRATA_STREAM_NAMED /* nothing is kept */
} strata_stream_said_t;

/* The table, if the facade has the flag; an existing one stays, with its contents. E_HOST_MEMORY. */
strata_status_t strata_stream_ids_begin(strata_facade_t *facade);
void strata_stream_ids_end(strata_facade_t *facade);
/* E_UNKNOWN_STREAM: the handle named another stream when the place was told of it, or (USED) it names none any more. A driver
 * without ids is no reason to refuse a call. No lock is held. */
strata_status_t strata_stream_ids_check(strata_facade_t *facade, strata_place_t place, strata_stream_t stream,
                                        strata_stream_said_t said);
void strata_stream_ids_forget(strata_facade_t *facade, strata_place_t place, strata_stream_t stream);

#endif
