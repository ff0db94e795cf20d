#include "strategy/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/model.h"

static strata_status_t fail_unknown(const char *text) {
    char profiles[256] = "";
    size_t length = 0;
    for (size_t i = 0; strata_sim_profile_name(i) && length < sizeof profiles - 1; i++)
        length += (size_t)snprintf(profiles + length, sizeof profiles - length, ", sim:%s", strata_sim_profile_name(i));
    return strata_fail(STRATA_E_INVALID, 0,
                       "\"%.64s\" is not a device; write gpu, gpu:0 to gpu:%d, sim%s, sim:FILE.yaml, or sim:%sx2 for two", text,
                       STRATA_MODEL_DEVICES - 1, profiles, strata_sim_profile_name(0));
}

/* Parses one or two digits, without a leading zero or other text. Returns -1 if there is no such number. */
static int number_of(const char *text) {
    size_t digits = strspn(text, "0123456789");
    bool padded = digits > 1 && text[0] == '0';
    return digits >= 1 && digits <= 2 && !text[digits] && !padded ? atoi(text) : -1;
}

int strata_device_number(const char *text) {
    int number = number_of(text);
    return number < STRATA_MODEL_DEVICES ? number : -1;
}

/* Parses "h100", or "h100x2" for two devices. */
static bool parse_profile(const char *text, strata_device_choice_t *choice) {
    char name[32];
    const char *times = strrchr(text, 'x');
    choice->profile = strata_sim_profile(text);
    if (choice->profile) return true;
    if (!times || (size_t)(times - text) >= sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)(times - text), text);
    int count = number_of(times + 1);
    choice->profile = strata_sim_profile(name);
    choice->count = (uint32_t)count;
    return choice->profile && count >= 1 && count <= STRATA_MODEL_DEVICES;
}

static bool ends_with(const char *text, size_t length, const char *end) {
    size_t count = strlen(end);
    return length > count && strncmp(text + length - count, end, count) == 0;
}

static bool is_file(const char *path, size_t length) { return ends_with(path, length, ".yaml") || ends_with(path, length, ".yml"); }

bool strata_device_names_file(const char *text, const char **path, size_t *length, int *count) {
    if (strncmp(text, "sim:", 4) != 0) return false;
    *path = text + 4;
    *length = strlen(*path);
    *count = 1;
    if (is_file(*path, *length)) return true;
    const char *times = strrchr(*path, 'x');
    if (!times || !is_file(*path, (size_t)(times - *path))) return false;
    *length = (size_t)(times - *path);
    *count = number_of(times + 1);
    return true;
}

strata_status_t strata_device_choice_parse(const char *text, strata_device_choice_t *choice) {
    strata_device_choice_t parsed = {.count = 1, .ordinal = -1};
    if (strcmp(text, "sim") == 0) {
        parsed.profile = strata_sim_profile(strata_sim_profile_name(0));
    } else if (strncmp(text, "sim:", 4) == 0) {
        if (!parse_profile(text + 4, &parsed)) return fail_unknown(text);
    } else if (strncmp(text, "gpu:", 4) == 0) {
        parsed.ordinal = strata_device_number(text + 4);
        if (parsed.ordinal < 0) return fail_unknown(text);
    } else if (strcmp(text, "gpu") != 0) {
        return fail_unknown(text);
    }
    *choice = parsed;
    return STRATA_OK;
}
