#include "allocation/domain/stack_list.h"

#include "platform/host/host_memory.h"

enum { ROOM_FIRST = 16 }; /* a power of two, like every capacity, because it is also the number of chains */

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

static strata_stack_t **head_of_stream(strata_domain_t *domain, strata_stream_t stream) {
    return &domain->streams[(uint64_t)(uintptr_t)stream * 0x9e3779b97f4a7c15u >> 32 & (domain->stack_capacity - 1)];
}

/* Appends to the chain, so that the oldest stack is found first. */
static void chain(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_key_t key = key_of(stack);
    strata_stack_links_t *links = &stack->links;
    strata_stack_t **at = chain_of(domain, &key), **head = head_of_stream(domain, stack->stream);
    while (*at) at = &(*at)->links.next_of_chain;
    links->next_of_chain = NULL;
    *at = stack;
    links->next_of_stream = *head;
    links->stream_link = head;
    if (*head) (*head)->links.stream_link = &links->next_of_stream;
    *head = stack;
}

static void unchain(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_key_t key = key_of(stack);
    strata_stack_links_t *links = &stack->links;
    strata_stack_t **at = chain_of(domain, &key);
    while (*at != stack) at = &(*at)->links.next_of_chain;
    *at = links->next_of_chain;
    *links->stream_link = links->next_of_stream;
    if (links->next_of_stream) links->next_of_stream->links.stream_link = links->stream_link;
    links->next_of_stream = NULL;
}

static strata_stack_t **after(strata_domain_t *domain, strata_stack_t *orphan) {
    return orphan ? &orphan->links.next_orphan : &domain->first_orphan;
}

static strata_stack_t **before(strata_domain_t *domain, strata_stack_t *orphan) {
    return orphan ? &orphan->links.prev_orphan : &domain->last_orphan;
}

void strata_stack_list_orphan(strata_domain_t *domain, strata_stack_t *stack) {
    /* Searches from both ends. Streams mostly end in creation order or in reverse, and then the first step
     * finds the stack. */
    strata_stack_t *older = domain->last_orphan, *younger = domain->first_orphan;
    while (older && older->links.serial > stack->links.serial && younger->links.serial < stack->links.serial) {
        older = older->links.prev_orphan;
        younger = younger->links.next_orphan;
        domain->examined++;
    }
    if (younger && younger->links.serial > stack->links.serial) older = younger->links.prev_orphan;
    unchain(domain, stack);
    stack->forgotten.orphan = true;
    domain->orphans++;
    stack->links.prev_orphan = older;
    stack->links.next_orphan = *after(domain, older);
    *before(domain, stack->links.next_orphan) = stack;
    *after(domain, older) = stack;
}

static void drop_orphan(strata_domain_t *domain, const strata_stack_t *stack) {
    const strata_stack_links_t *links = &stack->links;
    domain->orphans--;
    if (domain->next_swept == stack) domain->next_swept = links->next_orphan;
    *after(domain, links->prev_orphan) = links->next_orphan;
    *before(domain, links->next_orphan) = links->prev_orphan;
}

void strata_stack_list_rekey(strata_domain_t *domain, strata_stack_t *stack, strata_stream_t stream) {
    if (stack->forgotten.orphan) drop_orphan(domain, stack);
    else unchain(domain, stack);
    stack->forgotten.orphan = false;
    stack->stream = stream;
    chain(domain, stack);
}

strata_status_t strata_stack_list_reserve(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    uint32_t count = domain->stack_count, capacity = domain->stack_capacity;
    strata_unlock(&domain->lock);
    if (count < capacity) return STRATA_OK;
    uint32_t larger = capacity ? 2 * capacity : ROOM_FIRST;
    strata_stack_t **chains = strata_host_new(2 * (size_t)larger, sizeof *chains);
    if (!chains) return STRATA_E_HOST_MEMORY;
    strata_lock(&domain->lock);
    strata_stack_t **old = domain->chains;
    domain->chains = chains;
    domain->streams = chains + larger;
    domain->stack_capacity = larger;
    for (strata_stack_t *stack = domain->first_stack; stack; stack = stack->links.next)
        if (!stack->forgotten.orphan) chain(domain, stack);
    strata_unlock(&domain->lock);
    strata_host_delete(old);
    return STRATA_OK;
}

/* ---- stacks with blocks that several streams use ---- */

static strata_borrower_t **borrower_chain(strata_domain_t *domain, strata_stream_t stream) {
    return &domain->borrowers[(uint64_t)(uintptr_t)stream * 0x9e3779b97f4a7c15u >> 32 & (STRATA_BORROWER_CHAINS - 1)];
}

