/* Failing with a reason: every error begins with `return strata_fail(STRATA_E_X, code, "...")`. The
 * text is made printable, because it may quote text from any source. Only E_NO_MEMORY may have more
 * than one line. */
#ifndef STRATA_PLATFORM_STATUS_H
#define STRATA_PLATFORM_STATUS_H

#include "strata/status.h"

/* Fails as strata_fail() does, for an error in a file. The text should begin with file:line:column. */
strata_status_t strata_fail_at(strata_status_t status, uint32_t line, uint32_t column, const char *format, ...) STRATA_PRINTF(4, 5);
/* Puts "context: " before the thread's last error text and returns its status. For callers that can add
 * details. */
strata_status_t strata_fail_context(const char *format, ...) STRATA_PRINTF(1, 2);
/* Restores an error that was kept before and returns its status. For cleanup after a failure, which may
 * itself fail. */
strata_status_t strata_fail_again(const strata_error_t *error);

#endif
