/* What the peers' tests of captured graphs do, on a simulated device with contents: blocks that kernels fill, inside captures and
 * outside, and what is in them after replays. */
#ifndef STRATA_TESTS_GRAPHS_PEERS_H
#define STRATA_TESTS_GRAPHS_PEERS_H

#include "tests/graphs/graphs.h"

/* A facade over a device of so much memory (0: 1 GiB), whose checker has these rules. */
void peer_open(captured_t *c, const char *preset_or_text, uint64_t capacity, uint32_t rules);
/* Ends what captured_open() would have ended, whatever the checker has seen. */
void peer_close_raced(captured_t *c);
/* A kernel of `stream` that writes this byte all over the block. */
void peer_fill(captured_t *c, strata_stream_t stream, const strata_block_t *block, uint8_t byte);
/* A kernel that reads it. */
void peer_read(captured_t *c, strata_stream_t stream, const strata_block_t *block);
/* A new block, filled; and one in place of another, which is freed after that. */
strata_block_t peer_made(captured_t *c, strata_stream_t stream, size_t size, uint8_t byte);
strata_block_t peer_made_of(captured_t *c, strata_stream_t stream, strata_block_t old, size_t size, uint8_t byte);
/* Likewise by a function with four temporary blocks, two of them alive at a time beside the result. */
strata_block_t peer_made_with_temps(captured_t *c, strata_stream_t stream, strata_block_t old, size_t size, uint8_t byte);
/* Whether every byte is this one, once the device has done everything. */
bool peer_holds(captured_t *c, const strata_block_t *block, uint8_t byte);
void peer_free(captured_t *c, const strata_block_t *block);
/* Launches a graph on a stream; the host does not wait. */
void peer_replay(captured_t *c, strata_graph_t graph, strata_stream_t stream);
void peer_destroy(captured_t *c, strata_graph_t graph);
uint64_t peer_reserved(captured_t *c);
/* The stream comes after all that the other one was given so far; it borrows a block; it ends. */
void peer_join(captured_t *c, strata_stream_t stream, strata_stream_t other);
void peer_borrow(captured_t *c, const strata_block_t *block, strata_stream_t stream);
void peer_end_stream(captured_t *c, strata_stream_t stream);

#endif
