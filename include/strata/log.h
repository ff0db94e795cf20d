/* What the library says while it works: to standard error, or to a function of the program. */
#ifndef STRATA_LOG_H
#define STRATA_LOG_H

#include "strata/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, number, name, what it tells). A level tells those of smaller numbers too. */
#define STRATA_LOG_MAP(X)                                                                                                          \
    X(NOTHING, 0, "nothing", "nothing")                                                                                            \
    X(ERROR, 1, "error", "what is wrong in the program: memory written beyond its block or after its free, leaks (guard)")         \
    X(WARNING, 2, "warning",                                                                                                       \
      "what does not do as was asked: settings of other allocators without an equivalent; and, to "                                \
      "a function alone, the report of each request that failed for memory")                                                       \
    X(INFO, 3, "info",                                                                                                             \
      "what a place got from the device and gave back to it, and requests for which the reclaim ladder "                           \
      "was climbed")                                                                                                               \
    X(DEBUG, 4, "debug", "the rungs of each ladder, with what they gave")
typedef enum strata_log_level {
#define STRATA_LOG_ENUM(name, number, text, meaning) STRATA_LOG_##name = number,
    STRATA_LOG_MAP(STRATA_LOG_ENUM)
#undef STRATA_LOG_ENUM
} strata_log_level_t;

/* One message, without a newline at its end (a report has some within); `text` is valid during the call. */
typedef void (*strata_log_fn)(strata_log_level_t level, const char *text, void *context);

/* From now on messages of all facades of the process up to `level` go to `log`; NULL: to standard error, as at the start, up to
 * STRATA_LOG_WARNING. `context` stays the program's. Messages come from whatever thread makes them, several at a time, with no lock
 * held: what is met inside a request is told at its end, before it returns (8 messages; then how many more there were). `log` may call
 * any function (what guard says while a facade closes: any but of that facade). What that makes the library say is told to nobody, and
 * strata_close() and strata_change_strategy(), of whatever facade, answer E_BUSY there. After the return the function of before is not
 * called again by messages that are made later. Messages that are not wanted cost nothing, and a cache hit makes none. E_INVALID: no
 * such level. */
STRATA_API strata_status_t strata_set_log(strata_log_fn log, void *context, strata_log_level_t level);

#ifdef __cplusplus
}
#endif
#endif
