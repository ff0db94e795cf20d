#include "lab/tools/options/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/profile/profile.h"
#include "lab/tools/options/named.h"
#include "platform/cuda/cuda.h"
#include "platform/host/host_memory.h"
#include "platform/text/printable.h"

enum { SETS = 3 * STRATA_ARGUMENT_SETS, LABEL = STRATA_ARGUMENT_LABEL + 8 };

typedef struct loaded {
    strata_strategy_t *strategy;
    const char *set[SETS]; /* from the environment, from --set for all strategies, and its own */
    size_t set_count;
    char label[LABEL];
} loaded_t;

typedef struct memory {
    loaded_t loaded[STRATA_ARGUMENT_STRATEGIES];
    strata_candidate_t candidates[STRATA_ARGUMENT_STRATEGIES];
    const char *given[STRATA_ARGUMENT_STRATEGIES];
    char *environment; /* a copy of STRATA_SET, cut at its commas */
    const char *common[2 * STRATA_ARGUMENT_SETS]; /* from the environment, then from --set before the first strategy */
    size_t common_count, environment_count;
} memory_t;

/* ---- values that are set ----------------------------------------------------------------------------------------------- */

/* Trims spaces as the library does, so that a path is the same however it is spaced. */
static char *trim(char *text) {
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') text[--length] = '\0';
    return text;
}

/* STRATA_SET comes first, so the command line overrides it. */
static strata_status_t read_environment(memory_t *memory) {
    const char *text = getenv("STRATA_SET");
    if (!text || !*text) return STRATA_OK;
    memory->environment = strata_host_strdup(text);
    if (!memory->environment) return STRATA_E_HOST_MEMORY;
    for (char *at = memory->environment, *next; at; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = '\0';
        at = trim(at);
        if (!*at) continue;
        if (!strchr(at, '=')) return strata_fail(STRATA_E_STRATEGY, 0, "STRATA_SET: \"%.60s\" is not PATH=VALUE", at);
        if (memory->common_count == STRATA_ARGUMENT_SETS)
            return strata_fail(STRATA_E_LIMIT, 0, "STRATA_SET has more than %d values", STRATA_ARGUMENT_SETS);
        memory->common[memory->common_count++] = at;
        memory->environment_count++;
    }
    return STRATA_OK;
}

static bool has_path(const strata_strategy_t *strategy, const char *set) {
    char path[256];
    size_t length = strcspn(set, "=");
    if (length >= sizeof path) return false;
    memcpy(path, set, length);
    path[length] = '\0';
    return strata_strategy_has(strategy, path);
}

/* Each value for all strategies must fit at least one of them. Otherwise it is misspelled. */
static strata_status_t assign_common(memory_t *memory, size_t count) {
    for (size_t k = 0; k < memory->common_count; k++) {
        bool fits = false;
        for (size_t i = 0; i < count; i++) {
            loaded_t *loaded = &memory->loaded[i];
            if (!has_path(loaded->strategy, memory->common[k])) continue;
            loaded->set[loaded->set_count++] = memory->common[k];
            fits = true;
        }
        if (!fits)
            return strata_fail(STRATA_E_STRATEGY, 0, "%s %.80s: none of the strategies has this path; see strata explain",
                               k < memory->environment_count ? "STRATA_SET:" : "--set", memory->common[k]);
    }
    return STRATA_OK;
}

/* ---- loading ----------------------------------------------------------------------------------------------------------- */

static strata_status_t load(loaded_t *loaded, const strata_argument_strategy_t *argument, bool allow_code) {
    strata_config_request_t request = {.set = loaded->set, .set_count = loaded->set_count, .allow_code = allow_code};
    strata_named_strategy(argument->name, &request);
    strata_strategy_delete(loaded->strategy);
    loaded->strategy = NULL;
    return strata_config_load(&request, &loaded->strategy);
}

