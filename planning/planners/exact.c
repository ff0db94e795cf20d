#include "planning/planners/exact.h"

#include "planning/placement/order.h"
#include "planning/placement/skyline.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

/* Searches are usually short, since many orders find a plan at once and others never do. */
enum { ITEMS_MAX = 20000, SHORT_STEPS = 4000, EXACT_ORDERS = 4, SCHEDULE = 8, PLAIN_ROUNDS = 2 * SCHEDULE };
/* Time that the search continues once there is a plan of the caller's capacity. */
#define EXTRA_NS UINT64_C(200000000)

typedef struct exact {
    const strata_problem_t *problem;
    strata_found_t *found;
    strata_skyline_t skyline;
    uint32_t *order;
    strata_keyed_t *keyed;
    uint64_t grain; /* every minimal peak is a multiple of it */
    uint64_t random;
} exact_t;

bool strata_exact_supports(const strata_problem_t *p) {
    return p->fork_count == 0 && p->item_count > 0 && p->item_count <= ITEMS_MAX;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* In a plan that cannot be compacted downwards, every offset is a sum of sizes, if nothing is fixed or
 * has a larger alignment. */
static uint64_t grain_of(const strata_problem_t *p) {
    uint64_t grain = 0;
    if (p->fixed || p->slack) return 1;
    for (uint32_t i = 0; i < p->item_count; i++) {
        if (p->items[i].alignment != p->unit) return 1;
        grain = common_divisor(grain, p->items[i].size);
    }
    return grain ? grain : 1;
}

static void raise_bound(exact_t *x, uint64_t impossible) {
    uint64_t bound = (impossible / x->grain + 1) * x->grain;
    x->found->bound = strata_max(x->found->bound, strata_min(bound, x->found->peak));
}

static uint32_t draw(exact_t *x, uint32_t below) {
    x->random ^= x->random << 13;
    x->random ^= x->random >> 7;
    x->random ^= x->random << 17;
    return (uint32_t)((x->random >> 32) * below >> 32);
}

/* Returns the sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... It is within a logarithmic factor of the best
 * lengths, for any distribution (M. Luby, A. Sinclair and D. Zuckerman, "Optimal speedup of Las Vegas
 * algorithms", 1993). */
static uint64_t luby(uint64_t index) {
    for (;;) {
        uint64_t length = 1;
        while (length < index + 1) length = 2 * length + 1;
        if (length == index + 1) return (length + 1) / 2;
        index -= length / 2;
    }
}

/* Uses every order unchanged, then with items moved up or down by random distances, small and large. */
static strata_status_t set_order(exact_t *x, uint32_t round) {
    static const strata_order_t orders[EXACT_ORDERS] = {STRATA_ORDER_SIZE, STRATA_ORDER_LENGTH, STRATA_ORDER_CONFLICT,
                                                        STRATA_ORDER_AREA};
    uint32_t count = x->problem->item_count, turn = round / SCHEDULE, moved = count / 8 << turn / EXACT_ORDERS % 3 * 2;
    strata_status_t status = strata_order_make(x->problem, orders[(round + turn) % EXACT_ORDERS], x->order);
    if (status != STRATA_OK) return status;
    for (uint32_t i = 0; i < count; i++)
        x->keyed[i] = (strata_keyed_t){2 * (uint64_t)i + (round < PLAIN_ROUNDS ? 0 : draw(x, moved + 1)), x->order[i]};
    strata_sort_keyed(x->keyed, x->keyed + count, count);
    for (uint32_t i = 0; i < count; i++) x->order[i] = x->keyed[i].value;
    return strata_skyline_order(&x->skyline, x->order);
}

/* Returns the bound; or the capacity if there is no plan of it yet; or a peak that halves the gap. */
static uint64_t target_of(const exact_t *x, bool bound, uint64_t capacity) {
    const strata_found_t *found = x->found;
    if (bound) return found->bound;
    if (capacity < found->peak && capacity > found->bound) return capacity;
    uint64_t middle = found->bound + (found->peak - found->bound) / 2;
    return strata_max(found->bound, middle / x->grain * x->grain);
}

static bool may_continue(const exact_t *x, uint64_t capacity, uint64_t *until) {
    uint64_t now = strata_real_now();
    if (x->found->peak <= capacity) *until = strata_min(*until, now + EXTRA_NS);
    return !strata_found_is_optimal(x->found) && now < *until;
}

static strata_status_t search(exact_t *x, uint64_t capacity, uint64_t until) {
    /* Alternates between edges and the lowest valley, and between the bound and other peaks. */
    static const struct {
        bool lowest, bound;
    } schedule[SCHEDULE] = {{0, 1}, {0, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 1}, {0, 0}, {0, 1}};
    strata_problem_t limited = *x->problem; /* the search checks the time against this problem */
    bool fits = x->found->peak <= capacity;
    limited.deadline = until;
    x->skyline.problem = &limited;
    for (uint32_t round = 0; may_continue(x, fits ? 0 : capacity, &limited.deadline); round++) {
        strata_status_t status = set_order(x, round);
        if (status != STRATA_OK) return status;
        uint64_t target = target_of(x, schedule[round % SCHEDULE].bound, capacity);
        x->skyline.lowest = schedule[round % SCHEDULE].lowest;
        strata_verdict_t verdict = strata_skyline_solve(&x->skyline, target, SHORT_STEPS * luby(round / SCHEDULE));
        if (verdict == STRATA_VERDICT_SOLVED) strata_found_update(x->problem, x->found, x->skyline.offsets);
        if (verdict == STRATA_VERDICT_IMPOSSIBLE) raise_bound(x, target);
    }
    return STRATA_OK;
}

strata_status_t strata_exact(const strata_problem_t *p, strata_found_t *found, uint64_t capacity, uint64_t until) {
    if (!strata_exact_supports(p) || strata_found_is_optimal(found)) return STRATA_OK;
    exact_t x = {.problem = p, .found = found, .grain = grain_of(p), .random = UINT64_C(0x9e3779b97f4a7c15)};
    strata_status_t status = strata_skyline_init(&x.skyline, p);
    if (status != STRATA_OK) return status;
    x.order = strata_host_new((size_t)p->item_count + 1, sizeof *x.order);
    x.keyed = strata_host_new(2 * (size_t)p->item_count + 1, sizeof *x.keyed);
    status = x.order && x.keyed ? search(&x, capacity, until) : STRATA_E_HOST_MEMORY;
    strata_host_delete(x.keyed);
    strata_host_delete(x.order);
    strata_skyline_destroy(&x.skyline);
    return status;
}
