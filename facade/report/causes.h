/* Finds the cause of an out-of-memory and the advice for it, in two tables. */
#ifndef STRATA_FACADE_CAUSES_H
#define STRATA_FACADE_CAUSES_H

#include "facade/report/facts.h"

/* Finds the cause and computes the facts about it. */
strata_cause_t strata_cause_find(strata_facts_t *facts);
/* Writes the cause, as in "fragmentation: 6MiB asked, ..." */
void strata_cause_write(const strata_facts_t *facts, strata_cause_t cause, strata_text_t *text);
/* Writes the advice, one sentence a line, with `first` before the first and `more` before the others. */
void strata_advice_write(const strata_facts_t *facts, strata_cause_t cause, strata_text_t *text, const char *first,
                         const char *more);

#endif
