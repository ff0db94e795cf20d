#include "trace/text/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/host/host_memory.h"

enum { PIECES = 4, STACK_BYTES = 1 << 18 };

typedef struct piece {
    strata_status_t status;
    size_t count;
    char bytes[STRATA_PREFETCH_BYTES];
} piece_t;

struct strata_prefetch {
    strata_prefetch_fn make;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t made, read; /* pieces; the one before `read` is in use by the reader until its next call */
    bool reading; /* that piece exists */
    bool stopping;
    strata_error_t error; /* of the piece that failed */
    piece_t pieces[PIECES];
};

static bool is_last(const piece_t *piece) { return piece->status != STRATA_OK || piece->count == 0; }

/* Returns a piece that is not being read, or NULL if the reader has ended. */
static piece_t *wait_for_room(strata_prefetch_t *prefetch) {
    pthread_mutex_lock(&prefetch->lock);
    while (!prefetch->stopping && prefetch->made - prefetch->read >= (uint64_t)(PIECES - prefetch->reading))
        pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    piece_t *piece = prefetch->stopping ? NULL : &prefetch->pieces[prefetch->made % PIECES];
    pthread_mutex_unlock(&prefetch->lock);
    return piece;
}

static void publish_piece(strata_prefetch_t *prefetch) {
    pthread_mutex_lock(&prefetch->lock);
    prefetch->made++;
    pthread_cond_signal(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->lock);
}

static void *make_all(void *context) {
    strata_prefetch_t *prefetch = context;
    bool last = false;
    for (piece_t *piece; !last && (piece = wait_for_room(prefetch)) != NULL; publish_piece(prefetch)) {
        piece->status = prefetch->make(prefetch->context, piece->bytes, &piece->count);
        if (piece->status != STRATA_OK) prefetch->error = *strata_last_error();
        last = is_last(piece);
    }
    return NULL;
}

/* The new thread blocks all signals, so that the existing threads handle them. An ordinary stack would
 * be a large part of the memory of a process with a limit. */
static bool start(strata_prefetch_t *prefetch) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&prefetch->thread, &attributes, make_all, prefetch) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static void destroy(strata_prefetch_t *prefetch) {
    pthread_cond_destroy(&prefetch->changed);
    pthread_mutex_destroy(&prefetch->lock);
    strata_host_delete(prefetch);
}

strata_prefetch_t *strata_prefetch_begin(strata_prefetch_fn make, void *context) {
    const strata_error_t before = *strata_last_error();
    strata_prefetch_t *prefetch = strata_host_new(1, sizeof *prefetch);
    if (!prefetch) {
        (void)strata_fail_again(&before);
        return NULL;
    }
    prefetch->make = make;
    prefetch->context = context;
    pthread_mutex_init(&prefetch->lock, NULL);
    pthread_cond_init(&prefetch->changed, NULL);
    if (start(prefetch)) return prefetch;
    destroy(prefetch);
    return NULL;
}

static const piece_t *wait_for_piece(strata_prefetch_t *prefetch) {
    pthread_mutex_lock(&prefetch->lock);
    prefetch->reading = false;
    pthread_cond_signal(&prefetch->changed);
    while (prefetch->made == prefetch->read) pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    const piece_t *piece = &prefetch->pieces[prefetch->read % PIECES];
    if (!is_last(piece)) {
        prefetch->read++;
        prefetch->reading = true;
    }
    pthread_mutex_unlock(&prefetch->lock);
    return piece;
}

strata_status_t strata_prefetch_next(strata_prefetch_t *prefetch, const char **bytes, size_t *count) {
    const piece_t *piece = wait_for_piece(prefetch);
    if (piece->status != STRATA_OK) return strata_fail_again(&prefetch->error);
    *bytes = piece->bytes;
    *count = piece->count;
    return STRATA_OK;
}

void strata_prefetch_end(strata_prefetch_t *prefetch) {
    if (!prefetch) return;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->stopping = true;
    pthread_cond_signal(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->lock);
    pthread_join(prefetch->thread, NULL);
    destroy(prefetch);
}
