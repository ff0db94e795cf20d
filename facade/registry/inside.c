#include "facade/registry/inside.h"

static _Thread_local strata_inside_t *innermost;

void strata_inside_begin(strata_inside_t *frame, strata_t facade) {
    *frame = (strata_inside_t){facade, innermost};
    innermost = frame;
}

void strata_inside_end(const strata_inside_t *frame) { innermost = frame->outer; }

strata_status_t strata_inside_refuse(strata_t facade, const char *what) {
    for (const strata_inside_t *frame = innermost; frame; frame = frame->outer)
        if (frame->facade == facade)
            return strata_fail(STRATA_E_BUSY, 0,
                               "%s: this thread is inside a callback of facade %#llx, which is still using it; return first", what,
                               (unsigned long long)facade);
    return STRATA_OK;
}
