/* The out-of-memory report (docs/contracts.md §3): what a person needs to know next. */
#ifndef STRATA_FACADE_REPORT_H
#define STRATA_FACADE_REPORT_H

#include "facade/registry/facade.h"
#include "facade/registry/text.h"

enum { STRATA_REPORT_BYTES = 4000 };

/* A request that failed for memory at last. */
typedef struct strata_refused {
    strata_stack_t *stack; /* that it reached */
    strata_stream_t stream;
    size_t size;
    uint32_t flags;
    const char *reason; /* why it was refused; and the driver's number, 0: no driver call failed */
    int64_t device_code;
    const char *tag, *operator_name; /* of the request; "" if it has none */
    uint64_t step;
    const strata_outcome_t *outcome;
} strata_refused_t;
/* The thread's last error says who refused. Calls the observers. Returns E_NO_MEMORY with the report. */
strata_status_t strata_facade_out_of_memory(strata_facade_t *facade, strata_stack_t *stack, const strata_request_t *request);
/* The step of the ladder that calls the program; `context` is the facade. */
uint64_t strata_facade_ask_callbacks(void *context, strata_place_t place, size_t size);

/* "out of memory in gpu:0 on stream 0x7f00 in pool weights for conv1.weight of conv1 in step 3". */
void strata_report_say_where(const strata_refused_t *refused, strata_text_t *text);
/* Takes every lock of the domain in turn; makes no device call. Finds event->cause. */
void strata_report_write(strata_facade_t *facade, const strata_refused_t *refused, strata_out_of_memory_t *event, char *text,
                         size_t capacity);

#endif
