/* The host's malloc as a peer: the C library's, or one that LD_PRELOAD puts in its place. It has no device and no streams. */
#include <stdlib.h>
#include <string.h>

#include "lab/bench/peers/peer.h"

bool peer_open(const char *setup) { return strcmp(setup, "malloc") == 0; }

void *peer_stream(void) { return NULL; }

bool peer_allocate(void *stream, size_t size, peer_block_t *block) {
    block->ptr = malloc(size);
    block->size = size;
    block->stream = stream;
    return block->ptr != NULL;
}

void peer_free(const peer_block_t *block) { free(block->ptr); }

bool peer_lend(const peer_block_t *block, void *stream) {
    (void)block;
    (void)stream;
    return false;
}
