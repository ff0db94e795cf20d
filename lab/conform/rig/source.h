/* The source under the layers that are checked: memory of the simulated device, until it is told to fail. */
#ifndef STRATA_CONFORM_SOURCE_H
#define STRATA_CONFORM_SOURCE_H

#include "allocation/domain/layer.h"

/* A source over the device that can fail its n-th call. */
extern const strata_layer_type_t test_source_type;
/* The k-th allocate from now on (1 = the next) answers `status`; with `onward` all after it. 0 switches off. */
void test_source_fail(uint64_t k, bool onward, strata_status_t status);
/* Expects later requests to have at least this size and alignment, this stream and tag, and STRATA_NO_RETRY if this one has it. NULL: no
 * expectation. */
void test_source_watch(const strata_request_t *wanted);
/* Returns the first difference since then; "": none. */
const char *test_source_difference(void);
uint64_t test_source_calls(void);
uint64_t test_source_live(void);

#endif
