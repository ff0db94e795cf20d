/* Polls, releases and trims all stacks of a domain. */
#include "allocation/domain/domain.h"
#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/graphs/graphs.h"
#include "platform/arithmetic.h"
#include "platform/ranges/ranges.h"

uint64_t strata_domain_poll(strata_domain_t *domain, strata_pending_t *pending) {
    *pending = (strata_pending_t){.ready_at = UINT64_MAX};
    strata_graphs_sweep(domain);
    pending->freed_bytes = strata_sent_poll(domain);
    STRATA_DOMAIN_EACH(domain, stack) strata_stack_poll(stack, pending);
    return pending->freed_bytes;
}

/* The levels of a walk, in its order: stacks of streams, shared stacks of threads, shared stacks. Only
 * after the others does a shared cache or a driver's pool hold the memory that they returned. Quarantined
 * memory is returned first, because it may belong to such a pool. */
enum { LEVELS = 3 };

/* The levels that a walk has met, one bit each. The first is always walked. Few domains have stacks of all
 * levels, and some have thousands of stacks. */
typedef uint32_t levels_t;
static const levels_t first_level = 1;

static bool has_level(levels_t levels, int level) { return levels >> level & 1; }

static bool is_of_level(const strata_stack_t *stack, int level, levels_t *present) {
    int own = !stack->is_shared ? 0 : stack->of_thread ? 1 : 2;
    *present |= (levels_t)1 << own;
    return own == level;
}

/* Returns whether other groups may take the stack's idle memory. They may not if its group keeps it, pins
 * it for graphs, or is paused. */
static bool is_unowned(const strata_stack_t *stack) {
    return !stack->group->keeps && !atomic_load(&stack->group->pinned) && !strata_group_is_paused(stack->group);
}

/* Releases the idle memory of all groups except those that keep theirs. Group `own` releases even then. */
uint64_t strata_domain_release(strata_domain_t *domain, const strata_group_t *own) {
    strata_range_begin(STRATA_RANGE_release, 0);
    uint64_t released = strata_domain_retry_quarantined(domain);
    levels_t levels = first_level;
    for (int level = 0; level < LEVELS; level++) {
        if (!has_level(levels, level)) continue;
        STRATA_DOMAIN_EACH(domain, stack) {
            bool gives = is_of_level(stack, level, &levels) && (is_unowned(stack) || stack->group == own);
            if (gives) released += strata_stack_release(stack);
        }
    }
    strata_domain_sweep_orphans(domain);
    strata_range_end();
    return released;
}

uint64_t strata_domain_release_group(strata_domain_t *domain, const strata_group_t *group) {
    strata_range_begin(STRATA_RANGE_release, 0);
    uint64_t released = strata_domain_retry_quarantined(domain);
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
        if (!is_unowned(stack) && !strata_group_is_paused(stack->group) && stack->group != own)
            kept += strata_stack_idle_bytes(stack);
    return kept;
}

/* Selects the stacks of one group, or with NULL all stacks that other groups may take memory from. */
static bool is_trimmed(const strata_stack_t *stack, const strata_group_t *only) {
    return only ? stack->group == only : is_unowned(stack);
}

uint64_t strata_domain_idle_bytes(strata_domain_t *domain, const strata_group_t *only) {
    uint64_t idle = 0;
    STRATA_DOMAIN_EACH(domain, stack)
        if (is_trimmed(stack, only)) idle += strata_stack_idle_bytes(stack);
    return idle;
}

/* Trims each stack to the part of `keep` that the idle memory of the others leaves. */
static uint64_t trim_level(strata_domain_t *domain, const strata_group_t *only, int level, uint64_t keep, levels_t *present) {
    uint64_t idle = strata_domain_idle_bytes(domain, only), released = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (!is_of_level(stack, level, present) || !is_trimmed(stack, only)) continue;
        uint64_t own = strata_stack_idle_bytes(stack), others = idle - strata_min(idle, own);
        released += strata_stack_trim(stack, keep - strata_min(keep, others));
        idle = others + strata_stack_idle_bytes(stack);
    }
    return released;
}

/* A block that a cache keeps may hold a chunk of the cache below it, the rest of which is idle. Then the
 * upper caches must keep less: the request is halved until the bound is met, a walk releases nothing, or
 * the request was 0. Idle memory above the bound afterwards was freed by other threads during the walk. */
static void trim(strata_domain_t *domain, const strata_group_t *only, uint64_t keep) {
    uint64_t now, asked, left = keep;
    (void)strata_domain_retry_quarantined(domain);
    do {
        asked = left;
        levels_t levels = first_level;
        now = 0;
        for (int level = 0; level < LEVELS; level++)
            if (has_level(levels, level)) now += trim_level(domain, only, level, asked, &levels);
        left /= 2;
    } while (now > 0 && asked > 0 && strata_domain_idle_bytes(domain, only) > keep);
    strata_domain_sweep_orphans(domain);
}

void strata_domain_trim(strata_domain_t *domain, uint64_t keep) { trim(domain, NULL, keep); }

void strata_domain_trim_group(strata_domain_t *domain, const strata_group_t *group, uint64_t keep) { trim(domain, group, keep); }
