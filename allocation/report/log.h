/* Messages (include/strata/log.h). Events under a lock, or in the middle of an operation, are noted and
 * reported at the end of the call. */
#ifndef STRATA_ALLOCATION_LOG_H
#define STRATA_ALLOCATION_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "strata/layer.h"
#include "strata/log.h"

extern _Atomic int strata_log_level; /* the level; read without a lock */

static inline bool strata_log_is_on(strata_log_level_t level) {
    return __builtin_expect((int)level <= atomic_load_explicit(&strata_log_level, memory_order_relaxed), 0);
}

/* Reports immediately. No lock is held. */
void strata_log_report(strata_log_level_t level, const char *text);
/* Reports a message that the caller also gets as an error: only to the program's function, never to
 * standard error. */
void strata_log_report_error(strata_log_level_t level, const char *text);
/* Between these two calls the program's function is not called. The next flush afterwards reports the
 * thread's messages. For code in which that function would deadlock with its own thread, or find a facade
 * half made. */
void strata_log_hold(void);
void strata_log_unhold(void);
/* Returns whether the calling thread is in the program's function. */
bool strata_log_is_reporting(void);

/* The kinds of notes: `bytes` moved, and `now` are reserved afterwards. X(NAME, level, text with both sizes) */
#define STRATA_LOG_NOTES(X)                                                                                                        \
    X(GREW, STRATA_LOG_INFO, "got % from the device, % reserved")                                                                  \
    X(SHRANK, STRATA_LOG_INFO, "gave % back to the device, % reserved")                                                            \
    X(RECOVERED, STRATA_LOG_INFO, "ran out-of-memory recovery for %, % reserved")                                                  \
    X(POLLED, STRATA_LOG_DEBUG, "recovery: polling reclaimed %, % reserved")                                                       \
    X(WAITED, STRATA_LOG_DEBUG, "recovery: waiting reclaimed %, % reserved")                                                       \
    X(RELEASED, STRATA_LOG_DEBUG, "recovery: releasing reclaimed %, % reserved")                                                   \
    X(CALLED, STRATA_LOG_DEBUG, "recovery: callbacks reclaimed %, % reserved")
typedef enum strata_log_note {
#define STRATA_LOG_NOTE_ENUM(name, level, text) STRATA_LOG_##name,
    STRATA_LOG_NOTES(STRATA_LOG_NOTE_ENUM)
#undef STRATA_LOG_NOTE_ENUM
} strata_log_note_t;

/* Any lock may be held. */
void strata_log_note(strata_log_note_t note, strata_place_t place, uint64_t bytes, uint64_t now);
/* Reports the thread's notes. No lock is held, and no operation of the caller is in progress. */
void strata_log_flush(void);

#endif
