#include "facade/devices.h"

#include <stdlib.h>
#include <string.h>

#include "platform/cuda/cuda.h"

static strata_status_t unknown(const char *text) {
    return strata_fail(STRATA_E_STRATEGY, 0, "devices: \"%.40s\" is none; write gpu, gpu:0, sim, sim:h100, sim:a100 or sim:h100x2",
                       text);
}

/* "h100x2": a profile's name and how many, at most 16. */
static strata_status_t parse_simulated(const char *text, const char *whole, strata_device_choice_t *choice) {
    char name[32];
    size_t length = strcspn(text, "x");
    if (length >= sizeof name) return unknown(whole);
    memcpy(name, text, length);
    name[length] = 0;
    choice->profile = strata_sim_profile(name);
    if (!choice->profile) return unknown(whole);
    if (text[length] == 0) return STRATA_OK;
    char *end;
    unsigned long count = strtoul(text + length + 1, &end, 10);
    if (*end || end == text + length + 1 || count < 1 || count > STRATA_FACADE_DEVICES) return unknown(whole);
    choice->count = (uint32_t)count;
    return STRATA_OK;
}

strata_status_t strata_device_choice_parse(const char *text, strata_device_choice_t *choice) {
    *choice = (strata_device_choice_t){.count = 1, .ordinal = -1};
    if (strcmp(text, "gpu") == 0) return STRATA_OK;
    if (strncmp(text, "gpu:", 4) == 0) {
        char *end;
        unsigned long ordinal = strtoul(text + 4, &end, 10);
        if (*end || end == text + 4 || ordinal >= STRATA_FACADE_DEVICES) return unknown(text);
        choice->ordinal = (int32_t)ordinal;
        return STRATA_OK;
    }
    choice->simulated = true;
    choice->profile = strata_sim_profile("h100");
    if (strcmp(text, "sim") == 0) return STRATA_OK;
    return strncmp(text, "sim:", 4) == 0 ? parse_simulated(text + 4, text, choice) : unknown(text);
}

static strata_status_t open_simulated(strata_facade_t *facade, const strata_device_choice_t *choice) {
    strata_sim_options_t options = {.profile = choice->profile, .devices = choice->count};
    strata_status_t status = strata_sim_new(&options, &facade->world);
    for (uint32_t i = 0; i < choice->count && status == STRATA_OK; i++)
        status = strata_sim_open(facade->world, i, &facade->devices[i]);
    return status;
}

strata_status_t strata_devices_open(strata_facade_t *facade) {
    strata_device_choice_t choice;
    strata_status_t status = strata_device_choice_parse(facade->strategy->devices, &choice);
    if (status != STRATA_OK) return status;
    if (choice.simulated) return open_simulated(facade, &choice);
    facade->every_device = choice.ordinal < 0;
    uint32_t ordinal = choice.ordinal < 0 ? 0 : (uint32_t)choice.ordinal;
    return strata_cuda_open(ordinal, &facade->devices[ordinal]);
}

strata_status_t strata_devices_open_more(strata_facade_t *facade, uint32_t ordinal) {
    return strata_cuda_open(ordinal, &facade->devices[ordinal]);
}

void strata_devices_close(strata_facade_t *facade) {
    for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++)
        if (facade->devices[i]) strata_device_close(facade->devices[i]);
    if (facade->world) strata_sim_drop(facade->world);
}
