#include "allocation/domain/domain.h"

#include "allocation/domain/paused.h"

#include "allocation/domain/driver_memory.h"
#include "allocation/domain/layer.h"
#include "allocation/domain/stack_list.h"
#include "allocation/graphs/graphs.h"
#include "allocation/reclaim/waiting.h"
#include "allocation/report/log.h"
#include "allocation/report/outcome.h"
#include "allocation/stack/threads.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/ranges/ranges.h"

strata_status_t strata_domain_create(strata_device_t *device, strata_place_t place, strata_t facade, const strata_plan_t *plan,
                                     strata_directory_t *directory, const strata_domain_said_t *said, strata_domain_t **out) {
    strata_domain_t *domain = strata_host_new(1, sizeof *domain);
    if (!domain) return STRATA_E_HOST_MEMORY;
    domain->device = device;
    domain->place = place;
    domain->facade = facade;
    domain->ordinary.domain = domain;
    domain->ordinary.plan = plan;
    domain->ordinary.name = "";
    domain->directory = directory;
    strata_lock_init(&domain->lock, STRATA_RANK_DOMAIN, device->lock_observer);
    strata_lock_init(&domain->met_lock, STRATA_RANK_EVENTS, device->lock_observer);
    strata_sent_init(domain);
    strata_condition_init(&domain->freed);
    strata_captures_init(&domain->own_captures);
    domain->captures = &domain->own_captures;
    strata_peaks_init(&domain->peaks);
    strata_quota_init(&domain->quota, said->limit);
    atomic_store(&domain->count, said->count);
    domain->deferral = said->deferral;
    atomic_store(&domain->peers, said->peers);
    atomic_store(&domain->default_stream, said->default_stream);
    atomic_store(&domain->default_from_first, said->default_stream != NULL);
    strata_stack_t *shared;
    strata_status_t status = strata_events_init(&domain->events, device);
    if (status == STRATA_OK) status = strata_quarantine_init(&domain->quarantine);
    if (status == STRATA_OK) status = strata_shared_stack_create(&domain->ordinary, &shared);
    if (status != STRATA_OK) {
        strata_domain_destroy(domain);
        return status;
    }
    *out = domain;
    return STRATA_OK;
}

strata_domain_said_t strata_domain_said(strata_domain_t *domain) {
    return (strata_domain_said_t){.limit = atomic_load(&domain->quota.limit),
                                  .count = atomic_load(&domain->count),
                                  .default_stream = atomic_load(&domain->default_stream),
                                  .deferral = domain->deferral,
                                  .peers = atomic_load(&domain->peers)};
}

void strata_domain_lose(strata_domain_t *domain) {
    int nothing = 0;
    if (!domain->lost || !atomic_compare_exchange_strong(&domain->lost->state, &nothing, 1)) return;
    domain->lost->error = *strata_last_error();
    atomic_store(&domain->lost->state, 2);
}

void strata_domain_destroy(strata_domain_t *domain) {
    strata_graphs_end(domain);
    /* Before the pools to which some of it goes back. */
    (void)strata_domain_offer_quarantined(domain);
    /* The youngest first: a shared stack was made before the stacks of its group that use it. */
    while (domain->last_stack) {
        strata_stack_t *stack = domain->last_stack;
        strata_domain_remove_stack(domain, stack);
        strata_stack_destroy(stack);
    }
    (void)strata_domain_offer_quarantined(domain);
    strata_driver_memory_end(domain);
    strata_sent_destroy(domain);
    strata_quarantine_destroy(&domain->quarantine);
    strata_events_destroy(&domain->events);
    strata_condition_destroy(&domain->freed);
    strata_quota_destroy(&domain->quota);
    strata_captures_destroy(&domain->own_captures);
    strata_lock_destroy(&domain->met_lock);
    strata_lock_destroy(&domain->lock);
    strata_host_delete(domain->chains);
    while (domain->ordinary.next) {
        strata_group_t *group = domain->ordinary.next;
        domain->ordinary.next = group->next;
        strata_host_delete(group);
    }
    strata_host_delete(domain);
}

/* ---- the list of stacks ---- */

