/* Every option of every layer does something: a program is run with the default and with other values, and what can be seen of it
 * differs for one of them in one of the stacks at least. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocation/options/option.h"
#include "facade/open/idle.h"
#include "platform/device.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"

enum { CAPACITY = 96, BLOCKS = 24, VALUES = 8 };

#define POOLED_CACHING "stack: [auto_growth, system]\npools: {p: {stack: [caching, system]}}\n"

static const struct {
    const char *layer;
    strata_place_kind_t place;
    const char *path; /* of the layer */
    const char *text;
} contexts[] = {
    {"retry", STRATA_PLACE_GPU, "retry", "stack: [retry, stream_safe, auto_growth: {chunk_size: 2MiB}, system]"},
    {"retry", STRATA_PLACE_GPU, "retry", "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]"},
    {"retry", STRATA_PLACE_GPU, "retry",
     "stack: [retry: {patience: true, depth: 1, slack: 0}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]"},
    {"stream_safe", STRATA_PLACE_GPU, "stream_safe", "stack: [stream_safe, auto_growth, system]"},
    {"auto_growth", STRATA_PLACE_GPU, "auto_growth", "stack: [retry: {timeout: 0}, stream_safe, auto_growth, system]"},
    {"auto_growth", STRATA_PLACE_GPU, "auto_growth", "stack: [auto_growth: {chunk_size: 4MiB}, aligned: {from: 1GiB}, system]"},
    {"auto_growth", STRATA_PLACE_GPU, "auto_growth",
     "stack: [retry: {timeout: 0}, auto_growth: {chunk_size: 40MiB, reclaim: ladder, small_pool_size: 64KiB}, system]"},
    {"auto_growth", STRATA_PLACE_GPU, "auto_growth", "stack: [retry: {timeout: 0}, auto_growth: {chunk_size: 60MiB}, system]"},
    {"buffered", STRATA_PLACE_GPU, "buffered", "stack: [buffered, system]"},
    {"caching", STRATA_PLACE_GPU, "caching", "stack: [caching, system]"},
    {"caching", STRATA_PLACE_GPU, "caching", "stack: [caching: {max_split_size: 20MiB, memory_fraction: 0.6}, system]"},
    {"caching", STRATA_PLACE_GPU, "caching", "stack: [retry: {timeout: 0}, caching: {reclaim: ladder}, system]"},
    {"caching", STRATA_PLACE_GPU, "pools.p.caching", POOLED_CACHING},
    {"caching_vmm", STRATA_PLACE_GPU, "caching_vmm", "stack: [caching_vmm, vmm]"},
    {"caching_vmm", STRATA_PLACE_GPU, "caching_vmm", "stack: [caching_vmm: {max_split_size: 20MiB, memory_fraction: 0.6}, vmm]"},
    {"caching_vmm", STRATA_PLACE_GPU, "caching_vmm", "stack: [retry: {timeout: 0}, caching_vmm: {reclaim: ladder}, vmm]"},
    {"auto_growth_vmm", STRATA_PLACE_GPU, "auto_growth_vmm", "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]"},
    {"best_fit_vmm", STRATA_PLACE_GPU, "best_fit_vmm", "stack: [retry: {timeout: 0}, best_fit_vmm: {handle: 2MiB}, vmm]"},
    {"bfc", STRATA_PLACE_GPU, "bfc", "stack: [bfc, system]"},
    {"bfc", STRATA_PLACE_GPU, "bfc", "stack: [retry: {timeout: 0}, bfc: {memory_limit: 60MiB}, system]"},
    {"naive_best_fit", STRATA_PLACE_GPU, "naive_best_fit", "stack: [naive_best_fit: {fraction: 0.3}, system]"},
    {"naive_best_fit", STRATA_PLACE_HOST, "host.naive_best_fit",
     "stack: [system]\nplaces: {host: [naive_best_fit: {memory: 1GiB}, system]}"},
    {"thread_local", STRATA_PLACE_GPU, "thread_local", "stack: [thread_local: {fraction: 0.3}, system]"},
    {"thread_local", STRATA_PLACE_HOST, "host.thread_local",
     "stack: [system]\nplaces: {host: [thread_local: {memory: 1GiB}, system]}"},
    {"aligned", STRATA_PLACE_GPU, "aligned", "stack: [aligned, auto_growth: {chunk_size: 2MiB}, system]"},
    {"fault", STRATA_PLACE_GPU, "fault", "stack: [fault, system]"},
    {"fault", STRATA_PLACE_GPU, "fault", "stack: [fault: {at: 3}, system]"},
    {"fault", STRATA_PLACE_GPU, "fault", "stack: [fault: {probability: 0.5}, system]"},
    {"fill", STRATA_PLACE_GPU, "fill", "stack: [fill, auto_growth, system]"},
    {"fill", STRATA_PLACE_GPU, "fill", "stack: [fill: {synchronise: true}, auto_growth, system]"},
    {"guard", STRATA_PLACE_GPU, "guard", "stack: [guard, auto_growth, system]"},
    {"idle", STRATA_PLACE_GPU, "idle", "stack: [auto_growth: {chunk_size: 2MiB}, system]\nidle: {}\n"},
    {"limit", STRATA_PLACE_GPU, "limit", "stack: [limit, system]"},
    {"scrub", STRATA_PLACE_GPU, "scrub", "stack: [scrub, auto_growth, system]"},
    {"system", STRATA_PLACE_GPU, "system", "stack: [auto_growth, system]"},
    {"system", STRATA_PLACE_MANAGED, "managed.system", "stack: [auto_growth: {name: a}, system]\nplaces: {managed: [system]}"},
    {"system", STRATA_PLACE_PINNED, "pinned.system", "stack: [auto_growth: {name: a}, system]\nplaces: {pinned: [system]}"},
    {"system", STRATA_PLACE_HOST, "host.system", "stack: [auto_growth: {name: a}, system]\nplaces: {host: [system]}"},
    {"cuda_malloc_async", STRATA_PLACE_GPU, "cuda_malloc_async", "stack: [cuda_malloc_async]"},
    {"cuda_malloc_async", STRATA_PLACE_GPU, "cuda_malloc_async", "stack: [cuda_malloc_async: {pool: own}]"},
    {"trace", STRATA_PLACE_GPU, "trace", "stack: [trace: {path: written_by_options.csv, events: 64}, auto_growth, system]"},
    {"log", STRATA_PLACE_GPU, "log", "stack: [log, auto_growth, system]"},
};

