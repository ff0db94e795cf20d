/* Opens and closes facades. */
#include <stdio.h>
#include <string.h>

#include "allocation/graphs/graphs.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "allocation/uses/record_notes.h"
#include "config/config.h"
#include "facade/graphs/graphs.h"
#include "facade/open/idle.h"
#include "facade/open/life.h"
#include "facade/pause/pause.h"
#include "facade/registry/devices.h"
#include "facade/registry/inside.h"
#include "facade/registry/lookup.h"
#include "facade/registry/plans.h"
#include "facade/registry/registry.h"
#include "facade/report/report.h"
#include "facade/share/share.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/stream_names.h"

/* ---- close ---- */

typedef struct leaks {
    const strata_facade_t *facade;
    strata_leak_t *found;
    uint64_t count, room;
    strata_place_t place;
    strata_stack_t *stack;
} leaks_t;

static void note_leak(const strata_record_t *record, void *context) {
    leaks_t *leaks = context;
    if (leaks->count++ >= leaks->room) return;
    const strata_stack_t *server = strata_stack_of(record->stack);
    const strata_record_notes_t *notes = strata_record_notes_of(record);
    const strata_names_t *names = &leaks->facade->names;
    leaks->found[leaks->count - 1] = (strata_leak_t){
        .place = leaks->place,
        .stream = server->stream,
        .requested = (size_t)strata_record_requested(record),
        .tag = strata_names_text(names, notes ? notes->note.tag : 0),
        .step = notes ? notes->note.step : 0,
        .operator_name = strata_names_text(names, notes ? notes->note.operator_name : 0),
        .pool = server->group->pool ? server->group->name : "",
        .block = {(void *)(uintptr_t)record->ptr, (size_t)record->size, strata_ref_of(record)}};
}

static uint64_t walk_live(strata_facade_t *facade, leaks_t *leaks) {
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        leaks->place = domain->place;
        STRATA_DOMAIN_EACH(domain, stack) strata_stack_walk_live(stack, note_leak, leaks);
    }
    return leaks->count;
}

/* If the host has no memory for the list, the report is lost but the count is not. */
uint64_t strata_facade_report_leaks(strata_facade_t *facade, strata_leak_fn report, void *context) {
    leaks_t leaks = {.facade = facade};
    uint64_t live = walk_live(facade, &leaks);
    if (live == 0 || !report) return live;
    leaks_t again = {.facade = facade, .found = strata_host_new(live, sizeof(strata_leak_t)), .room = live};
    if (!again.found) return live;
    (void)walk_live(facade, &again);
    strata_inside_t frame;
    strata_inside_begin(&frame, facade->handle);
    for (uint64_t i = 0; i < again.count && i < again.room; i++) report(&again.found[i], context);
    strata_inside_end(&frame);
    strata_host_delete(again.found);
    return live;
}

uint64_t strata_facade_still_pending(strata_facade_t *facade, bool wait) {
    uint32_t index = 0;
    uint64_t pending_bytes = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        strata_pending_t pending;
        if (wait) (void)strata_device_synchronise(domain->device);
        (void)strata_domain_poll(domain, &pending);
        pending_bytes += pending.pending_bytes;
    }
    return pending_bytes;
}

void strata_facade_end_domains(strata_facade_t *facade) {
    for (uint32_t kind = 0; kind < STRATA_PLACE_KINDS; kind++)
        for (uint32_t number = 0; number < STRATA_FACADE_DEVICES; number++) {
            strata_domain_t *domain = atomic_exchange(&facade->domains[kind][number], NULL);
            if (domain) strata_domain_destroy(domain);
        }
}

static void end_facade(strata_facade_t *facade) {
    strata_idle_stop(facade);
    strata_facade_end_domains(facade);
    if (facade->owns_devices) strata_devices_close(facade);
    for (int i = 0; i < 2; i++)
        if (facade->directories[i]) strata_directory_delete(facade->directories[i]);
    strata_host_delete(facade->plans);
    strata_host_delete(facade->named_streams);
    strata_stream_names_forget(facade);
    strata_stream_ids_end(facade);
    if (facade->owns_strategy) strata_strategy_delete(facade->strategy);
    strata_condition_destroy(&facade->built);
    strata_condition_destroy(&facade->idle.wakes);
    strata_captures_destroy(&facade->captures);
    strata_lock_destroy(&facade->lock);
    strata_registry_remove(facade);
}

