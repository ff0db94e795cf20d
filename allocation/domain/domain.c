#include "allocation/domain/domain.h"

#include "allocation/reclaim/ladder.h"
#include "allocation/reclaim/refusal.h"
#include "allocation/report/log.h"
#include "allocation/stack/layer.h"
#include "allocation/stack/stack_list.h"
#include "allocation/stack/threads.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

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
    strata_condition_init(&domain->freed);
    strata_quota_init(&domain->quota, said->limit);
    atomic_store(&domain->count, said->count);
    atomic_store(&domain->default_stream, said->default_stream);
    atomic_store(&domain->default_from_first, said->default_stream != NULL);
    strata_stack_t *shared;
    strata_status_t status = strata_events_init(&domain->events, device);
    if (status == STRATA_OK) status = strata_meter_init(&domain->deferred);
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
                                  .default_stream = atomic_load(&domain->default_stream)};
}

void strata_domain_lose(strata_domain_t *domain) {
    int nothing = 0;
    if (!domain->lost || !atomic_compare_exchange_strong(&domain->lost->state, &nothing, 1)) return;
    domain->lost->error = *strata_last_error();
    atomic_store(&domain->lost->state, 2);
}

void strata_domain_destroy(strata_domain_t *domain) {
    /* Before the pools that some of it goes back to. */
    (void)strata_domain_offer_quarantined(domain);
    /* The youngest first: a shared stack, which the others of its group stand on, was made before them. */
    while (domain->stack_count > 0) {
        strata_stack_t *stack = domain->stacks[domain->stack_count - 1];
        strata_domain_remove_stack(domain, stack);
        strata_stack_destroy(stack);
    }
    (void)strata_domain_offer_quarantined(domain);
    strata_quarantine_destroy(&domain->quarantine);
    strata_meter_destroy(&domain->deferred);
    strata_events_destroy(&domain->events);
    strata_condition_destroy(&domain->freed);
    strata_quota_destroy(&domain->quota);
    strata_lock_destroy(&domain->lock);
    strata_host_delete(domain->stacks);
    while (domain->ordinary.next) {
        strata_group_t *group = domain->ordinary.next;
        domain->ordinary.next = group->next;
        strata_host_delete(group);
    }
    strata_host_delete(domain);
}

/* ---- the list of stacks ---- */

strata_stack_t *strata_domain_next_stack(strata_domain_t *domain, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    if (previous) previous->visitors--;
    strata_stack_t *found = strata_stack_list_next(domain, previous);
    if (found) found->visitors++;
    strata_unlock(&domain->lock);
    return found;
}

void strata_domain_leave_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    stack->visitors--;
    strata_unlock(&domain->lock);
}

/* What a stack is born with: the waiter bit while somebody waits, and the directory once somebody frees by pointer. */
static void inherit(strata_domain_t *domain, strata_stack_t *stack) {
    if (domain->waiters > 0) stack->attention_free = STRATA_ATTENTION_ALL;
    if (atomic_load(&domain->above)) {
        stack->attention_free |= STRATA_ATTENTION_LIMIT;
        stack->attention_allocate |= STRATA_ATTENTION_CORE;
    }
    if (domain->pointers_noted) strata_stack_note_pointers(stack, domain->directory);
}

strata_status_t strata_domain_add_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_status_t status = strata_stack_list_room(domain);
    if (status != STRATA_OK) return status;
    strata_lock(&domain->lock);
    strata_stack_list_add(domain, stack);
    inherit(domain, stack);
    strata_unlock(&domain->lock);
    return STRATA_OK;
}

/* Under the lock. */
static void unlist(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_list_remove(domain, stack);
    if (stack->orphan) domain->orphans--;
#define ADD_FIELD(name, unit, meaning) stack->group->ended.name += stack->figures.name;
    STRATA_STATISTICS_MAP(ADD_FIELD)
#undef ADD_FIELD
    stack->group->ended.peak_reserved_bytes += stack->peak_direct_bytes;
}

