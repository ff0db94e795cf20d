/* The slow path of a request: checks it, serves it from its stack, and reports a failure. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "allocation/options/option.h"
#include "allocation/reclaim/over_limit.h"
#include "allocation/report/log.h"
#include "allocation/report/outcome.h"
#include "allocation/stack/threads.h"
#include "allocation/uses/record_notes.h"
#include "facade/graphs/graphs.h"
#include "facade/registry/lookup.h"
#include "facade/report/report.h"
#include "facade/serve/slow_path.h"
#include "facade/streams/annotate.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"
#include "platform/host/growing.h"
#include "platform/place.h"

/* ---- the stack ---- */

static strata_status_t find_handle(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t named_pool,
                                   strata_stack_handle_t *handle) {
    uint64_t pool;
    (void)strata_threads_self();
    strata_status_t status = strata_facade_pool(facade, place, named_pool, &pool);
    if (status == STRATA_OK) status = strata_stream_ids_check(facade, place, stream, STRATA_STREAM_USED);
    if (status == STRATA_OK) status = strata_facade_route(facade, place, stream, named_pool, &pool);
    return status == STRATA_OK ? strata_facade_stack_handle(facade, place, pool, stream, handle) : status;
}

/* Enters the stack, which keeps it from ending. The thread's cache remembers it, unless every call must
 * be checked, belongs to an operator, or names its pool. If another thread forgets the stream now, the
 * stack is created again. */
strata_status_t strata_request_enter(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t named_pool,
                                     strata_stack_t **stack) {
    strata_stack_handle_t handle;
    do {
        strata_status_t status = find_handle(facade, place, stream, named_pool, &handle);
        if (status != STRATA_OK) return status;
    } while ((*stack = strata_stack_enter(handle)) == NULL);
    bool checked = facade->stream_ids || facade->flags & STRATA_OPEN_CHECK_CAPTURES;
    if (named_pool != 0 || checked || strata_annotation(facade)) return STRATA_OK;
    *strata_lookup_slot(place,
                        stream) = (strata_lookup_t){.facade = facade->handle, .stream = stream, .handle = handle, .place = place};
    return STRATA_OK;
}

/* ---- checks ---- */

static strata_status_t check_options(const strata_allocate_options_t *options) {
    if (options->size > STRATA_LARGEST_REQUEST)
        return strata_fail(STRATA_E_INVALID, 0, "a request of %zu bytes is too large", options->size);
    if (options->alignment & (options->alignment - 1))
        return strata_fail(STRATA_E_INVALID, 0, "the alignment is not a power of two");
    if (options->alignment > STRATA_LARGEST_REQUEST)
        return strata_fail(STRATA_E_INVALID, 0, "an alignment of %zu bytes is too large", options->alignment);
    if (options->flags & ~(uint32_t)(STRATA_NO_RETRY | STRATA_NO_GROW | STRATA_ZERO | STRATA_NO_REPORT))
        return strata_fail(
            STRATA_E_INVALID, 0, "flags: %#x is none of STRATA_NO_RETRY, STRATA_NO_GROW, STRATA_ZERO, STRATA_NO_REPORT",
            (unsigned)(options->flags & ~(uint32_t)(STRATA_NO_RETRY | STRATA_NO_GROW | STRATA_ZERO | STRATA_NO_REPORT)));
    return STRATA_OK;
}

static strata_status_t fail_alignment(const strata_stack_t *stack, size_t alignment, uint64_t most) {
    char wanted[32], serves[32];
    strata_print_size(alignment, wanted, sizeof wanted);
    strata_print_size(most, serves, sizeof serves);
    const char *of = *stack->group->name ? " in " : "";
    return strata_fail(STRATA_E_UNSUPPORTED, 0,
                       "an alignment of %s: the stack of the place %s%s%.40s serves up to %s; put aligned above "
                       "its caches, as in \"- aligned: {alignment: %s}\", which does not change other requests",
                       wanted, strata_place_name(stack->group->plan->place), of, stack->group->name, serves,
                       stack->group->plan->place == STRATA_PLACE_HOST ? "64" : "256");
}

/* Records the tag of the request and the operator of the thread. If there is no room for a name, only the
 * record is lost, not the request. */
static void note_requester(strata_facade_t *facade, const char *tag, strata_record_t *record) {
    strata_note_t note = {.operator_name = strata_annotation(facade)};
    if (tag && strata_names_number(&facade->names, tag, &note.tag) != STRATA_OK) note.tag = 0;
    if (note.tag == 0 && note.operator_name == 0) return;
    note.step = atomic_load(&facade->step);
    strata_record_note(record, &note);
}

/* Clears a block for STRATA_ZERO, on its stream. Memory of the host is cleared immediately, since nothing
 * uses a new block. */
static strata_status_t zero(strata_stack_t *stack, strata_stream_t stream, const strata_block_t *block) {
    if (block->size == 0) return STRATA_OK;
    if (!stack->ownerless)
        return strata_device_fill(stack->domain->device, (strata_address_t)(uintptr_t)block->ptr, 0, block->size, stream);
    memset(block->ptr, 0, block->size);
    return STRATA_OK;
}

/* ---- serving ---- */

