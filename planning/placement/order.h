/* Orders in which items may be placed. */
#ifndef STRATA_PLANNING_ORDER_H
#define STRATA_PLANNING_ORDER_H

#include "planning/problem/problem.h"

/* X(name, the first items) */
#define STRATA_ORDER_MAP(X)                                                                                                        \
    X(SIZE, "largest first, then longest-lived")                                                                                   \
    X(LENGTH, "longest-lived first, then largest")                                                                                 \
    X(AREA, "largest bytes times lifetime first")                                                                                  \
    X(CONFLICT, "buffers at the times with the highest live bytes first, then largest")                                            \
    X(BEGIN, "earliest first")                                                                                                     \
    X(END, "latest end first")

typedef enum strata_order {
#define STRATA_ORDER_ENUM(name, first) STRATA_ORDER_##name,
    STRATA_ORDER_MAP(STRATA_ORDER_ENUM)
#undef STRATA_ORDER_ENUM
        STRATA_ORDERS
} strata_order_t;

/* Fills `order` with all items, fixed ones first. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_order_make(const strata_problem_t *problem, strata_order_t by, uint32_t *order);

#endif
