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
    char bytes[STRATA_AHEAD_BYTES];
} piece_t;

struct strata_ahead {
    strata_ahead_fn make;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t made, read; /* pieces; the one before `read` is in use by the reader until its next call */
    bool reading; /* that piece exists */
    bool stops;
    strata_error_t error; /* of the piece that failed */
    piece_t pieces[PIECES];
};

static bool is_last(const piece_t *piece) { return piece->status != STRATA_OK || piece->count == 0; }

/* Returns a piece that is not being read, or NULL if the reader has ended. */
static piece_t *wait_for_room(strata_ahead_t *ahead) {
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stops && ahead->made - ahead->read >= (uint64_t)(PIECES - ahead->reading))
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    piece_t *piece = ahead->stops ? NULL : &ahead->pieces[ahead->made % PIECES];
    pthread_mutex_unlock(&ahead->lock);
    return piece;
}

static void hand_over(strata_ahead_t *ahead) {
    pthread_mutex_lock(&ahead->lock);
    ahead->made++;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

static void *make_all(void *context) {
    strata_ahead_t *ahead = context;
    bool last = false;
    for (piece_t *piece; !last && (piece = wait_for_room(ahead)) != NULL; hand_over(ahead)) {
        piece->status = ahead->make(ahead->context, piece->bytes, &piece->count);
        if (piece->status != STRATA_OK) ahead->error = *strata_last_error();
        last = is_last(piece);
    }
    return NULL;
}

/* The new thread blocks all signals, so that the existing threads handle them. An ordinary stack would
 * be a large part of the memory of a process with a limit. */
static bool start(strata_ahead_t *ahead) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&ahead->thread, &attributes, make_all, ahead) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static void destroy(strata_ahead_t *ahead) {
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    strata_host_delete(ahead);
}

strata_ahead_t *strata_ahead_begin(strata_ahead_fn make, void *context) {
    const strata_error_t before = *strata_last_error();
    strata_ahead_t *ahead = strata_host_new(1, sizeof *ahead);
    if (!ahead) {
        (void)strata_fail_again(&before);
        return NULL;
    }
    ahead->make = make;
    ahead->context = context;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (start(ahead)) return ahead;
    destroy(ahead);
    return NULL;
}

static const piece_t *wait_for_piece(strata_ahead_t *ahead) {
    pthread_mutex_lock(&ahead->lock);
    ahead->reading = false;
    pthread_cond_signal(&ahead->changed);
    while (ahead->made == ahead->read) pthread_cond_wait(&ahead->changed, &ahead->lock);
    const piece_t *piece = &ahead->pieces[ahead->read % PIECES];
    if (!is_last(piece)) {
        ahead->read++;
        ahead->reading = true;
    }
    pthread_mutex_unlock(&ahead->lock);
    return piece;
}

strata_status_t strata_ahead_next(strata_ahead_t *ahead, const char **bytes, size_t *count) {
    const piece_t *piece = wait_for_piece(ahead);
    if (piece->status != STRATA_OK) return strata_fail_again(&ahead->error);
    *bytes = piece->bytes;
    *count = piece->count;
    return STRATA_OK;
}

void strata_ahead_end(strata_ahead_t *ahead) {
    if (!ahead) return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stops = true;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    destroy(ahead);
}