/* Returns the entry of a stream in a stack, or a free entry if `stream` is NULL. */
static strata_borrower_t *entry_of(strata_stack_t *stack, strata_stream_t stream) {
    for (int i = 0; i < STRATA_BORROWERS; i++)
        if (stack->borrowers.entries[i].stream == stream) return &stack->borrowers.entries[i];
    return NULL;
}

static void add_borrower(strata_domain_t *domain, strata_borrower_t *entry, strata_stack_t *stack, strata_stream_t stream) {
    strata_borrower_t **head = borrower_chain(domain, stream);
    *entry = (strata_borrower_t){.stream = stream, .stack = stack, .next = *head, .link = head};
    if (entry->next) entry->next->link = &entry->next;
    *head = entry;
}

static void remove_borrower(strata_borrower_t *entry) {
    *entry->link = entry->next;
    if (entry->next) entry->next->link = entry->link;
    if (entry->stack->borrowers.last == entry->stream) atomic_store(&entry->stack->borrowers.last, NULL);
    entry->stream = NULL;
}

static void list_with_many(strata_domain_t *domain, strata_stack_t *stack) {
    strata_borrowers_t *own = &stack->borrowers;
    own->prev_with_many = NULL;
    own->next_with_many = domain->first_with_many;
    if (own->next_with_many) own->next_with_many->borrowers.prev_with_many = stack;
    domain->first_with_many = stack;
    atomic_store(&own->many, true);
}

static void remove_borrowers(strata_domain_t *domain, strata_stack_t *stack) {
    strata_borrowers_t *own = &stack->borrowers;
    strata_lock(&domain->borrowers_lock);
    for (int i = 0; i < STRATA_BORROWERS; i++)
        if (own->entries[i].stream) remove_borrower(&own->entries[i]);
    if (own->many) {
        *(own->prev_with_many ? &own->prev_with_many->borrowers.next_with_many : &domain->first_with_many) = own->next_with_many;
        if (own->next_with_many) own->next_with_many->borrowers.prev_with_many = own->prev_with_many;
    }
    atomic_store(&own->many, false);
    strata_unlock(&domain->borrowers_lock);
}

/* The driver's default streams are never forgotten, so they need no entry. */
void strata_domain_note_borrower(strata_stack_t *stack, strata_stream_t stream) {
    strata_domain_t *domain = stack->domain;
    bool forgettable = stream != NULL && stream != STRATA_STREAM_LEGACY && stream != STRATA_STREAM_PER_THREAD;
    bool own = stream == stack->stream && !stack->forgotten.orphan;
    strata_borrowers_t *borrowers = &stack->borrowers;
    bool known = atomic_load_explicit(&borrowers->many, memory_order_relaxed) ||
                 atomic_load_explicit(&borrowers->last, memory_order_relaxed) == stream;
    if (!forgettable || own || known) return;
    strata_lock(&domain->borrowers_lock);
    strata_borrower_t *free_entry = entry_of(stack, NULL);
    bool listed = entry_of(stack, stream) != NULL;
    if (!listed && free_entry) add_borrower(domain, free_entry, stack, stream);
    else if (!listed && !borrowers->many) list_with_many(domain, stack);
    if (listed || free_entry) atomic_store(&borrowers->last, stream);
    strata_unlock(&domain->borrowers_lock);
}

static void visit(strata_domain_t *domain, strata_stack_t *stack, strata_stack_set_t *set) {
    uint64_t *word = &set->bits[stack->number / 64], bit = (uint64_t)1 << stack->number % 64;
    domain->examined++;
    if (!(*word & bit)) stack->links.visitors++;
    *word |= bit;
}

void strata_stack_list_visit_borrowed(strata_domain_t *domain, strata_stream_t stream, strata_stack_set_t *set) {
    *set = (strata_stack_set_t){{0}};
    strata_lock(&domain->lock);
    strata_lock(&domain->borrowers_lock);
    for (strata_borrower_t *entry = *borrower_chain(domain, stream); entry; entry = entry->next) {
        domain->examined++;
        if (entry->stream == stream) visit(domain, entry->stack, set);
    }
    for (strata_stack_t *stack = domain->first_with_many; stack; stack = stack->borrowers.next_with_many)
        if (!strata_stack_serves(stack, stream, 0)) visit(domain, stack, set);
    strata_unlock(&domain->borrowers_lock);
    strata_unlock(&domain->lock);
}

