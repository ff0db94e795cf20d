#include "facade/serve/slow_path.h"

#include <string.h>

#include "allocation/call/blocks.h"
#include "allocation/call/ref_info.h"
#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "allocation/options/option.h"
#include "allocation/reclaim/over_limit.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/registry/diagnose.h"
#include "facade/registry/lookup.h"
#include "facade/streams/annotate.h"
#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"
#include "platform/host/growing.h"

static void fill_block(const strata_record_t *record, strata_block_t *block) {
    block->ptr = (void *)(uintptr_t)record->ptr;
    block->size = record->size;
    block->ref = strata_ref_of(record);
}

/* ---- blocks that graphs use ---- */

/* Sets *pool to the pool into which a stream is being captured, unless that is the block's own pool.
 * Queries the driver with the locks released. Returns E_STALE if another thread freed the block in between. */
static strata_status_t captured_into(strata_call_t *call, const strata_record_t *record, strata_stream_t stream,
                                     strata_graph_pool_t **pool) {
    *pool = NULL;
    if (!strata_graphs_open(call->stack->domain) || record->size == 0) return STRATA_OK;
    uint32_t generation = record->generation;
    strata_stack_t *home = strata_call_pin_home(call, record);
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_graphs_capturing(call->stack->domain, stream, pool);
    strata_call_lock(call, opened);
    strata_call_unpin_home(call, home);
    if (*pool && (*pool)->group == call->stack->group) *pool = NULL;
    if (record->generation == generation) return status;
    return strata_fail(STRATA_E_STALE, 0, "another thread freed the block concurrently");
}

/* Ends the free of a block; its lock is held. If a graph uses the block last, the graph becomes an owner
 * before this one releases it. If that cannot be recorded, the block is quarantined and never reused. */
static strata_status_t finish_free(strata_call_t *call, strata_record_t *record, strata_stream_t stream, bool on_stream) {
    strata_graph_pool_t *pool;
    strata_domain_t *domain = call->stack->domain;
    strata_status_t status = captured_into(call, record, stream, &pool);
    bool unknown = call->stack->forgotten.orphan && !on_stream && strata_graphs_open(call->stack->domain);
    if (status == STRATA_OK && unknown) status = strata_graph_pools_own(call, record);
    else if (status != STRATA_E_STALE) status = pool ? strata_graph_pool_own(pool, call, record) : STRATA_OK;
    if (status == STRATA_E_STALE) {
        (void)strata_call_unlock(call);
        return status;
    }
    if (status != STRATA_OK) strata_record_quarantine(call, record);
    else if (on_stream) strata_record_free_on(call, record, stream);
    else strata_record_free(call, record);
    strata_over_limit_check(domain);
    strata_log_flush();
    return STRATA_OK;
}

static strata_stream_t owner_of(const strata_stack_t *stack) {
    return stack->ownerless || stack->forgotten.orphan ? NULL : stack->stream;
}

strata_status_t strata_free_slow(strata_t handle, strata_ref_t ref) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    return status == STRATA_OK ? finish_free(&call, record, owner_of(call.stack), false) : status;
}

/* Without this check, a call with a recycled handle would be taken for one with the old stream. */
static strata_status_t check_stream(strata_t handle, strata_ref_t ref, strata_stream_t stream, strata_stream_effect_t effect) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    if (!facade->stream_ids) return STRATA_OK;
    strata_ref_info_t info;
    strata_ref_info_of(ref, &info);
    return info.live && info.facade == handle ? strata_stream_ids_check(facade, info.place, stream, effect) : STRATA_OK;
}

static bool is_owner(const strata_stack_t *stack, strata_stream_t stream) {
    if (stack->ownerless || stack->forgotten.orphan) return false;
    strata_stream_t key = strata_facade_stream_key(stack->domain, stream);
    return key == stack->stream && (key != STRATA_STREAM_PER_THREAD || stack->thread == strata_threads_self());
}

/* The legacy stream has two names, but a borrow must have one. */
static strata_stream_t borrower_key(const strata_stack_t *stack, strata_stream_t stream) {
    if (!stack->ownerless) return strata_facade_stream_key(stack->domain, stream);
    return stream == STRATA_STREAM_LEGACY ? NULL : stream;
}

strata_status_t strata_free_on(strata_t handle, strata_ref_t ref, strata_stream_t stream) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = check_stream(handle, ref, stream, STRATA_STREAM_USED);
    if (status == STRATA_OK) status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    if (is_owner(call.stack, stream)) return finish_free(&call, record, owner_of(call.stack), false);
    return finish_free(&call, record, borrower_key(call.stack, stream), true);
}

strata_status_t strata_free_null(strata_t handle) { return strata_facade_of(handle) ? STRATA_OK : strata_last_error()->status; }

/* ---- frees by pointer ---- */

/* Returns the ref that the directories have for an address, or 0. It is a hint that must be checked
 * against the record. */
static strata_ref_t ref_at(strata_facade_t *facade, uint64_t address) {
    for (int i = 0; i < 2; i++) {
        uint16_t number;
        uint32_t slot;
        if (!strata_directory_read(facade->directories[i], address, &number, &slot)) continue;
        strata_stack_t *home = strata_stack_of(number);
        strata_stack_lock_own(home);
        strata_ref_t ref = 0;
        if (home->facade == facade->handle && slot < home->slab.used) {
            const strata_record_t *record = strata_slab_record(&home->slab, slot);
            if (record->ptr == address && record->state == STRATA_RECORD_LIVE)
                ref = strata_ref_make(number, slot, record->generation);
        }
        strata_unlock(&home->lock);
        if (ref) return ref;
    }
    return 0;
}

