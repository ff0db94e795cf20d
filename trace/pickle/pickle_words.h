/* The names of pickle instructions that are refused. */
#ifndef STRATA_TRACE_PICKLE_WORDS_H
#define STRATA_TRACE_PICKLE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct strata_pickle_word {
    unsigned char opcode;
    const char *name; /* as in Python's pickletools */
    bool calls; /* it imports, calls, or creates an object of a class */
} strata_pickle_word_t;

/* Returns NULL if no instruction has this number. */
const strata_pickle_word_t *strata_pickle_word(unsigned char opcode);

#endif
