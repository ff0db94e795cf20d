/* The devices of a facade, by the strategy's `devices:`. */
#ifndef STRATA_FACADE_DEVICES_H
#define STRATA_FACADE_DEVICES_H

#include "facade/facade.h"

typedef struct strata_device_choice {
    bool simulated;
    const strata_sim_profile_t *profile; /* simulated */
    uint32_t count;                      /* simulated: how many */
    int32_t ordinal;                     /* real: -1 for all */
} strata_device_choice_t;

/* "gpu", "gpu:1", "sim", "sim:a100", "sim:h100x2". E_STRATEGY says what may be written. */
strata_status_t strata_device_choice_parse(const char *text, strata_device_choice_t *choice);

/* Opens what the strategy names. E_NO_DEVICE: there is no falling back to the simulator here. */
strata_status_t strata_devices_open(strata_facade_t *facade);
/* Opens one more real device, at its first use. Only while the facade is being built. */
strata_status_t strata_devices_open_more(strata_facade_t *facade, uint32_t ordinal);
void strata_devices_close(strata_facade_t *facade);

#endif
