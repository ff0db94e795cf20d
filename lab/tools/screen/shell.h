/* Command lines that can be pasted into a shell. */
#ifndef STRATA_TOOLS_SHELL_H
#define STRATA_TOOLS_SHELL_H

#include <stdio.h>

#include "platform/status.h"

/* Writes a blank and the word, quoted if a shell would change it. Control characters are written as octal
 * numbers for printf(1). A line feed at the end of a word is lost. */
void strata_shell_word(FILE *out, const char *word);
/* Sets *line to "strata NAME" and the arguments. Release it with strata_host_delete(). Fails with E_HOST_MEMORY. */
strata_status_t strata_shell_line(const char *name, int argc, char *const *argv, char **line);

#endif