void strata_stack_list_end_borrowed(strata_domain_t *domain, strata_stream_t stream, const strata_stack_set_t *set) {
    strata_lock(&domain->lock);
    strata_lock(&domain->borrowers_lock);
    STRATA_STACK_SET_EACH(set, stack) {
        strata_borrower_t *entry = entry_of(stack, stream);
        if (entry) remove_borrower(entry);
        stack->links.visitors--;
    }
    strata_unlock(&domain->borrowers_lock);
    strata_unlock(&domain->lock);
}

/* ---- creating and ending stacks ---- */

void strata_stack_list_add(strata_domain_t *domain, strata_stack_t *stack) {
    strata_group_t *group = stack->group;
    strata_stack_links_t *links = &stack->links;
    links->serial = domain->stacks_made++;
    links->prev = domain->last_stack;
    links->next = NULL;
    *(domain->last_stack ? &domain->last_stack->links.next : &domain->first_stack) = stack;
    domain->last_stack = stack;
    domain->stack_count++;
    links->prev_of_group = group->last_stack;
    links->next_of_group = NULL;
    *(group->last_stack ? &group->last_stack->links.next_of_group : &group->first_stack) = stack;
    group->last_stack = stack;
    chain(domain, stack);
    if (stack->is_shared) {
        strata_lock(&domain->borrowers_lock);
        list_with_many(domain, stack);
        strata_unlock(&domain->borrowers_lock);
    }
    if (stack->thread_shared) stack->thread_shared->links.dependents++;
}

void strata_stack_list_remove(strata_domain_t *domain, strata_stack_t *stack) {
    if (stack->forgotten.orphan) drop_orphan(domain, stack);
    else unchain(domain, stack);
    remove_borrowers(domain, stack);
    strata_group_t *group = stack->group;
    const strata_stack_links_t *links = &stack->links;
    *(links->prev_of_group ? &links->prev_of_group->links.next_of_group : &group->first_stack) = links->next_of_group;
    *(links->next_of_group ? &links->next_of_group->links.prev_of_group : &group->last_stack) = links->prev_of_group;
    if (stack->thread_shared) stack->thread_shared->links.dependents--;
    *(links->prev ? &links->prev->links.next : &domain->first_stack) = links->next;
    *(links->next ? &links->next->links.prev : &domain->last_stack) = links->prev;
    domain->stack_count--;
}

static void chain_group(strata_domain_t *domain, const strata_group_t *group, void (*change)(strata_domain_t *, strata_stack_t *)) {
    for (strata_stack_t *stack = group->first_stack; stack; stack = stack->links.next_of_group)
        if (!stack->forgotten.orphan) change(domain, stack);
}

void strata_stack_list_renumber(strata_domain_t *domain, strata_group_t *group, uint64_t pool) {
    strata_lock(&domain->lock);
    chain_group(domain, group, unchain);
    atomic_store(&group->pool, pool);
    chain_group(domain, group, chain);
    strata_unlock(&domain->lock);
}

strata_stack_t *strata_stack_list_next(strata_domain_t *domain, const strata_stack_t *previous) {
    domain->examined++;
    return previous ? previous->links.next : domain->first_stack;
}

strata_stack_t *strata_stack_list_next_of_group(strata_domain_t *domain, const strata_group_t *group,
                                                const strata_stack_t *previous) {
    domain->examined++;
    return previous ? previous->links.next_of_group : group->first_stack;
}

strata_stack_t *strata_stack_list_next_orphan(strata_domain_t *domain, const strata_stack_t *previous) {
    domain->examined++;
    return previous ? previous->links.next_orphan : domain->first_orphan;
}

strata_stack_t *strata_stack_list_next_of_stream(strata_domain_t *domain, strata_stream_t stream, const strata_stack_t *previous) {
    if (domain->stack_count == 0) return NULL;
    strata_stack_t *stack = previous ? previous->links.next_of_stream : *head_of_stream(domain, stream);
    for (; stack; stack = stack->links.next_of_stream) {
        domain->examined++;
        if (strata_stack_serves(stack, stream, 0)) return stack;
    }
    return NULL;
}

strata_stack_t *strata_stack_list_find(strata_domain_t *domain, const strata_stack_key_t *wanted, const strata_group_t *group) {
    if (domain->stack_count == 0) return NULL;
    for (strata_stack_t *stack = *chain_of(domain, wanted); stack; stack = stack->links.next_of_chain) {
        strata_stack_key_t key = key_of(stack);
        domain->examined++;
        if (is_same(&key, wanted) && (!group || stack->group == group)) return stack;
    }
    return NULL;
}
