/* The requests of a recorded program, one after the other. scripts/bench-peers makes the file from a trace:
 * rows of 24 bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/bench/peers/measured.h"
#include "lab/bench/peers/peer.h"
#include "lab/bench/peers/workload.h"

typedef enum row_op { ROW_ALLOCATE, ROW_FREE, ROW_LEND } row_op_t;

typedef struct row {
    uint32_t op, id, stream, unused;
    uint64_t size;
} row_t;

enum { MAX_STREAMS = 4096 };

static row_t *rows;
static size_t row_count;
static peer_block_t *blocks;
static void *streams[MAX_STREAMS];

static void read_rows(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) exit(2);
    long size = ftell(file);
    rewind(file);
    rows = malloc((size_t)size);
    row_count = (size_t)size / sizeof *rows;
    if (!rows || fread(rows, sizeof *rows, row_count, file) != row_count) exit(2);
    fclose(file);
}

/* Every block is freed by the last row. A peer without a call for borrows ignores them. */
static void passes(uint64_t count) {
    for (uint64_t pass = 0; pass < count; pass++) {
        for (size_t i = 0; i < row_count; i++) {
            const row_t *row = &rows[i];
            peer_block_t *block = &blocks[row->id];
            if (row->op == ROW_FREE) peer_free(block);
            else if (row->op == ROW_LEND) peer_lend(block, streams[row->stream]);
            else if (!peer_allocate(streams[row->stream], row->size, block)) workload_none("it is out of memory");
        }
    }
}

static void prepare_trace(char **arguments) {
    uint32_t ids = 0;
    uint64_t held = 0;
    read_rows(arguments[0]);
    for (size_t i = 0; i < row_count; i++) {
        const row_t *row = &rows[i];
        if (row->stream >= MAX_STREAMS) exit(2);
        if (row->id >= ids) ids = row->id + 1;
        held = row->op == ROW_ALLOCATE ? held + row->size : row->op == ROW_FREE ? held - row->size : held;
        if (held > workload_requested) workload_requested = held;
        if (!streams[row->stream]) streams[row->stream] = peer_stream();
    }
    workload_operations = row_count;
    blocks = calloc(ids, sizeof *blocks);
    if (!blocks) exit(1);
    passes(1);
}

static double measure_trace(uint64_t count) { return workload_measured(passes, count); }

const workload_t workload_trace = {"trace", "FILE", 1, prepare_trace, measure_trace, 1};
