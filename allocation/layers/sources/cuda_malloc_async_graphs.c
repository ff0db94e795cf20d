/* cuda_malloc_async in a graph pool: the driver's graph memory.
 *
 * An allocation on the captured stream becomes a node of its graph. The address belongs to the graph from
 * then on, and at each launch the memory exists from that node on. A free in the same capture is another
 * node. All other freed blocks are kept until nothing keeps the pool:
 *
 *     freed inside after a borrow    The free must follow the borrower's captured work. A node in the owner's stream
 *                                    does so only if the program has joined the two before, which the driver does not
 *                                    show. Joining them would add a node of ours to the program's graph. So each launch
 *                                    leaves the memory allocated for the next one, which frees it first.
 *     freed outside                  The next launch would allocate it again, and it would never be freed.
 *     memory not of the graph        A launch uses it nevertheless.
 *
 * Then the host waits for the device, since a graph is launched in the order of any stream, and offers the
 * memory to the driver. The driver does not recognize memory that no launch has allocated.
 *
 * A node may be added only to the stream that begins the capture. A stream that has joined it must be
 * joined again, and the program may have done so already. All other memory is allocated outside the
 * capture, on the layer's own stream, and the host waits for it. That includes requests of other streams,
 * requests between begin and the capture, and chunks of a cache, which several graphs use. */
#include "allocation/domain/driver_memory.h"
#include "allocation/graphs/graphs.h"
#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "allocation/report/outcome.h"
#include "allocation/stack/threads.h"

/* A record's `prev` is the entry of memory that a graph allocates, or 0 for other memory. */

/* The driver's error for memory that does not exist: CUDA_ERROR_INVALID_VALUE. */
enum { NO_SUCH_MEMORY = 1 };

static strata_domain_t *domain_of(const async_layer_t *self) { return self->base.domain; }

static strata_graph_pool_t *pool_of(const async_layer_t *self) { return atomic_load(&self->base.stack->group->graph); }

static void drop_record(async_layer_t *self, strata_record_t *record) {
    strata_uses_drop_all(&self->uses, &record->borrows);
    strata_users_release(&self->uses.users, record->user);
    if (record->prev) strata_driver_memory_delete(domain_of(self), record->prev);
    strata_record_delete(&self->base, record);
}

/* ---- allocate ---- */

typedef struct graph_memory {
    uint64_t capture; /* the capture with the graph that allocates it, or 0 */
    strata_stream_t stream; /* the stream that orders it */
    strata_address_t address; /* 0 if there is no memory */
    uint32_t entry;
} graph_memory_t;

/* Adds a node to the graph, or allocates on the layer's own stream and waits for that on the host. */
static strata_status_t ask_driver(async_layer_t *self, const strata_request_t *request, graph_memory_t *memory) {
    strata_device_t *device = async_device_of(self);
    if (memory->capture && (memory->entry = strata_driver_memory_new(domain_of(self), memory->capture)) == 0)
        return strata_last_error()->status;
    strata_status_t status = strata_device_malloc_async(device, self->pool, request->size, memory->stream, &memory->address);
    if (status == STRATA_E_NO_MEMORY) strata_refused_by_device(request, request->size);
    if (status != STRATA_OK) memory->address = 0;
    return status == STRATA_OK && !memory->capture ? strata_device_stream_synchronise(device, memory->stream) : status;
}

/* Returns unserved memory in its stream's order. Returns false if the device refuses that too; the memory
 * then counts as reserved. The reason of the failure stays. */
static bool free_unserved(async_layer_t *self, uint64_t size, const graph_memory_t *memory) {
    const strata_error_t reason = *strata_last_error();
    bool gone = !memory->address ||
                strata_async_is_released(strata_device_free_async(async_device_of(self), memory->address, memory->stream));
    if (gone) strata_domain_unclaim(domain_of(self), size);
    else strata_domain_count(domain_of(self), size);
    (void)strata_fail_again(&reason);
    return gone;
}

/* No lock is held. */
static strata_status_t allocate_booked(async_layer_t *self, const strata_request_t *request, graph_memory_t *memory, bool *gone) {
    uint64_t size = request->size;
    strata_status_t status = ask_driver(self, request, memory);
    if (status == STRATA_OK) strata_async_end_pending(self, memory->address, size);
    if (status == STRATA_OK) status = strata_domain_book(domain_of(self), memory->address, size);
    if (memory->entry && memory->address) strata_driver_memory_set_address(domain_of(self), memory->entry, memory->address);
    *gone = status != STRATA_OK && free_unserved(self, size, memory);
    return status;
}

/* Chooses the stream that orders the allocation, and whether it is a node of the graph. */
static strata_status_t choose(async_layer_t *self, const strata_request_t *request, graph_memory_t *memory) {
    strata_stream_t stream = memory->stream = request->stream;
    uint64_t thread = stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
    strata_status_t status = STRATA_OK;
    if (request->call->purpose != STRATA_FOR_CHUNK) {
        strata_unlocked_t opened = strata_call_unlock(request->call);
        status = strata_graph_pool_named_capture(pool_of(self), stream, thread, &memory->capture);
        strata_call_lock(request->call, opened);
    }
    if (status != STRATA_OK || memory->capture) return status;
    if (!strata_free_stream_make(&self->frees, request->call)) return strata_last_error()->status;
    memory->stream = self->frees.stream;
    return STRATA_OK;
}

/* The record is made first, and hidden until it has a block. Memory that can neither be served nor returned must
 * be kept by a record, because the graph allocates it at each launch. */
