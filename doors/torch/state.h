/* State that the functions of libstrata_torch.so share: the facade that serves, and the counters of its blocks. */
#ifndef STRATA_INTEGRATION_TORCH_STATE_H
#define STRATA_INTEGRATION_TORCH_STATE_H

#include <array>

#include "doors/torch/figures.h"

namespace strata_door {

extern std::atomic<strata_t> facade;
extern std::array<Meter, max_devices> meters;

/* Returns NULL if the device does not exist. */
inline Meter *meter(int device) { return device >= 0 && device < max_devices ? &meters[(size_t)device] : nullptr; }

/* Drop all pools, names and chunks, because another facade serves from now on. */
void forget_pools();
void forget_names();
void forget_chunks();
/* Ends the name of a block that is being freed. It costs one load if no block was ever named. */
void end_name(void *block);

} // namespace strata_door
#endif
