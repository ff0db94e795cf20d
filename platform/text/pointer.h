/* Pointers and stream handles in messages. %p is not used, because its output for NULL depends on the C library. */
#ifndef STRATA_PLATFORM_POINTER_H
#define STRATA_PLATFORM_POINTER_H

#include <stdint.h>
#include <stdio.h>

typedef struct strata_pointer_text {
    char text[2 + 2 * sizeof(void *) + 1];
} strata_pointer_text_t;

/* Returns "0x7f00", or "NULL". Use: printf("%s", strata_pointer_text(pointer).text). */
static inline strata_pointer_text_t strata_pointer_text(const void *pointer) {
    strata_pointer_text_t made = {"NULL"};
    if (pointer) snprintf(made.text, sizeof made.text, "0x%llx", (unsigned long long)(uintptr_t)pointer);
    return made;
}

#endif
