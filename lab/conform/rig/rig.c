#include "lab/conform/rig/rig.h"

#include "facade/open/life.h"
#include "lab/conform/rig/subject.h"

strata_strategy_t *rig_strategy(const char *preset_or_text, const char *const *set, size_t set_count) {
    bool is_text = strchr(preset_or_text, ':') != NULL;
    strata_config_request_t request = {.preset = is_text ? NULL : preset_or_text,
                                       .text = is_text ? preset_or_text : NULL,
                                       .set = set,
                                       .set_count = set_count,
                                       .devices = "sim"};
    strata_strategy_t *strategy = NULL;
    EXPECT_OK(strata_config_load(&request, &strategy));
    return strategy;
}

void rig_open_devices(rig_t *rig, strata_strategy_t *strategy, const strata_sim_options_t *options) {
    memset(rig, 0, sizeof *rig);
    rig->strategy = strategy;
    rig->borrowed_strategy = true;
    rig->count = options->devices ? options->devices : 1;
    rig->gpu = strata_gpu(0);
    ASSERT_OK(strata_sim_new(options, &rig->world));
    for (uint32_t i = 0; i < rig->count; i++) ASSERT_OK(strata_sim_open(rig->world, i, &rig->devices[i]));
}

void rig_open_on(rig_t *rig, strata_strategy_t *strategy, const strata_sim_options_t *options, uint32_t flags) {
    rig_open_devices(rig, strategy, options);
    ASSERT_OK(strata_facade_open_on(rig->strategy, rig->devices, rig->count, flags, &rig->s));
}

void rig_open(rig_t *rig, const char *preset_or_text, const char *const *set, size_t set_count, uint64_t capacity, uint32_t count) {
    strata_strategy_t *strategy = rig_strategy(preset_or_text, set, set_count);
    strata_sim_options_t options = {.devices = count, .capacity = capacity};
    rig_open_on(rig, strategy, &options, 0);
    rig->borrowed_strategy = false;
    snprintf(rig->opened_with, sizeof rig->opened_with, "%s", preset_or_text);
}

void rig_end(rig_t *rig) {
    for (uint32_t i = 0; i < rig->count; i++) {
        char text[256];
        strata_sim_held_t held;
        strata_sim_held(rig->devices[i], &held);
        strata_sim_held_text(&held, text, sizeof text);
        EXPECT_STREQ(text, "");
        strata_device_close(rig->devices[i]);
    }
    strata_sim_drop(rig->world);
    if (!rig->borrowed_strategy) strata_strategy_delete(rig->strategy);
}

void rig_close(rig_t *rig) {
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_WAIT, NULL, NULL));
    rig_end(rig);
}

/* Relaxed operations order nothing among threads, so a race between them remains a race. */
void rig_register(rig_t *rig, strata_ref_t ref) {
    uint32_t at = atomic_fetch_add_explicit(&rig->registered_count, 1, memory_order_relaxed);
    atomic_store_explicit(&rig->registered[at % RIG_REGISTERED], ref, memory_order_relaxed);
}

static void free_leaked(const strata_leak_t *leak, void *context) {
    rig_t *rig = context;
    for (uint32_t i = 0; i < RIG_REGISTERED; i++) {
        if (atomic_load(&rig->registered[i]) != leak->block.ref) continue;
        EXPECT_OK(strata_free(rig->s, leak->block.ref));
        return;
    }
    FAIL_TEST("%zu bytes of %s are live, but the rig did not allocate them", leak->requested, leak->tag);
}

void rig_finish(rig_t *rig) {
    EXPECT_OK(strata_validate(rig->s));
    if (strata_close(rig->s, STRATA_CLOSE_WAIT, free_leaked, rig) != STRATA_OK) {
        strata_status_t status = strata_close(rig->s, STRATA_CLOSE_WAIT, NULL, NULL);
        EXPECT_OK(status);
        if (status != STRATA_OK) (void)strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL);
    }
    rig_end(rig);
    if (strata_test_has_failed() && rig->opened_with[0]) FAIL_TEST("so far with %s", rig->opened_with);
}

void rig_close_by_force(rig_t *rig) {
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL));
    rig_end(rig);
}

strata_stream_t rig_stream(rig_t *rig) {
    strata_stream_t stream = NULL;
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &stream));
    return stream;
}

bool rig_overlap(const strata_block_t *a, const strata_block_t *b) {
    uintptr_t at = (uintptr_t)a->ptr, bt = (uintptr_t)b->ptr;
    return at < bt + b->size && bt < at + a->size;
}

void rig_expect_served(const rig_t *rig, size_t size, strata_status_t status) {
    if (status == STRATA_OK) return;
    conform_judge_refusal(rig, size, status);
    FAIL_TEST("a request of %zu bytes returned %s: %s", size, strata_status_name(status), strata_last_error()->text);
}

strata_block_t rig_allocate(rig_t *rig, strata_stream_t stream, size_t size) {
    strata_block_t block = {0};
    rig_expect_served(rig, size, strata_allocate(rig->s, rig->gpu, stream, size, &block));
    rig_register(rig, block.ref);
    return block;
}

void rig_work(rig_t *rig, strata_stream_t stream, uint64_t duration_ns, strata_ref_t ref) {
    EXPECT_OK(strata_stream_work(rig->s, rig->gpu, stream, duration_ns, &ref, ref ? 1 : 0));
}

void rig_advance(rig_t *rig, uint64_t ns) { strata_sim_advance_to(rig->world, strata_sim_now(rig->world) + ns); }

strata_stack_t *rig_stack(rig_t *rig, strata_stream_t stream) {
    strata_stack_t *stack = NULL;
    EXPECT_OK(strata_facade_stack(strata_facade_of(rig->s), rig->gpu, stream, &stack));
    return stack;
}

strata_domain_t *rig_domain(rig_t *rig) {
    strata_domain_t *domain = NULL;
    EXPECT_OK(strata_facade_domain(strata_facade_of(rig->s), rig->gpu, &domain));
    return domain;
}

strata_statistics_t rig_figures(rig_t *rig) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(rig->s, rig->gpu, &figures));
    return figures;
}

uint64_t rig_calls(rig_t *rig, strata_device_call_t call) { return atomic_load(&rig->devices[0]->calls[call]); }
