/* A profile made of measured rows. */
#ifndef STRATA_TOOLS_CALIBRATE_FIT_H
#define STRATA_TOOLS_CALIBRATE_FIT_H

#include "lab/tools/calibrate/measure.h"
#include "platform/sim/sim.h"

/* A median at a size. */
typedef struct strata_fit_point {
    double mib, ns;
} strata_fit_point_t;

/* The line whose squared relative errors sum to the least, so a microsecond counts as much as it means to that size; neither term is
 * negative. Returns how far off it is, as a part of the median, where it is farthest. `count` is at least 1. */
double strata_fit_line(const strata_fit_point_t *points, size_t count, strata_sim_cost_t *cost);

/* What was found out about a profile. */
typedef struct strata_fitted {
    strata_sim_profile_t profile;
    struct {
        const char *key;
        char note[64];
    } notes[64]; /* by key, as the written profile has them */
    size_t note_count;
} strata_fitted_t;

/* `base`, with what the rows say in its place. */
void strata_fit_profile(const strata_measure_t *measure, const strata_sim_profile_t *base, strata_fitted_t *fitted);
/* For strata_profile_write(): how far off a line is, or that the value was not measured. */
const char *strata_fit_note(const char *key, const void *fitted);

#endif
