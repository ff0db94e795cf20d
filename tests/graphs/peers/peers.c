#include "tests/graphs/peers/peers.h"

void peer_open(captured_t *c, const char *preset_or_text, uint64_t capacity, uint32_t rules) {
    strata_sim_options_t options = {.devices = 1, .capacity = capacity ? capacity : GIB, .contents = true};
    memset(c, 0, sizeof *c);
    rig_open_on(&c->rig, rig_strategy(preset_or_text, NULL, 0), &options, 0);
    c->rig.borrowed_strategy = false;
    ASSERT_OK(strata_checker_begin(c->rig.world, rules, &c->checker));
    c->stream = rig_stream(&c->rig);
    c->other = rig_stream(&c->rig);
}

void peer_close_raced(captured_t *c) {
    strata_checker_end(c->checker);
    for (int i = 0; i < 2; i++) {
        strata_stream_t stream = i ? c->other : c->stream;
        EXPECT_OK(strata_stream_forget(c->rig.s, c->rig.gpu, stream));
        EXPECT_OK(strata_stream_destroy(c->rig.s, c->rig.gpu, stream));
    }
    rig_close(&c->rig);
}

void peer_fill(captured_t *c, strata_stream_t stream, const strata_block_t *block, uint8_t byte) {
    EXPECT_OK(strata_device_fill(c->rig.devices[0], (uintptr_t)block->ptr, byte, block->size, stream));
}

void peer_read(captured_t *c, strata_stream_t stream, const strata_block_t *block) {
    strata_access_t access = {(uintptr_t)block->ptr, block->size, false};
    EXPECT_OK(strata_device_work(c->rig.devices[0], stream, 1000, &access, 1));
}

strata_block_t peer_made(captured_t *c, strata_stream_t stream, size_t size, uint8_t byte) {
    strata_block_t block = rig_allocate(&c->rig, stream, size);
    peer_fill(c, stream, &block, byte);
    return block;
}

strata_block_t peer_made_of(captured_t *c, strata_stream_t stream, strata_block_t old, size_t size, uint8_t byte) {
    strata_block_t block = peer_made(c, stream, size, byte);
    peer_free(c, &old);
    return block;
}

strata_block_t peer_made_with_temps(captured_t *c, strata_stream_t stream, strata_block_t old, size_t size, uint8_t byte) {
    strata_block_t halves[2];
    for (int i = 0; i < 2; i++) {
        strata_block_t copy = peer_made(c, stream, size, 0xee);
        halves[i] = peer_made_of(c, stream, copy, size, 0xdd);
    }
    strata_block_t sum = peer_made(c, stream, size, byte);
    for (int i = 0; i < 2; i++) peer_free(c, &halves[i]);
    peer_free(c, &old);
    return sum;
}

bool peer_holds(captured_t *c, const strata_block_t *block, uint8_t byte) {
    EXPECT_OK(strata_device_synchronise(c->rig.devices[0]));
    const uint8_t *bytes = strata_device_host_view(c->rig.devices[0], (uintptr_t)block->ptr, block->size);
    size_t at = 0;
    while (bytes && at < block->size && bytes[at] == byte) at++;
    return bytes && at == block->size;
}

void peer_free(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

void peer_replay(captured_t *c, strata_graph_t graph, strata_stream_t stream) {
    EXPECT_OK(strata_graph_launch(c->rig.s, c->rig.gpu, graph, stream));
}

void peer_destroy(captured_t *c, strata_graph_t graph) { EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, graph)); }

uint64_t peer_reserved(captured_t *c) { return rig_figures(&c->rig).reserved_bytes; }

void peer_join(captured_t *c, strata_stream_t stream, strata_stream_t other) {
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, stream, other));
}

void peer_borrow(captured_t *c, const strata_block_t *block, strata_stream_t stream) {
    EXPECT_OK(strata_record_stream(c->rig.s, block->ref, stream));
}

void peer_end_stream(captured_t *c, strata_stream_t stream) {
    EXPECT_OK(strata_stream_forget(c->rig.s, c->rig.gpu, stream));
    EXPECT_OK(strata_stream_destroy(c->rig.s, c->rig.gpu, stream));
}
