#include "lab/replay/timeline/target.h"

#include "platform/cuda/cuda.h"
#include "platform/host/host_memory.h"

void strata_target_of(const strata_device_choice_t *choice, strata_target_t *target) {
    target->profile = choice->profile;
    target->ordinal = choice->ordinal < 0 ? 0 : (uint32_t)choice->ordinal;
}

strata_status_t strata_target_parse(const char *text, strata_target_t *target) {
    strata_device_choice_t choice;
    strata_status_t status = strata_device_choice_parse(text, &choice);
    if (status == STRATA_OK) strata_target_of(&choice, target);
    return status;
}

static strata_status_t open_all(const strata_target_t *target, uint32_t count, strata_machine_t *machine) {
    if (target->profile) {
        strata_sim_options_t options = {
            .profile = target->profile, .devices = count, .capacity = target->capacity, .host_jitter = target->host_jitter};
        strata_status_t status = strata_sim_new(&options, &machine->world);
        if (status != STRATA_OK) return status;
    }
    for (; machine->count < count; machine->count++) {
        strata_device_t **device = &machine->devices[machine->count];
        strata_status_t status = machine->world ? strata_sim_open(machine->world, machine->count, device)
                                                : strata_cuda_open(target->ordinal + machine->count, device);
        if (status != STRATA_OK) return status;
        (*device)->one_thread = machine->world != NULL;
    }
    return STRATA_OK;
}

strata_status_t strata_machine_open(const strata_target_t *target, uint32_t count, strata_machine_t *machine) {
    if (!target->profile && target->capacity != 0)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "a capacity can be set only for simulated devices; write --device sim");
    if (!target->profile && target->host_jitter != 0)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "host delays can be set only for simulated devices; write --device sim");
    strata_machine_t opened = {0};
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
