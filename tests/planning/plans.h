/* Problems, and plans that the validator has seen. */
#ifndef STRATA_TESTS_PLANNING_PLANS_H
#define STRATA_TESTS_PLANNING_PLANS_H

#include "planning/file/table.h"
#include "strata/plan.h"
#include "tests/harness/test.h"

enum { PLANS_FEW = 64, PLANS_BRUTE = 8 };

/* An instance of traces/planning, by its name without the endings; closed with plans_cleanup. */
strata_plan_table_t plans_instance(const char *name);
void plans_cleanup(strata_plan_table_t *table);

/* What the processors have worked for this process: time that other processes take does not count. */
uint64_t plans_processor_ns(void);

/* Makes a plan and has it checked: its peak is what the validator measures, and not below the bound. */
strata_plan_result_t plans_make(const char *planner, const strata_plan_buffer_t *buffers, size_t count, uint64_t *offsets);
strata_plan_result_t plans_make_with(const strata_plan_options_t *options, const strata_plan_buffer_t *buffers, size_t count,
                                     uint64_t *offsets);
/* Returns the minimum peak of at most PLANS_BRUTE buffers, by trying every order. */
uint64_t plans_least_peak(const strata_plan_buffer_t *buffers, size_t count);
#define PLANS_COUNT(buffers) (sizeof(buffers) / sizeof *(buffers))

/* Random problems; the same for the same seed. */
typedef struct plans_random {
    uint64_t state;
} plans_random_t;
uint64_t plans_draw(plans_random_t *random, uint64_t below);
typedef struct plans_shape {
    uint64_t times, sizes; /* drawn below these */
    unsigned alignments, fixed, forks; /* in a hundred */
} plans_shape_t;
void plans_random_buffers(plans_random_t *random, const plans_shape_t *shape, strata_plan_buffer_t *buffers, size_t count);
/* Training-like: most live briefly, some for a part of the step, few throughout. */
void plans_training(plans_random_t *random, strata_plan_buffer_t *buffers, size_t count);

#endif