enum { CONTEXTS = sizeof contexts / sizeof *contexts };

/* What is seen elsewhere, with where. */
static const struct {
    const char *layer, *option, *test;
} elsewhere[] = {
    {"guard", "report", "guard.silent_when_told_so"},
    {"retry", "patience", "facade_patience.it_waits_for_enough_alone"},
    {"retry", "deepest", "facade_patience.it_deepens_no_further_than_it_may"},
    {"auto_growth", "split_pools", "auto_growth_pools.a_split_keeps_the_holes_of_large_chunks"},
    {"vmm", "registrable", "share.registrable_refuses_a_cache_across_handles"},
    {"system", "huge_pages", "places_host.huge_pages"},
    {"cuda_malloc_async", "reuse_follow_events", "async_pool.retry"},
    {"system", "node", "places_node.memory_comes_from_the_node_that_is_named"},
    {"system", "portable", "cuda_facade.pinned_memory_is_asked_for_as_the_options_say"},
    {"system", "mapped", "cuda_facade.pinned_memory_is_asked_for_as_the_options_say"},
    {"system", "write_combined", "cuda_facade.pinned_memory_is_asked_for_as_the_options_say"},
    {"caching", "pools_on_oom", "facade_pools.one_that_lends_serves_who_would_fail"},
    {"caching", "reuse_in_capture", "peers_pytorch_graphs.test_graph_capture_reclaim_2_streams"},
    {"auto_growth_vmm", "slack", "growth_vmm.within_the_slack_memory_is_created"},
    {"auto_growth_vmm", "slack_least", "growth_vmm.within_the_slack_memory_is_created"},
    {"auto_growth_vmm", "views", "growth_vmm.without_views_memory_is_created"},
    {"auto_growth_vmm", "moves", "growth_moves.none_without_the_option"},
    {"caching_vmm", "pools_on_oom",
     "facade_pools.one_that_lends_serves_who_would_fail"}, /* the code of caching, as the next one's */
    {"caching_vmm", "reuse_in_capture", "peers_pytorch_graphs.test_graph_capture_reclaim_2_streams"},
    {"stream_safe", "reuse_in_capture", "graph_reuse.a_block_serves_again_once_its_owner_has_joined"},
    {"bfc", "coalesce_regions", "tensorflow_bfc.virtual_allocator_promotes_reuse"},
    {"bfc", "memory_debug", "bfc_memory.the_report_draws_and_counts"},
    {"bfc", "memory_dump", "bfc_memory.a_map_of_all_blocks_is_written"},
    {"auto_growth", "stable_addresses", "stable.a_better_place_moves_nothing/auto_growth"},
    {"caching", "stable_addresses", "stable.a_better_place_moves_nothing/caching"},
    {"bfc", "stable_addresses", "stable.a_better_place_moves_nothing/bfc"},
    {"naive_best_fit", "stable_addresses", "stable.a_better_place_moves_nothing/naive_best_fit"},
    {"thread_local", "stable_addresses", "stable.a_better_place_moves_nothing/thread_local"},
    {"trace", "path", "recorder.every_event_stands_in_the_file"},
    {"trace", "events", "recorder.a_full_ring_is_full"},
    {"trace", "when_full", "recorder.a_full_ring_leaves_out_whole_lifetimes"},
    {"trace", "on_oom", "recorder_oom.the_trace_so_far_and_the_blocks_are_left"},
    {"trace", "frames", "recorder_stacks.each_place_is_told_apart"},
    {"trace", "work", "recorder_told.kernels_may_be_left_out"},
    {"log", "path", "log.each_request_and_each_free_is_a_line"},
};

