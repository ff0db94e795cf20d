/* The instructions of a pickle that are refused, by name. */
#ifndef STRATA_TRACE_PICKLE_WORDS_H
#define STRATA_TRACE_PICKLE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct strata_pickle_word {
    unsigned char opcode;
    const char *name; /* as Python's pickletools calls it */
    bool calls; /* it imports, calls, or makes an object of a class */
} strata_pickle_word_t;

/* NULL: no instruction has this number. */
const strata_pickle_word_t *strata_pickle_word(unsigned char opcode);

#endif
