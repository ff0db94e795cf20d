/* Failing with a reason: every error begins with `return strata_fail(STRATA_E_X, code, "...")`. The text is made printable, because
 * what it quotes may have come from anywhere. Only E_NO_MEMORY may have more than one line. */
#ifndef STRATA_PLATFORM_STATUS_H
#define STRATA_PLATFORM_STATUS_H

#include "strata/status.h"

/* strata_fail() for an error in a file; the text should begin with file:line:column. */
strata_status_t strata_fail_at(strata_status_t status, uint32_t line, uint32_t column, const char *format, ...) STRATA_PRINTF(4, 5);
/* Puts "context: " before the thread's last error text and returns its status: for callers that know more. */
strata_status_t strata_fail_context(const char *format, ...) STRATA_PRINTF(1, 2);
/* What is undone after a failure may fail too: this sets the last error to one that was kept before, and returns its status. */
strata_status_t strata_fail_again(const strata_error_t *error);

#endif
