/* The out-of-memory report (CONTRACTS §3): what a person needs next. */
#ifndef STRATA_FACADE_REPORT_H
#define STRATA_FACADE_REPORT_H

#include "facade/facade.h"

/* Takes every lock of the domain in turn; makes no device call. */
void strata_report_write(strata_facade_t *facade, const strata_refused_t *refused, const strata_out_of_memory_t *event,
                         char *text, size_t capacity);

#endif