/* Searches all stacks. Used if the host has no room for the directories. */
static strata_ref_t ref_without_notes(strata_facade_t *facade, uint64_t address) {
    strata_ref_t ref = 0;
    uint32_t index = 0;
    strata_domain_t *domain;
    while (!ref && (domain = strata_facade_next_domain(facade, &index)) != NULL)
        STRATA_DOMAIN_EACH(domain, stack) {
            strata_stack_lock_own(stack);
            const strata_record_t *record = ref ? NULL : strata_stack_block_at(stack, address);
            if (record && record->ptr == address) ref = strata_ref_of(record);
            strata_unlock(&stack->lock);
        }
    return ref;
}

static strata_status_t find_pointer(strata_t handle, const void *ptr, strata_call_t *call, strata_record_t **record) {
    uint32_t epoch = atomic_load_explicit(&strata_lookup_epoch, memory_order_acquire);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_growing_grow_if_marked();
    (void)strata_threads_self();
    bool noted = atomic_load_explicit(&facade->pointer_directory, memory_order_acquire) ||
                 strata_facade_note_pointers(facade) == STRATA_OK;
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    strata_ref_t ref = noted ? ref_at(facade, address) : ref_without_notes(facade, address);
    if (noted)
        strata_pointer_lookup = (strata_pointer_lookup_t){.facade = handle, .directory = facade->directories[0], .epoch = epoch};
    if (ref && strata_record_find(handle, ref, call, record) == STRATA_OK) return STRATA_OK;
    return strata_diagnose_pointer(facade, ptr, "begins there");
}

strata_status_t strata_free_pointer_slow(strata_t handle, void *ptr) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = find_pointer(handle, ptr, &call, &record);
    return status == STRATA_OK ? finish_free(&call, record, owner_of(call.stack), false) : status;
}

strata_status_t strata_block_of(strata_t handle, const void *ptr, strata_block_t *block) {
    STRATA_REFUSE_NULL(block);
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = find_pointer(handle, ptr, &call, &record);
    if (status != STRATA_OK) return status;
    fill_block(record, block);
    (void)strata_call_unlock(&call);
    return STRATA_OK;
}

strata_status_t strata_allocation_route(strata_t handle, strata_ref_t ref, char *text, size_t capacity) {
    STRATA_REFUSE_NULL_ARRAY(text, capacity);
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    strata_record_describe(call.stack, record, text, capacity);
    (void)strata_call_unlock(&call);
    return STRATA_OK;
}

/* ---- borrows ---- */

/* A graph owns a block that it uses at every launch, because no event shows the end of such a use. The
 * block is also borrowed, which covers the stream's other work before and after the capture. */
static strata_status_t borrow(strata_call_t *call, strata_record_t *record, strata_stream_t stream, bool *waits) {
    strata_graph_pool_t *pool;
    strata_status_t status = captured_into(call, record, borrower_key(call->stack, stream), &pool);
    if (status != STRATA_OK) return status;
    if (pool) status = strata_graph_pool_own(pool, call, record);
    if (status != STRATA_OK) return status;
    status = strata_record_borrow(call, record, borrower_key(call->stack, stream));
    *waits = status == STRATA_E_UNSUPPORTED;
    if (!*waits) return status;
    call->stack->figures.borrows_waited++;
    return STRATA_OK;
}

static strata_status_t record_once(strata_t handle, strata_ref_t ref, strata_stream_t stream, bool *waits) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    *waits = false;
    if (!is_owner(call.stack, stream)) status = borrow(&call, record, stream, waits);
    (void)strata_call_unlock(&call);
    return status;
}

strata_status_t strata_facade_record_stream(strata_t handle, strata_ref_t ref, strata_stream_t stream, bool *waits) {
    strata_status_t status = check_stream(handle, ref, stream, STRATA_STREAM_USED);
    if (status != STRATA_OK) return status;
    do status = record_once(handle, ref, stream, waits);
    while (status != STRATA_OK && strata_growing_try_again(&status));
    return status;
}

strata_status_t strata_record_stream(strata_t handle, strata_ref_t ref, strata_stream_t stream) {
    bool waits;
    return strata_facade_record_stream(handle, ref, stream, &waits);
}

strata_status_t strata_erase_stream(strata_t handle, strata_ref_t ref, strata_stream_t stream) {
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = check_stream(handle, ref, stream, STRATA_STREAM_NAMED);
    if (status == STRATA_OK) status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    if (!is_owner(call.stack, stream)) status = strata_record_unborrow(&call, record, borrower_key(call.stack, stream));
    (void)strata_call_unlock(&call);
    return status;
}

strata_status_t strata_stream_of(strata_t handle, strata_ref_t ref, strata_stream_t *stream) {
    STRATA_REFUSE_NULL(stream);
    strata_call_t call;
    strata_record_t *record;
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    bool owned = !call.stack->ownerless && !call.stack->forgotten.orphan;
    strata_stream_t owner = call.stack->stream;
    uint64_t thread = call.stack->thread;
    (void)strata_call_unlock(&call);
    if (!owned) return strata_fail(STRATA_E_UNSUPPORTED, 0, "the block has no owner stream");
    if (thread != 0 && thread != strata_threads_self())
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "the owner is another thread's per-thread default stream, which this thread cannot name");
    *stream = owner || !atomic_load(&call.stack->domain->default_stream) ? owner : STRATA_STREAM_LEGACY;
    return STRATA_OK;
}