/* Under the domain's lock: a walk leaves one stack for the next. */
static strata_stack_t *go_on(strata_stack_t *previous, strata_stack_t *found) {
    if (previous) previous->visitors--;
    if (found) found->visitors++;
    return found;
}

strata_stack_t *strata_domain_next_stack(strata_domain_t *domain, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *found = go_on(previous, strata_stack_list_next(domain, previous));
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_t *strata_domain_next_of_group(strata_domain_t *domain, const strata_group_t *group, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *found = go_on(previous, strata_stack_list_next_of_group(domain, group, previous));
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_t *strata_domain_next_orphan(strata_domain_t *domain, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *found = go_on(previous, strata_stack_list_next_orphan(domain, previous));
    strata_unlock(&domain->lock);
    return found;
}

bool strata_domain_has_orphans(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    bool has = domain->orphans > 0;
    strata_unlock(&domain->lock);
    return has;
}

void strata_domain_leave_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    stack->visitors--;
    strata_unlock(&domain->lock);
}

/* A new stack starts with the waiter bit if somebody waits, and with the directory if somebody frees by pointer. */
static void inherit(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_take(strata_stack_home(stack));
    if (domain->waiters > 0) stack->attention_free = STRATA_ATTENTION_WAITER;
    if (atomic_load(&domain->above)) strata_stack_close(stack, STRATA_CLOSED_ABOVE_LIMIT, true);
    strata_group_inherit(stack);
    strata_unlock(&strata_stack_home(stack)->lock);
    if (domain->pointers_noted) strata_stack_note_pointers(stack, domain->directory);
}

strata_status_t strata_domain_add_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_status_t status = strata_stack_list_room(domain);
    if (status != STRATA_OK) return status;
    strata_lock(&domain->lock);
    strata_stack_list_add(domain, stack);
    inherit(domain, stack);
    strata_unlock(&domain->lock);
    if (stack->group->graph || strata_graphs_open(domain)) strata_graphs_inherit(stack);
    return STRATA_OK;
}

void strata_domain_unlist(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_list_remove(domain, stack);
    strata_peaks_leave(&domain->peaks, stack);
#define ADD_FIELD(name, unit, kind, meaning) stack->group->ended.name += stack->figures.name;
    STRATA_STATISTICS_MAP(ADD_FIELD)
#undef ADD_FIELD
    stack->group->ended.peak_reserved_bytes += stack->peak_direct_bytes;
}

void strata_domain_remove_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    strata_domain_unlist(domain, stack);
    strata_unlock(&domain->lock);
}

/* ---- figures of the device ---- */

strata_status_t strata_domain_claim(strata_domain_t *domain, const strata_request_t *request, uint64_t bytes) {
    if (strata_quota_claim_in_time(&domain->quota, bytes, &domain->lock, NULL)) return STRATA_OK;
    strata_refused_by_place(request, bytes, strata_domain_reserved(domain), atomic_load(&domain->quota.limit));
    return strata_fail(STRATA_E_NO_MEMORY, 0, "strata_set_limit: %llu bytes asked, %llu of %llu are reserved",
                       (unsigned long long)bytes, (unsigned long long)strata_domain_reserved(domain),
                       (unsigned long long)atomic_load(&domain->quota.limit));
}

strata_status_t strata_domain_memory(strata_domain_t *domain, uint64_t *available, uint64_t *total) {
    const uint64_t most = UINT64_C(1) << 40, usual = UINT64_C(80) << 30;
    strata_status_t status = strata_device_mem_info(domain->device, available, total);
    if (status != STRATA_OK || *total <= most) return status;
    *total = usual;
    *available = strata_min(*available, usual);
    return STRATA_OK;
}

void strata_domain_unclaim(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_unclaim(&domain->quota, bytes);
    strata_quota_tell(&domain->quota, &domain->lock);
}

strata_status_t strata_domain_book(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
    strata_driver_memory_served(domain, address);
    strata_status_t status = domain->directory ? strata_directory_cover(domain->directory, address, bytes) : STRATA_OK;
    if (status != STRATA_OK) return status;
    strata_domain_count(domain, bytes);
    return STRATA_OK;
}

