/* The rules of TensorFlow's BFC allocator in their plainest form: an array, searched from end to end. It predicts which block
 * serves a request, and how large a region must be asked for. */
#ifndef STRATA_TESTS_BFC_MODEL_H
#define STRATA_TESTS_BFC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_BLOCKS = 4096 };

typedef struct model_block {
    uint64_t at, size;
    uint32_t region; /* from 1; 0: no block */
    bool live;
} model_block_t;

typedef struct model {
    model_block_t blocks[MODEL_BLOCKS];
    uint32_t count, regions;
    uint64_t next, cap; /* bytes of the next region; what a block may have above its request */
} model_t;

/* The block that serves, marked live and cut; NULL: a region of *region bytes is due. */
model_block_t *model_allocate(model_t *model, uint64_t size, uint64_t *region);
/* The region came: its block serves. */
model_block_t *model_grow(model_t *model, uint64_t size, uint64_t at, uint64_t region);
void model_free(model_t *model, uint64_t at);
/* Every region that is one free block goes; its bytes. */
uint64_t model_release(model_t *model);

#endif
