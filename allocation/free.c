/* The way back: finding a record by its ref, borrows, and the walk of the decorator stack in reverse order. */
#include "allocation/layer.h"
#include "allocation/threads.h"
#include "platform/host_memory.h"

static strata_status_t stale(strata_ref_t ref, const char *why) {
    return strata_fail(STRATA_E_STALE, 0, "ref %#llx (stack %u, slot %u): %s", (unsigned long long)ref,
                       (unsigned)strata_ref_home(ref), (unsigned)strata_ref_slot(ref), why);
}

/* Under the lock of `home`: the live record of a ref, or NULL with the reason set. */
static strata_record_t *checked(strata_stack_t *home, strata_t facade, strata_ref_t ref) {
    uint32_t slot = strata_ref_slot(ref);
    const char *why = NULL;
    if (!home->open) why = "its stack has ended";
    else if (home->facade != facade) why = "it belongs to another facade";
    else if (slot == 0 || slot >= home->slab.used) why = "there never was such an allocation";
    if (why) {
        stale(ref, why);
        return NULL;
    }
    strata_record_t *record = strata_slab_record(&home->slab, slot);
    if (record->generation != strata_ref_generation(ref) || record->state != STRATA_RECORD_LIVE ||
        record->chunk == STRATA_CHUNK_ITSELF) {
        stale(ref, "it was freed already");
        return NULL;
    }
    return record;
}

strata_status_t strata_record_find(strata_t facade, strata_ref_t ref, strata_path_t *path, strata_record_t **out) {
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    if (!home) return stale(ref, "there never was such an allocation");
    strata_lock(&home->lock);
    strata_record_t *record = checked(home, facade, ref);
    if (!record) {
        strata_unlock(&home->lock);
        return STRATA_E_STALE;
    }
    strata_stack_t *server = strata_stack_of(record->stack);
    *path = (strata_path_t){.stack = server};
    if (server == home) {
        path->held[home->trunk ? 1 : 0] = home;
    } else {
        /* A branch's lock comes before a trunk's; the record is checked again once both are in order. */
        strata_unlock(&home->lock);
        strata_lock(&server->lock);
        path->held[0] = server;
        strata_lock(&home->lock);
        record = checked(home, facade, ref);
        strata_unlock(&home->lock);
        if (!record) {
            (void)strata_path_unlock(path);
            return STRATA_E_STALE;
        }
    }
    *out = record;
    return STRATA_OK;
}

/* ---- streams that no layer knows of: the free waits for them on the host ---- */

typedef struct host_wait {
    strata_stream_t stream;
    uint64_t thread; /* whose, of the per-thread default stream; else 0 */
    uint32_t next;
    uint32_t unused;
} host_wait_t;

enum { HOST_WAITS = 1 << 20 };

static host_wait_t *host_wait_at(const strata_stack_t *server, uint32_t node) {
    return strata_node(&server->host_waits, node);
}

/* Which thread's stream a handle means when it is said here. */
static uint64_t thread_of(strata_stream_t stream) {
    return stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
}

/* The link that leads to the wait for `stream`, or to the end of the list. */
static uint32_t *host_wait_find(const strata_stack_t *server, strata_record_t *record, strata_stream_t stream) {
    uint32_t *link = &record->borrows;
    while (*link && (host_wait_at(server, *link)->stream != stream || host_wait_at(server, *link)->thread != thread_of(stream)))
        link = &host_wait_at(server, *link)->next;
    return link;
}

static strata_status_t host_wait_note(strata_path_t *path, strata_record_t *record, strata_stream_t stream) {
    strata_stack_t *server = path->stack;
    if (!server->host_waits.memory) {
        strata_nodes_t nodes;
        strata_opened_t opened = strata_path_unlock(path);
        strata_status_t status = strata_nodes_init(&nodes, sizeof(host_wait_t), HOST_WAITS);
        strata_path_lock(path, opened);
        if (status != STRATA_OK) return status;
        if (server->host_waits.memory) strata_nodes_destroy(&nodes);
        else server->host_waits = nodes;
    }
    if (*host_wait_find(server, record, stream)) return STRATA_OK;
    uint32_t node = strata_nodes_take(&server->host_waits);
    if (node == 0) return strata_fail(STRATA_E_LIMIT, 0, "%d borrows wait at once in one stack", HOST_WAITS);
    *host_wait_at(server, node) = (host_wait_t){.stream = stream, .thread = thread_of(stream), .next = record->borrows};
    record->borrows = node;
    record->attention |= STRATA_ATTENTION_CORE;
    return STRATA_OK;
}

