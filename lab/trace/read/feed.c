#include "lab/trace/read/feed.h"

#include <pthread.h>
#include <sys/stat.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "trace/text/partial.h"

/* A row is usually longer than this, so the first array has room for the rows of most files. */
enum { ROW_BYTES = 16 };

struct strata_trace_feed {
    strata_trace_reader_t *reader;
    char *path;
    size_t expected; /* rows */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t more;
    strata_trace_t shown;
    bool ended;
    strata_error_t error; /* why it ended; its status is OK at the end of the file */
    strata_trace_t *trace; /* NULL until the reader ends; after an error, the part before it */
};

static void publish(void *context, const strata_trace_t *so_far) {
    strata_trace_feed_t *feed = context;
    pthread_mutex_lock(&feed->lock);
    feed->shown = *so_far;
    feed->shown.stacks = NULL;
    feed->shown.stack_count = 0;
    pthread_cond_broadcast(&feed->more);
    pthread_mutex_unlock(&feed->lock);
}

static void *read_all(void *context) {
    strata_trace_feed_t *feed = context;
    const strata_trace_pieces_t pieces = {.publish = publish, .context = feed, .expected = feed->expected};
    strata_trace_t *trace = NULL;
    strata_status_t status = strata_trace_load_in_pieces(feed->reader, feed->path, &pieces, &trace);
    if (status == STRATA_OK) publish(feed, trace);
    pthread_mutex_lock(&feed->lock);
    if (status != STRATA_OK) feed->error = *strata_last_error();
    feed->trace = trace;
    feed->ended = true;
    pthread_cond_broadcast(&feed->more);
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

static size_t expected_rows(const char *path) {
    struct stat found;
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size < 0) return 0;
    return (size_t)strata_min((uint64_t)found.st_size / ROW_BYTES, STRATA_TRACE_EVENTS);
}

static void delete_feed(strata_trace_feed_t *feed) {
    strata_trace_reader_close(feed->reader);
    pthread_cond_destroy(&feed->more);
    pthread_mutex_destroy(&feed->lock);
    strata_host_delete(feed->path);
    strata_host_delete(feed);
}

/* The new thread blocks all signals. Stream names select the stacks of a run and may be in any row. So a
 * trace with a column for them is read completely before its first row is used. */
static void start(strata_trace_feed_t *feed) {
    sigset_t before;
    bool names = strata_trace_reader_columns(feed->reader) & 1u << STRATA_COLUMN_stream_name;
    strata_partial_block_signals(&before);
    feed->started = !names && pthread_create(&feed->thread, NULL, read_all, feed) == 0;
    strata_partial_unblock_signals(&before);
    if (!feed->started) read_all(feed);
}

strata_status_t strata_trace_feed_begin(const char *path, strata_trace_feed_t **feed) {
    strata_trace_feed_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->more, NULL);
    made->path = strata_host_strdup(path);
    made->expected = expected_rows(path);
    strata_status_t status = made->path ? strata_trace_reader_open(path, &made->reader) : STRATA_E_HOST_MEMORY;
    if (status != STRATA_OK) {
        delete_feed(made);
        return status;
    }
    start(made);
    *feed = made;
    return STRATA_OK;
}

/* Call with the lock held, or after the thread's end. */
static strata_status_t state_of(const strata_trace_feed_t *feed) {
    return feed->error.status == STRATA_OK ? STRATA_OK : strata_fail_again(&feed->error);
}

strata_status_t strata_trace_feed_state(strata_trace_feed_t *feed) {
    pthread_mutex_lock(&feed->lock);
    strata_status_t status = state_of(feed);
    pthread_mutex_unlock(&feed->lock);
    return status;
}

strata_status_t strata_trace_feed_wait(strata_trace_feed_t *feed, strata_trace_t *view, bool *end) {
    pthread_mutex_lock(&feed->lock);
    while (feed->shown.count <= view->count && !feed->ended) pthread_cond_wait(&feed->more, &feed->lock);
    *view = feed->shown;
    *end = feed->ended;
    strata_status_t status = state_of(feed);
    pthread_mutex_unlock(&feed->lock);
    return status;
}

size_t strata_trace_feed_expected(const strata_trace_feed_t *feed) { return feed->expected; }

/* Frees the older arrays, because views are no longer used. */
static strata_trace_t *forget_older(strata_trace_t *trace) {
    while (trace->older_count > 0) strata_host_delete(trace->older[--trace->older_count]);
    return trace;
}

strata_status_t strata_trace_feed_finish(strata_trace_feed_t *feed, strata_trace_t **trace) {
    if (feed->started) pthread_join(feed->thread, NULL);
    strata_status_t status = state_of(feed);
    if (status == STRATA_OK) *trace = forget_older(feed->trace);
    else strata_trace_delete(feed->trace);
    delete_feed(feed);
    return status;
}
