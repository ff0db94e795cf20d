/* The keys of a profile file. */
#ifndef STRATA_CONFIG_PROFILE_FIELDS_H
#define STRATA_CONFIG_PROFILE_FIELDS_H

#include "platform/sim/sim.h"
#include "strata/layer.h"

typedef struct strata_profile_field {
    const char *name, *meaning;
    const strata_option_row_t *number; /* a property of the device; NULL if the field is the cost of a call */
    size_t offset; /* of the field in a profile */
} strata_profile_field_t;

enum {
    STRATA_PROFILE_FIELDS = 0
#define STRATA_PROFILE_ONE(...) +1
    STRATA_SIM_NUMBER_MAP(STRATA_PROFILE_ONE) STRATA_SIM_COST_MAP(STRATA_PROFILE_ONE)
#undef STRATA_PROFILE_ONE
};

/* Numbers first, then costs, which is the order of a written file. */
extern const strata_profile_field_t strata_profile_fields[STRATA_PROFILE_FIELDS];

/* Prints the value of a field. */
void strata_profile_print(const strata_profile_field_t *field, const strata_sim_profile_t *profile, char *text, size_t capacity);

#endif
