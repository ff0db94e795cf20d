/* Creates and destroys stacks: their numbers, the instances of their layers, and shared stacks. */

#include <pthread.h>
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/reclaim/idle.h"
#include "allocation/stack/direct.h"
#include "allocation/stack/magazines.h"
#include "allocation/stack/threads.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

/* Guards the numbers. No other lock is held when it is taken. Its rank is FACADE because stacks are created
 * while a facade is built. */
static pthread_mutex_t numbers = PTHREAD_MUTEX_INITIALIZER;
static uint32_t first_generation[STRATA_STACKS];
static bool number_used[STRATA_STACKS];
enum { NUMBERED_RANKS = STRATA_RANK_SHARED - STRATA_RANK_STACK + 1 };
static uint16_t unavailable[NUMBERED_RANKS]; /* the number of a rank's first candidates that are taken or exhausted */

/* Maps the i-th number to try to that number, both from 1 to STRATA_STACKS - 1, and a number back to its i.
 * A number's lock lives as long as the process. Each rank takes numbers from its own end, so a lock keeps
 * its place in the lock order from one life to the next. */
static uint16_t candidate(strata_lock_rank_t rank, uint16_t i) {
    const uint16_t last = STRATA_STACKS - 1, threads = STRATA_STACKS / 8 * 7;
    if (rank == STRATA_RANK_STACK) return i;
    if (rank == STRATA_RANK_SHARED) return (uint16_t)(last + 1 - i);
    return (uint16_t)(i < threads ? threads - i : last + threads - i);
}

/* Takes a number with refs that can still be distinguished from those of its earlier lives. Returns 0 if
 * there is none. */
static uint16_t acquire_number(strata_lock_rank_t rank) {
    uint16_t found = 0, *first = &unavailable[rank - STRATA_RANK_STACK];
    pthread_mutex_lock(&numbers);
    for (uint16_t i = (uint16_t)(*first + 1); i < STRATA_STACKS && !found; i++) {
        uint16_t n = candidate(rank, i);
        if (!number_used[n] && first_generation[n] < STRATA_GENERATION_LAST) found = n;
        *first = i;
    }
    if (found) number_used[found] = true;
    pthread_mutex_unlock(&numbers);
    return found;
}

static void release_number(uint16_t number, uint32_t next_generation) {
    pthread_mutex_lock(&numbers);
    first_generation[number] = next_generation;
    number_used[number] = false;
    for (int i = 0; i < NUMBERED_RANKS; i++) {
        uint16_t before = (uint16_t)(candidate((strata_lock_rank_t)(STRATA_RANK_STACK + i), number) - 1);
        if (before < unavailable[i]) unavailable[i] = before;
    }
    pthread_mutex_unlock(&numbers);
}

static strata_stack_t *stack_struct(uint16_t number) {
    strata_stack_t *stack = strata_stack_of(number);
    if (stack) return stack;
    /* Aligned by hand: a stack's cache lines must not be shared, and the struct is never freed. */
    size_t bytes = sizeof *stack + sizeof(strata_magazines_t) + alignof(strata_stack_t);
    unsigned char *memory = strata_host_new(1, bytes);
    if (!memory) return NULL;
    uintptr_t aligned = ((uintptr_t)memory + alignof(strata_stack_t) - 1) & ~(uintptr_t)(alignof(strata_stack_t) - 1);
    stack = (strata_stack_t *)aligned;
    stack->number = number;
    stack->magazine_use.storage = (strata_magazines_t *)(stack + 1);
    atomic_store(&stack->home, stack);
    atomic_store(&stack->direct, &strata_direct_any);
    strata_lock_init(&stack->lock, STRATA_RANK_STACK, NULL);
    strata_condition_init(&stack->host_waited);
    atomic_store_explicit(&strata_stacks[number], stack, memory_order_release);
    return stack;
}

static _Atomic uint64_t last_life;

static uint64_t fresh_life(void) { return atomic_fetch_add(&last_life, 1) + 1; }