/* ---- what can be seen ---- */

typedef struct seen {
    uint64_t hash;
    size_t most; /* bytes of a request: where each byte is written, few */
} seen_t;

static void see(seen_t *seen, uint64_t value) { seen->hash = (seen->hash ^ value) * 1099511628211ull; }

static void see_figure(const strata_layer_figure_t *figure, void *context) {
    for (const char *at = figure->name; *at; at++) see(context, (unsigned char)*at);
    see(context, figure->value);
}

static void see_block(seen_t *seen, rig_t *rig, const strata_block_t *block) {
    see(seen, block->size);
    /* The host's own memory lies elsewhere in each run, and has whatever was there. */
    strata_place_kind_t kind = strata_place_kind(rig->gpu);
    if (kind == STRATA_PLACE_PINNED || kind == STRATA_PLACE_HOST) return;
    see(seen, (uint64_t)(uintptr_t)block->ptr);
    const unsigned char *bytes = strata_device_host_view(rig->devices[0], (uint64_t)(uintptr_t)block->ptr, block->size);
    for (size_t i = 0; bytes && i < 64; i++) see(seen, bytes[i]);
}

static void see_all(seen_t *seen, rig_t *rig) {
    strata_statistics_t f = rig_figures(rig);
#define SEE_FIELD(name, unit, kind, meaning) see(seen, f.name);
    STRATA_STATISTICS_MAP(SEE_FIELD)
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, see_figure, seen));
    for (int call = 0; call < STRATA_DEVICE_CALLS; call++) see(seen, atomic_load(&rig->devices[0]->calls[call]));
    see(seen, strata_sim_now(rig->world));
}

/* ---- the program ---- */

static strata_block_t ask(seen_t *seen, rig_t *rig, strata_stream_t stream, size_t size, const char *tag) {
    strata_block_t block = {.ref = 0};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size < seen->most ? size : seen->most, .tag = tag};
    see(seen, (uint64_t)strata_allocate_with(rig->s, rig->gpu, stream, &options, &block));
    if (block.ref) see_block(seen, rig, &block);
    return block;
}

static void give(seen_t *seen, rig_t *rig, strata_block_t *block) {
    if (block->ref == 0) return;
    see(seen, (uint64_t)strata_free(rig->s, block->ref));
    block->ref = 0;
}

/* Small and large, two streams, borrows and work, more than there is, steps and releases. */
static void play(seen_t *seen, rig_t *rig) {
    static const size_t sizes[] = {700, 70000, 3 << 20, 300, 1 << 20, 9 << 20, 40000, 26 << 20};
    strata_stream_t streams[2] = {rig_stream(rig), rig_stream(rig)};
    strata_block_t blocks[BLOCKS] = {{.ref = 0}};
    for (int turn = 0; turn < 5 * BLOCKS; turn++) {
        strata_block_t *b = &blocks[turn * 7 % BLOCKS];
        strata_stream_t stream = streams[turn % 3 == 0], other = streams[turn % 3 != 0];
        give(seen, rig, b);
        *b = ask(seen, rig, stream, sizes[turn * 5 % 8] + (size_t)(turn % 4) * 256, turn % 5 ? NULL : "tagged");
        if (b->ref && turn % 4 == 1) see(seen, (uint64_t)strata_record_stream(rig->s, b->ref, other));
        if (b->ref && turn % 3 == 1) rig_work(rig, turn % 2 ? stream : other, 300 * 1000, b->ref);
        if (turn % 16 == 15) EXPECT_OK(strata_step(rig->s));
        if (turn % 8 == 7) rig_advance(rig, 200 * 1000);
        if (turn % 32 == 20) EXPECT_OK(strata_trim(rig->s, rig->gpu, 8 * MIB, NULL));
        if (turn % 16 == 3) see_all(seen, rig);
    }
    for (int i = 0; i < BLOCKS; i++) give(seen, rig, &blocks[i]);
    see_all(seen, rig);
    rig_advance(rig, 10 * 1000 * 1000);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    see_all(seen, rig);
}

