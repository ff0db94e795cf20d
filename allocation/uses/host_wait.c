#include "allocation/uses/host_wait.h"

#include "allocation/stack/threads.h"

/* BUSY: a free is in the wait, and has the handle. */
typedef enum note_state { UNUSED, WAITING, BUSY, OVER, WHOLE_DEVICE } note_state_t;

typedef struct host_wait {
    strata_stream_t stream;
    uint64_t thread; /* whose, of the per-thread default stream; else 0 */
    uint32_t next;
    uint16_t state;
    bool owning; /* the block's stream, which owns nothing of the stack: what it says of itself ends no borrow */
} host_wait_t;

enum { HOST_WAITS = 1 << 20 };

static host_wait_t *at(const strata_stack_t *server, uint32_t node) { return strata_node(&server->host_waits, node); }

/* Which thread's stream a handle means when it is said here. */
static uint64_t thread_of(strata_stream_t stream) { return stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0; }

static bool names(const host_wait_t *wait, note_state_t state, strata_stream_t stream) {
    return wait->state == state && wait->stream == stream && wait->thread == thread_of(stream);
}

/* The link that leads to the wait for `stream`, or to the end of the list. */
static uint32_t *find(const strata_stack_t *server, strata_record_t *record, strata_stream_t stream) {
    uint32_t *link = &record->borrows;
    while (*link && !names(at(server, *link), WAITING, stream)) link = &at(server, *link)->next;
    return link;
}

static void drop(strata_stack_t *server, uint32_t *link) {
    uint32_t node = *link;
    *link = at(server, node)->next;
    at(server, node)->state = UNUSED;
    strata_nodes_give(&server->host_waits, node);
}

/* The table is made at the first note, with the lock open. */
static strata_status_t make_table(strata_call_t *call, const strata_record_t *record) {
    strata_stack_t *server = call->stack;
    if (server->host_waits.memory) return STRATA_OK;
    uint32_t generation = record->generation;
    strata_nodes_t nodes;
    strata_opened_t opened = strata_call_unlock(call);
    strata_status_t status = strata_nodes_init(&nodes, sizeof(host_wait_t), HOST_WAITS);
    strata_call_lock(call, opened);
    if (status != STRATA_OK) return status;
    if (server->host_waits.memory) strata_nodes_destroy(&nodes);
    else server->host_waits = nodes;
    if (record->generation == generation) return STRATA_OK;
    return strata_fail(STRATA_E_STALE, 0, "the block was freed while its borrow was noted");
}

strata_status_t strata_host_wait_note(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    strata_stack_t *server = call->stack;
    strata_status_t status = make_table(call, record);
    if (status != STRATA_OK || *find(server, record, stream)) return status;
    uint32_t node = strata_nodes_take(&server->host_waits);
    if (node == 0) return strata_fail(STRATA_E_LIMIT, 0, "%d borrows wait at once in one stack", HOST_WAITS);
    *at(server, node) = (host_wait_t){
        .stream = stream, .thread = thread_of(stream), .next = record->borrows, .state = WAITING, .owning = call->owning};
    record->borrows = node;
    record->attention |= STRATA_ATTENTION_CORE;
    return STRATA_OK;
}

void strata_host_wait_erase(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    uint32_t *link = find(call->stack, record, stream);
    if (*link && !at(call->stack, *link)->owning) drop(call->stack, link);
}

/* A stream that cannot be waited for takes the whole device with it, and so does another thread's default stream, which has no
 * name here. */
static bool wait_for(strata_domain_t *domain, const host_wait_t *wait) {
    if (wait->state == OVER) return true;
    bool nameable = wait->state == WAITING && wait->thread == thread_of(wait->stream);
    return nameable ? strata_domain_wait_for(domain, wait->stream) : strata_domain_wait_for_all(domain);
}

/* The record is ours alone, so its list stays as it is while the lock is open. */
bool strata_host_wait_all(strata_call_t *call, strata_record_t *record) {
    strata_stack_t *server = call->stack;
    bool done = true;
    while (record->borrows) {
        host_wait_t *wait = at(server, record->borrows);
        const host_wait_t asked = *wait;
        if (wait->state == WAITING) wait->state = BUSY;
        server->figures.host_waits++;
        strata_opened_t opened = strata_call_unlock(call);
        done = wait_for(server->domain, &asked) && done;
        strata_call_lock(call, opened);
        drop(server, &record->borrows);
        if (asked.state == WAITING) strata_condition_broadcast(&server->host_waited);
    }
    record->attention &= (uint16_t)~STRATA_ATTENTION_CORE;
    return done;
}

/* Under the lock. */
static bool any(const strata_stack_t *stack, note_state_t state, strata_stream_t stream) {
    for (uint32_t node = 1; node < stack->host_waits.used; node++)
        if (names(at(stack, node), state, stream)) return true;
    return false;
}

void strata_host_wait_stream_gone(strata_stack_t *stack, strata_stream_t stream) {
    strata_lock(&stack->lock);
    if (any(stack, WAITING, stream)) {
        strata_unlock(&stack->lock);
        bool over = strata_domain_wait_for(stack->domain, stream);
        strata_lock(&stack->lock);
        for (uint32_t node = 1; node < stack->host_waits.used; node++)
            if (names(at(stack, node), WAITING, stream)) at(stack, node)->state = over ? OVER : WHOLE_DEVICE;
    }
    while (any(stack, BUSY, stream)) strata_condition_wait(&stack->host_waited, &stack->lock, UINT64_MAX);
    strata_unlock(&stack->lock);
}
