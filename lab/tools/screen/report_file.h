/* Output files of the command. A wrong option must not overwrite a user's other files, so only files that
 * strata wrote are replaced. */
#ifndef STRATA_TOOLS_REPORT_FILE_H
#define STRATA_TOOLS_REPORT_FILE_H

#include "trace/text/output.h"

/* Like strata_output_open(), except that it fails with E_INVALID for a file that is neither empty nor a
 * comparison of strata. That file stays. An existing comparison is replaced once the new one is complete. */
strata_status_t strata_report_open(const char *path, strata_output_t **out);
/* Like strata_report_open(), for a file that begins with `mark`. `option` is the option that names it. */
strata_status_t strata_marked_open(const char *path, const char *option, const char *mark, strata_output_t **out);
/* Makes only the check of strata_marked_open(). */
strata_status_t strata_marked_check(const char *path, const char *option, const char *mark);

#endif