void strata_domain_note_peak(strata_domain_t *domain) {
    uint64_t now = strata_domain_reserved(domain), peak = atomic_load(&domain->peak_reserved_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&domain->peak_reserved_bytes, &peak, now)) {}
}

void strata_domain_count(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_serve(&domain->quota, bytes);
    strata_domain_note_peak(domain);
    strata_log_note(STRATA_LOG_GREW, domain->place, bytes, strata_domain_reserved(domain));
    strata_quota_tell(&domain->quota, &domain->lock);
}

void strata_domain_uncover(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
    if (domain->directory) strata_directory_uncover(domain->directory, address, bytes);
}

/* Addresses that were covered once still have their pages there. */
void strata_domain_recover(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
    if (domain->directory) (void)strata_directory_cover(domain->directory, address, bytes);
}

void strata_domain_discount(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_return(&domain->quota, bytes);
    strata_log_note(STRATA_LOG_SHRANK, domain->place, bytes, strata_domain_reserved(domain));
}

void strata_domain_unbook(strata_domain_t *domain, uint64_t bytes) {
    strata_domain_discount(domain, bytes);
    atomic_fetch_add(&domain->given_bytes, bytes);
}

void strata_domain_set_limit(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_set(&domain->quota, bytes, &domain->lock);
    strata_domain_wake(domain);
}

/* ---- all stacks ---- */

uint64_t strata_domain_poll(strata_domain_t *domain, strata_pending_t *pending) {
    *pending = (strata_pending_t){.ready_at = UINT64_MAX};
    strata_graphs_sweep(domain);
    pending->freed_bytes = strata_sent_look(domain);
    STRATA_DOMAIN_EACH(domain, stack) strata_stack_poll(stack, pending);
    return pending->freed_bytes;
}

/* The shared stacks come last, after those of threads: only then does a shared cache or a driver's pool hold everything that the
 * others gave back to it. Quarantined memory goes first, because it may belong to such a pool. */
enum { LEVELS = 3 };

static int level_of(const strata_stack_t *stack) { return !stack->is_shared ? 0 : stack->of_thread ? 1 : 2; }

/* The levels that a walk has met, a bit each; the first is walked in any case. Few domains have stacks of all, and some have thousands. */
typedef uint32_t levels_t;
static const levels_t first_level = 1;

static bool has_level(levels_t levels, int level) { return levels >> level & 1; }

static bool is_of_level(const strata_stack_t *stack, int level, levels_t *met) {
    int own = level_of(stack);
    *met |= (levels_t)1 << own;
    return own == level;
}

/* What others may take: everything except what a group keeps for itself, or for graphs, and what the device has already. */
static bool is_anybodys(const strata_stack_t *stack) {
    return !stack->group->keeps && !atomic_load(&stack->group->pinned) && !strata_group_is_paused(stack->group);
}

/* All except groups that keep theirs; `own` gives its own. */
uint64_t strata_domain_release(strata_domain_t *domain, const strata_group_t *own) {
    strata_range_begin(STRATA_RANGE_release, 0);
    uint64_t released = strata_domain_offer_quarantined(domain);
    levels_t levels = first_level;
    for (int level = 0; level < LEVELS; level++) {
        if (!has_level(levels, level)) continue;
        STRATA_DOMAIN_EACH(domain, stack) {
            bool gives = is_of_level(stack, level, &levels) && (is_anybodys(stack) || stack->group == own);
            if (gives) released += strata_stack_release(stack);
        }
    }
    strata_domain_sweep_orphans(domain);
    strata_range_end();
    return released;
}

uint64_t strata_domain_release_group(strata_domain_t *domain, const strata_group_t *group) {
    strata_range_begin(STRATA_RANGE_release, 0);
    uint64_t released = strata_domain_offer_quarantined(domain);
    levels_t levels = first_level;
    for (int level = 0; level < LEVELS; level++) {
        if (!has_level(levels, level)) continue;
        STRATA_DOMAIN_EACH_OF(domain, group, stack)
            if (is_of_level(stack, level, &levels)) released += strata_stack_release(stack);
    }
    strata_domain_sweep_orphans(domain);
    strata_range_end();
    return released;
}

