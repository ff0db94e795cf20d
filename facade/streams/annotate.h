/* What the calling thread says of the requests that it makes: in which operator of the program. */
#ifndef STRATA_FACADE_ANNOTATE_H
#define STRATA_FACADE_ANNOTATE_H

#include "facade/facade.h"

enum { STRATA_ANNOTATED_FACADES = 4 }; /* by one thread at a time */

/* The number of the operator that the thread's requests belong to; 0: none. Requests of a thread that has one go the long way:
 * nobody else pays for the question. */
uint32_t strata_annotation(const strata_facade_t *facade);

#endif
