/* Random legal stacks: layers of the registry in an order that the builder takes, options within the bounds of their rows. */
#ifndef STRATA_CONFORM_STACKS_H
#define STRATA_CONFORM_STACKS_H

#include "lab/conform/rig/subject.h"

enum { STACK_LETTERS = 6000, STACK_LAYERS = 64 };

typedef struct drawn_stack {
    uint64_t seed;
    char text[STACK_LETTERS]; /* a strategy file */
    const strata_layer_type_t *layers[STACK_LAYERS]; /* that it holds, closed by NULL */
    uint32_t refused; /* orders that the builder refused before this one */
    subject_t subject; /* of the text */
} drawn_stack_t;

/* Draws orders by the seed until the builder takes one, then options; each refusal must name two layers that stand there. `with`
 * (NULL: none) is one of the layers; as an author's own it keeps its defaults. False: no order with it was taken. */
bool stack_draw(drawn_stack_t *stack, uint64_t seed, const strata_layer_type_t *with);
/* Whether a check holds for the stack at all: where a layer is told to refuse, only those that allow for it; where memory comes
 * from elsewhere, none that counts the device's. */
bool stack_is_for(const drawn_stack_t *stack, int check);
/* The checks that every stack must hold, told to refuse or not. */
bool stack_is_for_all(int check);

#endif
