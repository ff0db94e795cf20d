#include "allocation/domain/sent.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "allocation/domain/domain.h"
#include "allocation/domain/layer.h"
#include "platform/host/file.h"

enum { AT_ONCE = 64 }; /* entries of one poll */

typedef struct sent_node {
    uint64_t unused_link;
    strata_ref_t ref; /* of the block when it was sent; 0 if the node is free */
    strata_record_t *record; /* of a block in limbo; NULL while the program has the block */
    strata_stack_t *stack; /* the stack that served it */
    const strata_group_t *group; /* of that stack */
    uint64_t bytes;
    int reader;
    bool known;
} sent_node_t;

void strata_sent_init(strata_domain_t *domain) {
    strata_lock_init(&domain->sent.lock, STRATA_RANK_EVENTS, domain->device->lock_observer);
}

void strata_sent_destroy(strata_domain_t *domain) {
    strata_sent_t *self = &domain->sent;
    for (uint32_t number = 1; number < self->nodes.used; number++) {
        const sent_node_t *node = strata_node(&self->nodes, number);
        if (node->ref) close(node->reader);
    }
    strata_nodes_destroy(&self->nodes);
    strata_lock_destroy(&self->lock);
}

/* ---- entries; the lock is held ---- */

static sent_node_t *find(const strata_sent_t *self, strata_sent_mark_t mark) {
    sent_node_t *node = mark.number && mark.number < self->nodes.used ? strata_node(&self->nodes, mark.number) : NULL;
    return node && node->ref == mark.ref ? node : NULL;
}

/* ---- sending ---- */

static strata_status_t no_descriptor(void) {
    return strata_fail(STRATA_E_DEVICE, 0,
                       "strata_export: no file descriptor is left to track the block's users; raise ulimit "
                       "-n");
}

static strata_status_t make_nodes(strata_sent_t *self) {
    strata_nodes_t made;
    strata_lock(&self->lock);
    bool has = self->nodes.memory != NULL;
    strata_unlock(&self->lock);
    strata_status_t status = has ? STRATA_OK : strata_nodes_init(&made, sizeof(sent_node_t), STRATA_SENT_BLOCKS);
    if (has || status != STRATA_OK) return status;
    strata_lock(&self->lock);
    bool mine = self->nodes.memory == NULL;
    if (mine) self->nodes = made;
    strata_unlock(&self->lock);
    if (!mine) strata_nodes_destroy(&made);
    return STRATA_OK;
}

/* Sets an end of the pipe to -1 once it is used. A new entry takes over the read end, and the caller keeps the
 * write end. The lock of the call is held. */
static strata_status_t lend(strata_sent_t *self, const strata_call_t *call, strata_record_t *record, int ends[2], int *lease) {
    strata_sent_mark_t mark = strata_sent_mark(call, record);
    strata_lock(&self->lock);
    const sent_node_t *node = find(self, mark);
    if (node) *lease = strata_file_write_end(node->reader);
    uint32_t number = node ? mark.number : strata_nodes_acquire(&self->nodes);
    if (!node && number) {
        *(sent_node_t *)strata_node(&self->nodes, number) = (sent_node_t){.ref = strata_ref_of(record),
                                                                          .stack = call->stack,
                                                                          .group = call->stack->group,
                                                                          .bytes = record->size,
                                                                          .reader = ends[0]};
        atomic_fetch_add(&self->count, 1);
    }
    strata_unlock(&self->lock);
    if (node) return *lease >= 0 ? STRATA_OK : no_descriptor();
    if (number == 0)
        return strata_fail(STRATA_E_LIMIT, 0, "strata_export: %d blocks are exported, the maximum", STRATA_SENT_BLOCKS - 1);
    strata_record_mark_sent(call, record, number);
    *lease = ends[1];
    ends[0] = ends[1] = -1;
    return STRATA_OK;
}

strata_status_t strata_sent_lease(strata_domain_t *domain, strata_ref_t ref, int *lease) {
    int ends[2];
    (void)strata_sent_poll(domain);
    strata_status_t status = make_nodes(&domain->sent);
    if (status != STRATA_OK) return status;
    if (pipe2(ends, O_CLOEXEC) != 0) return no_descriptor();
    do {
        strata_call_t call;
        strata_record_t *record;
        status = strata_record_find(domain->facade, ref, &call, &record);
        if (status != STRATA_OK) continue;
        status = strata_record_ready_notes(&call, record);
        if (status == STRATA_OK) status = lend(&domain->sent, &call, record, ends, lease);
        (void)strata_call_unlock(&call);
    } while (status != STRATA_OK && strata_growing_try_again(&status));
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0) close(ends[i]);
    return status;
}

/* ---- the free ---- */

