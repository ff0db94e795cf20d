/* Every function of a facade once, for programs in which none may go on: a child of fork(), a driver that shuts down, a lost device. */
#ifndef STRATA_TESTS_FACADE_ENDS_H
#define STRATA_TESTS_FACADE_ENDS_H

#include "strata/strata.h"

typedef struct ends {
    strata_t s;
    strata_place_t place;
    strata_stream_t stream; /* of the program */
    strata_block_t block; /* live */
} ends_t;

/* Makes the call of a number, in the order of the header; its name, NULL after the last. strata_close() is not among them. */
const char *ends_call(const ends_t *ends, size_t number, strata_status_t *status);
/* A live block in every place, some of them borrowed, some freed and waiting. What `place` cannot have is left out. */
void ends_fill(const ends_t *ends);
/* Runs `body` in a child: its answer, 250 if the child crashed. */
int ends_in_child(int (*body)(const ends_t *), const ends_t *ends);
/* Every call answers E_FORKED: 0, else the number of the first that does not, from 1. */
int ends_forked_calls(const ends_t *ends);

#endif
