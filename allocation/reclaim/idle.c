#include "allocation/reclaim/idle.h"

#include "allocation/domain/layer.h"
#include "platform/arithmetic.h"
#include "platform/place.h"

/* Times since the last request was seen, in parts of `after`. A thread sees a request up to one part late,
 * and completes the release within another part. */
enum { MARK_AT = STRATA_IDLE_PARTS - 3, RELEASE_AT = STRATA_IDLE_PARTS - 2 };
/* Memory is released in STEPS steps, so that a request that arrives in between ends it after the current step. */
enum { STEPS = 16 };
#define STEP_MIN (64ull << 20)
/* The memory that a cache holds beside the blocks it serves: 1/HOLES of it in chunks, 1/HOLES_OF_HANDLES in
 * handles, which can be moved. */
enum { HOLES = 4, HOLES_OF_HANDLES = 16 };

/* ---- recent requests ---- */

static uint64_t calls_of(strata_group_t *group) {
    strata_domain_t *domain = group->domain;
    strata_lock(&domain->lock);
    uint64_t calls = group->ended.allocations + group->ended.frees;
    strata_unlock(&domain->lock);
    STRATA_DOMAIN_EACH_OF(domain, group, stack) {
        strata_stack_lock_own(strata_stack_home(stack));
        calls += stack->figures.allocations + stack->figures.frees;
        strata_unlock(&strata_stack_home(stack)->lock);
    }
    return calls;
}

/* Returns the difference between a stack's peak of live bytes and its live bytes now. */
static uint64_t swing_of(strata_stack_t *stack) {
    strata_stack_lock_own(strata_stack_home(stack));
    uint64_t swing = stack->figures.peak_allocated_bytes - stack->figures.allocated_bytes;
    strata_unlock(&strata_stack_home(stack)->lock);
    return swing;
}

/* ---- completion of the streams' work ---- */

bool strata_idle_waits_for_device(const strata_plan_t *plan) {
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_layer_type_t *type = plan->nodes[n].type;
        bool quick = type->gives & STRATA_TRAIT_HANDLE_SOURCE || type == &strata_cuda_malloc_async_type;
        if (type->role == STRATA_SOURCE && !quick) return true;
    }
    return false;
}

typedef bool (*each_stack_fn)(strata_stack_t *stack);

static bool each_stack_of(strata_domain_t *domain, const strata_group_t *only, each_stack_fn ask) {
    STRATA_DOMAIN_EACH(domain, stack) {
        if ((only && stack->group != only) || ask(stack)) continue;
        strata_domain_end_walk(domain, stack);
        return false;
    }
    return true;
}

/* Applies `ask` to all stacks with work that a release of the group's memory would wait for. Returns false
 * once `ask` does. */
static bool each_concerned(strata_group_t *group, each_stack_fn ask) {
    strata_captures_t *all = group->domain->captures;
    if (!strata_idle_waits_for_device(group->plan) || !all->places) return each_stack_of(group->domain, group, ask);
    bool every = strata_place_is_ownerless(strata_place_kind(group->domain->place));
    for (uint32_t i = 0; i < all->place_count; i++) {
        strata_domain_t *domain = atomic_load(&all->places[i]);
        if (!domain || (!every && domain->device != group->domain->device)) continue;
        if (!each_stack_of(domain, NULL, ask)) return false;
    }
    return true;
}

/* Records an event after all work submitted to the stack's stream. The event is queried later; on an idle
 * device it is complete by then. */
static bool mark(strata_stack_t *stack) {
    strata_domain_t *domain = stack->domain;
    strata_status_t status = strata_events_ensure(&domain->events, 1);
    strata_stack_lock_own(stack);
    if (status == STRATA_OK && strata_stack_names_stream(stack)) {
        status = strata_domain_refuse_captured(domain, stack->stream);
        if (status == STRATA_OK && !stack->idle.event) stack->idle.event = strata_events_acquire(&domain->events);
        if (status == STRATA_OK && stack->idle.event) status = strata_domain_record_event(domain, stack->idle.event, stack->stream);
    }
    strata_unlock(&stack->lock);
    return status == STRATA_OK;
}

static bool is_work_done(strata_stack_t *stack) {
    strata_stack_lock_own(stack);
    bool done = !stack->idle.event || strata_device_event_query(stack->domain->device, stack->idle.event) == STRATA_OK;
    strata_unlock(&stack->lock);
    return done;
}

/* ---- release ---- */

/* Notes before the release, for each stack, the cache with the most idle memory. That memory is later
 * recalled through this cache. A cache that does not split blocks serves a request only from a chunk of its
 * size, and chunk sizes are not guessed. */
