/* The devices of a replay: simulated ones with a capacity, or real ones. Every run opens them again. */
#ifndef STRATA_REPLAY_TARGET_H
#define STRATA_REPLAY_TARGET_H

#include "platform/device.h"
#include "platform/sim/sim.h"
#include "strategy/devices.h"

typedef struct strata_target {
    const strata_sim_profile_t *profile; /* NULL for real devices */
    uint32_t ordinal; /* of the first real device */
    uint64_t capacity; /* bytes, simulated devices only; 0 for the profile's capacity, or STRATA_SIM_UNLIMITED */
    uint64_t host_jitter; /* simulated devices only: seed of the host's delays, or 0 for none */
} strata_target_t;

/* Sets the chosen devices, except for their number, which is the trace's. `capacity` stays as it is. */
void strata_target_of(const strata_device_choice_t *choice, strata_target_t *target);
/* Parses a text as in strategy/devices.h, except that no file is allowed. The message of E_INVALID has the valid forms. */
strata_status_t strata_target_parse(const char *text, strata_target_t *target);

typedef struct strata_machine {
    strata_sim_t *world; /* NULL for real devices */
    strata_device_t **devices;
    uint32_t count;
} strata_machine_t;

/* Opens `count` devices. Fails with E_NO_DEVICE, or with E_UNSUPPORTED for a capacity or a seed on a real device. */
strata_status_t strata_machine_open(const strata_target_t *target, uint32_t count, strata_machine_t *machine);
/* Requires that everything got from the devices has been given back. */
void strata_machine_close(strata_machine_t *machine);

#endif