/* Several sizes of one bin lie free. */
static void play_fragments(seen_t *seen, rig_t *rig) {
    strata_block_t blocks[BLOCKS], more[4];
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = ask(seen, rig, NULL, 16384 + 256 * (i * 7 % BLOCKS), NULL);
    for (int i = 0; i < BLOCKS; i += 2) give(seen, rig, &blocks[i]);
    for (size_t i = 0; i < 4; i++) more[i] = ask(seen, rig, NULL, 16384 + 256 * (3 + 4 * i), NULL);
    for (int i = 0; i < 4; i++) give(seen, rig, &more[i]);
    for (int i = 1; i < BLOCKS; i += 2) give(seen, rig, &blocks[i]);
}

/* A block that is a half larger than what is asked then, small and large. */
static void play_rest(seen_t *seen, rig_t *rig) {
    static const size_t sizes[][2] = {{1000 << 10, 700 << 10}, {50 << 20, 26 << 20}};
    for (int i = 0; i < 2; i++)
        for (int turn = 0; turn < 2; turn++) {
            strata_block_t block = ask(seen, rig, NULL, sizes[i][turn], NULL);
            give(seen, rig, &block);
            see_all(seen, rig);
        }
}

/* Three frees wait for one stream at once. */
static void play_borrows(seen_t *seen, rig_t *rig) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t blocks[3], next;
    for (int i = 0; i < 3; i++) {
        blocks[i] = ask(seen, rig, owner, MIB, NULL);
        if (blocks[i].ref) see(seen, (uint64_t)strata_record_stream(rig->s, blocks[i].ref, borrower));
    }
    rig_work(rig, borrower, 1000 * 1000, 0);
    for (int i = 0; i < 3; i++) give(seen, rig, &blocks[i]);
    next = ask(seen, rig, owner, MIB, NULL);
    rig_advance(rig, 2 * 1000 * 1000);
    give(seen, rig, &next);
    next = ask(seen, rig, owner, MIB, NULL);
    give(seen, rig, &next);
    EXPECT_OK(strata_stream_synchronize(rig->s, rig->gpu, owner));
    see_all(seen, rig);
}

/* Two seconds pass while one block is live and many lie idle. */
static void play_idle(seen_t *seen, rig_t *rig) {
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    strata_block_t live = ask(seen, rig, NULL, 8 * MIB, NULL), blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = ask(seen, rig, NULL, 2 * MIB, NULL);
    for (size_t i = 0; i < BLOCKS; i++) give(seen, rig, &blocks[i]);
    for (int i = 0; i < 20; i++) {
        (void)strata_facade_check_idle(rig->s);
        rig_advance(rig, 100 * 1000 * 1000);
    }
    see_all(seen, rig);
    give(seen, rig, &live);
}

/* 0: the strategy is refused. */
static uint64_t run(size_t context, const char *setting) {
    strata_strategy_t *strategy = NULL;
    strata_config_request_t request = {
        .text = contexts[context].text, .set = &setting, .set_count = setting ? 1 : 0, .devices = "sim"};
    if (strata_config_load(&request, &strategy) != STRATA_OK) return 0;
    bool writes = strstr(contexts[context].text, "fill") || strstr(contexts[context].text, "guard") ||
                  strstr(contexts[context].text, "scrub");
    seen_t seen = {.hash = 14695981039346656037ull, .most = writes ? 100000 : SIZE_MAX};
    rig_t rig;
    rig_open_on(&rig, strategy, &(strata_sim_options_t){.capacity = CAPACITY * MIB, .contents = true}, 0);
    rig.gpu = strata_place(contexts[context].place, 0);
    uint64_t pool = 0;
    if (strncmp(contexts[context].path, "pools.", 6) == 0) EXPECT_OK(strata_pool(rig.s, "p", &pool));
    if (pool) EXPECT_OK(strata_pool_begin(rig.s, rig.gpu, pool));
    play(&seen, &rig);
    play_fragments(&seen, &rig);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    play_rest(&seen, &rig);
    play_borrows(&seen, &rig);
    if (strstr(contexts[context].text, "idle:")) play_idle(&seen, &rig);
    if (pool) EXPECT_OK(strata_pool_end(rig.s, rig.gpu));
    rig.gpu = strata_gpu(0);
    rig_close(&rig);
    strata_strategy_delete(strategy);
    return seen.hash;
}

