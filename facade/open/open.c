/* The life of facades: handles, devices, domains, stacks. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "allocation/call/record_notes.h"
#include "allocation/graphs/graphs.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "config/config.h"
#include "facade/graphs/graphs.h"
#include "facade/open/idle.h"
#include "facade/open/life.h"
#include "facade/open/planner.h"
#include "facade/pause/pause.h"
#include "facade/registry/devices.h"
#include "facade/registry/inside.h"
#include "facade/registry/lookup.h"
#include "facade/registry/plans.h"
#include "facade/serve/long_way.h"
#include "facade/share/share.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/stream_names.h"

strata_facade_t *_Atomic strata_facades[STRATA_FACADES];
/* Guards the table's slots; no other lock is taken under it. */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static uint64_t generations[STRATA_FACADES];
static _Atomic bool ever_opened;

bool strata_facade_ever_opened(void) { return atomic_load(&ever_opened); }

static uint64_t generation_of(uint64_t slot) {
    pthread_mutex_lock(&table);
    uint64_t generation = generations[slot];
    pthread_mutex_unlock(&table);
    return generation;
}

strata_facade_t *strata_facade_of(strata_t handle) {
    if (strata_lookup_forked()) {
        strata_fail(STRATA_E_FORKED, 0, "the process was forked after the facade was opened: a child cannot use its devices");
        return NULL;
    }
    strata_facade_t *facade = atomic_load_explicit(&strata_facades[handle % STRATA_FACADES], memory_order_acquire);
    if (handle != 0 && facade && facade->handle == handle) return facade;
    bool closed = handle != 0 && facade && handle / STRATA_FACADES <= generation_of(handle % STRATA_FACADES);
    strata_fail(STRATA_E_STALE, 0, "facade %#llx is not open: %s", (unsigned long long)handle,
                closed        ? "it was closed"
                : handle == 0 ? "0 names none"
                              : "there never was such a one");
    return NULL;
}

/* Under the table's lock: a facade that closes takes it before its names end. */
bool strata_facade_name(strata_t handle, uint32_t number, char *text, size_t capacity) {
    pthread_mutex_lock(&table);
    strata_facade_t *facade = atomic_load(&strata_facades[handle % STRATA_FACADES]);
    bool known = number != 0 && handle != 0 && facade && facade->handle == handle && facade->names.text;
    if (known) snprintf(text, capacity, "%s", strata_names_text(&facade->names, number));
    pthread_mutex_unlock(&table);
    return known;
}

bool strata_facade_is_open(strata_t handle) {
    const strata_facade_t *facade = atomic_load_explicit(&strata_facades[handle % STRATA_FACADES], memory_order_acquire);
    return handle != 0 && facade && facade->handle == handle;
}

/* A struct with a handle of its own. Structs are never freed, so a stale handle always finds one to be compared with. */
static strata_status_t take_slot(strata_facade_t **out) {
    strata_facade_t *fresh = strata_host_new(1, sizeof *fresh);
    if (!fresh) return STRATA_E_HOST_MEMORY;
    strata_status_t status = STRATA_E_LIMIT;
    pthread_mutex_lock(&table);
    for (uint64_t i = 0; i < STRATA_FACADES && status != STRATA_OK; i++) {
        strata_facade_t *facade = atomic_load(&strata_facades[i]);
        if (facade && facade->handle != 0) continue;
        if (!facade) {
            facade = fresh;
            fresh = NULL;
        }
        /* Threads with old handles may be comparing: the handle is written by itself, and last. */
        memset((unsigned char *)facade + sizeof facade->handle, 0, sizeof *facade - sizeof facade->handle);
        facade->handle = ++generations[i] * STRATA_FACADES + i;
        atomic_store_explicit(&strata_facades[i], facade, memory_order_release);
        *out = facade;
        status = STRATA_OK;
    }
    pthread_mutex_unlock(&table);
    strata_host_delete(fresh);
    return status == STRATA_OK ? status : strata_fail(status, 0, "the process has %d facades, its most", STRATA_FACADES);
}

static void give_slot(strata_facade_t *facade) {
    pthread_mutex_lock(&table);
    facade->handle = 0;
    pthread_mutex_unlock(&table);
    strata_lookup_forget_all();
}

