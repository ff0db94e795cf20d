/* Tracks the facades that are calling the program back on this thread. Functions that would destroy one
 * of them are refused during the callback. */
#ifndef STRATA_FACADE_INSIDE_H
#define STRATA_FACADE_INSIDE_H

#include "facade/registry/facade.h"

typedef struct strata_inside {
    strata_t facade;
    struct strata_inside *outer;
} strata_inside_t;

/* Surround every call of a program's function. The caller owns `frame`. */
void strata_inside_begin(strata_inside_t *frame, strata_t facade);
void strata_inside_end(const strata_inside_t *frame);
/* Returns E_BUSY if the thread is inside a callback of the facade. The error names the refused function, `what`. */
strata_status_t strata_inside_refuse(strata_t facade, const char *what);

#endif