/* Waits for every noted stream, locks open. A stream that cannot be waited for takes the whole device with it, and so does
 * another thread's default stream, which has no name here. */
static void host_wait_all(strata_path_t *path, strata_record_t *record) {
    strata_stack_t *server = path->stack;
    strata_device_t *device = server->domain->device;
    while (record->borrows) {
        host_wait_t wait = *host_wait_at(server, record->borrows);
        strata_nodes_give(&server->host_waits, record->borrows);
        record->borrows = wait.next;
        server->figures.host_waits++;
        strata_opened_t opened = strata_path_unlock(path);
        bool nameable = wait.thread == thread_of(wait.stream);
        if (!nameable || strata_device_stream_synchronise(device, wait.stream) != STRATA_OK)
            (void)strata_device_synchronise(device);
        strata_path_lock(path, opened);
    }
    record->attention &= (uint16_t)~STRATA_ATTENTION_CORE;
}

/* ---- borrows ---- */

/* The layer of a decorator stack that answers `operation`, top first; NULL: none knows it. */
static strata_layer_t *borrow_layer(const strata_stack_t *server, const strata_record_t *record) {
    for (uint64_t path = record->path; path; path >>= 8) {
        strata_layer_t *layer = server->layers[path & 0xff];
        if (layer->type->record_stream) return layer;
    }
    return NULL;
}

strata_status_t strata_record_borrow(strata_path_t *path, strata_record_t *record, strata_stream_t stream) {
    if (record->size == 0) return STRATA_OK;
    strata_layer_t *layer = borrow_layer(path->stack, record);
    if (layer) return layer->type->record_stream(layer, record, stream, path);
    strata_status_t status = host_wait_note(path, record, stream);
    if (status != STRATA_OK) return status;
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "no layer of this stack knows borrows: the free will wait on the host for the stream");
}

strata_status_t strata_record_unborrow(strata_path_t *path, strata_record_t *record, strata_stream_t stream) {
    if (record->size == 0) return STRATA_OK;
    strata_layer_t *layer = borrow_layer(path->stack, record);
    if (layer && layer->type->erase_stream) return layer->type->erase_stream(layer, record, stream, path);
    if (layer) return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s cannot take a borrow back", layer->type->name);
    uint32_t *link = host_wait_find(path->stack, record, stream);
    if (*link) {
        uint32_t node = *link;
        *link = host_wait_at(path->stack, node)->next;
        strata_nodes_give(&path->stack->host_waits, node);
    }
    return STRATA_OK;
}

/* ---- free ---- */

/* From here on the ref is stale: a second free finds another generation. */
static void end_ref(strata_stack_t *server, strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    if (home != server) strata_lock(&home->lock);
    record->generation++;
    record->state = STRATA_RECORD_DEFERRED;
    if (home != server) strata_unlock(&home->lock);
}

void strata_record_free(strata_path_t *path, strata_record_t *record) {
    strata_stack_t *server = path->stack;
    strata_stack_unbook(server, record);
    end_ref(server, record);
    if (record->path == 0) {
        strata_slab_give(&server->slab, strata_slab_slot(&server->slab, record));
        (void)strata_path_unlock(path);
        return;
    }
    bool abroad = record->home != server->number;
    if (record->attention & STRATA_ATTENTION_CORE) host_wait_all(path, record);
    (void)strata_path_unlock(path);
    strata_below_free(record, path);
    if (!abroad) return;
    strata_lock(&server->lock);
    server->abroad--;
    strata_unlock(&server->lock);
}
