/* The table of open facades, by handle. */
#include "facade/registry/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "facade/registry/lookup.h"
#include "platform/host/host_memory.h"

strata_facade_t *_Atomic strata_facades[STRATA_FACADES];
/* Guards the table's slots; no other lock is taken under it. */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static uint64_t generations[STRATA_FACADES];
static _Atomic bool ever_opened;

bool strata_facade_ever_opened(void) { return atomic_load(&ever_opened); }

static uint64_t generation_of(uint64_t slot) {
    pthread_mutex_lock(&table);
    uint64_t generation = generations[slot];
    pthread_mutex_unlock(&table);
    return generation;
}

strata_facade_t *strata_facade_of(strata_t handle) {
    if (strata_lookup_forked()) {
        strata_fail(STRATA_E_FORKED, 0, "the process was forked after the facade was opened; the child cannot use its devices");
        return NULL;
    }
    strata_facade_t *facade = atomic_load_explicit(&strata_facades[handle % STRATA_FACADES], memory_order_acquire);
    if (handle != 0 && facade && facade->handle == handle) return facade;
    bool closed = handle != 0 && facade && handle / STRATA_FACADES <= generation_of(handle % STRATA_FACADES);
    strata_fail(STRATA_E_STALE, 0, "facade %#llx is not open: %s", (unsigned long long)handle,
                closed        ? "it was closed"
                : handle == 0 ? "0 is not a facade"
                              : "it was never opened");
    return NULL;
}

/* Holds the table's lock, because the names are destroyed under it. */
bool strata_facade_name(strata_t handle, uint32_t number, char *text, size_t capacity) {
    pthread_mutex_lock(&table);
    strata_facade_t *facade = atomic_load(&strata_facades[handle % STRATA_FACADES]);
    bool known = number != 0 && handle != 0 && facade && facade->handle == handle && facade->names.text;
    if (known) snprintf(text, capacity, "%s", strata_names_text(&facade->names, number));
    pthread_mutex_unlock(&table);
    return known;
}

bool strata_facade_is_open(strata_t handle) {
    const strata_facade_t *facade = atomic_load_explicit(&strata_facades[handle % STRATA_FACADES], memory_order_acquire);
    return handle != 0 && facade && facade->handle == handle;
}

/* Structs are never freed, so a stale handle can always be compared with one. */
strata_status_t strata_registry_add(strata_facade_t **out) {
    strata_facade_t *fresh = strata_host_new(1, sizeof *fresh);
    if (!fresh) return STRATA_E_HOST_MEMORY;
    strata_status_t status = STRATA_E_LIMIT;
    pthread_mutex_lock(&table);
    for (uint64_t i = 0; i < STRATA_FACADES && status != STRATA_OK; i++) {
        strata_facade_t *facade = atomic_load(&strata_facades[i]);
        if (facade && facade->handle != 0) continue;
        if (!facade) {
            facade = fresh;
            fresh = NULL;
        }
        /* Threads with stale handles may be comparing now, so the handle is written separately, and last. */
        memset((unsigned char *)facade + sizeof facade->handle, 0, sizeof *facade - sizeof facade->handle);
        facade->handle = ++generations[i] * STRATA_FACADES + i;
        atomic_store_explicit(&strata_facades[i], facade, memory_order_release);
        *out = facade;
        status = STRATA_OK;
    }
    pthread_mutex_unlock(&table);
    strata_host_delete(fresh);
    if (status == STRATA_OK) atomic_store(&ever_opened, true);
    return status == STRATA_OK ? status : strata_fail(status, 0, "the process has %d facades, the maximum", STRATA_FACADES);
}

void strata_registry_remove(strata_facade_t *facade) {
    pthread_mutex_lock(&table);
    strata_names_destroy(&facade->names);
    facade->handle = 0;
    pthread_mutex_unlock(&table);
    strata_lookup_forget_all();
}
