#include "replay/target.h"

#include <stdio.h>
#include <string.h>

#include "platform/cuda/cuda.h"
#include "platform/host_memory.h"

static strata_status_t unknown(const char *text) {
    char profiles[256] = "";
    size_t length = 0;
    for (size_t i = 0; strata_sim_profile_name(i) && length < sizeof profiles - 1; i++)
        length += (size_t)snprintf(profiles + length, sizeof profiles - length, ", sim:%s", strata_sim_profile_name(i));
    return strata_fail(STRATA_E_INVALID, 0, "\"%.64s\" is no device; write gpu, gpu:0, sim%s", text, profiles);
}

strata_status_t strata_target_parse(const char *text, strata_target_t *target) {
    const strata_sim_profile_t *profile = NULL;
    uint32_t ordinal = 0;
    if (strcmp(text, "sim") == 0) {
        profile = strata_sim_profile("h100");
    } else if (strncmp(text, "sim:", 4) == 0) {
        profile = strata_sim_profile(text + 4);
        if (!profile) return unknown(text);
    } else if (strncmp(text, "gpu:", 4) == 0) {
        size_t digits = strspn(text + 4, "0123456789");
        if (digits == 0 || digits > 2 || text[4 + digits]) return unknown(text);
        for (size_t i = 0; i < digits; i++) ordinal = ordinal * 10 + (uint32_t)(text[4 + i] - '0');
    } else if (strcmp(text, "gpu") != 0) {
        return unknown(text);
    }
    target->profile = profile;
    target->ordinal = ordinal;
    return STRATA_OK;
}

static strata_status_t open_all(const strata_target_t *target, uint32_t count, strata_machine_t *machine) {
    if (target->profile) {
        strata_sim_options_t options = {.profile = target->profile, .devices = count, .capacity = target->capacity};
        strata_status_t status = strata_sim_new(&options, &machine->world);
        if (status != STRATA_OK) return status;
    }
    for (; machine->count < count; machine->count++) {
        strata_device_t **device = &machine->devices[machine->count];
        strata_status_t status = machine->world ? strata_sim_open(machine->world, machine->count, device)
                                                : strata_cuda_open(target->ordinal + machine->count, device);
        if (status != STRATA_OK) return status;
    }
    return STRATA_OK;
}

strata_status_t strata_machine_open(const strata_target_t *target, uint32_t count, strata_machine_t *machine) {
    if (!target->profile && target->capacity != 0)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "a capacity can be given to simulated devices alone; write --device sim");
    strata_machine_t opened = {.free_waits = target->profile && target->profile->free_waits};
    opened.devices = strata_host_new(count, sizeof *opened.devices);
    strata_status_t status = opened.devices ? open_all(target, count, &opened) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) {
        *machine = opened;
    } else {
        strata_machine_close(&opened);
    }
    return status;
}

void strata_machine_close(strata_machine_t *machine) {
    for (uint32_t i = 0; i < machine->count; i++) strata_device_close(machine->devices[i]);
    if (machine->world) strata_sim_drop(machine->world);
    strata_host_delete(machine->devices);
    *machine = (strata_machine_t){0};
}
