/* Files that the command writes where it is told: an option is one letter away from the files that others have. */
#ifndef STRATA_TOOLS_REPORT_FILE_H
#define STRATA_TOOLS_REPORT_FILE_H

#include "trace/text/output.h"

/* strata_output_open(), except for a file that is neither empty nor a comparison as strata writes them: E_INVALID, and the file
 * stays. An existing comparison is replaced once the new one is complete. */
strata_status_t strata_report_open(const char *path, strata_output_t **out);
/* The same for a file that begins with `mark`, under the name that `option` gives. */
strata_status_t strata_marked_open(const char *path, const char *option, const char *mark, strata_output_t **out);
/* The check alone. */
strata_status_t strata_marked_check(const char *path, const char *option, const char *mark);

#endif
