/* Facades over stacks with decorators, and the figures of their layers. */
#ifndef STRATA_TESTS_DECORATORS_H
#define STRATA_TESTS_DECORATORS_H

#include "tests/facade/support/fixture.h"

/* A facade whose gpu place has the layers of `stack`, YAML in one line: "[{limit: {bytes: 1MiB}}, system]". The host's and the
 * pinned place's stacks are `host`, NULL: the bare source. */
void decorated_open(rig_t *rig, const char *stack, const char *host, const strata_sim_options_t *options);
/* Likewise, as RIG() of so many bytes: DECORATED(rig, "[{limit: {bytes: 1MiB}}, system]", 0) */
#define DECORATED(rig, stack, bytes) RIG_BY(rig, decorated_open(&rig, stack, NULL, &(strata_sim_options_t){.capacity = bytes}))
/* A row of the figures of the first layer of that name in the stack; a test that asks for none fails. */
uint64_t decorated_figure(strata_stack_t *stack, const char *layer, const char *row);
/* With another value in that row validate says `what`. The figure is as before after it. */
void decorated_expect_corrupt(rig_t *rig, const char *layer, const char *row, uint64_t value, const char *what);

#endif