/* ---- every row ---- */

static size_t values_of(const strata_option_row_t *row, char values[VALUES][64]) {
    static const char *const of_kind[][VALUES] = {
        [STRATA_OPTION_BOOL] = {"true", "false"},
        [STRATA_OPTION_COUNT] = {"1", "3", "7", "100", "0"},
        [STRATA_OPTION_SIZE] = {"1MiB", "4KiB", "40MiB", "64", "512", "24MiB", "1GiB", "0"},
        [STRATA_OPTION_TIME] = {"0", "3s"},
        [STRATA_OPTION_FRACTION] = {"0.5", "0.1", "0.9", "3", "1"},
        [STRATA_OPTION_TEXT] = {"4", "written_by_options.txt"}};
    size_t count = 0;
    if (row->kind == STRATA_OPTION_CHOICE) {
        for (uint32_t i = 0; i < strata_choice_count(row) && count < VALUES; i++) strata_choice_name(row, i, values[count++], 64);
        return count;
    }
    for (; count < VALUES && of_kind[row->kind][count]; count++) snprintf(values[count], 64, "%s", of_kind[row->kind][count]);
    return count;
}

static bool acts(const char *layer, const strata_option_row_t *row, const uint64_t *plain) {
    char values[VALUES][64], setting[1024];
    size_t count = values_of(row, values);
    for (size_t c = 0; c < CONTEXTS; c++)
        for (size_t v = 0; v < count && strcmp(contexts[c].layer, layer) == 0; v++) {
            snprintf(setting, sizeof setting, "%s.%s=%s", contexts[c].path, row->name, values[v]);
            uint64_t seen = run(c, setting);
            if (seen != 0 && seen != plain[c]) return true;
        }
    return false;
}

static bool is_seen_elsewhere(const char *layer, const char *option) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i].layer, layer) == 0 && strcmp(elsewhere[i].option, option) == 0) return true;
    return false;
}

/* What contexts of the layer show with the defaults; twice the same, else any change would do. */
static void run_plain(const char *layer, uint64_t *plain) {
    for (size_t c = 0; c < CONTEXTS; c++) {
        if (strcmp(contexts[c].layer, layer) != 0) continue;
        plain[c] = run(c, NULL);
        if (plain[c] == 0) FAIL_TEST("%s: %s", contexts[c].text, strata_last_error()->text);
        EXPECT_EQ(run(c, NULL), plain[c]);
    }
}

/* Files that strategies name here are relative. */
static void every_option_of(const char *name) {
    uint64_t plain[CONTEXTS] = {0};
    ASSERT_EQ(chdir(temporary(".")), 0);
    run_plain(name, plain);
    for (const strata_option_row_t *row = strata_layer_find(name)->options; row && row->name; row++) {
        if (strata_option_branch(row) || is_seen_elsewhere(name, row->name)) continue;
        if (!acts(name, row, plain)) FAIL_TEST("%s.%s does nothing that can be seen in any stack here", name, row->name);
    }
}

/* clang-format would break these lists differently at each run. */
/* clang-format off */
#define LAYERS(X)                                                                                                              \
    X(retry) X(stream_safe) X(auto_growth) X(buffered) X(caching) X(caching_vmm) X(best_fit_vmm) X(auto_growth_vmm) X(bfc) X(naive_best_fit) X(thread_local) X(aligned) X(fault) \
    X(fill) X(guard) X(idle) X(limit) X(scrub) X(system) X(vmm) X(cuda_malloc_async) X(trace) X(log)
/* clang-format on */

#define TEST_OF(layer)                                                                                                             \
    TEST(facade_options, each_does_something_in_##layer) { every_option_of(#layer); }
LAYERS(TEST_OF)

TEST(facade_options, every_layer_is_asked) {
#define NAME_OF(layer) #layer,
    static const char *const asked[] = {LAYERS(NAME_OF) "binning" /* its options are the values of its routes */};
    const strata_layer_type_t *type;
    for (size_t i = 0; (type = strata_layer_at(i)) != NULL; i++) {
        bool found = !type->options;
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) found = found || strcmp(asked[k], type->name) == 0;
        if (!found) FAIL_TEST("%s has options that no test here looks at", type->name);
    }
}