/* Sets all fields except the layers and the slab. The lock is held, and the number has no live stack. */
static void set_up(strata_stack_t *stack, strata_group_t *group, strata_lock_rank_t rank) {
    strata_domain_t *domain = group->domain;
    stack->domain = domain;
    stack->group = group;
    stack->facade = domain->facade;
    stack->is_shared = rank != STRATA_RANK_STACK;
    stack->ownerless = strata_place_is_ownerless(strata_place_kind(domain->place));
    stack->route = 0;
    stack->cache = NULL;
    stack->hit = NULL;
    stack->quick_free = NULL;
    stack->directory = NULL;
    stack->handle = 0;
    stack->attention_allocate = stack->ownerless ? STRATA_ATTENTION_OWNERLESS : 0;
    stack->attention_free = 0;
    stack->closed = 0;
    strata_stack_close(stack, STRATA_CLOSED_NO_HIT, true);
    stack->top = NULL;
    stack->life = fresh_life();
    stack->stream = NULL;
    stack->name = "";
    stack->thread = stack->of_thread = stack->only_thread = 0;
    stack->links = (strata_stack_links_t){0};
    stack->thread_shared = NULL;
    stack->forgotten.orphan = false;
    stack->forgotten.completion_known = stack->forgotten.borrower_unknown = stack->forgotten.thread_exited = false;
    stack->forgotten.last_event = NULL;
    stack->wait_history = (strata_wait_history_t){0};
    stack->rest_history.peak_bytes = stack->rest_history.collected_bytes = 0;
    atomic_store(&stack->rest_history.lent_bytes, 0);
    stack->rest_history.lent_at = 0;
    stack->holds.calls = 0;
    memset(&stack->figures, 0, sizeof stack->figures);
    atomic_store(&stack->host_waits, 0);
    stack->uncached = (strata_uncached_t){0};
    for (int measure = 0; measure < STRATA_MEASURES; measure++) stack->peak_bound[measure] = 0;
    stack->peak_share = (strata_peak_share_t){0};
    stack->lock.rank = rank;
    strata_lock_observe(&stack->lock, domain->device->lock_observer);
    stack->lock.observed = 0; /* the observer's value from the last life is meaningless in this one */
}

strata_status_t strata_stack_begin(strata_group_t *group, strata_lock_rank_t rank, strata_stack_t **out) {
    uint16_t number = acquire_number(rank);
    if (number == 0) return strata_fail(STRATA_E_LIMIT, 0, "the process has %d stacks, the maximum", STRATA_STACKS - 1);
    strata_stack_t *stack = stack_struct(number);
    if (!stack) goto fail;
    stack->layers = strata_host_new(group->plan->count + 1, sizeof(strata_layer_t *));
    if (!stack->layers) goto fail;
    if (strata_slab_init(&stack->slab, number, first_generation[number], STRATA_SLAB_SLOTS) != STRATA_OK) goto fail_slab;
    strata_stack_lock_own(stack);
    set_up(stack, group, rank);
    strata_unlock(&stack->lock);
    *out = stack;
    return STRATA_OK;

fail_slab:
    strata_host_delete(stack->layers);
    stack->layers = NULL;
fail:
    release_number(number, first_generation[number]);
    return STRATA_E_HOST_MEMORY;
}

/* ---- instances ---- */

static _Atomic uint64_t last_serial;

static strata_layer_t *instance_new(strata_stack_t *stack, uint8_t number) {
    const strata_plan_node_t *node = &stack->group->plan->nodes[number];
    strata_layer_t *layer = strata_host_new(1, node->type->state_size);
    if (!layer) return NULL;
    layer->below = strata_host_new(node->below_count ? node->below_count : 1, sizeof(strata_layer_t *));
    if (!layer->below) {
        strata_host_delete(layer);
        return NULL;
    }
    layer->serial = atomic_fetch_add(&last_serial, 1) + 1;
    layer->type = node->type;
    layer->stack = stack;
    layer->records = stack->slab.records;
    layer->domain = stack->domain;
    layer->options = node->options;
    layer->below_count = node->below_count;
    layer->number = number;
    /* The upper bits belong to the core. A layer that gets no bit is always walked. */
    layer->attention = node->type->idle && number <= STRATA_ATTENTION_LAYERS ? (uint16_t)(1u << (number - 1)) : 0;
    return layer;
}

static void instance_delete(strata_layer_t *layer) {
    strata_host_delete(layer->below);
    strata_host_delete(layer);
}

