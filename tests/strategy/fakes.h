/* Layer types and stacks made by hand: what the builder thinks of them, whatever layers there are. */
#ifndef STRATA_TESTS_STRATEGY_FAKES_H
#define STRATA_TESTS_STRATEGY_FAKES_H

#include "platform/status.h"
#include "strategy/plan/legal.h"
#include "tests/harness/test.h"

/* One stack of the types given, the outermost first, closed by NULL; layer i stands in line 10 + i, column 5 of "fake.yaml". */
strata_strategy_t *stack_of(strata_place_kind_t place, const strata_layer_type_t *const *types);
/* The plan must be refused at the layer `upper` (from 0), with `what` in the text. */
void expect_illegal(const strata_layer_type_t *const *types, unsigned upper, const char *what);
void expect_legal(const strata_layer_type_t *const *types);

extern const strata_layer_type_t source, ordered_source, waiting_source, cache, device_cache, locker, waiter, needs_order, passes,
    device_count, thread_cache, router, tells_owners;

#endif
