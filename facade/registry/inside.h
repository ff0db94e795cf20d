/* The facades that are calling the program back on this thread: whatever would end them is refused meanwhile. */
#ifndef STRATA_FACADE_INSIDE_H
#define STRATA_FACADE_INSIDE_H

#include "facade/registry/facade.h"

typedef struct strata_inside {
    strata_t facade;
    struct strata_inside *outer;
} strata_inside_t;

/* Around every call of a function of the program's; `frame` is the caller's own. */
void strata_inside_begin(strata_inside_t *frame, strata_t facade);
void strata_inside_end(const strata_inside_t *frame);
/* E_BUSY: the thread is inside a callback of the facade; the error says `what` it wanted. */
strata_status_t strata_inside_refuse(strata_t facade, const char *what);

#endif
