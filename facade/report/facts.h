/* What is known about a request that failed for memory: one set of figures and names. The cause is found from it, and the sentences
 * of the report name the facts in braces. */
#ifndef STRATA_FACADE_FACTS_H
#define STRATA_FACADE_FACTS_H

#include "allocation/report/outcome.h"
#include "facade/registry/facade.h"
#include "facade/registry/text.h"
#include "facade/report/report.h"
#include "facade/report/survey.h"

enum { STRATA_FACT_LETTERS = 256, STRATA_FACT_REASON = 400 };

/* Others hold a driver's own context too, and nobody can end that: so many bytes are nobody's fault (an H100 takes 500 MiB). */
#define STRATA_FACT_CONTEXT (768ull << 20)

/* clang-format would break these lists differently at each run. */
/* clang-format off */

/* X(name): bytes. */
#define STRATA_FACT_SIZES(X)                                                                                          \
    X(asked) X(growth) /* the last size that a cache or source asked for */                                           \
    X(room)            /* what was left where the request was refused: of a bound, or of the device */                \
    X(enough)          /* what a bound would have to be */                                                            \
    X(limit) X(used)                                                                                                  \
    X(free) X(total) X(most) /* of the device; the most that a program may get from it */                             \
    X(allowed)               /* the most that one request may get: from the device, and from what bounds it */        \
    X(pooled) /* idle in the driver's pools that layers here serve from */\
    X(reserved) X(outside) X(others) /* here; by nobody here; of that, beyond a driver's context */                   \
    X(allocated) X(deferred) X(limbo) X(later_run) /* the largest run once all waits are over */                               \
    X(idle)                               /* in caches here, whatever keeps it from the request */                    \
    X(there) X(there_largest) X(there_whole) X(there_held) /* the part of it that the cause is about */               \
    X(owner_bytes) X(victims_bytes)
#define STRATA_FACT_COUNTS(X) X(limbo_blocks) X(there_chunks) X(owner_blocks) X(first_step) X(last_step) X(victims)
#define STRATA_FACT_TEXTS(X)                                                                                          \
    X(bound) X(bound_now) X(smaller_growth) X(chunk_size) X(chunk_size_now) X(timeout) X(timeout_now) X(wait_first)   \
    X(max_split_size) X(owner) X(victims_of)

/* clang-format on */

typedef struct strata_facts {
#define STRATA_FACT_SIZE(name) uint64_t name;
    STRATA_FACT_SIZES(STRATA_FACT_SIZE)
    STRATA_FACT_COUNTS(STRATA_FACT_SIZE)
#undef STRATA_FACT_SIZE
#define STRATA_FACT_TEXT(name) char name[STRATA_FACT_LETTERS];
    STRATA_FACT_TEXTS(STRATA_FACT_TEXT)
#undef STRATA_FACT_TEXT
    char reason[STRATA_FACT_REASON]; /* the error of the layer that refused */
    strata_facade_t *facade;
    strata_domain_t *domain;
    const strata_refused_t *refused;
    const strata_out_of_memory_t *event;
    const strata_outcome_t *outcome; /* of the request */
    strata_survey_t survey;
    uint64_t whole; /* idle in whole chunks, for which a reclaim is enough */
    uint64_t chunk_size_bytes; /* of the option; 0: none */
    bool wait_first_is_off, smaller_growth_is_off, has_retry;
    bool spills; /* a source of the stack serves memory that may exceed the device */
    uint32_t cause_row; /* in the table of causes */
} strata_facts_t;

/* Takes every lock of the place in turn; of the device it asks only what its pools hold. */
void strata_facts_gather(strata_facade_t *facade, const strata_refused_t *refused, const strata_out_of_memory_t *event,
                         strata_facts_t *facts);
/* What the cause is about becomes `there`. */
void strata_facts_aim(strata_facts_t *facts, strata_idle_why_t why);
/* The blocks that would have to go for a run that serves the request; `victims` is 0 if there is none. */
void strata_facts_find_victims(strata_facts_t *facts);

/* Writes a sentence with the facts that it names: "{asked} asked, {free} free". All its sizes are in one unit. */
void strata_facts_say(const strata_facts_t *facts, strata_text_t *text, const char *sentence);

#endif
