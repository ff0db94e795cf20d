/* Makes text from any source safe to show on a terminal. */
#ifndef STRATA_PLATFORM_PRINTABLE_H
#define STRATA_PLATFORM_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the length in bytes of the UTF-8 character at `text`, or 0 if there is none. */
size_t strata_utf8_length(const char *text);
/* Returns the length as above. It is also 0 for control characters, and for characters that end lines
 * or change the direction of writing. */
size_t strata_printable_length(const char *text);
/* Replaces each byte that a terminal would obey instead of showing, and each that is not UTF-8, by '?'.
 * Keeps line ends only if `lines` is true, which means that they are the text's own. */
void strata_make_printable(char *text, bool lines);

#endif