/* ---- building: one thread at a time, no lock held ---- */

void strata_facade_begin_building(strata_facade_t *facade) {
    strata_lock(&facade->lock);
    while (facade->building) strata_condition_wait(&facade->built, &facade->lock, UINT64_MAX);
    facade->building = true;
    strata_unlock(&facade->lock);
    strata_log_hold();
}

void strata_facade_end_building(strata_facade_t *facade) {
    strata_log_let_go();
    strata_lock(&facade->lock);
    facade->building = false;
    strata_condition_broadcast(&facade->built);
    strata_unlock(&facade->lock);
}

/* The device that serves a place: its own; for host memory the first that is open. */
static strata_status_t device_of(strata_facade_t *facade, strata_place_t place, strata_device_t **device) {
    uint32_t number = strata_place_device(place);
    if (strata_place_is_ownerless(strata_place_kind(place))) {
        for (number = 0; number < STRATA_FACADE_DEVICES && !facade->devices[number]; number++) {}
    }
    if (number < STRATA_FACADE_DEVICES && !facade->devices[number] && facade->every_device) {
        strata_status_t status = strata_devices_open_one(facade, number);
        if (status != STRATA_OK) return status;
    }
    if (number >= STRATA_FACADE_DEVICES || !facade->devices[number])
        return strata_fail(STRATA_E_INVALID, 0, "the strategy's devices (%s) have no number %u", facade->strategy->devices,
                           (unsigned)strata_place_device(place));
    *device = facade->devices[number];
    return STRATA_OK;
}

void strata_facade_watch_deferred(strata_t handle, strata_place_t place, strata_deferral_t *deferral) {
    strata_facade_of(handle)->said[strata_place_kind(place)][strata_place_device(place)].deferral = deferral;
}

static strata_status_t build_domain(strata_facade_t *facade, strata_place_t place, strata_domain_t **out) {
    strata_device_t *device = NULL;
    strata_status_t status = device_of(facade, place, &device);
    if (status != STRATA_OK) return status;
    strata_place_kind_t kind = strata_place_kind(place);
    if (kind == STRATA_PLACE_MANAGED && !device->capabilities.managed)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s has no managed memory", device->name);
    strata_domain_t *domain;
    status = strata_domain_create(device, place, facade->handle, strata_plans_of(facade, place),
                                  facade->directories[kind == STRATA_PLACE_HOST], &facade->said[kind][strata_place_device(place)],
                                  &domain);
    if (status != STRATA_OK) return status;
    domain->captures = &facade->captures;
    domain->free_memory = strata_facade_ask_callbacks;
    domain->free_memory_context = facade;
    domain->want_plans = strata_planner_wake;
    domain->lost = &facade->lost;
    domain->devices = facade->devices;
    domain->device_count = STRATA_FACADE_DEVICES;
    domain->pointers_noted = atomic_load(&facade->noted) != NULL;
    atomic_store(&facade->domains[kind][strata_place_device(place)], domain);
    *out = domain;
    return STRATA_OK;
}

strata_status_t strata_facade_domain(strata_facade_t *facade, strata_place_t place, strata_domain_t **out) {
    uint32_t kind = strata_place_kind(place), number = strata_place_device(place);
    if (kind >= STRATA_PLACE_KINDS || number >= STRATA_FACADE_DEVICES || (strata_place_is_ownerless(kind) && number != 0))
        return strata_fail(STRATA_E_INVALID, 0, "no such place: kind %u, device %u", kind, number);
    *out = atomic_load(&facade->domains[kind][number]);
    if (*out) return STRATA_OK;
    strata_facade_begin_building(facade);
    *out = atomic_load(&facade->domains[kind][number]);
    strata_status_t status = *out ? STRATA_OK : build_domain(facade, place, out);
    strata_facade_end_building(facade);
    return status;
}

strata_stream_t strata_facade_stream_key(const strata_domain_t *domain, strata_stream_t stream) {
    if (strata_place_is_ownerless(strata_place_kind(domain->place)) || stream == STRATA_STREAM_LEGACY) return NULL;
    return stream ? stream : atomic_load(&domain->default_stream);
}

