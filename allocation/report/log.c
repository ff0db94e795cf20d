#include "allocation/report/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "platform/status.h"
#include "trace/trace.h"

enum { NOTED = 8, LETTERS = 200 };

_Atomic int strata_log_level = STRATA_LOG_WARNING;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the two below; no other lock is taken under it */
static strata_log_fn function;
static void *function_context;

typedef struct noted {
    uint64_t bytes, now;
    strata_place_t place;
    uint32_t note;
} noted_t;

/* The array is small because a library that is loaded late has little space for thread storage. */
static _Thread_local noted_t notes[NOTED];
static _Thread_local uint32_t note_count; /* above NOTED it also counts the notes that did not fit */
static _Thread_local bool is_delivering;

typedef struct held {
    struct held *next;
    strata_log_level_t level;
    bool function_alone;
    char text[];
} held_t;

static _Thread_local held_t *first_held;
static _Thread_local uint32_t holds;

strata_status_t strata_set_log(strata_log_fn log, void *context, strata_log_level_t level) {
    if ((int)level < STRATA_LOG_NOTHING || level > STRATA_LOG_DEBUG)
        return strata_fail(STRATA_E_INVALID, 0, "unknown log level %d", (int)level);
    pthread_mutex_lock(&mutex);
    function = log;
    function_context = context;
    atomic_store(&strata_log_level, (int)level);
    pthread_mutex_unlock(&mutex);
    return STRATA_OK;
}

bool strata_log_is_reporting(void) { return is_delivering; }

void strata_log_hold(void) { holds++; }

void strata_log_unhold(void) { holds--; }

/* Keeps a message until the end of the call. Returns false if the host has no memory. */
static bool hold(strata_log_level_t level, const char *text, bool function_alone) {
    size_t size = strlen(text) + 1;
    held_t *held = strata_host_new(1, sizeof *held + size), **link = &first_held;
    if (!held) return false;
    held->level = level;
    held->function_alone = function_alone;
    memcpy(held->text, text, size);
    while (*link) link = &(*link)->next;
    *link = held;
    return true;
}

/* The program's function may call functions that fail. The error of the reporting call is restored afterwards. */
static void deliver(strata_log_level_t level, const char *text, bool function_alone) {
    if (is_delivering || !strata_log_is_on(level)) return;
    pthread_mutex_lock(&mutex);
    strata_log_fn log = function;
    void *context = function_context;
    bool wanted = strata_log_is_on(level);
    pthread_mutex_unlock(&mutex);
    if (!wanted || (!log && function_alone)) return;
    const strata_error_t error = *strata_last_error();
    bool later = log && holds > 0 && hold(level, text, function_alone);
    if (!log || (holds > 0 && !later)) fprintf(stderr, "%s\n", text);
    (void)strata_fail_again(&error);
    if (!log || holds > 0) return;
    is_delivering = true;
    log(level, text, context);
    is_delivering = false;
    (void)strata_fail_again(&error);
}

void strata_log_report(strata_log_level_t level, const char *text) { deliver(level, text, false); }

void strata_log_report_error(strata_log_level_t level, const char *text) { deliver(level, text, true); }

/* ---- notes ---- */

static const struct {
    strata_log_level_t level;
    const char *text;
} rows[] = {
#define NOTE_ROW(name, level, text) {level, text},
    STRATA_LOG_NOTES(NOTE_ROW)
#undef NOTE_ROW
};

void strata_log_note(strata_log_note_t note, strata_place_t place, uint64_t bytes, uint64_t now) {
    if (!strata_log_is_on(rows[note].level) || is_delivering) return;
    if (note_count < NOTED) notes[note_count] = (noted_t){.bytes = bytes, .now = now, .place = place, .note = note};
    note_count++;
}

void strata_log_flush(void) {
    noted_t copies[NOTED];
    if (is_delivering || holds > 0) return;
    for (held_t *held; (held = first_held) != NULL; strata_host_delete(held)) {
        first_held = held->next;
        deliver(held->level, held->text, held->function_alone);
    }
    uint32_t count = note_count;
    if (count == 0) return;
    memcpy(copies, notes, sizeof copies);
    note_count = 0;
    char text[LETTERS], bytes[48], now[48];
    for (const noted_t *noted = copies; noted < copies + (count < NOTED ? count : NOTED); noted++) {
        const char *words = rows[noted->note].text, *first = strchr(words, '%'), *second = strchr(first + 1, '%');
        strata_print_size(noted->bytes, bytes, sizeof bytes);
        strata_print_size(noted->now, now, sizeof now);
        snprintf(text, sizeof text, "%s:%u: %.*s%s%.*s%s%s", strata_place_name(strata_place_kind(noted->place)),
                 (unsigned)strata_place_device(noted->place), (int)(first - words), words, bytes, (int)(second - first - 1),
                 first + 1, now, second + 1);
        deliver(rows[noted->note].level, text, false);
    }
    if (count <= NOTED) return;
    snprintf(text, sizeof text, "and %u more messages of the same call", (unsigned)(count - NOTED));
    deliver(STRATA_LOG_INFO, text, false);
}
