/* The rules for the order of layers: decides whether one layer may be above another. */
#ifndef STRATA_STRATEGY_LEGAL_H
#define STRATA_STRATEGY_LEGAL_H

#include "strategy/model.h"

typedef enum strata_clash {
    STRATA_CLASH_NONE,
    STRATA_CLASH_BELOW_SOURCE, /* the upper is a source */
    STRATA_CLASH_NEEDS, /* the upper needs what the lower does not give */
    STRATA_CLASH_WAITS, /* the lower may wait, under the upper's lock */
    STRATA_CLASH_SHARED_LOCK, /* the upper has a lock that all streams share, and the lower is a cache */
    STRATA_CLASH_NARROW, /* the lower has an instance per stream or thread, and the upper is shared more widely */
    STRATA_CLASH_UNSEEN /* the upper is a cache, in which memory changes owners without a call of the lower */
} strata_clash_t;

/* Returns how widely the instances of a layer are shared. That is the type's scope, but a layer that gives single_stream has an
 * instance per stream, unless its option `streams` is `ignored`. If `options` is NULL, the defaults count. */
strata_scope_t strata_scope_of(const strata_layer_type_t *type, const void *options);
/* Returns true if the builder adds a stream_safe that waits on the host directly above a layer. That is a cache or a source that
 * handles no borrows with its options. *handled is false at the top of a stack. It becomes true below a layer that handles borrows,
 * and below a cache. */
bool strata_adds_stream_safe(const strata_model_layer_t *layer, bool *handled);
/* Returns the traits above a layer: those that it gives, and those of `below` that it passes on. */
uint32_t strata_traits_above(const strata_layer_type_t *type, uint32_t below);
/* Returns the conflict between two neighbors, if any. `scope` is that of the upper (strata_scope_of()). `given` has the traits that
 * the lower gives and passes on. */
strata_clash_t strata_clash_of_neighbours(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower,
                                          uint32_t given);
/* Returns the conflict between any two layers of one stack, if any, regardless of the layers between them. For the lower the type's
 * scope counts, because a layer that may be shared can be below one that is. */
strata_clash_t strata_clash_of_pair(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower);
/* Writes the names of traits as in a strategy, with separators: "stream_ordered, exact_size", or "" if there are none. */
void strata_traits_text(uint32_t traits, const char *separator, char *text, size_t capacity);

/* Returns the value of a source's option `memory` for a place. */
const char *strata_place_memory(strata_place_kind_t place);
/* Returns whether the users of the place can access memory of that kind, as required below a layer that gives ANY_MEMORY. */
bool strata_place_reaches(strata_place_kind_t place, const char *memory);

#endif
