/* Draws random legal stacks: layers of the registry in an order that the builder accepts, with options within
 * the bounds of their rows. */
#ifndef STRATA_CONFORM_STACKS_H
#define STRATA_CONFORM_STACKS_H

#include "lab/conform/rig/subject.h"

enum { STACK_LETTERS = 6000, STACK_LAYERS = 64 };

typedef struct drawn_stack {
    uint64_t seed;
    char text[STACK_LETTERS]; /* a strategy file */
    const strata_layer_type_t *layers[STACK_LAYERS]; /* its layers; ends with NULL */
    uint32_t refused; /* orders that the builder refused before this one */
    subject_t subject; /* made from the text */
} drawn_stack_t;

/* Draws orders by the seed until the builder accepts one, then options. Expects that each refusal names two
 * layers of the order. If `with` is not NULL, it is one of the layers, and keeps its defaults like a user's
 * own layer. Returns false if no order with it was accepted. */
bool stack_draw(drawn_stack_t *stack, uint64_t seed, const strata_layer_type_t *with);
/* Returns true if a check applies to the stack. If a layer is set to refuse requests, only checks that allow
 * for it apply. If some memory is not the device's own, checks that count the device's do not. */
bool stack_is_for(const drawn_stack_t *stack, int check);
/* Returns true for the checks that every stack must pass, even one that is set to refuse requests. */
bool stack_is_for_all(int check);

#endif