void strata_domain_remove_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    unlist(domain, stack);
    strata_unlock(&domain->lock);
}

/* ---- figures of the device ---- */

strata_status_t strata_domain_claim(strata_domain_t *domain, uint64_t bytes) {
    if (strata_quota_claim_in_time(&domain->quota, bytes, &domain->lock, NULL)) return STRATA_OK;
    strata_refusal_note(&(strata_refusal_t){.by = STRATA_REFUSED_BY_PLACE,
                                            .asked = bytes,
                                            .used = strata_domain_reserved(domain),
                                            .limit = atomic_load(&domain->quota.limit)});
    return strata_fail(STRATA_E_NO_MEMORY, 0, "strata_set_limit: %llu bytes asked, %llu of %llu are reserved",
                       (unsigned long long)bytes, (unsigned long long)strata_domain_reserved(domain),
                       (unsigned long long)atomic_load(&domain->quota.limit));
}

void strata_domain_unclaim(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_unclaim(&domain->quota, bytes);
    strata_quota_tell(&domain->quota, &domain->lock);
}

strata_status_t strata_domain_book(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
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

/* What was covered once finds its pages there again. */
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
    STRATA_DOMAIN_EACH(domain, stack) strata_stack_poll(stack, pending);
    return pending->freed_bytes;
}

/* The shared stacks last, those of threads before: what one keeps itself (a cache, a driver's pool) is only then what the others gave it.
 * What nobody holds may be a pool's too: it goes first. */
enum { LEVELS = 3 };

static int level_of(const strata_stack_t *stack) { return !stack->is_shared ? 0 : stack->of_thread ? 1 : 2; }

/* What others may take: all but what a group keeps for itself. */
static bool is_anybodys(const strata_stack_t *stack) { return !stack->group->keeps; }

/* Of `only` where it is one, else of all but of those that keep theirs (`own` gives its own). */
static uint64_t release(strata_domain_t *domain, const strata_group_t *only, const strata_group_t *own) {
    uint64_t released = strata_domain_offer_quarantined(domain);
    for (int level = 0; level < LEVELS; level++)
        STRATA_DOMAIN_EACH(domain, stack) {
            bool wanted = only ? stack->group == only : is_anybodys(stack) || stack->group == own;
            if (wanted && level_of(stack) == level) released += strata_stack_release(stack);
        }
    strata_domain_sweep_orphans(domain);
    return released;
}

uint64_t strata_domain_release(strata_domain_t *domain, const strata_group_t *own) { return release(domain, NULL, own); }

uint64_t strata_domain_release_group(strata_domain_t *domain, const strata_group_t *group) { return release(domain, group, NULL); }

uint64_t strata_domain_kept_bytes(strata_domain_t *domain, const strata_group_t *own) {
    uint64_t kept = 0;
    STRATA_DOMAIN_EACH(domain, stack)
        if (!is_anybodys(stack) && stack->group != own) kept += strata_stack_idle_bytes(stack);
    return kept;
}

/* Of what may be taken. */
static uint64_t idle_of_all(strata_domain_t *domain) {
    uint64_t idle = 0;
    STRATA_DOMAIN_EACH(domain, stack)
        if (is_anybodys(stack)) idle += strata_stack_idle_bytes(stack);
    return idle;
}

/* A stack keeps what the others leave of `keep`. */
static uint64_t trim_level(strata_domain_t *domain, int level, uint64_t keep) {
    uint64_t idle = idle_of_all(domain), released = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (level_of(stack) != level || !is_anybodys(stack)) continue;
        uint64_t own = strata_stack_idle_bytes(stack), others = idle - strata_min(idle, own);
        released += strata_stack_trim(stack, keep - strata_min(keep, others));
        idle = others + strata_stack_idle_bytes(stack);
    }
    return released;
}

static uint64_t trim_all(strata_domain_t *domain, uint64_t keep) {
    uint64_t released = 0;
    for (int level = 0; level < LEVELS; level++) released += trim_level(domain, level, keep);
    return released;
}

