/* What a replay runs on: simulated devices with a capacity, or real ones, opened anew for every run. */
#ifndef STRATA_REPLAY_TARGET_H
#define STRATA_REPLAY_TARGET_H

#include "platform/device.h"
#include "platform/sim/sim.h"
#include "strategy/devices.h"

typedef struct strata_target {
    const strata_sim_profile_t *profile; /* NULL: real devices */
    uint32_t ordinal; /* of the first real device */
    uint64_t capacity; /* simulated: bytes; 0: as the profile says; STRATA_SIM_UNLIMITED */
    uint64_t host_jitter; /* simulated: seed of the host's hold-ups; 0: none */
} strata_target_t;

/* What was chosen, except for the number: as many are opened as the trace has. `capacity` is left as it is. */
void strata_target_of(const strata_device_choice_t *choice, strata_target_t *target);
/* The same of a text, as strategy/devices.h reads it, and no file. E_INVALID says what to write. */
strata_status_t strata_target_parse(const char *text, strata_target_t *target);

typedef struct strata_machine {
    strata_sim_t *world; /* NULL: real devices */
    strata_device_t **devices;
    uint32_t count;
} strata_machine_t;

/* Opens `count` devices. E_NO_DEVICE; E_UNSUPPORTED for a capacity or a seed on a real device. */
strata_status_t strata_machine_open(const strata_target_t *target, uint32_t count, strata_machine_t *machine);
/* Everything got from the devices must have been given back. */
void strata_machine_close(strata_machine_t *machine);

#endif
