/* Allocator objects: a value that names a stack, and the calls through it. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "allocation/report/log.h"
#include "facade/figures/figures.h"
#include "facade/graphs/graphs.h"
#include "facade/registry/lookup.h"
#include "facade/serve/slow_path.h"
#include "facade/streams/annotate.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/host/growing.h"

/* ---- stacks without a fast path, because every use of the stream must be checked ---- */

static strata_status_t never_allocate(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                      strata_block_t *block, strata_allocate_fn missed) {
    (void)stack;
    return missed(handle, stream, size, block);
}

static strata_status_t never_free(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed) {
    (void)stack;
    return missed(handle, ref);
}

/* Refs are checked on every path, so these frees may use the generic fast path. */
static strata_status_t free_of(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed) {
    return strata_direct_any.free_of(facade, ref, home, missed);
}

static const strata_direct_t never = {.allocate = never_allocate, .free = never_free, .free_of = free_of};

/* ---- the value ---- */

strata_status_t strata_allocator_get(strata_t handle, strata_place_t place, strata_stream_t stream, uint64_t named_pool,
                                     strata_allocator_t *allocator) {
    STRATA_REFUSE_NULL(allocator);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_stack_t *stack;
    strata_status_t status = strata_request_enter(facade, place, stream, named_pool, &stack);
    if (status != STRATA_OK) return status;
    if (facade->stream_ids || facade->flags & STRATA_OPEN_CHECK_CAPTURES) atomic_store(&stack->direct, &never);
    *allocator = (strata_allocator_t){.stack = strata_stack_handle_of(stack), .stream = stack->ownerless ? stream : stack->stream};
    strata_stack_exit(stack);
    strata_log_flush();
    return STRATA_OK;
}

/* Enters the stack, which keeps it from ending. Returns NULL with E_STALE or E_FORKED set. */
static strata_stack_t *enter(strata_stack_handle_t handle) {
    if (strata_lookup_forked()) {
        (void)strata_facade_of(handle);
        return NULL;
    }
    strata_stack_t *stack = strata_stack_enter(handle);
    if (!stack)
        strata_fail(
            STRATA_E_STALE, 0,
            "the allocator is stale: its stream was forgotten, the strategy was changed or the facade was closed; get a new "
            "one (strata_allocator_get)");
    return stack;
}

/* ---- requests ---- */

/* Returns the name by which the stack's stream can be found. NULL may mean another stream by now, so the
 * legacy stream is named explicitly. */
static strata_stream_t name_of_stream(const strata_stack_t *stack) {
    bool legacy = stack->stream == NULL && atomic_load(&stack->domain->default_stream) != NULL;
    return legacy ? STRATA_STREAM_LEGACY : stack->stream;
}

/* Serves a request by another stack in two cases. The stack may belong to another thread, and this thread
 * has its own under the same names. Or the stream is being captured, and the request goes to `pool`. */
static strata_status_t serve_elsewhere(const strata_stack_t *stack, uint64_t pool, const strata_allocate_options_t *options,
                                       strata_block_t *block) {
    strata_allocate_options_t own = {.freed_before = 0};
    size_t known = options->struct_size < sizeof own ? options->struct_size : sizeof own;
    memcpy(&own, options, known);
    own.struct_size = sizeof own;
    own.pool = pool;
    return strata_allocate_with(stack->facade, stack->domain->place, name_of_stream(stack), &own, block);
}

static strata_status_t serve(strata_stack_t *stack, strata_stream_t stream, const strata_allocate_options_t *options,
                             strata_block_t *block) {
    strata_facade_t *facade = strata_facade_of(stack->facade);
    if (!facade) return strata_last_error()->status;
    strata_annotation_refresh();
    if (options->pool != 0) return strata_fail(STRATA_E_INVALID, 0, "the allocator already has a pool; options->pool must be 0");
    uint64_t pool = stack->group->pool ? stack->group->pool : STRATA_POOL_ORDINARY, captured = pool;
    bool asks = facade->flags & STRATA_OPEN_CHECK_CAPTURES || stack->group->graph;
    if (asks || strata_graphs_open(stack->domain)) {
        strata_status_t status = strata_facade_route(facade, stack->domain->place, name_of_stream(stack), 0, &captured);
        if (status != STRATA_OK) return status;
    }
    bool others = stack->only_thread != 0 && stack->only_thread != strata_threads_self();
    if (captured != pool || others) return serve_elsewhere(stack, captured, options, block);
    strata_growing_grow_if_marked();
    strata_status_t status = strata_stream_ids_check(facade, stack->domain->place, stream, STRATA_STREAM_USED);
    return status == STRATA_OK ? strata_request_serve(facade, stack, stream, options, block) : status;
}

