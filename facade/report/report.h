/* Writes the out-of-memory report (docs/contracts.md §3), with the facts that a person needs next. */
#ifndef STRATA_FACADE_REPORT_H
#define STRATA_FACADE_REPORT_H

#include "facade/registry/facade.h"
#include "facade/registry/text.h"

enum { STRATA_REPORT_BYTES = 4000 };

/* A request that finally failed for lack of memory. */
typedef struct strata_refused {
    strata_stack_t *stack; /* the stack that received it */
    strata_stream_t stream;
    size_t size;
    uint32_t flags;
    const char *reason; /* the reason of the refusal; `device_code` is 0 if no driver call failed */
    int64_t device_code;
    const char *tag, *operator_name; /* of the request; "" if it has none */
    uint64_t step;
    const strata_outcome_t *outcome;
} strata_refused_t;
/* Ends a failed request: calls the observers and returns E_NO_MEMORY with the report. The thread's last
 * error must name the refusing layer. */
strata_status_t strata_facade_out_of_memory(strata_facade_t *facade, strata_stack_t *stack, const strata_request_t *request);
/* Runs the step of the out-of-memory recovery that calls the program; `context` is the facade. */
uint64_t strata_facade_run_callbacks(void *context, strata_place_t place, size_t size);

/* Writes the context, as in "out of memory in gpu:0 on stream 0x7f00 in pool weights for conv1.weight of
 * conv1 in step 3". */
void strata_report_write_context(const strata_refused_t *refused, strata_text_t *text);
/* Writes the report and sets event->cause. Takes every lock of the domain; makes no device call. */
void strata_report_write(strata_facade_t *facade, const strata_refused_t *refused, strata_out_of_memory_t *event, char *text,
                         size_t capacity);

#endif
