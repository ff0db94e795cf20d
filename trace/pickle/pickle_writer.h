/* Writes a pickle of plain data, protocol 4, piece by piece. The output keeps the first error of the file. */
#ifndef STRATA_TRACE_PICKLE_WRITER_H
#define STRATA_TRACE_PICKLE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/text/output.h"

enum { STRATA_PICKLER_WORDS = 64 };

typedef struct strata_pickler {
    strata_output_t *output;
    uint32_t remembered; /* objects in the reader's memo */
    uint32_t word_count;
    struct strata_pickler_word {
        const char *word;
        uint32_t number;
    } words[STRATA_PICKLER_WORDS];
} strata_pickler_t;

void strata_pickler_begin(strata_pickler_t *pickler, strata_output_t *output);
/* A list or dict is opened, filled with items (for a dict: name, value, name, value ...) and closed. */
void strata_pickler_open_list(strata_pickler_t *pickler);
void strata_pickler_close_list(strata_pickler_t *pickler);
void strata_pickler_open_dict(strata_pickler_t *pickler);
void strata_pickler_close_dict(strata_pickler_t *pickler);
/* Writes a name that is used often and never moves. Its text is in the file only once. */
void strata_pickler_word(strata_pickler_t *pickler, const char *word);
/* Writes a text. Bytes that are not UTF-8 become "?", since Python would refuse them. */
void strata_pickler_text(strata_pickler_t *pickler, const char *text);
void strata_pickler_integer(strata_pickler_t *pickler, int64_t integer);
void strata_pickler_real(strata_pickler_t *pickler, double real);
void strata_pickler_bool(strata_pickler_t *pickler, bool value);
/* Makes a tuple of the last `count` items, 1 to 3. */
void strata_pickler_tuple(strata_pickler_t *pickler, unsigned count);
/* Stores the last object in the memo and returns its number. strata_pickler_recall() writes it again. */
uint32_t strata_pickler_remember(strata_pickler_t *pickler);
void strata_pickler_recall(strata_pickler_t *pickler, uint32_t number);
void strata_pickler_end(strata_pickler_t *pickler);

#endif
