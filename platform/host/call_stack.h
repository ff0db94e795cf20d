/* Takes call stacks of the program as addresses, and finds the names of these addresses. */
#ifndef STRATA_PLATFORM_CALL_STACK_H
#define STRATA_PLATFORM_CALL_STACK_H

#include <stddef.h>
#include <stdint.h>

enum { STRATA_CALL_STACK_MAX = 64, STRATA_CALL_STACK_NAME = 200 };

/* Must be called once before strata_call_stack_capture(), with no lock held: it may load the unwinder from
 * a file. */
void strata_call_stack_ready(void);
/* Writes the return addresses of the callers, the innermost first. If the library is a shared one, its
 * own innermost frames are left out. Takes no host memory and no lock of Strata. Returns the number of
 * addresses, at most `most`. */
uint32_t strata_call_stack_capture(uint64_t *frames, uint32_t most);
/* Writes "library.so+0x12f0 function", or without the function if the file does not name it. The caller
 * holds no lock, since this takes the loader's own. */
void strata_call_stack_name(uint64_t frame, char name[STRATA_CALL_STACK_NAME]);

#endif
