/* A cache of chunks in its plainest form: an array of blocks, searched from end to end. It predicts which block serves a request, and
 * says when a chunk must be asked for. Best fit, the lowest of equals; what a cache does otherwise its rules say. */
#ifndef STRATA_TESTS_CHUNKED_MODEL_H
#define STRATA_TESTS_CHUNKED_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_BLOCKS = 4096 };

typedef struct model_block {
    uint64_t at, size;
    uint32_t chunk; /* from 1; 0: no block */
    uint32_t lane; /* serves requests of this one alone */
    bool live;
} model_block_t;

typedef struct model model_t;

typedef struct model_rules {
    uint64_t unit;
    bool high; /* a request takes the high end of a block */
    uint32_t (*lane)(uint32_t stream, uint64_t size); /* NULL: all requests are of one */
    uint64_t (*chunk)(model_t *model, uint64_t size); /* to be asked for */
    bool (*takes)(const model_t *model, uint64_t block, uint64_t size); /* the best fit; NULL: always */
    bool (*cuts)(const model_t *model, const model_block_t *block, uint64_t size); /* a larger one; NULL: always */
} model_rules_t;

struct model {
    const model_rules_t *rules;
    uint64_t first, second; /* what the rules' options say */
    model_block_t blocks[MODEL_BLOCKS];
    uint32_t count, chunks;
};

/* The block that serves, marked live and cut; NULL: a chunk of *chunk bytes is due. */
const model_block_t *model_allocate(model_t *model, uint32_t stream, uint64_t size, uint64_t *chunk);
/* The chunk came, and serves at this address. */
const model_block_t *model_grow(model_t *model, uint32_t stream, uint64_t size, uint64_t at, uint64_t chunk);
void model_free(model_t *model, uint64_t at);
/* Every chunk that is one free block goes; its bytes. */
uint64_t model_release(model_t *model);
uint64_t model_reserved(const model_t *model);

#endif