static strata_status_t allocate_for_record(async_layer_t *self, const strata_request_t *request, graph_memory_t *memory,
                                           strata_record_t *record) {
    bool gone;
    record->state = STRATA_RECORD_DEFERRED;
    record->route = self->base.number;
    record->size = 0;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = allocate_booked(self, request, memory, &gone);
    strata_call_lock(request->call, opened);
    record->ptr = memory->address;
    record->size = request->size;
    record->prev = memory->entry;
    record->route = 0;
    record->state = STRATA_RECORD_LIVE;
    if (status == STRATA_OK) {
        self->live_bytes += request->size;
        return status;
    }
    record->pool = STRATA_ASYNC_UNBOOKED;
    if (gone) drop_record(self, record);
    else strata_async_keep(self, record);
    return status;
}

strata_status_t strata_async_allocate_for_graphs(async_layer_t *self, const strata_request_t *request, strata_record_t **out) {
    graph_memory_t memory = {.capture = 0};
    strata_status_t status = choose(self, request, &memory);
    strata_record_t *record = status == STRATA_OK ? strata_async_make_record(self, request, 0) : NULL;
    if (record) {
        status = allocate_for_record(self, request, &memory, record);
        if (status == STRATA_OK) *out = record;
        return status;
    }
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_domain_unclaim(domain_of(self), request->size);
    strata_call_lock(request->call, opened);
    return status == STRATA_OK ? STRATA_E_LIMIT : status;
}

/* ---- free ---- */

/* Returns whether the owning stream is still in the capture that allocates the block. No lock is held. */
static bool is_in_its_capture(async_layer_t *self, uint32_t entry, strata_stream_t stream, uint64_t thread) {
    uint64_t capture;
    strata_graph_pool_t *pool = pool_of(self); /* NULL if the place is closed */
    return pool && strata_graph_pool_named_capture(pool, stream, thread, &capture) == STRATA_OK && capture != 0 &&
           strata_driver_memory_is_of(domain_of(self), entry, capture);
}

/* Frees by a node of the graph. Returns false if no node may be added, or if the device refuses. */
static bool free_inside(async_layer_t *self, strata_record_t *record, strata_call_t *call) {
    uint32_t owner = record->user;
    if (record->borrows != 0 || record->prev == 0 || !strata_uses_enter_handle(&self->uses, owner)) return false;
    strata_stream_t stream = strata_user_at(&self->uses.users, owner)->stream;
    uint64_t thread = strata_user_at(&self->uses.users, owner)->thread;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool inside = is_in_its_capture(self, record->prev, stream, thread);
    strata_call_lock(call, opened);
    bool gone = inside && strata_async_give_back(self, record, true, stream, call);
    strata_uses_exit_handle(&self->uses, owner);
    return gone;
}

void strata_async_free_for_graphs(async_layer_t *self, strata_record_t *record, strata_call_t *call) {
    uint64_t bytes = record->size;
    self->live_bytes -= bytes;
    if (!free_inside(self, record, call)) {
        strata_async_keep(self, record);
        return;
    }
    drop_record(self, record);
    strata_domain_discount(domain_of(self), bytes);
}

/* ---- once nothing keeps the pool ---- */

typedef enum answer { REFUSED, GIVEN, NEVER_THERE } answer_t;

/* No lock is held. */
static answer_t offer(async_layer_t *self, const strata_record_t *record) {
    if (!strata_async_may_exist(self, record)) return NEVER_THERE;
    strata_status_t status = strata_device_free(async_device_of(self), STRATA_MEMORY_DEVICE, record->ptr);
    if (strata_async_is_released(status)) return GIVEN;
    bool never = record->prev && status == STRATA_E_DEVICE && strata_last_error()->device_code == NO_SUCH_MEMORY;
    return never ? NEVER_THERE : REFUSED;
}

/* Returns the bytes of graph memory that the driver took. The lock is released in between. */
static uint64_t return_block(async_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    uint64_t size = strata_record_withdraw(&self->base, record);
    if (record->pool == STRATA_ASYNC_BOOKED) strata_domain_uncover(domain_of(self), record->ptr, size);
    answer_t answer = offer(self, record);
    if (answer == REFUSED && record->pool == STRATA_ASYNC_BOOKED) strata_domain_recover(domain_of(self), record->ptr, size);
    strata_call_lock(call, opened);
    bool given = answer == GIVEN && record->prev;
    record->size = size;
    if (answer == REFUSED) {
        strata_async_keep(self, record);
        return 0;
    }
    drop_record(self, record);
    if (given) strata_domain_unbook(domain_of(self), size);
    else strata_domain_discount(domain_of(self), size);
    return given ? size : 0;
}

/* Keeps all memory of the default pool; the free graph memory is released with its trim. */
void strata_async_trim_graphs(async_layer_t *self) { (void)strata_device_pool_trim(async_device_of(self), NULL, UINT64_MAX); }

/* Blocks that are freed during the wait are not in this list. */
uint64_t strata_async_free_kept(async_layer_t *self, strata_call_t *call) {
    uint64_t given = 0;
    strata_record_t *record;
    uint32_t list = strata_async_detach_kept(self);
    if (list == 0) return 0;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool waited = strata_domain_wait_for_all(domain_of(self));
    strata_call_lock(call, opened);
    while ((record = strata_async_next_kept(self, &list)) != NULL) {
        if (waited) given += return_block(self, record, call);
        else strata_async_keep(self, record);
    }
    if (given == 0) return 0;
    opened = strata_call_unlock(call);
    strata_async_trim_graphs(self);
    strata_call_lock(call, opened);
    return given;
}

bool strata_async_may_exist(const async_layer_t *self, const strata_record_t *record) {
    return record->prev == 0 || !strata_driver_memory_is_freed(domain_of(self), record->prev);
}
