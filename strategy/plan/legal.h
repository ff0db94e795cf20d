/* Which layer may stand above which. */
#ifndef STRATA_STRATEGY_LEGAL_H
#define STRATA_STRATEGY_LEGAL_H

#include "strategy/model.h"

typedef enum strata_clash {
    STRATA_CLASH_NONE,
    STRATA_CLASH_BELOW_SOURCE, /* the upper is a source */
    STRATA_CLASH_NEEDS, /* the upper needs what the lower does not give */
    STRATA_CLASH_WAITS, /* the lower may wait, under the upper's lock */
    STRATA_CLASH_SHARED_LOCK, /* the upper would have a lock that all streams share, above a cache */
    STRATA_CLASH_NARROW, /* the lower has an instance per stream or thread, the upper one for all */
    STRATA_CLASH_UNSEEN /* the upper is a cache, inside which memory changes owners unseen by the lower */
} strata_clash_t;

/* How widely the instances of a layer are shared. The type's scope says so, but a layer that gives single_stream has an instance
 * per stream, unless its option `streams` says that they are ignored. NULL: the options' defaults. */
strata_scope_t strata_scope_of(const strata_layer_type_t *type, const void *options);
/* Traits above a layer that stands on traits `below`. */
uint32_t strata_traits_above(const strata_layer_type_t *type, uint32_t below);
/* Of two neighbours. `scope` is that of the upper (strata_scope_of()); `given` is what the lower gives, including what it passes
 * on. */
strata_clash_t strata_clash_of_neighbours(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower,
                                          uint32_t given);
/* Of any two layers of one stack, whatever is between them. For the lower its type's scope counts: what may be shared stands below
 * what is. */
strata_clash_t strata_clash_of_pair(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower);
/* "STREAM_ORDERED, EXACT_SIZE" as a strategy spells it: "stream_ordered, exact_size"; "" for none. */
void strata_traits_text(uint32_t traits, const char *separator, char *text, size_t capacity);

/* The value of a source's option `memory` for a place. */
const char *strata_place_memory(strata_place_kind_t place);
/* Whether the users of the place can reach memory of that kind: what may stand below a layer that gives ANY_MEMORY. */
bool strata_place_reaches(strata_place_kind_t place, const char *memory);

#endif