static strata_status_t allocate_by(strata_stack_handle_t handle, strata_stream_t stream, const strata_allocate_options_t *options,
                                   strata_block_t *block) {
    strata_stack_t *stack = enter(handle);
    if (!stack) return strata_last_error()->status;
    strata_status_t status = serve(stack, stream, options, block);
    strata_stack_exit(stack);
    strata_log_flush();
    return status;
}

/* Not inlined, so that the fast path saves no registers for it. */
static __attribute__((noinline)) strata_status_t allocate_missed(strata_stack_handle_t handle, strata_stream_t stream, size_t size,
                                                                 strata_block_t *block) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size};
    if (!block) return strata_fail(STRATA_E_INVALID, 0, "strata_allocator_allocate: `block` is NULL");
    return allocate_by(handle, stream, &options, block);
}

strata_status_t strata_allocator_allocate(strata_allocator_t allocator, size_t size, strata_block_t *block) {
    strata_stack_t *stack = strata_stack_of(strata_stack_handle_number(allocator.stack));
    if (__builtin_expect(!stack || !strata_threads_plain, 0))
        return allocate_missed(allocator.stack, allocator.stream, size, block);
    const strata_direct_t *direct = atomic_load_explicit(&stack->direct, memory_order_relaxed);
    return direct->allocate(allocator.stack, stack, allocator.stream, size, block, allocate_missed);
}

strata_status_t strata_allocator_allocate_with(strata_allocator_t allocator, const strata_allocate_options_t *options,
                                               strata_block_t *block) {
    STRATA_REFUSE_NULL(options);
    STRATA_REFUSE_NULL(block);
    STRATA_REFUSE_OPTIONS(options, offsetof(strata_allocate_options_t, freed_before));
    return allocate_by(allocator.stack, allocator.stream, options, block);
}

/* ---- frees ---- */

static strata_t facade_of_ref(strata_ref_t ref) {
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    if (!home) return 0;
    strata_stack_lock_own(home);
    strata_t facade = home->facade;
    strata_unlock(&home->lock);
    return facade;
}

/* A stale allocator no longer identifies its facade, so the block's ref must. */
static strata_status_t free_missed(strata_stack_handle_t handle, strata_ref_t ref) {
    if (strata_lookup_forked()) return strata_free_null(handle);
    strata_stack_t *stack = strata_stack_enter(handle);
    strata_t facade = stack ? stack->facade : facade_of_ref(ref);
    if (stack) strata_stack_exit(stack);
    if (facade) return strata_free(facade, ref);
    return strata_fail(STRATA_E_STALE, 0, "ref %#llx: its facade was closed, or it was never allocated", (unsigned long long)ref);
}

strata_status_t strata_allocator_free(strata_allocator_t allocator, strata_ref_t ref) {
    strata_stack_t *stack = strata_stack_of(strata_stack_handle_number(allocator.stack));
    if (__builtin_expect(!stack || !strata_threads_plain, 0)) return free_missed(allocator.stack, ref);
    const strata_direct_t *direct = atomic_load_explicit(&stack->direct, memory_order_relaxed);
    return direct->free(allocator.stack, ref, stack, free_missed);
}

/* ---- cached memory and properties ---- */

strata_status_t strata_allocator_release(strata_allocator_t allocator, uint64_t *released) {
    strata_stack_t *stack = enter(allocator.stack);
    if (!stack) return strata_last_error()->status;
    uint64_t before = atomic_load(&stack->domain->returned_bytes);
    strata_pending_t pending = {.ready_at = UINT64_MAX};
    strata_stack_poll(stack, &pending);
    (void)strata_stack_release(stack);
    uint64_t given = atomic_load(&stack->domain->returned_bytes) - before;
    strata_stack_exit(stack);
    if (released) *released = given;
    strata_log_flush();
    return STRATA_OK;
}

strata_status_t strata_allocator_statistics(strata_allocator_t allocator, strata_statistics_t *statistics) {
    STRATA_REFUSE_NULL(statistics);
    STRATA_REFUSE_RESULT(statistics);
    strata_stack_t *stack = enter(allocator.stack);
    if (!stack) return strata_last_error()->status;
    strata_statistics_t figures;
    strata_facade_stack_figures(stack, &figures);
    strata_stack_exit(stack);
    strata_fill_result(statistics, &figures, sizeof figures);
    return STRATA_OK;
}

strata_status_t strata_allocator_describe(strata_allocator_t allocator, strata_allocator_info_t *info) {
    STRATA_REFUSE_NULL(info);
    STRATA_REFUSE_RESULT(info);
    strata_stack_t *stack = enter(allocator.stack);
    if (!stack) return strata_last_error()->status;
    const strata_allocator_info_t named = {.facade = stack->facade,
                                           .place = stack->domain->place,
                                           .stream = stack->ownerless ? allocator.stream : name_of_stream(stack),
                                           .pool = stack->group->pool ? stack->group->pool : STRATA_POOL_ORDINARY};
    strata_stack_exit(stack);
    strata_fill_result(info, &named, sizeof named);
    return STRATA_OK;
}