/* What a cache keeps may hold fast a chunk of the cache below it, the rest of which is idle: then the upper ones keep less, until the
 * bound is met, a walk finds nothing more, or has asked for all: what is idle behind that others have freed meanwhile. */
uint64_t strata_domain_trim(strata_domain_t *domain, uint64_t keep) {
    uint64_t released = strata_domain_offer_quarantined(domain), now, asked, left = keep;
    do {
        asked = left;
        now = trim_all(domain, asked);
        released += now;
        left /= 2;
    } while (now > 0 && asked > 0 && idle_of_all(domain) > keep);
    strata_domain_sweep_orphans(domain);
    return released;
}

/* Whether the one thread that a stack serves has exited. */
static bool is_left(const strata_stack_t *stack) { return stack->of_thread != 0 && !strata_threads_is_alive(stack->of_thread); }

/* Under the lock: whether no stack stands on this shared stack of a thread. */
static bool carries_none(const strata_domain_t *domain, const strata_stack_t *shared) {
    for (uint32_t i = 0; i < domain->stack_count; i++)
        if (domain->stacks[i]->thread_shared == shared) return false;
    return true;
}

static bool is_passed_orphan(strata_stack_t *stack) { return stack->orphan && strata_stack_has_passed(stack); }

/* Likewise: whether the stack holds nothing, and nobody visits it. */
static bool may_end(const strata_domain_t *domain, strata_stack_t *stack) {
    return stack->visitors == 0 && (!stack->is_shared || carries_none(domain, stack)) && strata_stack_is_empty(stack);
}

/* The next stack that nobody will ask for anything any more, taken off the list; NULL: none. `threads`: of exited ones too. */
static strata_stack_t *take_ended(strata_domain_t *domain, bool threads) {
    strata_stack_t *taken = NULL;
    strata_lock(&domain->lock);
    for (uint32_t i = 0; i < domain->stack_count && !taken; i++) {
        strata_stack_t *stack = domain->stacks[i];
        if (((threads && is_left(stack)) || is_passed_orphan(stack)) && may_end(domain, stack)) taken = stack;
    }
    if (taken) unlist(domain, taken);
    strata_unlock(&domain->lock);
    return taken;
}

static void sweep(strata_domain_t *domain, bool threads) {
    strata_stack_t *stack;
    while ((stack = take_ended(domain, threads)) != NULL) strata_stack_destroy(stack);
}

void strata_domain_sweep_orphans(strata_domain_t *domain) { sweep(domain, false); }

/* Under the lock. */
static bool serves(const strata_stack_t *stack, strata_stream_t stream, uint64_t thread) {
    return !stack->is_shared && !stack->orphan && stack->stream == stream && stack->thread == thread;
}

/* Two threads that forget one stream at once both come: either event is behind all work from before, and one that tells will do. */
static void note_gone(strata_stack_t *stack, strata_handle_t event, bool told) {
    strata_lock(&stack->lock);
    strata_handle_t spare = event ? stack->gone : NULL;
    if (event) stack->gone = event;
    stack->told = stack->told || told;
    strata_unlock(&stack->lock);
    if (spare) strata_events_give(&stack->domain->events, spare);
}

/* All work of the stream that the stack's memory may still be in, as an event; where none can be had the host waits. */
static void mark_gone(strata_stack_t *stack) {
    strata_domain_t *domain = stack->domain;
    strata_handle_t event = NULL;
    if (strata_events_ensure(&domain->events, 1) == STRATA_OK) event = strata_events_take(&domain->events);
    if (event && strata_domain_record_event(domain, event, stack->stream) != STRATA_OK) {
        strata_events_give(&domain->events, event);
        event = NULL;
    }
    note_gone(stack, event, event || strata_domain_wait_for(domain, stack->stream));
}

