/* Describes a ref that names no live allocation of a facade, for the error message. */
#ifndef STRATA_ALLOCATION_REF_INFO_H
#define STRATA_ALLOCATION_REF_INFO_H

#include "allocation/uses/record_notes.h"

typedef struct strata_ref_info {
    bool stack_is_open; /* if false, nothing below is set */
    strata_t facade; /* the facade of the stack */
    strata_place_t place;
    strata_stream_t stream; /* of the stack */
    bool owned; /* the stack has a stream */
    bool orphan; /* it was forgotten */
    bool live; /* the ref names a live allocation of that facade */
    bool freed; /* it named one, which was freed */
    bool deferred; /* that free is deferred, because it waits for other streams */
    uint64_t ptr, size; /* set if it is live */
    strata_note_t note; /* zeros if nothing was noted */
} strata_ref_info_t;

/* Accepts any ref. Takes the lock of the ref's stack. */
void strata_ref_info_of(strata_ref_t ref, strata_ref_info_t *info);

#endif
