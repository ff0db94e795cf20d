/* The out-of-memory report (docs/contracts.md §3): what a person needs to know next. */
#ifndef STRATA_FACADE_REPORT_H
#define STRATA_FACADE_REPORT_H

#include "facade/registry/facade.h"
#include "facade/registry/text.h"

enum { STRATA_REPORT_BYTES = 4000 };

/* "out of memory in gpu:0 on stream 0x7f00 in pool weights for conv1.weight of conv1 in step 3". */
void strata_report_say_where(const strata_refused_t *refused, strata_text_t *text);
/* Takes every lock of the domain in turn; makes no device call. Finds event->cause. */
void strata_report_write(strata_facade_t *facade, const strata_refused_t *refused, strata_out_of_memory_t *event, char *text,
                         size_t capacity);

#endif