static strata_status_t build_stack(strata_facade_t *facade, strata_domain_t *domain, uint64_t pool, strata_stream_t stream,
                                   uint64_t thread, strata_stack_t **stack) {
    const strata_named_stream_t *named = strata_facade_named_stream(facade, domain->place, stream);
    strata_stack_for_t whose = {.stream = stream, .name = named ? named->name : NULL, .thread = thread};
    strata_group_t *group;
    strata_status_t status = strata_plans_group(facade, domain, pool, whose.name, &group);
    if (status != STRATA_OK) return status;
    /* Threads come and go; what they leave is collected when the next one comes. */
    if (thread || group->plan->threaded) strata_domain_forget_dead_threads(domain);
    return strata_stack_create(group, &whose, stack);
}

strata_status_t strata_facade_stack_handle(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                           strata_stack_handle_t *handle) {
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_stream_t key = strata_facade_stream_key(domain, stream);
    uint64_t thread = key == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
    *handle = strata_domain_find_handle(domain, pool, key, thread);
    if (*handle) return STRATA_OK;
    strata_stack_t *built;
    strata_facade_begin_building(facade);
    *handle = strata_domain_find_handle(domain, pool, key, thread);
    if (!*handle) status = build_stack(facade, domain, pool, key, thread, &built);
    if (!*handle && status == STRATA_OK) *handle = strata_stack_handle_of(built);
    strata_facade_end_building(facade);
    return status;
}

strata_status_t strata_facade_pool_stack(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                         strata_stack_t **stack) {
    strata_stack_handle_t handle;
    strata_status_t status = strata_facade_stack_handle(facade, place, pool, stream, &handle);
    if (status == STRATA_OK) *stack = strata_stack_of(strata_stack_handle_number(handle));
    return status;
}

strata_status_t strata_facade_stack(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, strata_stack_t **stack) {
    return strata_facade_pool_stack(facade, place, 0, stream, stack);
}

strata_domain_t *strata_facade_next_domain(strata_facade_t *facade, uint32_t *index) {
    while (*index < STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES) {
        uint32_t at = (*index)++;
        strata_domain_t *domain = atomic_load(&facade->domains[at / STRATA_FACADE_DEVICES][at % STRATA_FACADE_DEVICES]);
        if (domain) return domain;
    }
    return NULL;
}

/* The shared stack last: what other stacks have put into its slab and not noted is there when they all note. */
static void note_stacks(strata_domain_t *domain) {
    for (int shared = 0; shared < 2; shared++)
        STRATA_DOMAIN_EACH(domain, stack)
            if (stack->is_shared == (shared != 0)) strata_stack_note_pointers(stack, domain->directory);
}

/* One at a time with building: a domain that is published after this walk notes from its beginning. */
strata_status_t strata_facade_note_pointers(strata_facade_t *facade) {
    strata_facade_begin_building(facade);
    strata_status_t status = strata_directory_begin(facade->directories[0]);
    if (status == STRATA_OK) status = strata_directory_begin(facade->directories[1]);
    uint32_t index = 0;
    strata_domain_t *domain;
    while (status == STRATA_OK && (domain = strata_facade_next_domain(facade, &index)) != NULL) {
        strata_lock(&domain->lock);
        domain->pointers_noted = true;
        strata_unlock(&domain->lock);
        note_stacks(domain);
    }
    if (status == STRATA_OK) atomic_store_explicit(&facade->noted, facade->directories[0], memory_order_release);
    strata_facade_end_building(facade);
    return status;
}

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

/* If the host refuses the room, the report is lost but the count is not. */
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
    strata_planner_stop(facade);
    strata_facade_end_domains(facade);
    if (facade->owns_devices) strata_devices_close(facade);
    for (int i = 0; i < 2; i++)
        if (facade->directories[i]) strata_directory_delete(facade->directories[i]);
    strata_host_delete(facade->plans);
    strata_host_delete(facade->named_streams);
    strata_stream_names_forget(facade);
    strata_stream_ids_end(facade);
    if (facade->owns_strategy) strata_strategy_delete(facade->strategy);
    pthread_mutex_lock(&table);
    strata_names_destroy(&facade->names);
    pthread_mutex_unlock(&table);
    strata_condition_destroy(&facade->built);
    strata_condition_destroy(&facade->idle.wakes);
    strata_condition_destroy(&facade->planner.wakes);
    strata_captures_destroy(&facade->captures);
    strata_lock_destroy(&facade->lock);
    give_slot(facade);
}

