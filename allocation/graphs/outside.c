/* Blocks from outside a pool that its graphs use. The pool is one more of their owners, until nothing keeps
 * it. So a free by the program does not release memory that a launch would still use. */
#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "allocation/uses/record_notes.h"
#include "platform/host/host_memory.h"

/* Makes room for one more block. No lock is held. */
static strata_status_t ensure_room(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    uint32_t room = pool->outside_room, count = pool->outside_count;
    strata_unlock(&domain->lock);
    if (count < room) return STRATA_OK;
    uint32_t larger = room ? 2 * room : 16;
    strata_ref_t *more = strata_host_new(larger, sizeof *more);
    if (!more) return STRATA_E_HOST_MEMORY;
    strata_lock(&domain->lock);
    strata_ref_t *old = pool->outside;
    bool mine = pool->outside_room == room;
    if (mine) {
        for (uint32_t i = 0; i < pool->outside_count; i++) more[i] = old[i];
        pool->outside = more;
        pool->outside_room = larger;
    }
    strata_unlock(&domain->lock);
    strata_host_delete(mine ? old : more);
    return STRATA_OK;
}

/* Lists a block, or sets *ended if nothing keeps the pool. After OK without *ended the pool stays until the caller
 * decreases pool->becoming_owner. No lock is held. */
static strata_status_t list(strata_graph_pool_t *pool, uint64_t number, strata_ref_t ref, bool *ended) {
    strata_domain_t *domain = pool->group->domain;
    strata_status_t status = STRATA_OK;
    *ended = false;
    /* Another thread may use the room first. */
    for (bool listed = false; !listed && !*ended && (status = ensure_room(pool)) == STRATA_OK;) {
        strata_lock(&domain->lock);
        *ended = pool->group->pool != number || !strata_graph_pool_is_kept(pool);
        listed = !*ended && pool->outside_count < pool->outside_room;
        if (listed) {
            pool->outside[pool->outside_count++] = ref;
            atomic_fetch_add(&pool->becoming_owner, 1);
        }
        strata_unlock(&domain->lock);
    }
    return status;
}

/* No lock is held. */
static void unlist(strata_graph_pool_t *pool, strata_ref_t ref) {
    strata_domain_t *domain = pool->group->domain;
    strata_lock(&domain->lock);
    uint32_t at = pool->outside_count - 1;
    while (pool->outside[at] != ref) at--;
    pool->outside[at] = pool->outside[--pool->outside_count];
    strata_unlock(&domain->lock);
}

/* The list is written first: it is under the lock of the domain, which precedes the lock of a stack in the
 * lock order. */
strata_status_t strata_graph_pool_own(strata_graph_pool_t *pool, strata_call_t *call, strata_record_t *record) {
    uint64_t number = pool->group->pool;
    uint32_t mark = (uint32_t)number, generation = record->generation;
    strata_ref_t ref = strata_ref_of(record);
    if (strata_record_graph_mark(call, record) == mark) return STRATA_OK;
    strata_stack_t *home = strata_call_pin_home(call, record);
    strata_unlocked_t opened = strata_call_unlock(call);
    bool ended;
    strata_status_t status = list(pool, number, ref, &ended);
    strata_call_lock(call, opened);
    strata_call_unpin_home(call, home);
    if (status != STRATA_OK) return status;
    if (record->generation != generation)
        status = strata_fail(STRATA_E_STALE, 0, "the block was freed while a graph became one of its owners");
    else if (!ended) status = strata_record_retain(call, record);
    if (ended) return status;
    if (status == STRATA_OK) strata_record_mark_graph(call, record, mark);
    else {
        const strata_error_t reason = *strata_last_error();
        opened = strata_call_unlock(call);
        unlist(pool, ref);
        strata_call_lock(call, opened);
        (void)strata_fail_again(&reason);
    }
    atomic_fetch_sub(&pool->becoming_owner, 1);
    return status;
}

strata_status_t strata_graph_pool_outside(strata_graph_pool_t *pool, strata_ref_t **refs, uint32_t *count) {
    strata_domain_t *domain = pool->group->domain;
    *refs = NULL;
    for (uint32_t room = 0;;) {
        strata_lock(&domain->lock);
        *count = pool->outside_count;
        for (uint32_t i = 0; *count <= room && i < *count; i++) (*refs)[i] = pool->outside[i];
        strata_unlock(&domain->lock);
        if (*count <= room) return STRATA_OK;
        strata_host_delete(*refs);
        room = *count;
        *refs = strata_host_new(room, sizeof **refs);
        if (!*refs) return STRATA_E_HOST_MEMORY;
    }
}

void strata_graph_pool_disown(strata_graph_pool_t *pool) {
    strata_domain_t *domain = pool->group->domain;
    for (;;) {
        strata_lock(&domain->lock);
        strata_ref_t ref = pool->outside_count ? pool->outside[--pool->outside_count] : 0;
        strata_unlock(&domain->lock);
        if (ref == 0) return;
        strata_call_t call;
        strata_record_t *record;
        if (strata_record_find(domain->facade, ref, &call, &record) == STRATA_OK) strata_record_free(&call, record);
    }
}
