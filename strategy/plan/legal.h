/* Which layer may stand above which. */
#ifndef STRATA_STRATEGY_LEGAL_H
#define STRATA_STRATEGY_LEGAL_H

#include "strategy/model.h"

typedef enum strata_clash {
    STRATA_CLASH_NONE,
    STRATA_CLASH_BELOW_SOURCE, /* the upper is a source */
    STRATA_CLASH_NEEDS, /* the upper needs what the lower does not give */
    STRATA_CLASH_WAITS, /* the lower may wait, under the upper's lock */
    STRATA_CLASH_SHARED_LOCK, /* the upper would be a lock that all streams share, above a cache */
    STRATA_CLASH_NARROW, /* the lower is of one stream or thread, the upper shared by all */
    STRATA_CLASH_UNSEEN /* the upper is a cache, in which memory changes its owner unseen by the lower */
} strata_clash_t;

/* Whose the instances of a layer are: the type's scope says; but one that gives single_stream is a stream's, unless its option
 * `streams` says that they are ignored. NULL: of the options' defaults. */
strata_scope_t strata_scope_of(const strata_layer_type_t *type, const void *options);
/* Traits above a layer that stands on traits `below`. */
uint32_t strata_traits_above(const strata_layer_type_t *type, uint32_t below);
/* Of two neighbours; `scope` is whose the instances of the upper are (strata_scope_of()), `given` is what the lower gives, with
 * what it passes on. */
strata_clash_t strata_clash_of_neighbours(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower,
                                          uint32_t given);
/* Of any two of one stack, whatever stands between. Of the lower its type's scope counts: what may be shared is, below what is. */
strata_clash_t strata_clash_of_pair(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower);
/* "STREAM_ORDERED, EXACT_SIZE" in a strategy's own spelling: "stream_ordered, exact_size"; "" for none. */
void strata_traits_text(uint32_t traits, const char *separator, char *text, size_t capacity);

/* What the option `memory` of a source says for a place. */
const char *strata_place_memory(strata_place_kind_t place);
/* Whether those who use the place can reach memory of that kind: what a layer that gives ANY_MEMORY may have below it. */
bool strata_place_reaches(strata_place_kind_t place, const char *memory);

#endif