strata_status_t strata_close(strata_t handle, strata_close_mode_t mode, strata_leak_fn report, void *context) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    if ((uint32_t)mode > STRATA_CLOSE_FORCE) return strata_fail(STRATA_E_INVALID, 0, "strata_close: unknown mode %d", (int)mode);
    strata_status_t busy = strata_inside_refuse(handle, "strata_close");
    if (busy != STRATA_OK) return busy;
    if (strata_log_is_reporting()) return strata_fail(STRATA_E_BUSY, 0, "the log function is running; close after it returns");
    uint64_t pending = strata_facade_still_pending(facade, mode != STRATA_CLOSE_BUSY);
    strata_facade_sweep_pauses(facade);
    if (mode == STRATA_CLOSE_FORCE) strata_pauses_forget(facade);
    uint64_t live = strata_facade_report_leaks(facade, report, context);
    strata_status_t kept = mode == STRATA_CLOSE_FORCE ? STRATA_OK : strata_facade_refuse_graphs(facade);
    if (kept != STRATA_OK) return kept;
    if (mode != STRATA_CLOSE_FORCE && (live > 0 || (mode == STRATA_CLOSE_BUSY && pending > 0)))
        return strata_fail(STRATA_E_BUSY, 0, "%llu allocations are live, %llu bytes are deferred frees", (unsigned long long)live,
                           (unsigned long long)pending);
    uint64_t imports = strata_imports_live(facade);
    if (mode != STRATA_CLOSE_FORCE && imports > 0)
        return strata_fail(STRATA_E_BUSY, 0, "%llu imports are live; end them first (strata_import_end)",
                           (unsigned long long)imports);
    strata_unreported_t *unreported = &facade->unreported;
    strata_idle_stop(facade);
    strata_imports_end_all(facade);
    strata_pauses_forget(facade);
    strata_facade_end_domains(facade);
    strata_status_t status = STRATA_OK;
    if (atomic_load(&unreported->state) != 0)
        status = strata_fail(unreported->error.status, 0, "the facade is closed, but %s", unreported->error.text);
    end_facade(facade);
    strata_log_flush();
    return status;
}

/* ---- open ---- */

static strata_status_t make_directories(strata_facade_t *facade) {
    strata_status_t status = strata_directory_new(8, &facade->directories[0]);
    return status == STRATA_OK ? strata_directory_new(6, &facade->directories[1]) : status;
}

strata_status_t strata_facade_build_default_stacks(strata_facade_t *facade) {
    for (uint32_t number = 0; number < STRATA_FACADE_DEVICES; number++) {
        if (!facade->devices[number]) continue;
        for (uint32_t kind = 0; kind < STRATA_PLACE_KINDS; kind++) {
            strata_place_t place = strata_place((strata_place_kind_t)kind, strata_place_is_ownerless(kind) ? 0 : number);
            strata_stack_t *stack;
            strata_status_t status = strata_facade_stack(facade, place, NULL, &stack);
            if (status != STRATA_OK && status != STRATA_E_UNSUPPORTED) return status;
        }
    }
    return STRATA_OK;
}

static void init_limits(strata_facade_t *facade) {
    for (uint32_t kind = 0; kind < STRATA_PLACE_KINDS; kind++)
        for (uint32_t number = 0; number < STRATA_FACADE_DEVICES; number++) facade->settings[kind][number].limit = UINT64_MAX;
}

static strata_status_t begin_facade(uint32_t flags, strata_facade_t **facade) {
    if (strata_lookup_forked()) return strata_fail(STRATA_E_FORKED, 0, "a child of fork() cannot open a facade");
    strata_status_t status = strata_registry_add(facade);
    if (status != STRATA_OK) return status;
    (*facade)->flags = flags;
    (*facade)->free_memory = strata_facade_run_callbacks;
    init_limits(*facade);
    atomic_store(&(*facade)->unreported.state, 0);
    strata_lock_init(&(*facade)->lock, STRATA_RANK_FACADE, NULL);
    strata_condition_init(&(*facade)->built);
    strata_condition_init(&(*facade)->idle.wakes);
    strata_captures_init(&(*facade)->captures);
    (*facade)->captures.places = &(*facade)->domains[0][0];
    (*facade)->captures.place_count = STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES;
    strata_names_init(&(*facade)->names);
    return STRATA_OK;
}

static strata_status_t get_ready(strata_facade_t *facade) {
    strata_status_t status = strata_facade_build_default_stacks(facade);
    if (status == STRATA_OK) status = strata_idle_start(facade);
    return status;
}

/* If the facade does not open, everything that was created is destroyed, whatever the status. */
static strata_status_t finish_facade(strata_facade_t *facade, strata_status_t status, bool ready, strata_t *handle) {
    if (status == STRATA_OK) status = make_directories(facade);
    if (status == STRATA_OK) status = strata_stream_ids_begin(facade);
    if (status == STRATA_OK) status = strata_plans_make(facade);
    if (status == STRATA_OK && ready) status = get_ready(facade);
    if (status != STRATA_OK) {
        const strata_error_t reason = *strata_last_error();
        end_facade(facade);
        (void)strata_fail_again(&reason);
        return status;
    }
    *handle = facade->handle;
    return STRATA_OK;
}