strata_sent_mark_t strata_sent_mark(const strata_call_t *call, const strata_record_t *record) {
    uint32_t number = strata_record_sent_number(call, record);
    return number ? (strata_sent_mark_t){number, strata_ref_of(record)} : (strata_sent_mark_t){0};
}

bool strata_sent_defer(const strata_call_t *call, strata_sent_mark_t mark, strata_record_t *record, bool known) {
    strata_sent_t *self = &call->stack->domain->sent;
    if (mark.number == 0) return false;
    strata_lock(&self->lock);
    sent_node_t *node = find(self, mark);
    struct pollfd asked = {.fd = node ? node->reader : -1};
    bool done = !node || (poll(&asked, 1, 0) == 1 && (asked.revents & POLLHUP));
    if (!done) {
        node->record = record;
        node->known = known;
        atomic_fetch_add(&self->limbo, 1);
    }
    strata_unlock(&self->lock);
    return !done;
}

/* ---- looks ---- */

typedef struct batch {
    struct pollfd asked[AT_ONCE];
    uint32_t numbers[AT_ONCE];
    sent_node_t hung_up[AT_ONCE]; /* out of limbo */
    uint32_t count, hung_up_count;
} batch_t;

/* Polls the next entries from *from on. Returns false if there is none. */
static bool ask(const strata_sent_t *self, uint32_t *from, batch_t *batch) {
    batch->count = 0;
    for (; *from < self->nodes.used && batch->count < AT_ONCE; ++*from) {
        const sent_node_t *node = strata_node(&self->nodes, *from);
        if (node->ref == 0) continue;
        batch->asked[batch->count] = (struct pollfd){.fd = node->reader};
        batch->numbers[batch->count++] = *from;
    }
    /* their state is unknown, so a later look polls them */
    if (batch->count && poll(batch->asked, batch->count, 0) < 0) batch->count = 0;
    return *from < self->nodes.used || batch->count > 0;
}

uint64_t strata_sent_poll(strata_domain_t *domain) {
    strata_sent_t *self = &domain->sent;
    uint64_t freed = 0;
    uint32_t from = 1;
    batch_t batch;
    bool more = atomic_load(&self->count) > 0;
    while (more) {
        strata_lock(&self->lock);
        more = ask(self, &from, &batch);
        batch.hung_up_count = 0;
        for (uint32_t i = 0; i < batch.count; i++) {
            sent_node_t *node = strata_node(&self->nodes, batch.numbers[i]);
            if (!(batch.asked[i].revents & POLLHUP)) continue;
            if (node->record) {
                batch.hung_up[batch.hung_up_count++] = *node;
                atomic_fetch_sub(&self->limbo, 1);
            }
            close(node->reader);
            node->ref = 0;
            strata_nodes_release(&self->nodes, batch.numbers[i]);
            atomic_fetch_sub(&self->count, 1);
        }
        strata_unlock(&self->lock);
        for (uint32_t i = 0; i < batch.hung_up_count; i++) {
            strata_record_return(batch.hung_up[i].record, batch.hung_up[i].known);
            freed += batch.hung_up[i].bytes;
        }
    }
    return freed;
}

/* ---- metrics ---- */

typedef struct wanted {
    const strata_stack_t *stack; /* NULL selects any */
    uint64_t pool; /* STRATA_POOL_EVERY selects any */
} wanted_t;

/* Adds the counts, without any change to the entries. */
static void count(strata_domain_t *domain, const wanted_t *wanted, strata_statistics_t *sum) {
    strata_sent_t *self = &domain->sent;
    uint32_t from = 1;
    batch_t batch;
    if (atomic_load(&self->count) == 0) return;
    strata_lock(&self->lock);
    while (ask(self, &from, &batch)) {
        for (uint32_t i = 0; i < batch.count; i++) {
            const sent_node_t *node = strata_node(&self->nodes, batch.numbers[i]);
            bool of_pool = wanted->pool == STRATA_POOL_EVERY || atomic_load(&node->group->pool) == wanted->pool;
            if (wanted->stack ? node->stack != wanted->stack : !of_pool) continue;
            bool used = !(batch.asked[i].revents & POLLHUP);
            sum->sent_blocks += used;
            sum->sent_bytes += used ? node->bytes : 0;
            sum->limbo_bytes += node->record ? node->bytes : 0;
        }
    }
    strata_unlock(&self->lock);
}

void strata_sent_count(strata_domain_t *domain, strata_statistics_t *sum) {
    count(domain, &(wanted_t){.pool = STRATA_POOL_EVERY}, sum);
}

void strata_sent_count_stack(const strata_stack_t *stack, strata_statistics_t *sum) {
    count(stack->domain, &(wanted_t){.stack = stack}, sum);
}

void strata_sent_count_pool(strata_domain_t *domain, uint64_t pool, strata_statistics_t *sum) {
    count(domain, &(wanted_t){.pool = pool}, sum);
}
