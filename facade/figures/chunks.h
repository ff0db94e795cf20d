/* The chunks of a place and their contents at one moment, for text and for drawings. */
#ifndef STRATA_FACADE_CHUNKS_H
#define STRATA_FACADE_CHUNKS_H

#include "strata/strata.h"

enum { STRATA_CHUNK_STATES = 3 }; /* states of a row: free, live, waiting for other streams */

typedef struct strata_chunk {
    uint64_t address, size;
    const strata_snapshot_row_t *rows; /* in address order, without gaps */
    size_t count;
    strata_stream_t stream; /* the stream of the stack that owns the used blocks */
    uint64_t bytes[STRATA_CHUNK_STATES]; /* by state */
    size_t blocks[STRATA_CHUNK_STATES];
    uint64_t largest_free;
} strata_chunk_t;

typedef void (*strata_chunk_fn)(const strata_chunk_t *chunk, void *context);

/* Calls `chunk` for every chunk of a place at one moment, in address order. The chunk and its rows are
 * valid during the call. Everything else is as for strata_snapshot(). After E_HOST_MEMORY some chunks may
 * have been reported. */
strata_status_t strata_chunks_each(strata_t facade, strata_place_t place, strata_chunk_fn chunk, void *context);

/* Writes the name of a stream. */
typedef void (*strata_chunk_stream_fn)(strata_stream_t stream, const void *context, char *name, size_t capacity);

/* Works like strata_chunks_text(), with other names of streams than "stream 0x...". */
strata_status_t strata_chunks_text_named(strata_t facade, strata_place_t place, strata_chunk_stream_fn stream_name,
                                         const void *context, char *text, size_t capacity, size_t *needed);

#endif
