/* Disjoint spans of addresses, each with an owner. A span is found by its address, to cut a part out of it, and by its owner, to end it.
 * Adding, cutting and ending take a few steps each, however many spans there are, and no host allocation. Guarded by the owner of the
 * table. */
#ifndef STRATA_ALLOCATION_MECHANISM_SPANS_H
#define STRATA_ALLOCATION_MECHANISM_SPANS_H

#include "allocation/tables/index.h"
#include "allocation/tables/order.h"

typedef struct strata_spans {
    strata_nodes_t nodes;
    strata_order_t by_address;
    strata_index_t by_owner;
} strata_spans_t;

/* Called for each part that is cut out: its owner and its bytes. Must not change the spans. */
typedef void (*strata_spans_cut_fn)(void *context, uint32_t owner, uint64_t bytes);

/* E_HOST_MEMORY. */
strata_status_t strata_spans_init(strata_spans_t *spans, uint32_t capacity);
void strata_spans_destroy(strata_spans_t *spans);
/* [from, to) belongs to `owner`; the range must have no owner yet, and from < to. False if the table is full. */
bool strata_spans_add(strata_spans_t *spans, uint32_t owner, uint64_t from, uint64_t to);
/* Removes the owner of every byte in [from, to). If the table is full, a span that would become two loses its upper part too, and
 * those bytes count as cut. */
void strata_spans_cut(strata_spans_t *spans, uint64_t from, uint64_t to, strata_spans_cut_fn cut, void *context);
/* Ends every span of the owner. */
void strata_spans_end(strata_spans_t *spans, uint32_t owner);
static inline uint32_t strata_spans_count(const strata_spans_t *spans) { return spans->by_address.count; }
/* Both tables have the same spans, which are disjoint. E_CORRUPT. */
strata_status_t strata_spans_validate(const strata_spans_t *spans);

#endif
