#include "allocation/call/blocks.h"

typedef struct walk {
    strata_stack_t *stack;
    strata_layer_t *layer;
    strata_block_fn block;
    void *context;
} walk_t;

static void pass_on(const strata_record_t *record, void *context) {
    const walk_t *walk = context;
    walk->block(walk->stack, walk->layer, record, walk->context);
}

static bool is_of_a_source(const strata_record_t *record) {
    bool held = record->state == STRATA_RECORD_LIVE || record->state == STRATA_RECORD_DEFERRED;
    return held && record->chunk == 0 && record->size > 0;
}

void strata_stack_each_block(strata_stack_t *stack, strata_block_fn block, void *context) {
    if (!stack->open) return;
    STRATA_EACH_OWN_LAYER(stack, layer) {
        walk_t walk = {.stack = stack, .layer = layer, .block = block, .context = context};
        if (layer->type->walk) layer->type->walk(layer, pass_on, &walk);
    }
    for (uint32_t slot = 1; slot < stack->slab.used; slot++) {
        const strata_record_t *record = strata_slab_record(&stack->slab, slot);
        if (is_of_a_source(record)) block(stack, NULL, record, context);
    }
}

typedef struct search {
    uint64_t address;
    const strata_record_t *found;
} search_t;

static void match_address(const strata_record_t *record, void *context) {
    search_t *search = context;
    if (search->address - record->ptr < record->size) search->found = record;
}

/* Returns the record that contains an address, in any state: a block, or a chunk of another cache in which no block is visible. */
static const strata_record_t *record_at(strata_stack_t *stack, uint64_t address) {
    search_t search = {.address = address};
    bool has_cache = false, routed = false;
    if (!stack->open) return NULL;
    STRATA_EACH_OWN_LAYER(stack, layer) {
        if (search.found) break;
        has_cache = has_cache || layer->type->walk;
        routed = routed || layer->type->role == STRATA_ROUTER;
        if (STRATA_LAYER_HAS(layer->type, find)) search.found = layer->type->find(layer, address);
        else if (layer->type->walk) layer->type->walk(layer, match_address, &search);
    }
    /* A block that a decorator wraps is represented by the decorator's own record. */
    const strata_record_t *held = search.found && search.found->state == STRATA_RECORD_CHUNK ? search.found : NULL;
    if (held) search.found = NULL;
    /* If a router may bypass the caches, blocks of a source are searched as well. */
    bool others = held || stack->is_shared || !has_cache || routed;
    for (uint32_t slot = 1; slot < stack->slab.used && !search.found && others; slot++) {
        const strata_record_t *record = strata_slab_record(&stack->slab, slot);
        if (is_of_a_source(record)) match_address(record, &search);
    }
    return search.found ? search.found : held;
}

const strata_record_t *strata_stack_block_at(strata_stack_t *stack, uint64_t address) {
    const strata_record_t *found = record_at(stack, address);
    return found && found->state == STRATA_RECORD_LIVE ? found : NULL;
}

bool strata_stack_holds(strata_stack_t *stack, uint64_t address) { return record_at(stack, address) != NULL; }

/* Locks the stacks of one rank in the order of their numbers. A number keeps its lock through all lives
 * of its stack, so this order is the same in every domain. */
static void lock_all(strata_domain_t *domain, strata_lock_rank_t rank) {
    uint64_t numbers[STRATA_STACKS / 64] = {0};
    for (const strata_stack_t *stack = domain->first_stack; stack; stack = stack->links.next)
        if (stack->lock.rank == rank) numbers[stack->number / 64] |= 1ull << stack->number % 64;
    for (uint32_t word = 0; word < STRATA_STACKS / 64; word++)
        for (uint64_t left = numbers[word]; left; left &= left - 1)
            strata_stack_lock_own(strata_stack_of((uint16_t)(word * 64 + (uint32_t)__builtin_ctzll(left))));
}

void strata_domain_lock_stacks(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    lock_all(domain, STRATA_RANK_STACK);
    lock_all(domain, STRATA_RANK_THREAD);
    lock_all(domain, STRATA_RANK_SHARED);
}

void strata_domain_unlock_stacks(strata_domain_t *domain) {
    for (strata_stack_t *stack = domain->last_stack; stack; stack = stack->links.prev) strata_unlock(&stack->lock);
    strata_unlock(&domain->lock);
}
