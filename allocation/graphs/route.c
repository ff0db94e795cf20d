/* Chooses the pool of a request while graph pools are open. The stream that a pool was begun for is known
 * by name. For any other stream the driver is queried, because the stream may have joined a capture by
 * waiting for an event of it. */
#include "allocation/graphs/graphs.h"

/* Returns whether all requests of the stack's stream go to the pool, from begin to end. Requests of a
 * stream that joined the capture only go there while it is captured, and a filter chooses each request. */
static bool is_named(strata_graph_pool_t *pool, const strata_stack_t *stack) {
    strata_captures_t *captures = stack->domain->captures;
    strata_lock(&captures->lock);
    bool named = !pool->window.filter && pool->window.stream == stack->stream && pool->window.thread == stack->thread;
    strata_unlock(&captures->lock);
    return named;
}

bool strata_graphs_must_route(const strata_stack_t *stack) {
    strata_graph_pool_t *pool = stack->group->graph;
    return pool ? !pool->ready || !is_named(pool, stack) : strata_graphs_open(stack->domain);
}

/* ---- a snapshot of the open pools ---- */

typedef struct open_pool {
    strata_graph_pool_t *pool;
    strata_graph_window_t window;
    uint64_t capture;
} open_pool_t;

/* If `place`, lists only pools of the domain itself. */
static uint32_t list(const strata_domain_t *domain, bool place, open_pool_t open[STRATA_OPEN_GRAPHS]) {
    strata_captures_t *captures = domain->captures;
    uint32_t count = 0;
    strata_lock(&captures->lock);
    for (strata_graph_pool_t *pool = captures->first; pool && count < STRATA_OPEN_GRAPHS; pool = pool->next_open)
        if (!place || pool->group->domain == domain)
            open[count++] = (open_pool_t){.pool = pool, .window = pool->window, .capture = pool->capture};
    strata_unlock(&captures->lock);
    return count;
}

static bool is_chosen(const strata_graph_window_t *window, strata_stream_t stream, uint64_t thread) {
    if (window->filter) return window->filter(stream, window->context);
    return window->stream == stream && window->thread == thread;
}

/* ---- captures ---- */

strata_status_t strata_graphs_capture_of(strata_domain_t *domain, strata_stream_t stream, uint64_t *id) {
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    *id = 0;
    if (stream == NULL || stream == STRATA_STREAM_LEGACY) return STRATA_OK;
    strata_status_t status = strata_domain_capture_of(domain, stream, &capture, id);
    if (status != STRATA_OK) return status;
    if (capture == STRATA_CAPTURE_INVALIDATED)
        return strata_fail(STRATA_E_CAPTURE, 0, "the capture of this stream was invalidated; end it before the next request");
    if (capture != STRATA_CAPTURE_ACTIVE) *id = 0;
    return STRATA_OK;
}

strata_status_t strata_graph_pools_own(strata_call_t *call, strata_record_t *record) {
    const strata_domain_t *domain = call->stack->domain;
    open_pool_t open[STRATA_OPEN_GRAPHS];
    strata_status_t status = STRATA_OK;
    uint32_t count = list(domain, false, open);
    for (uint32_t i = 0; i < count && status == STRATA_OK; i++) {
        const strata_group_t *group = open[i].pool->group;
        if (group != call->stack->group && group->domain->device == domain->device)
            status = strata_graph_pool_own(open[i].pool, call, record);
    }
    return status;
}

strata_status_t strata_graph_pool_named_capture(strata_graph_pool_t *pool, strata_stream_t stream, uint64_t thread, uint64_t *id) {
    strata_domain_t *domain = pool->group->domain;
    open_pool_t open[STRATA_OPEN_GRAPHS];
    uint32_t count = list(domain, true, open);
    bool named = false;
    for (uint32_t i = 0; i < count && !named; i++)
        named = open[i].pool == pool && !open[i].window.filter && is_chosen(&open[i].window, stream, thread);
    *id = 0;
    return named ? strata_graphs_capture_of(domain, stream, id) : STRATA_OK;
}

static strata_status_t fail_unannounced(void) {
    return strata_fail(
        STRATA_E_CAPTURE, 0,
        "the stream is being captured without an open pool in this place: the memory could be reused by others while the graph "
        "uses it; call strata_graph_pool_begin() before the capture, and strata_graph_pool_end() after it");
}

strata_status_t strata_graphs_refuse_unannounced(const strata_stack_t *stack, strata_stream_t stream) {
    uint64_t id;
    if (stack->group->graph || stack->ownerless) return STRATA_OK;
    strata_status_t status = strata_graphs_capture_of(stack->domain, stream, &id);
    return status == STRATA_OK && id != 0 ? fail_unannounced() : status;
}

/* Returns the pool of the capture that the stream has joined. For a pool without a seen capture, the driver
 * is queried for its named stream. */
static strata_graph_pool_t *joined(strata_domain_t *domain, open_pool_t *open, uint32_t count, uint64_t id) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t own = open[i].capture;
        if (own == 0 && !open[i].window.filter) (void)strata_graphs_capture_of(domain, open[i].window.stream, &own);
        if (own == id) return open[i].pool;
    }
    return NULL;
}

strata_status_t strata_graphs_route(strata_domain_t *domain, strata_stream_t stream, uint64_t thread, strata_graph_pool_t **pool) {
    open_pool_t open[STRATA_OPEN_GRAPHS];
    uint32_t count = list(domain, true, open);
    uint64_t id = 0;
    *pool = NULL;
    for (uint32_t i = 0; i < count && !*pool; i++)
        if (is_chosen(&open[i].window, stream, thread)) *pool = open[i].pool;
    strata_status_t status = *pool ? STRATA_OK : strata_graphs_capture_of(domain, stream, &id);
    if (status != STRATA_OK || (!*pool && id == 0)) return status;
    if (!*pool) *pool = joined(domain, open, count, id);
    return *pool ? strata_graph_pool_watch(*pool, stream) : fail_unannounced();
}

strata_status_t strata_graphs_capturing(strata_domain_t *domain, strata_stream_t stream, strata_graph_pool_t **pool) {
    open_pool_t open[STRATA_OPEN_GRAPHS];
    uint64_t id;
    *pool = NULL;
    strata_status_t status = strata_graphs_capture_of(domain, stream, &id);
    if (status != STRATA_OK || id == 0) return status;
    *pool = joined(domain, open, list(domain, false, open), id);
    return *pool ? strata_graph_pool_watch(*pool, stream) : fail_unannounced();
}