/* How widely an instance is shared. All instances below a shared one are shared as widely. */
typedef enum width { OF_STREAM, OF_THREAD, OF_DEVICE } width_t;

/* Creates the instances from layer `number` down. `inside` is the width of the layers above. The order is
 * bottom up, so that create() finds the layers below working. */
static strata_status_t instantiate(strata_stack_t *stack, uint8_t number, width_t inside) {
    strata_group_t *group = stack->group;
    const strata_plan_node_t *node = &group->plan->nodes[number];
    width_t width = node->scope == STRATA_SCOPE_DEVICE ? OF_DEVICE : node->scope == STRATA_SCOPE_THREAD ? OF_THREAD : OF_STREAM;
    width_t own = !stack->is_shared ? OF_STREAM : stack->of_thread ? OF_THREAD : OF_DEVICE;
    if (width < inside) width = inside;
    if (width > own) stack->layers[number] = width == OF_DEVICE ? group->shared[number] : stack->thread_shared->layers[number];
    for (uint32_t i = 0; i < node->below_count; i++) {
        strata_status_t status = instantiate(stack, node->below[i], width);
        if (status != STRATA_OK) return status;
    }
    if (width != own) return STRATA_OK;
    strata_layer_t *layer = instance_new(stack, number);
    if (!layer) return STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; i < node->below_count; i++) layer->below[i] = stack->layers[node->below[i]];
    strata_status_t status = node->type->create(layer);
    if (status != STRATA_OK) {
        instance_delete(layer);
        return status;
    }
    stack->layers[number] = layer;
    if (own == OF_DEVICE) group->shared[number] = layer;
    return STRATA_OK;
}

static strata_stack_handle_t fresh_handle(const strata_stack_t *stack) { return (uint64_t)stack->number << 52 | fresh_life(); }

static void set_handle(strata_stack_t *stack, strata_stack_handle_t handle) {
    strata_stack_lock(stack);
    stack->handle = handle;
    strata_stack_unlock(stack);
}

void strata_stack_rename(strata_stack_t *stack) { set_handle(stack, fresh_handle(stack)); }

void strata_stack_unname(strata_stack_t *stack) { set_handle(stack, 0); }

/* Look-ups from any thread and facade skip a stack before its layers are complete and once they are being
 * destroyed. */
static void set_open(strata_stack_t *stack, bool open) {
    strata_stack_lock(stack);
    stack->open = open;
    stack->handle = open && !stack->is_shared ? fresh_handle(stack) : 0;
    strata_stack_unlock(stack);
}

/* Sets the route of a hit: idle decorators, then a cache that has hits. Any other tree is walked. A cache
 * that several stacks share has its own lock. That lock then guards the fields of this stack that a hit
 * uses, so no layer above may rely on the stack's lock. */
static void flatten(strata_stack_t *stack) {
    strata_layer_t *layer = stack->top;
    strata_layer_t *above[STRATA_ROUTE_LAYERS];
    uint32_t depth = 0;
    bool guarded = false;
    while (layer->attention && layer->below_count == 1 && depth < STRATA_ROUTE_LAYERS - 1) {
        guarded = guarded || (layer->type->guarded && layer->stack == stack);
        above[depth++] = layer;
        layer = layer->below[0];
    }
    /* Only a cache hands out records that its own free accepts. */
    if (layer->type->role != STRATA_CACHE || !layer->type->hit || (layer->stack != stack && guarded)) return;
    uint64_t route = layer->number;
    while (depth > 0) route = route << STRATA_ROUTE_BITS | above[--depth]->number;
    stack->route = route;
    stack->cache = layer;
    stack->hit = layer->type->hit;
    strata_stack_close(stack, STRATA_CLOSED_NO_HIT, false);
    stack->quick_free = layer->type->quick_free;
    atomic_store(&stack->home, layer->stack);
    atomic_store(&stack->direct, strata_direct_own(stack));
}

