/* The devices of a facade, as selected by the strategy's `devices:`. */
#ifndef STRATA_FACADE_DEVICES_H
#define STRATA_FACADE_DEVICES_H

#include "facade/registry/facade.h"

/* Opens the devices that the strategy names. Returns E_NO_DEVICE if there is none; it does not fall back
 * to the simulator. */
strata_status_t strata_devices_open(strata_facade_t *facade);
/* Opens one more real device at its first use. Call it only while the facade is being built. */
strata_status_t strata_devices_open_one(strata_facade_t *facade, uint32_t ordinal);
void strata_devices_close(strata_facade_t *facade);

#endif
