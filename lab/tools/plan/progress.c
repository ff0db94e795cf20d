#include "lab/tools/plan/progress.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "platform/clock.h"

enum { EVERY_MS = 100 };

/* Planners produce no output, so a separate thread writes the line. It ends when the pipe is closed. */
static struct {
    pthread_t thread;
    int ends[2];
    bool shows;
    const char *what;
    uint64_t begin, time_ns;
} progress;

static void *show(void *unused) {
    struct pollfd end = {.fd = progress.ends[0], .events = POLLIN};
    (void)unused;
    while (poll(&end, 1, EVERY_MS) == 0)
        fprintf(stderr, "\r\033[K%s: %.1f of %g s", progress.what, (double)(strata_real_now() - progress.begin) / 1e9,
                (double)progress.time_ns / 1e9);
    return NULL;
}

void strata_plan_progress_begin(const char *what, uint64_t time_ns) {
    if (!isatty(STDERR_FILENO) || pipe(progress.ends) != 0) return;
    progress.what = what;
    progress.begin = strata_real_now();
    progress.time_ns = time_ns;
    progress.shows = pthread_create(&progress.thread, NULL, show, NULL) == 0;
    if (progress.shows) return;
    (void)close(progress.ends[0]);
    (void)close(progress.ends[1]);
}

void strata_plan_progress_end(void) {
    if (!progress.shows) return;
    (void)close(progress.ends[1]);
    (void)pthread_join(progress.thread, NULL);
    (void)close(progress.ends[0]);
    progress.shows = false;
    fputs("\r\033[K", stderr);
}
