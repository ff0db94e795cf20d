/* Text from anywhere, made safe to show on a terminal. */
#ifndef STRATA_PLATFORM_PRINTABLE_H
#define STRATA_PLATFORM_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* The length in bytes of the UTF-8 character at `text`; 0: there is none. */
size_t strata_utf8_length(const char *text);
/* The same; also 0 for control characters, and for those that end lines or change the direction of writing. */
size_t strata_printable_length(const char *text);
/* Replaces by '?' each byte that a terminal would obey instead of showing, and each that is not UTF-8. Line ends are kept only if
 * `lines` says that they are the text's own. */
void strata_make_printable(char *text, bool lines);

#endif
