/* What is known of a ref that names no live allocation of a facade, for the error that says so. */
#ifndef STRATA_ALLOCATION_REF_INFO_H
#define STRATA_ALLOCATION_REF_INFO_H

#include "allocation/uses/record_notes.h"

typedef struct strata_ref_info {
    bool stack_is_open; /* else nothing below is known */
    strata_t facade; /* the facade of the stack */
    strata_place_t place;
    strata_stream_t stream; /* of the stack */
    bool owned; /* the stack has a stream */
    bool orphan; /* it was forgotten */
    bool live; /* the ref names a live allocation of that facade */
    bool freed; /* it was one, and is no more */
    bool deferred; /* it was freed and waits for other streams */
    uint64_t ptr, size; /* if it is live */
    strata_note_t note; /* zeros if nothing was noted */
} strata_ref_info_t;

/* Takes the lock of the ref's stack; any ref. */
void strata_ref_info_of(strata_ref_t ref, strata_ref_info_t *info);

#endif
