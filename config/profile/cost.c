/* Parses and prints the cost of a call: a time, a time for each GiB, or both. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/profile/profile.h"

enum { PART = 64, SHOWN = 40 };
#define MIB_IN_GIB 1024.0

static strata_status_t fail_cost(const char *text) {
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "\"%.*s\" is not a cost; write a time, a time for each GiB, or both, as in 37us + 74us/GiB", SHOWN, text);
}

/* Removes a suffix. Returns false if the text does not have it. */
static bool strip_suffix(char *text, const char *suffix) {
    size_t length = strlen(text), count = strlen(suffix);
    if (length < count || strcmp(text + length - count, suffix) != 0) return false;
    text[length - count] = '\0';
    return true;
}

/* Reads one of the two parts into the half of `cost` that its unit selects. `given` has a bit for each half. */
static strata_status_t parse_part(const char *all, const char *text, size_t length, strata_sim_cost_t *cost, unsigned *given) {
    char part[PART];
    uint64_t ns;
    while (length > 0 && *text == ' ') text++, length--;
    while (length > 0 && text[length - 1] == ' ') length--;
    if (length == 0 || length >= sizeof part) return fail_cost(all);
    snprintf(part, sizeof part, "%.*s", (int)length, text);
    bool of_gib = strip_suffix(part, "/GiB"), rate = of_gib || strip_suffix(part, "/MiB");
    if (*given & (1u << rate)) return fail_cost(all);
    *given |= 1u << rate;
    strata_status_t status = strata_parse_time(part, &ns);
    if (status != STRATA_OK) return status;
    double value = (double)ns / (of_gib ? MIB_IN_GIB : 1);
    if (value > STRATA_SIM_COST_MAX)
        return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is too large; a call costs at most 900s", SHOWN, all);
    *(rate ? &cost->per_mib_ns : &cost->fixed_ns) = value;
    return STRATA_OK;
}

strata_status_t strata_cost_parse(const char *text, strata_sim_cost_t *cost) {
    strata_sim_cost_t read = {0, 0};
    unsigned given = 0;
    size_t first = strcspn(text, "+");
    strata_status_t status = parse_part(text, text, first, &read, &given);
    if (status == STRATA_OK && text[first]) status = parse_part(text, text + first + 1, strlen(text + first + 1), &read, &given);
    if (status == STRATA_OK) *cost = read;
    return status;
}

void strata_cost_print(const strata_sim_cost_t *cost, char *text, size_t capacity) {
    char fixed[PART], rate[PART];
    uint64_t fixed_ns = (uint64_t)(cost->fixed_ns + 0.5), rate_ns = (uint64_t)(cost->per_mib_ns * MIB_IN_GIB + 0.5);
    strata_print_time(fixed_ns, fixed, sizeof fixed);
    strata_print_time(rate_ns, rate, sizeof rate);
    if (rate_ns == 0) snprintf(text, capacity, "%s", fixed);
    else if (fixed_ns == 0) snprintf(text, capacity, "%s/GiB", rate);
    else snprintf(text, capacity, "%s + %s/GiB", fixed, rate);
}
