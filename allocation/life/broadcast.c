/* Polls, releases and trims of all stacks of a domain. */
#include "allocation/domain/domain.h"
#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/graphs/graphs.h"
#include "platform/arithmetic.h"
#include "platform/ranges/ranges.h"

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

/* Others may take idle memory unless its group keeps it for itself or for graphs, or is paused. */
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

/* Selects the stacks of one group, or with NULL all whose memory others may take. */
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
 * less, until the bound is met, a walk finds nothing more, or everything was asked for. Other threads freed the
 * idle memory beyond that during the walk. */
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
