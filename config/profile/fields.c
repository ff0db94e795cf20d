#include "config/profile/fields.h"

#include "allocation/options/option.h"
#include "config/profile/profile.h"

/* Defines one row for each number, named after its field in the profile. */
#define ROW(kind_, type, field, least, most, meaning)                                                                              \
    static const strata_option_row_t row_##field = {.name = #field,                                                                \
                                                    .kind = STRATA_OPTION_##kind_,                                                 \
                                                    .offset = offsetof(strata_sim_profile_t, field),                               \
                                                    .min = least,                                                                  \
                                                    .max = most,                                                                   \
                                                    .doc = meaning};
STRATA_SIM_NUMBER_MAP(ROW)
#undef ROW

const strata_profile_field_t strata_profile_fields[STRATA_PROFILE_FIELDS] = {
#define NUMBER(kind, type, name, least, most, meaning) {#name, meaning, &row_##name, offsetof(strata_sim_profile_t, name)},
    STRATA_SIM_NUMBER_MAP(NUMBER)
#undef NUMBER
#define COST(name, meaning) {#name, meaning, NULL, offsetof(strata_sim_profile_t, name)},
        STRATA_SIM_COST_MAP(COST)
#undef COST
};

void strata_profile_print(const strata_profile_field_t *field, const strata_sim_profile_t *profile, char *text, size_t capacity) {
    if (field->number) strata_option_print(field->number, profile, text, capacity);
    else strata_cost_print((const strata_sim_cost_t *)((const char *)profile + field->offset), text, capacity);
}
