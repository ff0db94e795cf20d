/* The devices of a facade, by the strategy's `devices:`. */
#ifndef STRATA_FACADE_DEVICES_H
#define STRATA_FACADE_DEVICES_H

#include "facade/registry/facade.h"

/* Opens what the strategy names. E_NO_DEVICE: there is no fallback to the simulator here. */
strata_status_t strata_devices_open(strata_facade_t *facade);
/* Opens one more real device, at its first use. Only while the facade is being built. */
strata_status_t strata_devices_open_one(strata_facade_t *facade, uint32_t ordinal);
void strata_devices_close(strata_facade_t *facade);

#endif