strata_status_t strata_close(strata_t handle, strata_close_mode_t mode, strata_leak_fn report, void *context) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    if ((uint32_t)mode > STRATA_CLOSE_FORCE)
        return strata_fail(STRATA_E_INVALID, 0, "strata_close: there is no mode %d", (int)mode);
    strata_status_t busy = strata_inside_refuse(handle, "strata_close");
    if (busy != STRATA_OK) return busy;
    if (strata_log_is_telling()) return strata_fail(STRATA_E_BUSY, 0, "what the log is told of may be under way: close after it");
    uint64_t pending = strata_facade_still_pending(facade, mode != STRATA_CLOSE_BUSY);
    strata_facade_sweep_pauses(facade);
    if (mode == STRATA_CLOSE_FORCE) strata_pauses_forget(facade);
    uint64_t live = strata_facade_report_leaks(facade, report, context);
    strata_status_t kept = mode == STRATA_CLOSE_FORCE ? STRATA_OK : strata_facade_refuse_graphs(facade);
    if (kept != STRATA_OK) return kept;
    if (mode != STRATA_CLOSE_FORCE && (live > 0 || (mode == STRATA_CLOSE_BUSY && pending > 0)))
        return strata_fail(STRATA_E_BUSY, 0, "%llu allocations are live, %llu bytes wait for the device", (unsigned long long)live,
                           (unsigned long long)pending);
    uint64_t imports = strata_imports_live(facade);
    if (mode != STRATA_CLOSE_FORCE && imports > 0)
        return strata_fail(STRATA_E_BUSY, 0, "%llu imports are live: end them first (strata_import_end)",
                           (unsigned long long)imports);
    strata_lost_t *lost = &facade->lost;
    strata_idle_stop(facade);
    strata_planner_stop(facade);
    strata_imports_end_all(facade);
    strata_pauses_forget(facade);
    strata_facade_end_domains(facade);
    strata_status_t status = STRATA_OK;
    if (atomic_load(&lost->state) != 0)
        status = strata_fail(lost->error.status, 0, "the facade is closed, but %s", lost->error.text);
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

static void say_nothing(strata_facade_t *facade) {
    for (uint32_t kind = 0; kind < STRATA_PLACE_KINDS; kind++)
        for (uint32_t number = 0; number < STRATA_FACADE_DEVICES; number++) facade->said[kind][number].limit = UINT64_MAX;
}

static strata_status_t begin_facade(uint32_t flags, strata_facade_t **facade) {
    if (strata_lookup_forked()) return strata_fail(STRATA_E_FORKED, 0, "a child of fork() cannot open a facade");
    strata_status_t status = take_slot(facade);
    if (status != STRATA_OK) return status;
    atomic_store(&ever_opened, true);
    (*facade)->flags = flags;
    say_nothing(*facade);
    atomic_store(&(*facade)->lost.state, 0);
    strata_lock_init(&(*facade)->lock, STRATA_RANK_FACADE, NULL);
    strata_condition_init(&(*facade)->built);
    strata_condition_init(&(*facade)->idle.wakes);
    strata_condition_init(&(*facade)->planner.wakes);
    strata_captures_init(&(*facade)->captures);
    (*facade)->captures.places = &(*facade)->domains[0][0];
    (*facade)->captures.place_count = STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES;
    strata_names_init(&(*facade)->names);
    return STRATA_OK;
}

static strata_status_t get_ready(strata_facade_t *facade) {
    strata_status_t status = strata_facade_build_default_stacks(facade);
    if (status == STRATA_OK) status = strata_idle_start(facade);
    if (status == STRATA_OK) strata_planner_start(facade);
    return status;
}

/* Whatever the status, what was made ends if the facade does not open. */
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
enum { SETTINGS_MOST = 1 << 16 };

static strata_status_t check_settings(const strata_open_options_t *options, const char *function) {
    size_t count = options->set_count;
    if (count > SETTINGS_MOST)
        return strata_fail(STRATA_E_INVALID, 0, "%s: `set_count` is %zu; the maximum is %d", function, count, SETTINGS_MOST);
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
