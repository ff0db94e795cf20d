/* Text that may have come from anywhere, as a person may see it on a terminal. */
#ifndef STRATA_PLATFORM_PRINTABLE_H
#define STRATA_PLATFORM_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes the UTF-8 character at `text` has; 0: it is none. */
size_t strata_utf8_length(const char *text);
/* The same; 0 also of control characters, and of those that end lines or turn the direction of writing. */
size_t strata_printable_length(const char *text);
/* Each byte of what a terminal would not show but obey becomes '?', as does what is no UTF-8; ends of lines only where they are
 * not `lines` of the text's own. */
void strata_make_printable(char *text, bool lines);

#endif
