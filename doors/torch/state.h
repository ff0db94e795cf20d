/* What the functions of libstrata_torch.so share: the facade that serves, and figures of what it serves. */
#ifndef STRATA_INTEGRATION_TORCH_STATE_H
#define STRATA_INTEGRATION_TORCH_STATE_H

#include <array>

#include "doors/torch/figures.h"

namespace strata_door {

extern std::atomic<strata_t> facade;
extern std::array<Meter, most_devices> meters;

/* NULL: there is no such device. */
inline Meter *meter(int device) { return device >= 0 && device < most_devices ? &meters[(size_t)device] : nullptr; }

/* Of another facade from now on: nothing is known of pools, of names and of chunks. */
void forget_pools();
void forget_names();
void forget_chunks();
/* The block is freed now. Costs a load where nothing was named. */
void end_name(void *block);

} // namespace strata_door
#endif