static void note_before(strata_group_t *group) {
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) {
        strata_stack_lock_own(stack);
        strata_trimmed_t *trimmed = &stack->idle.trimmed;
        trimmed->idle_before = 0;
        STRATA_EACH_OWN_LAYER(stack, layer) {
            bool cache = layer->type->gives & STRATA_TRAIT_SUB_ALLOCATES && layer->type->idle_bytes;
            uint64_t idle = cache && stack->open ? layer->type->idle_bytes(layer) : 0;
            if (idle <= trimmed->idle_before) continue;
            trimmed->idle_before = idle;
            trimmed->layer = layer->number;
        }
        strata_unlock(&stack->lock);
    }
}

/* Memory that was not requested again since the last release counts half: an occasional small burst must
 * not displace the large one. The amount never exceeds the bytes that the peak of live memory would need,
 * with a share for holes. */
static void note_after(strata_group_t *group) {
    uint64_t all = 0; /* an upper bound of the group's own difference */
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) all += swing_of(stack);
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) {
        uint64_t swing = stack->is_shared ? all : swing_of(stack);
        strata_stack_lock_own(stack);
        strata_trimmed_t *trimmed = &stack->idle.trimmed;
        strata_layer_t *layer = trimmed->idle_before > 0 && stack->open ? stack->layers[trimmed->layer] : NULL;
        bool moves = layer && layer->type->needs & STRATA_TRAIT_HANDLE_SOURCE;
        uint64_t after = layer ? layer->type->idle_bytes(layer) : 0, most = swing + swing / (moves ? HOLES_OF_HANDLES : HOLES);
        if (trimmed->idle_before > after) {
            bool had = trimmed->regrow_bytes > 0;
            trimmed->bytes = trimmed->regrow_bytes = strata_min(trimmed->idle_before - after + trimmed->regrow_bytes / 2,
                                                                most - strata_min(most, after));
            if (had != (trimmed->regrow_bytes > 0)) atomic_fetch_add(&stack->group->to_regrow, had ? UINT32_MAX : 1);
        }
        strata_unlock(&stack->lock);
    }
}

static void give_back(strata_group_t *group) {
    uint64_t live = 0, idle = strata_domain_idle_bytes(group->domain, group);
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) {
        strata_stack_lock_own(strata_stack_home(stack));
        live += stack->figures.allocated_bytes;
        strata_unlock(&strata_stack_home(stack)->lock);
    }
    double share = group->plan->idle->keep * (double)live;
    uint64_t keep = strata_max(group->plan->idle->keep_least, (uint64_t)share);
    if (idle <= keep) return;
    uint64_t step = strata_max((idle - keep) / STEPS + 1, STEP_MIN);
    note_before(group);
    /* Checked before the first step too: requests during the marks' queries are younger than the marks. */
    while (idle > keep && calls_of(group) == group->idle.calls) {
        idle -= strata_min(step, idle - keep);
        strata_domain_trim_group(group->domain, group, idle);
    }
    note_after(group);
}

/* ---- looks ---- */

static uint64_t check_group(strata_group_t *group, uint64_t now) {
    strata_idle_watch_t *watch = &group->idle;
    uint64_t part = group->plan->idle->after / STRATA_IDLE_PARTS, calls = calls_of(group);
    if (calls != watch->calls) *watch = (strata_idle_watch_t){.calls = calls, .seen_at = now, .stage = STRATA_IDLE_BUSY};
    if (watch->stage == STRATA_IDLE_RELEASED) return STRATA_NEVER;
    uint64_t due = watch->seen_at + (watch->stage == STRATA_IDLE_BUSY ? MARK_AT : RELEASE_AT) * part;
    if (now < due) return due;
    if (watch->stage == STRATA_IDLE_BUSY) {
        if (!each_concerned(group, mark)) return now + part;
        watch->stage = STRATA_IDLE_MARKED;
        return strata_max(now, watch->seen_at + RELEASE_AT * part);
    }
    strata_pending_t pending = {.ready_at = UINT64_MAX};
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) strata_stack_poll(stack, &pending);
    if (!each_concerned(group, is_work_done)) return now + part;
    give_back(group);
    if (pending.pending_bytes > 0) return now + part;
    watch->stage = STRATA_IDLE_RELEASED;
    return STRATA_NEVER;
}

uint64_t strata_idle_check(strata_domain_t *domain, uint64_t now) {
    uint64_t next = STRATA_NEVER;
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->plan->idle && !group->keeps && !strata_group_has_ended(group) && !atomic_load(&group->pinned))
            next = strata_min(next, check_group(group, now));
    return next;
}
