#include "lab/replay/run/ended.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "facade/registry/facade.h"
#include "platform/arithmetic.h"
#include "platform/place.h"
#include "trace/trace.h"

static void copy_reason(char *text, size_t room) { snprintf(text, room, "%.500s", strata_last_error()->text); }

void strata_run_ended_validate(strata_run_ended_t *ended, strata_t facade) {
    if (strata_validate(facade) != STRATA_OK) copy_reason(ended->unsound, sizeof ended->unsound);
}

static STRATA_PRINTF(2, 3) void add_leaked(strata_run_ended_t *ended, const char *format, ...) {
    size_t length = strlen(ended->leaked);
    if (length > 0) length += (size_t)snprintf(ended->leaked + length, sizeof ended->leaked - length, "; ");
    if (length >= sizeof ended->leaked) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ended->leaked + length, sizeof ended->leaked - length, format, arguments);
    va_end(arguments);
}

/* Returns the lost bytes of a place. They are reserved, but neither live nor kept by a layer for the next request. */
static uint64_t missing_in(strata_domain_t *domain) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    (void)strata_device_synchronise(domain->device);
    (void)strata_release(domain->facade, domain->place, NULL);
    if (strata_mem_info(domain->facade, domain->place, &info) != STRATA_OK) return 0;
    uint64_t reserved = strata_domain_reserved(domain);
    return reserved - strata_min(reserved, info.cached);
}

void strata_run_ended_empty(strata_run_ended_t *ended, strata_t handle) {
    uint32_t index = 0;
    strata_facade_t *facade = strata_facade_of(handle);
    strata_domain_t *domain;
    if (*ended->unsound || !facade) return;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        uint64_t missing = missing_in(domain);
        if (missing == 0) continue;
        add_leaked(ended, "%llu lost bytes of %s:%u, neither live nor cached", (unsigned long long)missing,
                   strata_place_name(strata_place_kind(domain->place)), strata_place_device(domain->place));
    }
}

void strata_run_ended_close(strata_run_ended_t *ended, strata_t facade) {
    if (strata_close(facade, STRATA_CLOSE_FORCE, NULL, NULL) != STRATA_OK)
        copy_reason(ended->close_error, sizeof ended->close_error);
}

void strata_run_ended_count(strata_run_ended_t *ended, const strata_machine_t *machine) {
    for (uint32_t i = 0; machine->world && i < machine->count; i++) {
        char text[256];
        strata_sim_held_t held;
        strata_sim_held(machine->devices[i], &held);
        strata_sim_held_text(&held, text, sizeof text);
        if (*text) add_leaked(ended, "%s of device %u, after the close", text, machine->devices[i]->ordinal);
    }
}
