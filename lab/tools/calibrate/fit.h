/* Fits a profile to measured rows. */
#ifndef STRATA_TOOLS_CALIBRATE_FIT_H
#define STRATA_TOOLS_CALIBRATE_FIT_H

#include "lab/tools/calibrate/measure.h"
#include "platform/sim/sim.h"

/* A median at a size. */
typedef struct strata_fit_point {
    double mib, ns;
} strata_fit_point_t;

/* Fits the line with the least sum of squared relative errors, so that an error counts in proportion to the
 * value at that size. Neither term is negative. Returns the largest error, as a part of the median. `count`
 * is at least 1. */
double strata_fit_line(const strata_fit_point_t *points, size_t count, strata_sim_cost_t *cost);

/* A fitted profile, with a note on each fitted field. */
typedef struct strata_fitted {
    strata_sim_profile_t profile;
    struct {
        const char *key;
        char note[64];
    } notes[64]; /* by key, as the written profile has them */
    size_t note_count;
} strata_fitted_t;

/* Sets the profile to `base`, with the measured values in place of its own. */
void strata_fit_profile(const strata_measure_t *measure, const strata_sim_profile_t *base, strata_fitted_t *fitted);
/* For strata_profile_write(). Returns a note with the error of a line, or that the value was not measured. */
const char *strata_fit_note(const char *key, const void *fitted);

#endif
