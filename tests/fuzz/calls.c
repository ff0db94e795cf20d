/* Calls of the C API, right and wrong ones, over two small simulated devices, with faults of the devices and of the host between
 * them. A model knows what is live: a free of it cannot fail, nothing overlaps, a stale name is told, and the end finds every
 * device as empty as it was. The first two bytes choose the strategy and the devices, then each call takes a few bytes.
 */
#include "tests/fuzz/calls.h"

#include <string.h>

#include "config/config.h"
#include "facade/open/life.h"
#include "platform/host/host_memory.h"

static const char *const strategies[] = {
    "strata",
    "paddle",
    "system",
    "cuda_malloc_async",
    "stack: [retry: {timeout: 2ms}, stream_safe, {binning: {routes: [{up_to: 16KiB, stack: [auto_growth: {chunk_size: 1MiB}, "
    "system]}, {stack: [fallback: {stacks: [[auto_growth: {chunk_size: 16MiB}, system], [buffered, system: {memory: pinned}]]}"
    "]}]}}]",
    "stack: [stat, guard: {quarantine: 4, report: false}, stream_safe, fill, auto_growth: {order: any, free_idle_chunk: true}, "
    "system]",
    "stack: [stream_safe, scrub, auto_growth: {chunk_size: 4MiB}, limit: {bytes: 24MiB}, system]",
    "stack: [retry: {patience: true, wait_first: true}, stream_safe, aligned: {alignment: 4KiB}, buffered, auto_growth, system]",
    "pytorch",
    "tensorflow",
    "stack: [retry: {timeout: 2ms}, naive_best_fit: {streams: ignored, initial: 4MiB, reallocate: 2MiB}, system]\n"
    "places: {pinned: [naive_best_fit: {streams: ignored, fraction: 0.5, parts: 256, memory: 1GiB, min_block: 64KiB}, system], "
    "host: [naive_best_fit: {streams: ignored, initial: 1MiB, memory: 64MiB, min_block: 4KiB}, system]}",
    "stack: [retry: {timeout: 2ms}, thread_local: {initial: 4MiB, reallocate: 2MiB}, system]",
    "stack: [bfc: {memory_limit: 12MiB, initial_region: 1MiB, memory_debug: true, timestamps: true}, system]\n"
    "pools: {weights: {stack: [retry: {timeout: 2ms}, caching: {roundup_power2_divisions: 4, max_split_size: 20MiB, "
    "memory_fraction: 0.9, garbage_collection_threshold: 0.5, pools_on_oom: true}, system], places: {pinned: [caching, system]}}}"};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

uint8_t calls_byte(calls_t *c) { return c->at < c->end ? *c->at++ : 0; }

uint32_t calls_below(calls_t *c, uint32_t bound) { return calls_byte(c) % bound; }

/* Read once: the strategies do not change. */
static strata_strategy_t *strategy_of(uint32_t index) {
    static strata_strategy_t *kept[STRATEGIES];
    bool text = strchr(strategies[index], ':') != NULL;
    strata_config_request_t request = {.preset = text ? NULL : strategies[index], .text = text ? strategies[index] : NULL};
    if (!kept[index]) FUZZ_EXPECT_OK(strata_config_load(&request, &kept[index]));
    return kept[index];
}

static void begin(calls_t *c) {
    strata_strategy_t *strategy = strategy_of(calls_below(c, STRATEGIES));
    uint8_t how = calls_byte(c);
    strata_sim_options_t options = {.devices = CALLS_DEVICES, .capacity = (UINT64_C(16) << 20) << (how & 3), .contents = how & 4};
    uint32_t flags = how & 8 ? STRATA_OPEN_CHECK_STREAM_IDS : 0;
    FUZZ_EXPECT_OK(strata_sim_new(&options, &c->world));
    for (uint32_t i = 0; i < CALLS_DEVICES; i++) FUZZ_EXPECT_OK(strata_sim_open(c->world, i, &c->devices[i]));
    FUZZ_EXPECT_OK(strata_facade_open_on(strategy, c->devices, CALLS_DEVICES, flags, &c->s));
    const strata_model_names_t *pools = &strategy->named[STRATA_NAMED_POOL];
    if (pools->count > 0) FUZZ_EXPECT_OK(strata_pool(c->s, pools->list[0].name, &c->pool));
}

void calls_calm(calls_t *c) {
    strata_host_fail_at(0, 0);
    for (uint32_t i = 0; i < CALLS_DEVICES; i++) strata_sim_clear_faults(c->devices[i]);
}

static void end(calls_t *c) {
    char text[256];
    calls_calm(c);
    FUZZ_EXPECT_OK(strata_validate(c->s));
    for (uint32_t i = 0; i < c->live; i++) calls_check_bytes(c, &c->blocks[i]);
    FUZZ_EXPECT_OK(strata_close(c->s, STRATA_CLOSE_FORCE, NULL, NULL));
    FUZZ_EXPECT(strata_validate(c->s) == STRATA_E_STALE);
    for (uint32_t i = 0; i < CALLS_DEVICES; i++) {
        strata_sim_held_t held;
        strata_sim_held(c->devices[i], &held);
        strata_sim_held_text(&held, text, sizeof text);
        FUZZ_EXPECT(*text == '\0');
        strata_device_close(c->devices[i]);
    }
    strata_sim_drop(c->world);
}

void fuzz_calls(const uint8_t *bytes, size_t count) {
    static calls_t calls;
    calls = (calls_t){.at = bytes, .end = bytes + count};
    begin(&calls);
    for (uint32_t i = 0; i < CALLS_MAX && calls.at < calls.end; i++) calls_one(&calls);
    end(&calls);
}
