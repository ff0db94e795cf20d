/* The rules of PyTorch's allocator in their plainest form: arrays, searched from end to end. It predicts which block serves a
 * request, and says when a segment must be asked for. */
#ifndef STRATA_TESTS_CACHING_MODEL_H
#define STRATA_TESTS_CACHING_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_BLOCKS = 4096 };

typedef struct model_block {
    uint64_t at, size;
    uint32_t segment; /* from 1; 0: no block */
    uint32_t stream;
    bool large, live;
} model_block_t;

typedef struct model {
    model_block_t blocks[MODEL_BLOCKS];
    uint32_t count, segments;
    uint64_t max_split, rounding; /* UINT64_MAX: none */
} model_t;

/* The block that serves, marked live and cut; NULL: a segment of *segment bytes is due. */
model_block_t *model_allocate(model_t *model, uint32_t stream, uint64_t size, uint64_t *segment);
/* The segment came: its block serves. */
model_block_t *model_grow(model_t *model, uint32_t stream, uint64_t size, uint64_t at, uint64_t segment);
void model_free(model_t *model, uint64_t at);
/* Every segment that is one free block goes; its bytes. */
uint64_t model_release(model_t *model);
uint64_t model_reserved(const model_t *model);

#endif