/* Creates the stack's own instances and adds the stack to its domain. */
static strata_status_t build(strata_stack_t *stack) {
    strata_status_t status = instantiate(stack, 1, OF_STREAM);
    if (status != STRATA_OK) return status;
    if (!stack->is_shared) {
        stack->top = stack->layers[1];
        strata_stack_lock_own(stack);
        flatten(stack);
        if (strata_magazines_threshold == 0) strata_magazines_begin(stack);
        strata_unlock(&stack->lock);
    }
    set_open(stack, true);
    return strata_domain_add_stack(stack->domain, stack);
}

/* Returns the shared stack of the calling thread, and creates it at its first use. */
static strata_status_t thread_shared(strata_group_t *group, strata_stack_t **out) {
    uint64_t thread = strata_threads_self();
    strata_stack_t *shared = strata_domain_thread_shared(group, thread);
    strata_status_t status = shared ? STRATA_OK : strata_stack_begin(group, STRATA_RANK_THREAD, &shared);
    if (status != STRATA_OK || shared->of_thread) {
        *out = shared;
        return status;
    }
    shared->of_thread = thread;
    status = build(shared);
    if (status == STRATA_OK) *out = shared;
    else strata_stack_destroy(shared);
    return status;
}

strata_status_t strata_stack_create(strata_group_t *group, const strata_stack_for_t *whose, strata_stack_t **out) {
    strata_stack_t *stack, *shared = NULL;
    bool shares = false;
    for (uint32_t n = 1; n <= group->plan->count; n++) shares = shares || group->plan->nodes[n].scope == STRATA_SCOPE_THREAD;
    strata_status_t status = shares ? thread_shared(group, &shared) : STRATA_OK;
    if (status == STRATA_OK) status = strata_stack_begin(group, STRATA_RANK_STACK, &stack);
    if (status != STRATA_OK) return status;
    stack->thread_shared = shared;
    if (group->plan->threaded) stack->of_thread = strata_threads_self();
    stack->stream = whose->stream;
    if (whose->name) stack->name = whose->name;
    stack->thread = whose->thread;
    stack->only_thread = stack->of_thread ? stack->of_thread : whose->thread;
    status = build(stack);
    if (status != STRATA_OK) {
        strata_stack_destroy(stack);
        return status;
    }
    *out = stack;
    return STRATA_OK;
}

strata_status_t strata_shared_stack_create(strata_group_t *group, strata_stack_t **out) {
    strata_stack_t *stack;
    strata_status_t status = strata_stack_begin(group, STRATA_RANK_SHARED, &stack);
    if (status != STRATA_OK) return status;
    status = build(stack);
    if (status != STRATA_OK) {
        strata_stack_destroy(stack);
        return status;
    }
    *out = stack;
    return STRATA_OK;
}

void strata_stack_destroy(strata_stack_t *stack) {
    set_open(stack, false);
    /* Destroys the stack's own instances, from the top down. */
    for (uint32_t n = 1; n <= stack->group->plan->count; n++) {
        strata_layer_t *layer = stack->layers[n];
        if (!layer || layer->stack != stack) continue;
        layer->type->destroy(layer);
        instance_delete(layer);
    }
    strata_stack_t *home = atomic_load(&stack->home);
    strata_stack_lock(stack);
    strata_idle_end(stack);
    if (stack->forgotten.last_event) strata_events_release(&stack->domain->events, stack->forgotten.last_event);
    stack->forgotten.last_event = NULL;
    uint32_t next = strata_slab_next_generation(&stack->slab);
    stack->facade = 0;
    stack->hit = NULL;
    stack->quick_free = NULL;
    stack->cache = NULL;
    stack->route = 0;
    stack->attention_allocate = stack->attention_free = STRATA_ATTENTION_ALL;
    atomic_store(&stack->home, stack);
    atomic_store(&stack->direct, &strata_direct_any);
    if (home != stack) strata_unlock(&home->lock);
    strata_slab_destroy(&stack->slab);
    strata_growing_release(&stack->notes.range);
    stack->notes = (strata_notes_table_t){.entries = NULL};
    strata_layer_t **layers = stack->layers;
    stack->layers = NULL;
    /* The device of this observer may be deleted before the number is used again. */
    strata_magazines_end(stack);
    strata_lock_observe(&stack->lock, NULL);
    strata_unlock(&stack->lock);
    strata_host_delete(layers);
    release_number(stack->number, next);
}