/* A stack of the stream, of any group, kept from ending; its making and its end go by the domain's lock. */
static strata_stack_t *visit(strata_domain_t *domain, strata_stream_t stream) {
    strata_stack_t *stack = NULL;
    strata_lock(&domain->lock);
    for (uint32_t i = 0; i < domain->stack_count && !stack; i++)
        if (serves(domain->stacks[i], stream, 0)) stack = domain->stacks[i];
    if (stack) stack->visitors++;
    strata_unlock(&domain->lock);
    return stack;
}

static void make_orphan(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    if (!stack->orphan) {
        strata_stack_list_hide(domain, stack);
        domain->orphans++;
    }
    stack->orphan = true;
    strata_unlock(&domain->lock);
}

void strata_domain_forget_stream(strata_domain_t *domain, strata_stream_t stream) {
    /* The shared stack last: what the layers of a stack fill and give back when their stream ends is work of the stream too. */
    STRATA_DOMAIN_EACH(domain, each)
        if (!each->is_shared) strata_stack_stream_gone(each, stream);
    STRATA_DOMAIN_EACH(domain, each)
        if (each->is_shared) strata_stack_stream_gone(each, stream);
    strata_place_kind_t kind = strata_place_kind(domain->place);
    bool owns = kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED;
    strata_stack_t *stack;
    while (owns && (stack = visit(domain, stream)) != NULL) {
        mark_gone(stack);
        make_orphan(domain, stack);
        strata_domain_leave_stack(domain, stack);
    }
    strata_domain_sweep_orphans(domain);
}

strata_stack_t *strata_domain_thread_shared(strata_group_t *group, uint64_t thread) {
    strata_domain_t *domain = group->domain;
    strata_stack_key_t key = {.pool = group->pool, .of_thread = thread, .is_shared = true};
    strata_lock(&domain->lock);
    strata_stack_t *found = strata_stack_list_find(domain, &key, group);
    strata_unlock(&domain->lock);
    return found;
}

/* The stacks of exited threads' own default streams, chosen before the wait for their work: a thread that exits while that wait is
 * under way may leave work behind that it did not see. Whether there is any. */
static bool choose_left(strata_domain_t *domain) {
    bool any = false;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (stack->thread == 0 || stack->orphan || strata_threads_is_alive(stack->thread)) continue;
        stack->left = any = true;
    }
    return any;
}

static bool has_orphans(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    bool has = domain->orphans > 0;
    strata_unlock(&domain->lock);
    return has;
}

/* Whether a stack is there that an exited thread has left. */
static bool any_left(strata_domain_t *domain) {
    bool any = false;
    STRATA_DOMAIN_EACH(domain, stack) any = any || is_left(stack);
    return any;
}

void strata_domain_forget_dead_threads(strata_domain_t *domain) {
    uint64_t exits = strata_threads_exits();
    if (exits == domain->exits_seen && !has_orphans(domain)) return;
    STRATA_DOMAIN_EACH(domain, left)
        if (is_left(left)) (void)strata_stack_release(left);
    if (choose_left(domain) && !strata_domain_wait_for_all(domain)) return;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (!stack->left || stack->orphan) continue;
        note_gone(stack, NULL, true);
        make_orphan(domain, stack);
        (void)strata_stack_release(stack);
    }
    sweep(domain, true);
    if (!any_left(domain)) domain->exits_seen = exits;
}

bool strata_domain_serves(strata_domain_t *domain, strata_stream_t stream) {
    bool found = false;
    strata_lock(&domain->lock);
    for (uint32_t i = 0; i < domain->stack_count && !found; i++)
        found = domain->stacks[i]->group->pool == 0 && serves(domain->stacks[i], stream, 0);
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_t *strata_domain_find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_stack_key_t anybodys = {.pool = pool, .stream = stream, .thread = thread}, own = anybodys;
    own.of_thread = strata_threads_self();
    strata_lock(&domain->lock);
    strata_stack_t *found = strata_stack_list_find(domain, &anybodys, NULL);
    if (!found) found = strata_stack_list_find(domain, &own, NULL);
    strata_unlock(&domain->lock);
    return found;
}
