/* The recorded facts about a request that failed for lack of memory: metrics and names. The cause is
 * derived from them, and the sentences of the report name them in braces. */
#ifndef STRATA_FACADE_FACTS_H
#define STRATA_FACADE_FACTS_H

#include "allocation/report/outcome.h"
#include "facade/registry/facade.h"
#include "facade/registry/text.h"
#include "facade/report/report.h"
#include "facade/report/survey.h"

enum { STRATA_FACT_LETTERS = 256, STRATA_FACT_REASON = 400 };

/* Part of the outside memory is the driver's own context, which cannot be freed. So this many bytes are
 * not blamed on others (an H100 takes 500 MiB). */
#define STRATA_FACT_CONTEXT (768ull << 20)

/* clang-format would break these lists differently at each run. */
/* clang-format off */

/* X(name), in bytes */
#define STRATA_FACT_SIZES(X)                                                                                          \
    X(asked) X(growth) /* the last size that a cache or source requested */                                           \
    X(room)            /* left where the request was refused: of a bound, or of the device */                         \
    X(enough)          /* the bound that would suffice */                                                             \
    X(limit) X(used)                                                                                                  \
    X(free) X(total) X(most) /* of the device; `most` is the max that a program may get */                             \
    X(allowed)               /* the max that one request may get, by the device and its bounds */                     \
    X(pooled) /* idle in driver pools that serve layers here */           \
    X(reserved) X(outside) X(others) /* here; outside; outside beyond a driver's context */                           \
    X(allocated) X(deferred) X(limbo) X(later_run) /* the largest run after all waits */                                       \
    X(idle)                               /* in caches here, for any reason */                                        \
    X(there) X(there_largest) X(there_whole) X(there_held) /* the part that the cause is about */                     \
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
    uint64_t whole; /* idle in whole chunks, which a reclaim can release */
    uint64_t chunk_size_bytes; /* value of the option, or 0 */
    bool wait_first_is_off, smaller_growth_is_off, has_retry;
    bool spills; /* a source of the stack serves memory that may exceed the device */
    uint32_t cause_row; /* index in the table of causes */
} strata_facts_t;

/* Gathers the facts. Takes every lock of the place, and queries the device only for the usage of its pools. */
void strata_facts_gather(strata_facade_t *facade, const strata_refused_t *refused, const strata_out_of_memory_t *event,
                         strata_facts_t *facts);
/* Makes `there` describe this kind of idle memory. */
void strata_facts_select_idle(strata_facts_t *facts, strata_idle_why_t why);
/* Finds the blocks to free for a run that serves the request; `victims` is 0 if there is none. */
void strata_facts_find_victims(strata_facts_t *facts);

/* Writes a sentence with the facts that it names: "{asked} asked, {free} free". All its sizes have one unit. */
void strata_facts_write(const strata_facts_t *facts, strata_text_t *text, const char *sentence);

#endif
