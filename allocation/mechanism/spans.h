/* Disjoint address spans, each with an owner. Spans are cut by address and removed by owner. Each operation is
 * O(log n) and allocates no host memory. The user of the table guards it. */
#ifndef STRATA_ALLOCATION_MECHANISM_SPANS_H
#define STRATA_ALLOCATION_MECHANISM_SPANS_H

#include "allocation/tables/index.h"
#include "allocation/tables/order.h"

typedef struct strata_spans {
    strata_nodes_t nodes;
    strata_order_t by_address;
    strata_index_t by_owner;
} strata_spans_t;

/* Called for each part that is cut out, with its owner and its bytes. It must not change the spans. */
typedef void (*strata_spans_removed_fn)(void *context, uint32_t owner, uint64_t bytes);

/* Fails with E_HOST_MEMORY. */
strata_status_t strata_spans_init(strata_spans_t *spans, uint32_t capacity);
void strata_spans_destroy(strata_spans_t *spans);
/* Adds [from, to), which must have no owner yet; from < to. Returns false if the table is full. */
bool strata_spans_add(strata_spans_t *spans, uint32_t owner, uint64_t from, uint64_t to);
/* Removes the owner of every byte in [from, to). If the table is full, a span that would be split in two also
 * loses its upper part. Those bytes count as cut. */
void strata_spans_remove(strata_spans_t *spans, uint64_t from, uint64_t to, strata_spans_removed_fn cut, void *context);
/* Returns the bytes of the owner's spans. */
uint64_t strata_spans_bytes(strata_spans_t *spans, uint32_t owner);
/* Gives all spans of an owner to another one. */
void strata_spans_hand_over(strata_spans_t *spans, uint32_t owner, uint32_t to);
/* Removes every span of the owner. */
void strata_spans_end(strata_spans_t *spans, uint32_t owner);
static inline uint32_t strata_spans_count(const strata_spans_t *spans) { return spans->by_address.count; }
/* Checks that both trees have the same disjoint spans. Fails with E_CORRUPT. */
strata_status_t strata_spans_validate(const strata_spans_t *spans);

#endif