uint64_t strata_domain_kept_bytes(strata_domain_t *domain, const strata_group_t *own) {
    uint64_t kept = 0;
    STRATA_DOMAIN_EACH(domain, stack)
        if (!is_anybodys(stack) && !strata_group_is_paused(stack->group) && stack->group != own)
            kept += strata_stack_idle_bytes(stack);
    return kept;
}

/* Of one group, or (NULL) of all that may be taken. */
static bool is_trimmed(const strata_stack_t *stack, const strata_group_t *only) {
    return only ? stack->group == only : is_anybodys(stack);
}

static uint64_t idle_of_all(strata_domain_t *domain, const strata_group_t *only) {
    uint64_t idle = 0;
    STRATA_DOMAIN_EACH(domain, stack)
        if (is_trimmed(stack, only)) idle += strata_stack_idle_bytes(stack);
    return idle;
}

/* A stack keeps what the others leave of `keep`. */
static uint64_t trim_level(strata_domain_t *domain, const strata_group_t *only, int level, uint64_t keep, levels_t *met) {
    uint64_t idle = idle_of_all(domain, only), released = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (!is_of_level(stack, level, met) || !is_trimmed(stack, only)) continue;
        uint64_t own = strata_stack_idle_bytes(stack), others = idle - strata_min(idle, own);
        released += strata_stack_trim(stack, keep - strata_min(keep, others));
        idle = others + strata_stack_idle_bytes(stack);
    }
    return released;
}

static uint64_t trim_all(strata_domain_t *domain, const strata_group_t *only, uint64_t keep) {
    uint64_t released = 0;
    levels_t levels = first_level;
    for (int level = 0; level < LEVELS; level++)
        if (has_level(levels, level)) released += trim_level(domain, only, level, keep, &levels);
    return released;
}

/* A block that a cache keeps may hold a chunk of the cache below it, whose rest is idle. Then the upper caches are asked to keep
 * less, until the bound is met, a walk finds nothing more, or everything was asked for: idle memory beyond that was freed by others
 * meanwhile. */
static void trim(strata_domain_t *domain, const strata_group_t *only, uint64_t keep) {
    uint64_t now, asked, left = keep;
    (void)strata_domain_offer_quarantined(domain);
    do {
        asked = left;
        now = trim_all(domain, only, asked);
        left /= 2;
    } while (now > 0 && asked > 0 && idle_of_all(domain, only) > keep);
    strata_domain_sweep_orphans(domain);
}

void strata_domain_trim(strata_domain_t *domain, uint64_t keep) { trim(domain, NULL, keep); }

void strata_domain_trim_group(strata_domain_t *domain, const strata_group_t *group, uint64_t keep) { trim(domain, group, keep); }

strata_stack_t *strata_domain_thread_shared(strata_group_t *group, uint64_t thread) {
    strata_domain_t *domain = group->domain;
    strata_stack_key_t key = {.pool = group->pool, .of_thread = thread, .is_shared = true};
    strata_lock(&domain->lock);
    strata_stack_t *found = strata_stack_list_find(domain, &key, group);
    strata_unlock(&domain->lock);
    return found;
}

bool strata_domain_serves(strata_domain_t *domain, strata_stream_t stream) {
    bool found = false;
    strata_lock(&domain->lock);
    for (const strata_stack_t *stack = domain->first_stack; stack && !found; stack = stack->next_of_all)
        found = stack->group->pool == 0 && strata_stack_serves(stack, stream, 0);
    strata_unlock(&domain->lock);
    return found;
}

/* Under the domain's lock. */
static strata_stack_t *find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_stack_key_t anybodys = {.pool = pool, .stream = stream, .thread = thread}, own = anybodys;
    own.of_thread = strata_threads_self();
    strata_stack_t *found = strata_stack_list_find(domain, &anybodys, NULL);
    return found ? found : strata_stack_list_find(domain, &own, NULL);
}

strata_stack_t *strata_domain_find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_lock(&domain->lock);
    strata_stack_t *found = find(domain, pool, stream, thread);
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_handle_t strata_domain_find_handle(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_lock(&domain->lock);
    strata_stack_t *found = find(domain, pool, stream, thread);
    strata_stack_handle_t handle = found ? strata_stack_handle_of(found) : 0;
    strata_unlock(&domain->lock);
    return handle;
}
