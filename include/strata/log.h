/* Messages that the library logs while it works, to standard error or to a function of the program. */
#ifndef STRATA_LOG_H
#define STRATA_LOG_H

#include "strata/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, number, name, meaning). A level includes those of smaller numbers. */
#define STRATA_LOG_MAP(X)                                                                                                          \
    X(NOTHING, 0, "nothing", "nothing")                                                                                            \
    X(ERROR, 1, "error", "errors of the program that guard found: writes outside a block or after its free, and leaks")            \
    X(WARNING, 2, "warning",                                                                                                       \
      "settings of other allocators without an equivalent; also, only for a log function of the program, the report of each "      \
      "request that ran out of memory")                                                                                            \
    X(INFO, 3, "info",                                                                                                             \
      "memory that a place got from the device or gave back, and requests that ran out of memory and reclaimed some")              \
    X(DEBUG, 4, "debug", "each recovery step of such a request, with the bytes it reclaimed")
typedef enum strata_log_level {
#define STRATA_LOG_ENUM(name, number, text, meaning) STRATA_LOG_##name = number,
    STRATA_LOG_MAP(STRATA_LOG_ENUM)
#undef STRATA_LOG_ENUM
} strata_log_level_t;

/* One message without a newline at its end; a report has several lines. `text` is valid during the call. */
typedef void (*strata_log_fn)(strata_log_level_t level, const char *text, void *context);

/* Sends later messages up to `level`, of all facades of the process, to `log` (may be NULL, for standard error). At the start
 * messages up to STRATA_LOG_WARNING go to standard error. `context` is passed on and stays the program's. Messages made after the
 * return no longer call the previous function. Returns E_INVALID for an unknown level.
 *
 * `log` is called with no lock held, in the thread that makes the message, so several calls may run at a time. A request delivers
 * its messages at its end, before it returns (8 of them, then the number of the others). `log` may call any function, but while
 * guard reports during a close it must not call that facade. Messages that these calls make are dropped. strata_close() and
 * strata_change_strategy() of any facade return E_BUSY there. Messages above `level` cost nothing, and a cache hit makes none. */
STRATA_API strata_status_t strata_set_log(strata_log_fn log, void *context, strata_log_level_t level);

#ifdef __cplusplus
}
#endif
#endif
