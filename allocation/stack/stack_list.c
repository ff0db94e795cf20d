#include "allocation/stack/stack_list.h"

#include <string.h>

#include "platform/host/host_memory.h"

enum { ROOM_FIRST = 16 }; /* a power of two, as every room is: the table has as many chains */

static strata_stack_key_t key_of(const strata_stack_t *stack) {
    return (strata_stack_key_t){.pool = stack->group->pool,
                                .stream = stack->stream,
                                .thread = stack->thread,
                                .of_thread = stack->of_thread,
                                .is_shared = stack->is_shared};
}

static bool is_same(const strata_stack_key_t *a, const strata_stack_key_t *b) {
    return a->pool == b->pool && a->stream == b->stream && a->thread == b->thread && a->of_thread == b->of_thread &&
           a->is_shared == b->is_shared;
}

static strata_stack_t **chain_of(strata_domain_t *domain, const strata_stack_key_t *key) {
    uint64_t mixed = (uint64_t)(uintptr_t)key->stream;
    mixed = mixed * 0x9e3779b97f4a7c15u ^ key->pool;
    mixed = mixed * 0x9e3779b97f4a7c15u ^ key->thread;
    mixed = mixed * 0x9e3779b97f4a7c15u ^ key->of_thread;
    mixed *= 0x9e3779b97f4a7c15u;
    return &domain->chains[mixed >> 32 & (domain->stack_capacity - 1)];
}

/* At the end of its chain: the oldest is found first. */
static void chain(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_key_t key = key_of(stack);
    strata_stack_t **at = chain_of(domain, &key);
    while (*at) at = &(*at)->next_of_chain;
    stack->next_of_chain = NULL;
    *at = stack;
}

static void unchain(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_key_t key = key_of(stack);
    strata_stack_t **at = chain_of(domain, &key);
    while (*at != stack) at = &(*at)->next_of_chain;
    *at = stack->next_of_chain;
}

static strata_stack_t **after(strata_domain_t *domain, strata_stack_t *orphan) {
    return orphan ? &orphan->next_orphan : &domain->first_orphan;
}

static strata_stack_t **before(strata_domain_t *domain, strata_stack_t *orphan) {
    return orphan ? &orphan->prev_orphan : &domain->last_orphan;
}

void strata_stack_list_orphan(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_t *older = domain->last_orphan;
    while (older && older->at > stack->at) older = older->prev_orphan;
    unchain(domain, stack);
    stack->orphan = true;
    domain->orphans++;
    stack->prev_orphan = older;
    stack->next_orphan = *after(domain, older);
    *before(domain, stack->next_orphan) = stack;
    *after(domain, older) = stack;
}

static void drop_orphan(strata_domain_t *domain, const strata_stack_t *stack) {
    domain->orphans--;
    *after(domain, stack->prev_orphan) = stack->next_orphan;
    *before(domain, stack->next_orphan) = stack->prev_orphan;
}

strata_status_t strata_stack_list_room(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    uint32_t count = domain->stack_count, capacity = domain->stack_capacity;
    strata_unlock(&domain->lock);
    if (count < capacity) return STRATA_OK;
    uint32_t larger = capacity ? 2 * capacity : ROOM_FIRST;
    strata_stack_t **stacks = strata_host_new(2 * (size_t)larger, sizeof *stacks);
    if (!stacks) return STRATA_E_HOST_MEMORY;
    strata_lock(&domain->lock);
    strata_stack_t **old = domain->stacks;
    if (old) memcpy(stacks, old, domain->stack_count * sizeof *stacks);
    domain->stacks = stacks;
    domain->chains = stacks + larger;
    domain->stack_capacity = larger;
    for (uint32_t i = 0; i < domain->stack_count; i++)
        if (!stacks[i]->orphan) chain(domain, stacks[i]);
    strata_unlock(&domain->lock);
    strata_host_delete(old);
    return STRATA_OK;
}

static void join_group(strata_group_t *group, strata_stack_t *stack) {
    stack->prev_of_group = group->last_stack;
    stack->next_of_group = NULL;
    *(group->last_stack ? &group->last_stack->next_of_group : &group->first_stack) = stack;
    group->last_stack = stack;
}

static void leave_group(strata_group_t *group, const strata_stack_t *stack) {
    *(stack->prev_of_group ? &stack->prev_of_group->next_of_group : &group->first_stack) = stack->next_of_group;
    *(stack->next_of_group ? &stack->next_of_group->prev_of_group : &group->last_stack) = stack->prev_of_group;
}

void strata_stack_list_add(strata_domain_t *domain, strata_stack_t *stack) {
    stack->at = domain->stack_count++;
    domain->stacks[stack->at] = stack;
    join_group(stack->group, stack);
    chain(domain, stack);
    if (stack->thread_shared) stack->thread_shared->carried++;
}

void strata_stack_list_remove(strata_domain_t *domain, strata_stack_t *stack) {
    if (stack->orphan) drop_orphan(domain, stack);
    else unchain(domain, stack);
    leave_group(stack->group, stack);
    if (stack->thread_shared) stack->thread_shared->carried--;
    domain->stack_count--;
    for (uint32_t i = stack->at; i < domain->stack_count; i++) {
        domain->stacks[i] = domain->stacks[i + 1];
        domain->stacks[i]->at = i;
    }
}

static void chain_group(strata_domain_t *domain, const strata_group_t *group, void (*change)(strata_domain_t *, strata_stack_t *)) {
    for (strata_stack_t *stack = group->first_stack; stack; stack = stack->next_of_group)
        if (!stack->orphan) change(domain, stack);
}

void strata_stack_list_renumber(strata_domain_t *domain, strata_group_t *group, uint64_t pool) {
    strata_lock(&domain->lock);
    chain_group(domain, group, unchain);
    atomic_store(&group->pool, pool);
    chain_group(domain, group, chain);
    strata_unlock(&domain->lock);
}

strata_stack_t *strata_stack_list_next(strata_domain_t *domain, const strata_stack_t *previous) {
    uint32_t at = previous ? previous->at + 1 : 0;
    domain->looked++;
    return at < domain->stack_count ? domain->stacks[at] : NULL;
}

strata_stack_t *strata_stack_list_next_of_group(strata_domain_t *domain, const strata_group_t *group,
                                                const strata_stack_t *previous) {
    domain->looked++;
    return previous ? previous->next_of_group : group->first_stack;
}

strata_stack_t *strata_stack_list_next_orphan(strata_domain_t *domain, const strata_stack_t *previous) {
    domain->looked++;
    return previous ? previous->next_orphan : domain->first_orphan;
}

strata_stack_t *strata_stack_list_find(strata_domain_t *domain, const strata_stack_key_t *wanted, const strata_group_t *group) {
    if (domain->stack_count == 0) return NULL;
    for (strata_stack_t *stack = *chain_of(domain, wanted); stack; stack = stack->next_of_chain) {
        strata_stack_key_t key = key_of(stack);
        domain->looked++;
        if (is_same(&key, wanted) && (!group || stack->group == group)) return stack;
    }
    return NULL;
}