/* Completes a served request. If that fails, the caller frees the block. */
static strata_status_t hand_out(strata_facade_t *facade, strata_stack_t *stack, const strata_request_t *request,
                                strata_record_t *record, strata_block_t *block) {
    strata_block_t served = {.ptr = (void *)(uintptr_t)record->ptr, .size = (size_t)record->size, .ref = strata_ref_of(record)};
    note_requester(facade, request->tag, record);
    /* An external layer may claim to pass alignments on and still move an address. */
    if ((record->ptr & (request->alignment - 1)) != 0)
        return strata_fail(
            STRATA_E_UNSUPPORTED, 0,
            "%#llx was served for a request aligned to %zu: a layer of the stack shifts addresses and has no alignment operation",
            (unsigned long long)record->ptr, request->alignment);
    strata_status_t status = request->flags & STRATA_ZERO ? zero(stack, request->stream, &served) : STRATA_OK;
    if (status == STRATA_OK) *block = served;
    return status;
}

static strata_status_t own(strata_graph_pool_t *pool, strata_ref_t ref) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_record_find(pool->group->domain->facade, ref, &call, &record);
    if (status != STRATA_OK) return status;
    status = strata_graph_pool_own(pool, &call, record);
    (void)strata_call_unlock(&call);
    return status;
}

/* Requires that the stack was entered. */
static strata_status_t serve_on(strata_facade_t *facade, strata_stack_t *stack, strata_stream_t stream,
                                const strata_allocate_options_t *options, strata_block_t *block) {
    /* The alignment is the place's, or more if the stack's layers serve it. */
    const strata_plan_t *plan = stack->group->plan;
    uint64_t least = strata_place_alignment(plan->place), most = strata_max(plan->alignment, least);
    if (options->alignment > most) return fail_alignment(stack, options->alignment, most);
    /* No event shows the end of a captured use in memory without owners, so the pool of the graph must own the block too. */
    strata_graph_pool_t *graph = NULL;
    bool may_be_captured = stack->ownerless && stream && strata_graphs_open(stack->domain);
    strata_status_t status = may_be_captured ? strata_graphs_capturing(stack->domain, stream, &graph) : STRATA_OK;
    if (status != STRATA_OK) return status;
    strata_over_limit_check(stack->domain);
    uint64_t reserved = strata_domain_reserved(stack->domain);
    strata_outcome_t outcome;
    strata_request_t request = {.struct_size = sizeof request,
                                .size = options->size,
                                .alignment = strata_max(options->alignment, least),
                                .stream = stack->ownerless ? stream : stack->stream,
                                .flags = options->flags,
                                .pool = stack->group->pool,
                                .tag = options->tag,
                                .outcome = &outcome};
    if (options->struct_size >= sizeof *options) request.freed_before = options->freed_before;
    uint32_t operator_name = strata_annotation(facade);
    if (operator_name) request.operator_name = strata_names_text(&facade->names, operator_name);
    strata_record_t *record;
    do status = options->size ? strata_stack_serve(stack, &request, &record) : strata_stack_serve_nothing(stack, &record);
    while (status != STRATA_OK && strata_growing_try_again(&status));
    if (status == STRATA_E_NO_MEMORY) return strata_facade_out_of_memory(facade, stack, &request);
    if (status != STRATA_OK) return status;
    status = hand_out(facade, stack, &request, record, block);
    if (status == STRATA_OK && graph && options->size) status = own(graph, strata_ref_of(record));
    if (status == STRATA_OK) return status;
    /* After a failure above the stack the block is freed. The thread's error stays. */
    const strata_error_t reason = *strata_last_error();
    (void)strata_free(facade->handle, strata_ref_of(record));
    (void)strata_fail_again(&reason);
    strata_stack_undo_growth(stack, reserved);
    return status;
}

strata_status_t strata_request_serve(strata_facade_t *facade, strata_stack_t *stack, strata_stream_t stream,
                                     const strata_allocate_options_t *options, strata_block_t *block) {
    strata_status_t status = check_options(options);
    return status == STRATA_OK ? serve_on(facade, stack, stream, options, block) : status;
}

strata_status_t strata_allocate_with(strata_t handle, strata_place_t place, strata_stream_t stream,
                                     const strata_allocate_options_t *options, strata_block_t *block) {
    STRATA_REFUSE_NULL(options);
    STRATA_REFUSE_NULL(block);
    STRATA_REFUSE_OPTIONS(options, offsetof(strata_allocate_options_t, freed_before));
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_growing_grow_if_marked();
    strata_stack_t *stack;
    strata_status_t status = check_options(options);
    if (status == STRATA_OK) status = strata_request_enter(facade, place, stream, options->pool, &stack);
    if (status == STRATA_OK) {
        status = serve_on(facade, stack, stream, options, block);
        strata_stack_exit(stack);
    }
    strata_log_flush();
    return status;
}

strata_status_t strata_allocate_slow(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size,
                                     strata_block_t *block) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size};
    if (!block) return strata_fail(STRATA_E_INVALID, 0, "strata_allocate: `block` is NULL");
    return strata_allocate_with(facade, place, stream, &options, block);
}

strata_status_t strata_allocate_missed(strata_stack_handle_t handle, strata_stream_t stream, size_t size, strata_block_t *block,
                                       bool *found) {
    strata_stack_t *stack = block ? strata_stack_enter(handle) : NULL;
    *found = stack && !strata_graphs_must_route(stack);
    if (stack && !*found) strata_stack_exit(stack);
    if (!*found) return STRATA_E_STALE;
    strata_growing_grow_if_marked();
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size};
    strata_status_t status = serve_on(strata_facade_of(stack->facade), stack, stream, &options, block);
    strata_stack_exit(stack);
    strata_log_flush();
    return status;
}
