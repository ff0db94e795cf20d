/* An allocator as the workloads see it. Each file that defines these functions makes a program together with workload.c, so that every
 * peer is called the same way. A program serves several setups (other presets, other resources), one in each process. */
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

/* False: there is no such setup. A peer that cannot begin says why on stderr and ends the process. */
bool peer_open(const char *setup);
/* A new stream of the device; never freed. NULL where the peer knows no streams. */
void *peer_stream(void);
/* `size` bytes of the stream in *block. False: there is no memory. */
bool peer_allocate(void *stream, size_t size, peer_block_t *block);
void peer_free(const peer_block_t *block);
/* Tells the peer that another stream uses the block too. False: it has no such call. */
bool peer_lend(const peer_block_t *block, void *stream);

#ifdef __cplusplus
}
#endif

#endif
