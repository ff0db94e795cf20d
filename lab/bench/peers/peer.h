/* The interface of an allocator for the workloads. Each file that defines these functions makes a program
 * together with workload.c, so that every peer is called the same way. A program serves several setups (other
 * presets, other resources), one in each process. */
#ifndef STRATA_BENCH_PEERS_PEER_H
#define STRATA_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peer_block {
    void *ptr;
    uint64_t ref; /* the peer's own */
    size_t size;
    void *stream;
} peer_block_t;

/* Returns false if there is no such setup. A peer that cannot start prints the reason on stderr and ends the process. */
bool peer_open(const char *setup);
/* Returns a new stream of the device, which is never freed. Returns NULL if the peer has no streams. */
void *peer_stream(void);
/* Allocates `size` bytes of the stream. Returns false if there is no memory. */
bool peer_allocate(void *stream, size_t size, peer_block_t *block);
void peer_free(const peer_block_t *block);
/* Records that another stream uses the block, too. Returns false if the peer has no such call. */
bool peer_lend(const peer_block_t *block, void *stream);

#ifdef __cplusplus
}
#endif

#endif
