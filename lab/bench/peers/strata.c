/* Strata as a peer. PRESET calls it by facade, place and stream, PRESET:object through an allocator object
 * for each stream. PRESET:pointer frees by address. BENCH_DEVICES names the device, by default gpu:0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/peers/peer.h"
#include "strata/allocator.h"
#include "strata/strata.h"

/* A stream of this peer. */
typedef struct lane {
    strata_stream_t stream;
    strata_allocator_t allocator; /* only for :object */
} lane_t;

static strata_t facade;
static strata_place_t gpu;
static bool by_object, by_pointer;

static void must(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s\n", strata_last_error()->text);
    exit(1);
}

bool peer_open(const char *setup) {
    char preset[64];
    const char *devices = getenv("BENCH_DEVICES"), *how = strchr(setup, ':');
    snprintf(preset, sizeof preset, "%.*s", how ? (int)(how - setup) : (int)strlen(setup), setup);
    by_object = how && strcmp(how, ":object") == 0;
    by_pointer = how && strcmp(how, ":pointer") == 0;
    if (how && !by_object && !by_pointer) return false;
    strata_open_options_t options = {.struct_size = sizeof options, .preset = preset, .devices = devices ? devices : "gpu:0"};
    must(strata_open(&options, &facade));
    gpu = strata_gpu(0);
    return true;
}

void *peer_stream(void) {
    lane_t *lane = calloc(1, sizeof *lane);
    if (!lane) exit(1);
    must(strata_stream_create(facade, gpu, 0, &lane->stream));
    if (by_object) must(strata_allocator_get(facade, gpu, lane->stream, 0, &lane->allocator));
    return lane;
}

bool peer_allocate(void *stream, size_t size, peer_block_t *block) {
    const lane_t *lane = stream;
    strata_block_t got;
    strata_status_t status = by_object ? strata_allocator_allocate(lane->allocator, size, &got)
                                       : strata_allocate(facade, gpu, lane->stream, size, &got);
    if (status != STRATA_OK) return false;
    *block = (peer_block_t){.ptr = got.ptr, .ref = got.ref, .size = size, .stream = stream};
    return true;
}

void peer_free(const peer_block_t *block) {
    const lane_t *lane = block->stream;
    if (by_object) must(strata_allocator_free(lane->allocator, block->ref));
    else must(by_pointer ? strata_free_pointer(facade, block->ptr) : strata_free(facade, block->ref));
}

bool peer_lend(const peer_block_t *block, void *stream) {
    must(strata_record_stream(facade, block->ref, ((const lane_t *)stream)->stream));
    return true;
}
