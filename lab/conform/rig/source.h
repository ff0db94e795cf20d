/* The source below the checked layers. It serves memory of the simulated device until it is set to fail. */
#ifndef STRATA_CONFORM_SOURCE_H
#define STRATA_CONFORM_SOURCE_H

#include "allocation/domain/layer.h"

/* A source over the device that can fail its n-th call. */
extern const strata_layer_type_t test_source_type;
/* Makes the k-th allocate from now on (1 is the next) return `status`, and with `onward` all later ones. A k
 * of 0 turns this off. */
void test_source_fail(uint64_t k, bool onward, strata_status_t status);
/* Expects later requests to have at least this size and alignment, this stream and tag, and STRATA_NO_RETRY
 * if this one has it. NULL removes the expectation. */
void test_source_expect(const strata_request_t *wanted);
/* Returns the first difference since then, or "" if there is none. */
const char *test_source_difference(void);
uint64_t test_source_calls(void);
uint64_t test_source_live(void);

#endif
