/* Allocators as plain functions. Each pair of functions belongs to one entry of a table. */
#include <pthread.h>

#include "allocation/report/log.h"
#include "platform/arguments.h"
#include "strata/strata.h"

/* X(number) */
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define ALL(X)      EIGHT(X, 0) EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7)

typedef struct entry {
    strata_allocator_t allocator;
    strata_t facade;
} entry_t;

/* Each entry is written once, under the mutex, before its functions are returned. It is never reused for
 * another allocator, because a caller may still hold its functions. */
static entry_t entries[STRATA_FUNCTIONS_MAX];
static uint32_t count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *serve(const entry_t *entry, size_t size) {
    strata_block_t block;
    if (size == 0) return NULL;
    if (strata_allocator_allocate(entry->allocator, size, &block) == STRATA_OK) return block.ptr;
    strata_log_report(STRATA_LOG_WARNING, strata_last_error()->text);
    return NULL;
}

static void free_address(const entry_t *entry, void *address) {
    if (address && strata_free_pointer(entry->facade, address) != STRATA_OK)
        strata_log_report(STRATA_LOG_WARNING, strata_last_error()->text);
}

/* The numbers are octal. */
#define PAIR(number)                                                                                                               \
    static void *allocate_##number(size_t size) { return serve(&entries[0##number], size); }                                       \
    static void free_##number(void *address) { free_address(&entries[0##number], address); }
ALL(PAIR)
#undef PAIR

static const strata_functions_t functions_of[STRATA_FUNCTIONS_MAX] = {
#define ROW(number) {allocate_##number, free_##number},
    ALL(ROW)
#undef ROW
};

static bool is_same(strata_allocator_t a, strata_allocator_t b) { return a.stack == b.stack && a.stream == b.stream; }

/* Requires the mutex. */
static uint32_t find(strata_allocator_t allocator) {
    uint32_t i = 0;
    while (i < count && !is_same(entries[i].allocator, allocator)) i++;
    return i;
}

strata_status_t strata_allocator_functions(strata_allocator_t allocator, strata_functions_t *functions) {
    STRATA_REFUSE_NULL(functions);
    strata_allocator_info_t info = {.struct_size = sizeof info};
    strata_status_t status = strata_allocator_describe(allocator, &info);
    if (status != STRATA_OK) return status;
    pthread_mutex_lock(&mutex);
    uint32_t at = find(allocator);
    if (at == count && count < STRATA_FUNCTIONS_MAX) entries[count++] = (entry_t){allocator, info.facade};
    pthread_mutex_unlock(&mutex);
    if (at == STRATA_FUNCTIONS_MAX)
        return strata_fail(STRATA_E_LIMIT, 0, "%d allocators of this process have functions, the maximum", STRATA_FUNCTIONS_MAX);
    *functions = functions_of[at];
    return STRATA_OK;
}
