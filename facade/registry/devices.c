#include "facade/registry/devices.h"

#include "platform/cuda/cuda.h"

static strata_status_t open_simulated(strata_facade_t *facade, const strata_device_choice_t *choice) {
    strata_sim_options_t options = {.profile = choice->profile, .devices = choice->count};
    strata_status_t status = strata_sim_new(&options, &facade->world);
    for (uint32_t i = 0; i < choice->count && status == STRATA_OK; i++) {
        strata_device_t *device;
        status = strata_sim_open(facade->world, i, &device);
        if (status == STRATA_OK) atomic_store(&facade->devices[i], device);
    }
    return status;
}

strata_status_t strata_devices_open(strata_facade_t *facade) {
    const strata_device_choice_t *choice = &facade->strategy->device_choice;
    if (choice->profile) return open_simulated(facade, choice);
    facade->every_device = choice->ordinal < 0;
    uint32_t ordinal = choice->ordinal < 0 ? 0 : (uint32_t)choice->ordinal;
    return strata_devices_open_one(facade, ordinal);
}

/* Publishes only a complete device, because a wait for all devices reads the array without a lock. */
strata_status_t strata_devices_open_one(strata_facade_t *facade, uint32_t ordinal) {
    strata_device_t *device;
    strata_status_t status = strata_cuda_open(ordinal, &device);
    if (status == STRATA_OK) atomic_store(&facade->devices[ordinal], device);
    return status;
}

void strata_devices_close(strata_facade_t *facade) {
    for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++)
        if (facade->devices[i]) strata_device_close(facade->devices[i]);
    if (facade->world) strata_sim_drop(facade->world);
}
