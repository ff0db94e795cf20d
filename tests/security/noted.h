/* What the program opens, loads and asks of its environment, noted on the way (the calls are wrapped by the linker). */
#ifndef STRATA_TESTS_SECURITY_NOTED_H
#define STRATA_TESTS_SECURITY_NOTED_H

#include <stddef.h>

/* From here on calls are noted; what was noted before is forgotten. */
void note_begin(void);
/* One line a call, "open PATH", "load PATH" or "ask NAME", valid until the next note_begin(). Notes no more. */
const char *note_end(void);

#endif