static strata_status_t load_all(memory_t *memory, const strata_arguments_t *arguments) {
    size_t count = arguments->strategy_count;
    strata_status_t status = read_environment(memory);
    for (size_t i = 0; i < arguments->set_count; i++) memory->common[memory->common_count++] = arguments->set[i];
    for (size_t i = 0; i < count && status == STRATA_OK; i++)
        status = load(&memory->loaded[i], &arguments->strategies[i], arguments->allow_code);
    if (status == STRATA_OK) status = assign_common(memory, count);
    for (size_t i = 0; i < count && status == STRATA_OK; i++) {
        const strata_argument_strategy_t *argument = &arguments->strategies[i];
        loaded_t *loaded = &memory->loaded[i];
        for (size_t k = 0; k < argument->set_count; k++) loaded->set[loaded->set_count++] = argument->set[k];
        if (loaded->set_count > 0) status = load(loaded, argument, arguments->allow_code);
    }
    return status;
}

/* ---- labels ------------------------------------------------------------------------------------------------------------ */

static bool is_label_used(const memory_t *memory, size_t count, size_t but, const char *label) {
    for (size_t i = 0; i < count; i++)
        if (i != but && strcmp(memory->loaded[i].label, label) == 0) return true;
    return false;
}

static strata_status_t label_all(memory_t *memory, const strata_arguments_t *arguments) {
    size_t count = arguments->strategy_count;
    for (size_t i = 0; i < count; i++) {
        const char *label = arguments->strategies[i].label;
        if (!label) continue;
        char *shown = memory->loaded[i].label;
        strcpy(shown, label);
        strata_make_printable(shown, false);
        if (is_label_used(memory, count, i, shown))
            return strata_fail(STRATA_E_INVALID, 0, "two strategies have the label \"%s\"; give each its own", shown);
    }
    for (size_t i = 0; i < count; i++) {
        loaded_t *loaded = &memory->loaded[i];
        char label[STRATA_ARGUMENT_LABEL];
        if (arguments->strategies[i].label) continue;
        strata_named_label(arguments->strategies[i].name, label, sizeof label);
        snprintf(loaded->label, sizeof loaded->label, "%s", label);
        for (unsigned number = 2; is_label_used(memory, count, i, loaded->label); number++)
            snprintf(loaded->label, sizeof loaded->label, "%s#%u", label, number % 10000);
    }
    return STRATA_OK;
}

/* ---- devices ----------------------------------------------------------------------------------------------------------- */

/* A GPU that was not demanded (--device gpu:0 demands one) is simulated if there is none. */
static strata_status_t choose_target(const strata_arguments_t *arguments, strata_strategy_t *strategy, strata_target_t *target) {
    static bool told;
    const char *device = arguments->device ? arguments->device : strategy->devices, *shown;
    bool insists = arguments->device && strcmp(device, "gpu") != 0;
    uint32_t count = 0;
    strata_device_choice_t choice = strategy->device_choice;
    strata_status_t status = STRATA_OK;
    if (arguments->device)
        status = strata_devices_choose(strategy->memory, device, NULL, STRATA_FILE_NAMED_BY_USER, &choice, &shown);
    if (status == STRATA_OK) strata_target_of(&choice, target);
    if (status != STRATA_OK || target->profile) return status;
    status = strata_cuda_count(&count);
    if (status == STRATA_OK && target->ordinal < count) return STRATA_OK;
    if (status == STRATA_OK)
        status = strata_fail(STRATA_E_NO_DEVICE, 0, "the driver has %u devices, and gpu:%u is not one of them", count,
                             target->ordinal);
    if (insists) {
        char why[256];
        snprintf(why, sizeof why, "%.250s", strata_last_error()->text);
        return strata_fail(status, 0, "--device %s: %s; write --device sim:h100 to simulate one", device, why);
    }
    if (!told) fprintf(stderr, "strata: no GPU (%s): simulating h100\n", strata_last_error()->text);
    told = true;
    return strata_target_parse("sim:h100", target);
}

static strata_status_t make_candidates(memory_t *memory, const strata_arguments_t *arguments) {
    for (size_t i = 0; i < arguments->strategy_count; i++) {
        loaded_t *loaded = &memory->loaded[i];
        strata_candidate_t *candidate = &memory->candidates[i];
        memory->given[i] = arguments->strategies[i].name;
        *candidate = (strata_candidate_t){.label = loaded->label,
                                          .strategy = loaded->strategy,
                                          .options = {.set = loaded->set, .count = loaded->set_count},
                                          .target = {.capacity = arguments->capacity, .host_jitter = arguments->host_jitter}};
        strata_status_t status = choose_target(arguments, loaded->strategy, &candidate->target);
        if (status != STRATA_OK) return status;
    }
    return STRATA_OK;
}

