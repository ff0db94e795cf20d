/* Changes the strategy of a facade that has no live blocks. */
#include <string.h>

#include "allocation/report/log.h"
#include "facade/graphs/graphs.h"
#include "facade/open/idle.h"
#include "facade/open/life.h"
#include "facade/pause/pause.h"
#include "facade/registry/inside.h"
#include "facade/registry/plans.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"

/* The parts of a facade that come from its strategy. */
typedef struct built {
    strata_strategy_t *strategy;
    bool owns_strategy;
    strata_plan_t *plans;
    strata_domain_t *domains[STRATA_PLACE_KINDS][STRATA_FACADE_DEVICES];
} built_t;

static built_t detach_built(strata_facade_t *facade) {
    built_t built = {.strategy = facade->strategy, .owns_strategy = facade->owns_strategy, .plans = facade->plans};
    for (uint32_t i = 0; i < STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES; i++)
        built.domains[i / STRATA_FACADE_DEVICES][i % STRATA_FACADE_DEVICES] = atomic_exchange(
            &facade->domains[i / STRATA_FACADE_DEVICES][i % STRATA_FACADE_DEVICES], NULL);
    facade->plans = NULL;
    return built;
}

static void install_built(strata_facade_t *facade, const built_t *built) {
    facade->strategy = built->strategy;
    facade->owns_strategy = built->owns_strategy;
    facade->plans = built->plans;
    for (uint32_t i = 0; i < STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES; i++)
        atomic_store(&facade->domains[i / STRATA_FACADE_DEVICES][i % STRATA_FACADE_DEVICES],
                     built->domains[i / STRATA_FACADE_DEVICES][i % STRATA_FACADE_DEVICES]);
}

static void end_built(strata_facade_t *facade) {
    strata_facade_end_domains(facade);
    strata_host_delete(facade->plans);
    if (facade->owns_strategy) strata_strategy_delete(facade->strategy);
}

/* Settings by the program for a place hold under every strategy, even if one in between cannot serve the place. */
static void keep_settings(strata_facade_t *facade) {
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        facade->settings[strata_place_kind(domain->place)][strata_place_device(domain->place)] = strata_domain_settings(domain);
}

/* Changes everything or nothing: the old strategy's stacks stay until the new ones are built. */
static strata_status_t change(strata_facade_t *facade, strata_strategy_t *strategy) {
    keep_settings(facade);
    built_t before = detach_built(facade), after;
    facade->strategy = strategy;
    facade->owns_strategy = true;
    strata_status_t status = strata_plans_make(facade);
    if (status == STRATA_OK) status = strata_facade_build_default_stacks(facade);
    if (status == STRATA_OK) {
        after = detach_built(facade);
        install_built(facade, &before);
        end_built(facade);
        install_built(facade, &after);
        return STRATA_OK;
    }
    const strata_error_t reason = *strata_last_error();
    end_built(facade);
    install_built(facade, &before);
    (void)strata_fail_again(&reason);
    return status;
}

static strata_status_t check_is_idle(strata_facade_t *facade) {
    (void)strata_facade_still_pending(facade, true);
    strata_facade_sweep_pauses(facade);
    uint64_t live = strata_facade_report_leaks(facade, NULL, NULL);
    if (live == 0) return strata_facade_refuse_graphs(facade);
    return strata_fail(STRATA_E_BUSY, 0, "%llu allocations are live; free them before changing the strategy",
                       (unsigned long long)live);
}

/* The facade's devices stay, so its streams stay too. */
static strata_status_t load(strata_facade_t *facade, const strata_open_options_t *options, strata_strategy_t **strategy) {
    const char *devices = facade->strategy->devices;
    strata_open_options_t wanted = *options;
    if (wanted.devices && strcmp(wanted.devices, devices) != 0)
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "devices: \"%.40s\": a facade cannot change its devices (%s); open another facade", wanted.devices,
                           devices);
    wanted.devices = devices;
    return strata_facade_load(&wanted, strategy);
}

static strata_status_t load_and_change(strata_facade_t *facade, const strata_open_options_t *options) {
    strata_strategy_t *strategy;
    strata_status_t status = load(facade, options, &strategy);
    if (status != STRATA_OK) return status;
    strata_pauses_forget(facade);
    /* The new layers may need the memory of the old caches. */
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        strata_group_t *group = NULL;
        while ((group = strata_domain_next_group(domain, group)) != NULL) (void)strata_domain_release_group(domain, group);
    }
    status = change(facade, strategy);
    return status;
}

/* Stops the idle thread first, because its domains are destroyed. If the change fails, it restarts with
 * the old strategy's `idle:`. */
static strata_status_t change_exclusively(strata_facade_t *facade, const strata_open_options_t *options) {
    strata_idle_stop(facade);
    strata_status_t status = load_and_change(facade, options);
    const strata_error_t reason = *strata_last_error();
    strata_status_t started = strata_idle_start(facade);
    return status == STRATA_OK ? started : strata_fail_again(&reason);
}

strata_status_t strata_change_strategy(strata_t handle, const strata_open_options_t *options) {
    static const strata_open_options_t nothing = {.struct_size = sizeof nothing};
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    if (strata_log_is_reporting())
        return strata_fail(STRATA_E_BUSY, 0, "the log function is running; change the strategy after it returns");
    if (!options) options = &nothing;
    strata_status_t status = strata_facade_check_options(options, __func__);
    if (status == STRATA_OK) status = strata_inside_refuse(handle, "strata_change_strategy");
    if (status == STRATA_OK) status = check_is_idle(facade);
    if (status != STRATA_OK) return status;
    uint32_t flags = facade->flags;
    facade->flags = options->flags;
    status = strata_stream_ids_begin(facade);
    strata_log_hold();
    if (status == STRATA_OK) status = change_exclusively(facade, options);
    strata_log_unhold();
    if (status != STRATA_OK) facade->flags = flags;
    if (!(facade->flags & STRATA_OPEN_CHECK_STREAM_IDS)) strata_stream_ids_end(facade);
    strata_log_flush();
    return status;
}
