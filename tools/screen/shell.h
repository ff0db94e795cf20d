/* Lines that can be pasted into a shell. */
#ifndef STRATA_TOOLS_SHELL_H
#define STRATA_TOOLS_SHELL_H

#include <stdio.h>

#include "platform/status.h"

/* Writes a blank and the word, quoted where a shell would change it. Bytes that a terminal would obey are written as numbers, for
 * printf(1). A line feed at the end of a word is lost. */
void strata_shell_word(FILE *out, const char *word);
/* "strata NAME" and the arguments, to be deleted by strata_host_delete(). E_HOST_MEMORY. */
strata_status_t strata_shell_line(const char *name, int argc, char *const *argv, char **line);

#endif
