/* Tracks the operator of the program that the calling thread's requests belong to. */
#ifndef STRATA_FACADE_ANNOTATE_H
#define STRATA_FACADE_ANNOTATE_H

#include "facade/registry/facade.h"

enum { STRATA_ANNOTATED_FACADES = 4 }; /* by one thread at a time */

/* Returns the number of the thread's current operator, or 0. A thread inside an operator takes the slow
 * path, so that no other thread pays for the check. */
uint32_t strata_annotation(const strata_facade_t *facade);

/* Updates whether the thread is inside an operator of an open facade. Outside all of them, its calls by
 * handle may take the fast path. */
void strata_annotation_refresh(void);

#endif
