/* The operator of the program to which the calling thread's requests belong. */
#ifndef STRATA_FACADE_ANNOTATE_H
#define STRATA_FACADE_ANNOTATE_H

#include "facade/registry/facade.h"

enum { STRATA_ANNOTATED_FACADES = 4 }; /* by one thread at a time */

/* The number of the operator that the thread's requests belong to; 0: none. Requests of a thread that has one go the long way, so
 * that nobody else pays for the check. */
uint32_t strata_annotation(const strata_facade_t *facade);

/* Whether the thread is inside an operator of any open facade: where it is in none its calls by handle may be hits. */
void strata_annotation_look(void);

#endif
