/* Layers with a fault to choose: a copy of stream_safe, registered as `mutant_safe`, that does one thing wrong. */
#ifndef STRATA_TESTS_CHECKER_MUTANT_SAFE_H
#define STRATA_TESTS_CHECKER_MUTANT_SAFE_H

#include "allocation/domain/layer.h"

/* X(name, what it does) */
#define MUTATION_MAP(X)                                                                                                            \
    X(NONE, "nothing wrong: the layer as it is")                                                                                   \
    X(NO_BORROW, "says yes to a borrow and notes nothing")                                                                         \
    X(FORGETS_SECOND, "a second borrower is not noted")                                                                            \
    X(FORGETS_FIRST, "a second borrower takes the place of the first")                                                             \
    X(EVENT_AT_BORROW, "the event is recorded at the borrow, and not at the free")                                                 \
    X(NO_EVENT, "the event is taken and never recorded")                                                                           \
    X(WRONG_STREAM, "the event is recorded on the owner's stream instead of the borrower's")                                       \
    X(COVERS_TOO_LITTLE, "the event of one free stands for the next free too")                                                     \
    X(ONE_EVENT, "all borrows share one event")                                                                                    \
    X(WRONG_EVENT, "the event of an earlier borrow is polled")                                                                     \
    X(NO_POLL, "what waits is taken for done without asking")                                                                      \
    X(ONE_OF_TWO, "once one borrower is done, the others are taken for done")                                                      \
    X(LAST_ALONE, "at the free only the last borrower's event is taken")                                                           \
    X(FREES_AT_ONCE, "the free goes down with its borrows dropped")                                                                \
    X(ERASES_ALL, "an erased borrow takes all others with it")                                                                     \
    X(GONE_FORGOTTEN, "the borrows of a destroyed stream are dropped")                                                             \
    X(OWNER_FORGOTTEN, "in pinned places the first borrower is not noted")                                                         \
    X(NO_WAIT, "where no event can be recorded, it does not wait either")                                                          \
    X(EVENT_IN_CAPTURE, "inside a capture events are recorded, and asked for")

typedef enum mutation {
#define MUTATION_ENUM(name, what) MUTATION_##name,
    MUTATION_MAP(MUTATION_ENUM)
#undef MUTATION_ENUM
        MUTATIONS
} mutation_t;

const char *mutation_what(mutation_t mutation);
/* Registers the layer at the first call, and chooses the fault of all its instances from then on. */
void mutant_choose(mutation_t mutation);

/* The same of cuda_malloc_async, registered as `mutant_async`: whom the stream on which it frees borrowed blocks waits for. */
typedef enum mutant_async {
    MUTANT_ASYNC_NONE,
    MUTANT_ASYNC_WAITS_FOR_NOBODY,
    MUTANT_ASYNC_WAITS_FOR_OWNER,
    MUTANTS_ASYNC
} mutant_async_t;
void mutant_async_choose(mutant_async_t mutation);

#endif
