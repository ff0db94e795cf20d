/* Every figure of a rig at one moment, by name: what the facade counts of its places and layers, the blocks and chunks that there are,
 * what the devices have given, and what the library has of the host. Two moments are compared figure by figure. */
#ifndef STRATA_TESTS_FAILURES_FIGURES_H
#define STRATA_TESTS_FAILURES_FIGURES_H

#include "tests/facade/support/fixture.h"

typedef struct figure_row {
    char name[112]; /* "gpu:0 reserved_bytes", "gpu:0 auto_growth_vmm joins" */
    uint64_t value;
} figure_row_t;

typedef struct figures {
    figure_row_t *rows;
    size_t count, room;
} figures_t;

/* To be dropped. Makes no device call. */
void figures_snapshot(figures_t *figures, rig_t *rig);
void figures_delete(figures_t *figures);
uint64_t figures_of(const figures_t *figures, const char *name);
/* Fails the test with up to ten of the figures that are not equal, but for those that `passes` (NULL: none) answers true for. */
typedef bool (*figures_pass_fn)(const char *name, const void *context);
void figures_expect_equal(const figures_t *are, const figures_t *were, figures_pass_fn passes, const void *context);

#endif
