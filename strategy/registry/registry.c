/* The registry of layers: strategy/layers.def as an array, followed by the layers registered at run time. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "strategy/plan/vet.h"

enum { REGISTERED_MAX = 128 };

#define X(name) extern const strata_layer_type_t strata_##name##_type;
#include "strategy/layers.def"
#undef X

static const strata_layer_type_t *const layers[] = {
#define X(name) &strata_##name##_type,
#include "strategy/layers.def"
#undef X
};

enum { OWN = sizeof layers / sizeof *layers };

/* Written once, then published by the count; layers are never removed. */
static strata_layer_type_t registered[REGISTERED_MAX];
static const strata_layer_type_t *authors[REGISTERED_MAX]; /* the author's own struct; guarded by the lock */
static _Atomic size_t registered_count;
/* One thread registers at a time; no other lock is taken under this one. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static const strata_layer_type_t *layer_at(size_t index, size_t all_registered) {
    if (index < OWN) return layers[index];
    return index - OWN < all_registered ? &registered[index - OWN] : NULL;
}

static const strata_layer_type_t *layer_find(const char *name, size_t all_registered) {
    const strata_layer_type_t *type;
    for (size_t i = 0; (type = layer_at(i, all_registered)); i++)
        if (strcmp(type->name, name) == 0) return type;
    return NULL;
}

const strata_layer_type_t *strata_layer_at(size_t index) {
    return layer_at(index, atomic_load_explicit(&registered_count, memory_order_acquire));
}

const strata_layer_type_t *strata_layer_find(const char *name) {
    return layer_find(name, atomic_load_explicit(&registered_count, memory_order_acquire));
}

static bool is_registered(const strata_layer_type_t *type, size_t count) {
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) found = authors[i] == type;
    return found;
}

/* Appends a layer after the first `*count`. Requires the lock. */
static strata_status_t append(const strata_layer_type_t *full, const strata_layer_type_t *author, size_t *count) {
    if (layer_find(full->name, *count))
        return strata_fail(STRATA_E_INVALID, 0, "a layer \"%s\" already exists; rename the new one", full->name);
    if (*count == REGISTERED_MAX) return strata_fail(STRATA_E_LIMIT, 0, "%d layers are registered, the maximum", REGISTERED_MAX);
    registered[*count] = *full;
    authors[(*count)++] = author;
    return STRATA_OK;
}

strata_status_t strata_layers_register(const strata_layer_type_t *const *types, size_t count, bool again) {
    strata_layer_type_t *full = strata_host_new(count + 1, sizeof *full);
    strata_status_t status = full ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) status = strata_vet_layer(types[i], &full[i]);
    if (status == STRATA_OK) {
        pthread_mutex_lock(&registering);
        size_t all = atomic_load_explicit(&registered_count, memory_order_relaxed);
        for (size_t i = 0; i < count && status == STRATA_OK; i++)
            if (!again || !is_registered(types[i], all)) status = append(&full[i], types[i], &all);
        if (status == STRATA_OK) atomic_store_explicit(&registered_count, all, memory_order_release);
        pthread_mutex_unlock(&registering);
    }
    strata_host_delete(full);
    return status;
}

strata_status_t strata_register_layer(const strata_layer_type_t *type) {
    STRATA_REFUSE_NULL(type);
    return strata_layers_register(&type, 1, false);
}