/* ---- presets that the device can run ------------------------------------------------------------------------------------ */

/* Serves one small block on one device. Fails with E_NO_MEMORY if the strategy preallocates more than the device has. */
static strata_status_t try_to_run(const strata_candidate_t *candidate) {
    char path[] = "", *tags[] = {path}, *stacks[] = {path};
    strata_trace_stream_t stream = {.number = 0};
    strata_trace_event_t events[] = {{.value = 256, .op = STRATA_TRACE_alloc, .pool = STRATA_TRACE_NO_POOL},
                                     {.op = STRATA_TRACE_free, .pool = STRATA_TRACE_NO_POOL}};
    strata_trace_t trace = {.path = path,
                            .events = events,
                            .count = 2,
                            .streams = &stream,
                            .stream_count = 1,
                            .tags = tags,
                            .tag_count = 1,
                            .stacks = stacks,
                            .stack_count = 1,
                            .lifetimes = 1,
                            .devices = 1,
                            .places = 1u << STRATA_PLACE_GPU,
                            .peak_requested = 256};
    strata_run_options_t options = {.target = candidate->target};
    strata_run_result_t *result = strata_host_new(1, sizeof *result);
    if (!result) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_run(&trace, candidate->strategy, &options, result);
    if (status == STRATA_OK && result->figures.failed_operations > result->figures.oom_count)
        status = strata_fail(STRATA_E_UNSUPPORTED, 0, "%s", result->first_failure);
    strata_host_delete(result);
    return status;
}

static void move_candidate(memory_t *memory, size_t from, size_t to) {
    if (from == to) return;
    strata_figure_options_t options = memory->candidates[from].options;
    memory->loaded[to] = memory->loaded[from];
    memory->given[to] = memory->given[from];
    memory->candidates[to] = memory->candidates[from];
    memory->candidates[to].label = memory->loaded[to].label;
    memory->candidates[to].options = (strata_figure_options_t){.set = memory->loaded[to].set, .count = options.count};
    memory->loaded[from].strategy = NULL;
}

static strata_status_t drop_unsupported(memory_t *memory, const strata_arguments_t *arguments, size_t *count) {
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        strata_status_t status = arguments->strategies[i].if_possible ? try_to_run(&memory->candidates[i]) : STRATA_OK;
        if (status == STRATA_E_HOST_MEMORY) return status;
        if (status == STRATA_OK) {
            move_candidate(memory, i, kept++);
            continue;
        }
        fprintf(stderr, "strata: --strategy all: %s is left out: %s\n", memory->given[i], strata_last_error()->text);
        strata_strategy_delete(memory->loaded[i].strategy);
        memory->loaded[i].strategy = NULL;
    }
    *count = kept;
    if (kept > 0 || arguments->strategy_count == 0) return STRATA_OK;
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "--strategy all: the device cannot run any preset; the reasons are above");
}

strata_status_t strata_candidates_load(const strata_arguments_t *arguments, strata_candidates_t *candidates) {
    memory_t *memory = strata_host_new(1, sizeof *memory);
    if (!memory) return STRATA_E_HOST_MEMORY;
    *candidates = (strata_candidates_t){
        .all = memory->candidates, .given = memory->given, .count = arguments->strategy_count, .memory = memory};
    strata_status_t status = load_all(memory, arguments);
    if (status == STRATA_OK) status = label_all(memory, arguments);
    if (status == STRATA_OK) status = make_candidates(memory, arguments);
    if (status == STRATA_OK) status = drop_unsupported(memory, arguments, &candidates->count);
    if (status != STRATA_OK) strata_candidates_delete(candidates);
    return status;
}

void strata_candidates_delete(strata_candidates_t *candidates) {
    memory_t *memory = candidates->memory;
    if (!memory) return;
    for (size_t i = 0; i < candidates->count; i++) strata_strategy_delete(memory->loaded[i].strategy);
    strata_host_delete(memory->environment);
    strata_host_delete(memory);
    *candidates = (strata_candidates_t){0};
}