static strata_status_t open_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count, uint32_t flags,
                               bool ready, strata_t *handle) {
    strata_facade_t *facade;
    if (count > STRATA_FACADE_DEVICES) return strata_fail(STRATA_E_LIMIT, 0, "at most %d devices", STRATA_FACADE_DEVICES);
    strata_status_t status = begin_facade(flags, &facade);
    if (status != STRATA_OK) return status;
    facade->strategy = (strata_strategy_t *)(uintptr_t)strategy; /* not owned, never written */
    for (uint32_t i = 0; i < count; i++) facade->devices[devices[i]->ordinal] = devices[i];
    return finish_facade(facade, STRATA_OK, ready, handle);
}

strata_status_t strata_facade_open_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count,
                                      uint32_t flags, strata_t *handle) {
    return open_on(strategy, devices, count, flags, true, handle);
}

strata_status_t strata_facade_begin_on(const strata_strategy_t *strategy, strata_device_t *const *devices, uint32_t count,
                                       uint32_t flags, strata_t *handle) {
    return open_on(strategy, devices, count, flags, false, handle);
}

strata_status_t strata_facade_ready(strata_t handle) {
    strata_facade_t *facade = strata_facade_of(handle);
    return facade ? get_ready(facade) : strata_last_error()->status;
}

strata_status_t strata_facade_load(const strata_open_options_t *options, strata_strategy_t **strategy) {
    strata_config_request_t request = {.preset = options->preset,
                                       .file = options->file,
                                       .text = options->text,
                                       .set = options->set,
                                       .set_count = options->set_count,
                                       .devices = options->devices,
                                       .by_program = true,
                                       .environment = !(options->flags & STRATA_OPEN_IGNORE_ENVIRONMENT),
                                       .allow_code = (options->flags & STRATA_OPEN_ALLOW_CODE) != 0};
    return strata_config_load(&request, strategy);
}

/* A larger count means that the program did not initialize `set_count`. */
enum { SETTINGS_MAX = 1 << 16 };

static strata_status_t check_settings(const strata_open_options_t *options, const char *function) {
    size_t count = options->set_count;
    if (count > SETTINGS_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "%s: `set_count` is %zu; the maximum is %d", function, count, SETTINGS_MAX);
    if (count > 0 && !options->set)
        return strata_fail(STRATA_E_INVALID, 0, "%s: `set` is NULL and `set_count` is %zu", function, count);
    for (size_t i = 0; i < count; i++)
        if (!options->set[i])
            return strata_fail(STRATA_E_INVALID, 0, "%s: `set[%zu]` is NULL and `set_count` is %zu", function, i, count);
    return STRATA_OK;
}

strata_status_t strata_facade_check_options(const strata_open_options_t *options, const char *function) {
    strata_status_t status = strata_check_options(options, sizeof *options, sizeof *options, function, "options");
    if (status != STRATA_OK) return status;
    uint32_t unknown = options->flags & ~(uint32_t)(STRATA_OPEN_IGNORE_ENVIRONMENT | STRATA_OPEN_CHECK_STREAM_IDS |
                                                    STRATA_OPEN_ALLOW_CODE | STRATA_OPEN_CHECK_CAPTURES);
    if (!unknown) return check_settings(options, function);
    return strata_fail(STRATA_E_INVALID, 0,
                       "flags: %#x is none of STRATA_OPEN_IGNORE_ENVIRONMENT, STRATA_OPEN_CHECK_STREAM_IDS, "
                       "STRATA_OPEN_ALLOW_CODE, STRATA_OPEN_CHECK_CAPTURES",
                       (unsigned)unknown);
}

strata_status_t strata_open(const strata_open_options_t *options, strata_t *handle) {
    STRATA_REFUSE_NULL_AS(handle, "facade", STRATA_E_INVALID);
    static const strata_open_options_t nothing = {.struct_size = sizeof nothing};
    if (!options) options = &nothing;
    strata_facade_t *facade;
    strata_status_t status = strata_facade_check_options(options, __func__);
    if (status == STRATA_OK) status = begin_facade(options->flags, &facade);
    if (status != STRATA_OK) return status;
    facade->owns_strategy = facade->owns_devices = true;
    status = strata_facade_load(options, &facade->strategy);
    if (status == STRATA_OK) status = strata_devices_open(facade);
    status = finish_facade(facade, status, true, handle);
    strata_log_flush();
    return status;
}
