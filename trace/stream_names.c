#include "trace/stream_names.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "platform/host/host_memory.h"

typedef struct named {
    const void *owner;
    uint64_t stream;
    char *name;
} named_t;

/* A leaf lock: no other lock is taken while it is held. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static named_t *table;
static size_t count, room;

static named_t *find(const void *owner, uint64_t stream) {
    for (size_t i = 0; i < count; i++)
        if (table[i].owner == owner && table[i].stream == stream) return &table[i];
    return NULL;
}

static named_t *add(const void *owner, uint64_t stream) {
    if (count == STRATA_STREAM_NAMES) return NULL;
    if (count == room) {
        named_t *larger = strata_host_resize(table, 2 * room + 16, sizeof *larger);
        if (!larger) return NULL;
        table = larger;
        room = 2 * room + 16;
    }
    table[count] = (named_t){.owner = owner, .stream = stream};
    return &table[count++];
}

void strata_stream_names_set(const void *owner, uint64_t stream, const char *name) {
    char *copy = strata_host_strdup(name);
    if (!copy) return;
    pthread_mutex_lock(&mutex);
    named_t *named = find(owner, stream);
    if (!named) named = add(owner, stream);
    char *old = named ? named->name : copy;
    if (named) named->name = copy;
    pthread_mutex_unlock(&mutex);
    strata_host_delete(old);
}

void strata_stream_names_forget(const void *owner) {
    pthread_mutex_lock(&mutex);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (table[i].owner == owner) strata_host_delete(table[i].name);
        else table[kept++] = table[i];
    }
    count = kept;
    if (count == 0) {
        strata_host_delete(table);
        table = NULL;
        room = 0;
    }
    pthread_mutex_unlock(&mutex);
}

bool strata_stream_names_find(uint64_t stream, char name[STRATA_TRACE_TAG_BYTES]) {
    pthread_mutex_lock(&mutex);
    size_t at = count;
    while (at > 0 && table[at - 1].stream != stream) at--;
    if (at > 0) snprintf(name, STRATA_TRACE_TAG_BYTES, "%s", table[at - 1].name);
    pthread_mutex_unlock(&mutex);
    return at > 0;
}
