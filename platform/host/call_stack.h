/* Call stacks of the program: where a call came from, as addresses, and what these are called. */
#ifndef STRATA_PLATFORM_CALL_STACK_H
#define STRATA_PLATFORM_CALL_STACK_H

#include <stddef.h>
#include <stdint.h>

enum { STRATA_CALL_STACK_MOST = 64, STRATA_CALL_STACK_NAME = 200 };

/* Before the first call of take, with no lock held: the unwinder may be loaded from a file now. */
void strata_call_stack_ready(void);
/* The addresses that the callers return to, the innermost first; of those that lie in the library itself the innermost are left out,
 * if it is a shared one. Takes no host memory and no lock of Strata. Answers how many there are, at most `most`. */
uint32_t strata_call_stack_take(uint64_t *frames, uint32_t most);
/* "library.so+0x12f0 function", or without the function where the file tells none. No lock is held: the loader's own is taken. */
void strata_call_stack_name(uint64_t frame, char name[STRATA_CALL_STACK_NAME]);

#endif
