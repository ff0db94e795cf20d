/* Where `--json` writes: the option is one letter away from the traces that stand behind it. */
#ifndef STRATA_TOOLS_REPORT_FILE_H
#define STRATA_TOOLS_REPORT_FILE_H

#include "trace/text/output.h"

/* strata_output_open(), but for a file that is neither empty nor a comparison as strata writes them (E_INVALID): that one stays. A
 * comparison that stands there is replaced once the new one is whole. */
strata_status_t strata_report_open(const char *path, strata_output_t **out);

#endif
