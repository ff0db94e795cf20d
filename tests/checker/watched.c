#include "tests/checker/watched.h"

void watched_open_on(watched_t *w, uint32_t rules, const strata_sim_options_t *options) {
    *w = (watched_t){.sim = fixture_open(*options)};
    w->device = w->sim.device;
    EXPECT_OK(strata_checker_begin(w->sim.world, rules, &w->checker));
    for (int i = 0; i < WATCHED_STREAMS; i++) w->streams[i] = stream_new(w->device, STRATA_STREAM_NON_BLOCKING);
    w->chunk = get(w->device, 16 * MIB);
}

void watched_open(watched_t *w, uint32_t rules) {
    const strata_sim_options_t options = {0};
    watched_open_on(w, rules, &options);
}

void watched_close(watched_t *w) {
    EXPECT_TRUE(strata_checker_complete(w->checker));
    strata_checker_end(w->checker);
    fixture_close(&w->sim);
}

void serve(watched_t *w, uint64_t name, uint64_t mib, strata_handle_t stream) {
    strata_checker_block_t block = {
        .name = name, .device = w->device, .stream = stream, .address = w->chunk + mib * MIB, .size = MIB};
    strata_checker_allocated(w->checker, &block);
}

void work_at(watched_t *w, uint64_t mib, strata_handle_t stream, bool write) {
    strata_access_t access = {w->chunk + mib * MIB, MIB, write};
    EXPECT_OK(strata_device_work(w->device, stream, 100 * US, &access, 1));
}

void order(watched_t *w, strata_handle_t stream, strata_handle_t other) {
    strata_handle_t event = event_new(w->device);
    EXPECT_OK(strata_device_event_record(w->device, event, other));
    EXPECT_OK(strata_device_stream_wait(w->device, stream, event));
    EXPECT_OK(strata_device_event_destroy(w->device, event));
}
