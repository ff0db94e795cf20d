#include "allocation/mechanism/spans.h"

#include "platform/arithmetic.h"

typedef struct span {
    uint32_t unused; /* head of the free list */
    uint32_t owner;
    uint64_t to;
    strata_index_link_t by_owner;
    strata_order_link_t by_address; /* the first word of the key is the start of the span */
} span_t;

static span_t *at(const strata_spans_t *spans, uint32_t node) { return strata_node(&spans->nodes, node); }

static uint64_t from_of(const span_t *span) { return span->by_address.key.first; }

strata_status_t strata_spans_init(strata_spans_t *spans, uint32_t capacity) {
    strata_status_t status = strata_nodes_init(&spans->nodes, sizeof(span_t), capacity);
    if (status != STRATA_OK) return status;
    strata_order_init(&spans->by_address, &spans->nodes, offsetof(span_t, by_address));
    strata_index_init(&spans->by_owner, &spans->nodes, offsetof(span_t, by_owner));
    return STRATA_OK;
}

void strata_spans_destroy(strata_spans_t *spans) { strata_nodes_destroy(&spans->nodes); }

bool strata_spans_add(strata_spans_t *spans, uint32_t owner, uint64_t from, uint64_t to) {
    uint32_t node = strata_nodes_acquire(&spans->nodes);
    if (node == 0) return false;
    at(spans, node)->owner = owner;
    at(spans, node)->to = to;
    strata_order_add(&spans->by_address, node, &(strata_order_key_t){.first = from});
    strata_index_add(&spans->by_owner, node, strata_index_hash(owner, 0));
    return true;
}

static void end(strata_spans_t *spans, uint32_t node) {
    strata_order_remove(&spans->by_address, node);
    strata_index_remove(&spans->by_owner, node);
    strata_nodes_release(&spans->nodes, node);
}

/* The part below the cut keeps the node, and the part above gets a new one. Returns the number of bytes that are cut. */
static uint64_t cut_one(strata_spans_t *spans, uint32_t node, uint64_t from, uint64_t to) {
    span_t *span = at(spans, node);
    uint32_t owner = span->owner;
    uint64_t begin = from_of(span), until = span->to, cut_from = strata_max(begin, from), cut_to = strata_min(until, to);
    if (begin < cut_from) span->to = cut_from;
    else end(spans, node);
    if (cut_to < until && !strata_spans_add(spans, owner, cut_to, until)) cut_to = until;
    return cut_to - cut_from;
}

void strata_spans_remove(strata_spans_t *spans, uint64_t from, uint64_t to, strata_spans_removed_fn cut, void *context) {
    if (strata_spans_count(spans) == 0) return;
    strata_order_key_t key = {.first = from};
    uint32_t node = strata_order_before(&spans->by_address, &key);
    if (node == 0 || at(spans, node)->to <= from) node = strata_order_from(&spans->by_address, &key);
    while (node && from_of(at(spans, node)) < to) {
        uint32_t owner = at(spans, node)->owner;
        uint64_t bytes = cut_one(spans, node, from, to);
        node = strata_order_from(&spans->by_address, &key);
        cut(context, owner, bytes);
    }
}

uint64_t strata_spans_bytes(strata_spans_t *spans, uint32_t owner) {
    uint64_t bytes = 0;
    uint32_t node = strata_index_first(&spans->by_owner, strata_index_hash(owner, 0));
    for (; node; node = strata_index_next(&spans->by_owner, node))
        if (at(spans, node)->owner == owner) bytes += at(spans, node)->to - from_of(at(spans, node));
    return bytes;
}

void strata_spans_hand_over(strata_spans_t *spans, uint32_t owner, uint32_t to) {
    uint32_t node = strata_index_first(&spans->by_owner, strata_index_hash(owner, 0));
    while (node) {
        uint32_t next = strata_index_next(&spans->by_owner, node);
        if (at(spans, node)->owner == owner) {
            strata_index_remove(&spans->by_owner, node);
            at(spans, node)->owner = to;
            strata_index_add(&spans->by_owner, node, strata_index_hash(to, 0));
        }
        node = next;
    }
}

void strata_spans_end(strata_spans_t *spans, uint32_t owner) {
    uint32_t node = strata_index_first(&spans->by_owner, strata_index_hash(owner, 0));
    while (node) {
        uint32_t next = strata_index_next(&spans->by_owner, node);
        if (at(spans, node)->owner == owner) end(spans, node);
        node = next;
    }
}

strata_status_t strata_spans_validate(const strata_spans_t *spans) {
    strata_status_t status = strata_nodes_validate(&spans->nodes);
    if (status == STRATA_OK) status = strata_order_validate(&spans->by_address);
    if (status == STRATA_OK) status = strata_index_validate(&spans->by_owner);
    if (status != STRATA_OK) return status;
    if (spans->by_address.count != spans->by_owner.count)
        return strata_fail(STRATA_E_CORRUPT, 0, "spans: %u are found by address, %u by owner", spans->by_address.count,
                           spans->by_owner.count);
    uint64_t before = 0;
    for (uint32_t node = spans->by_address.first[0]; node; node = strata_order_next(&spans->by_address, node)) {
        if (from_of(at(spans, node)) < before) return strata_fail(STRATA_E_CORRUPT, 0, "spans: two overlap at node %u", node);
        if (at(spans, node)->to <= from_of(at(spans, node)))
            return strata_fail(STRATA_E_CORRUPT, 0, "spans: node %u has no bytes", node);
        before = at(spans, node)->to;
    }
    return STRATA_OK;
}
