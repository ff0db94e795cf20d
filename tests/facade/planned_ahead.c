/* Plans that were made ahead, and loaded. */
#include "allocation/layer/planned_state.h"
#include "planning/file/table.h"
#include "planning/steady.h"
#include "platform/host/host_memory.h"
#include "tests/facade/planned.h"
#include "tests/harness/files.h"
#include "tests/paths.h"

enum { ASKS = 8 };

/* ---- a small program, and its plan ---- */

/* Sizes are no multiples of 256, lives overlap; the offsets are by hand. Every buffer lives for two requests. */
static const size_t sizes[ASKS] = {5 * MIB - 100, 3 * MIB, 7 * MIB + 1, MIB, 2 * MIB - 1, 300, 6 * MIB, 256};
static const uint64_t offsets[ASKS] = {0, 5 * MIB, 8 * MIB, 0, MIB, 3 * MIB, 4 * MIB, 3 * MIB};
#define PLAN                                                                                                                       \
    "id,lower,upper,size,alignment,offset\n"                                                                                       \
    "a,0,2,5242780,256,0\nb,1,3,3145728,256,5242880\nc,2,4,7340033,256,8388608\nd,3,5,1048576,256,0\n"                             \
    "e,4,6,2097151,256,1048576\nf,5,7,300,256,3145728\ng,6,8,6291456,256,4194304\nh,7,8,256,256,3145728\n"

typedef struct small {
    rig_t *rig;
    strata_block_t blocks[ASKS];
} small_t;

static void small_step(small_t *small, const char *const *tags, const int *order) {
    for (int k = 0; k < ASKS; k++) {
        int i = order ? order[k] : k;
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = sizes[i], .tag = tags ? tags[i] : NULL};
        EXPECT_OK(strata_allocate_with(small->rig->s, small->rig->gpu, NULL, &options, &small->blocks[i]));
        int last = k > 0 ? (order ? order[k - 1] : k - 1) : -1;
        if (last >= 0) EXPECT_OK(strata_free(small->rig->s, small->blocks[last].ref));
    }
    EXPECT_OK(strata_free(small->rig->s, small->blocks[order ? order[ASKS - 1] : ASKS - 1].ref));
}

static uint64_t offset_in(const small_t *small, int i) {
    return (uint64_t)(uintptr_t)small->blocks[i].ptr - (uint64_t)(uintptr_t)small->blocks[0].ptr;
}

static void expect_as_planned(const small_t *small) {
    for (int i = 0; i < ASKS; i++) EXPECT_EQ(offset_in(small, i), offsets[i]);
}

static strata_status_t load(rig_t *rig, const char *text) {
    return strata_plan_load(rig->s, rig->gpu, NULL, write_text("ahead.csv", text), NULL);
}

#define CHUNKED "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n"

/* ---- following ---- */

/* The first step already: no device call once room is made. */
TEST_RIG(facade_planned_ahead, the_first_step_is_served_at_planned_addresses, 0, "planned", CHUNKED) {
    for (int told = 0; told < 2; told++) {
        small_t small = {.rig = rig};
        EXPECT_OK(load(rig, PLAN));
        uint64_t calls = planned_device_calls(rig), hits = planned_figure(rig, "planned_hits");
        for (uint64_t step = 1; step <= 4; step++) {
            small_step(&small, NULL, NULL);
            expect_as_planned(&small);
            if (told) EXPECT_OK(strata_step(rig->s));
            EXPECT_EQ(planned_figure(rig, "planned_hits"), hits + step * ASKS);
        }
        EXPECT_EQ(planned_device_calls(rig), calls);
        EXPECT_EQ(planned_figure(rig, "beside"), 0);
        EXPECT_EQ(planned_figure(rig, "left"), 0);
        EXPECT_EQ(planned_figure(rig, "plans"), 1 + told); /* those that were loaded */
        EXPECT_OK(strata_validate(rig->s));
    }
}

/* Who names its requests, each of which is the next one anyway, is served as one who does not: the room stays held. */
TEST_RIG(facade_planned_ahead, names_in_order_leave_the_room_held, 0, "planned", CHUNKED) {
    static const char *const names[ASKS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const planned_t *planned = (const planned_t *)rig_stack(rig, NULL)->cache;
    small_t small = {.rig = rig};
    EXPECT_OK(load(rig, PLAN));
    for (int step = 0; step < 4; step++) {
        EXPECT_EQ(planned->holds, step > 0);
        small_step(&small, names, NULL);
        EXPECT_EQ(planned->holds, step > 0);
        expect_as_planned(&small);
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_OK(strata_validate(rig->s));
}

TEST_RIG(facade_planned_ahead, a_plan_as_json_is_followed_too, 0, "planned") {
    small_t small = {.rig = rig};
    EXPECT_OK(load(rig,
                   "{\"planner\":\"mine\",\"plan\":[\n{\"name\":\"a\",\"lower\":0,\"upper\":1,\"size\":5242780,\"offset\":512},\n"
                   "{\"name\":\"b\",\"lower\":1,\"upper\":2,\"size\":3145728,\"alignment\":256,\"offset\":8388608}]}\n"));
    small_step(&small, NULL, NULL);
    EXPECT_EQ(offset_in(&small, 1), 8388608 - 512);
    EXPECT_EQ(planned_figure(rig, "planned_hits"), 2);
}

/* A tag that names a buffer says which one it is, in whatever order they come. */
TEST_RIG(facade_planned_ahead, tags_name_buffers, 0, "planned") {
    static const char *const names[ASKS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const int order[ASKS] = {0, 2, 1, 3, 4, 5, 6, 7};
    small_t small = {.rig = rig};
    EXPECT_OK(load(rig, PLAN));
    for (int step = 0; step < 3; step++) {
        small_step(&small, names, order);
        expect_as_planned(&small);
    }
    EXPECT_EQ(planned_figure(rig, "beside"), 0);
    static const char *const unknown[ASKS] = {"z", "", "a much longer name than any", "d", "e", "f", "g", "h"};
    EXPECT_OK(strata_step(rig->s));
    EXPECT_OK(load(rig, PLAN));
    small_step(&small, unknown, NULL);
    expect_as_planned(&small);
}

/* The program asks for other things: it is served as without a plan, and what it repeats is learnt. */
TEST_RIG(facade_planned_ahead, a_plan_that_does_not_fit_is_left, 0, "planned", CHUNKED) {
    small_t small = {.rig = rig};
    EXPECT_OK(load(rig, "id,lower,upper,size,offset\nx,0,2,5242780,0\ny,1,3,999,8388608\n"));
    for (int step = 0; step < 5; step++) {
        small_step(&small, NULL, NULL);
        EXPECT_OK(strata_step(rig->s));
        EXPECT_OK(strata_validate(rig->s));
    }
    EXPECT_GT(planned_figure(rig, "left"), 0);
    EXPECT_EQ(planned_figure(rig, "plans"), 2);
    EXPECT_GE(planned_figure(rig, "planned_hits"), 1 + 2 * ASKS);
}

/* Two plans, and a program that takes turns. */
TEST_RIG(facade_planned_ahead, several_plans_are_kept, 0, "planned") {
    small_t small = {.rig = rig};
    EXPECT_OK(load(rig, "id,lower,upper,size,offset\nx,0,1,4000000,0\ny,0,1,256,8388608\n"));
    EXPECT_OK(load(rig, PLAN));
    for (int step = 0; step < 6; step++) {
        small_step(&small, NULL, NULL);
        EXPECT_OK(strata_step(rig->s));
        strata_block_t x = rig_allocate(rig, NULL, 4000000), y = rig_allocate(rig, NULL, 256);
        if (step > 2) EXPECT_EQ((uint64_t)(uintptr_t)y.ptr - (uint64_t)(uintptr_t)x.ptr, 8388608);
        EXPECT_OK(strata_free(rig->s, x.ref));
        EXPECT_OK(strata_free(rig->s, y.ref));
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_EQ(planned_figure(rig, "plans"), 2);
}

/* Weights live already when the plan begins: nobody asks for them, and they take no room. */
TEST_RIG(facade_planned_ahead, what_is_held_is_not_waited_for, 0, "planned") {
    EXPECT_OK(load(rig, "id,lower,upper,size,alignment,held,offset\nw,0,9,4096,256,1,0\na,0,4,1024,256,0,4096\n"
                        "w2,0,9,8192,256,1,5120\nb,2,6,512,256,0,13312\nold,0,2,512,256,1,13312\n"));
    EXPECT_EQ(planned_figure(rig, "room_bytes"), 1536);
    strata_block_t a = rig_allocate(rig, NULL, 1000), b = rig_allocate(rig, NULL, 512);
    EXPECT_EQ((uint64_t)(uintptr_t)b.ptr - (uint64_t)(uintptr_t)a.ptr, 1024);
    EXPECT_EQ(planned_figure(rig, "planned_hits"), 2);
}

/* A larger alignment than the room's: the cache finds a place, and the plan goes on. */
TEST_RIG(facade_planned_ahead, larger_alignments_are_served_elsewhere, 0,
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, aligned, system]\n", "planned") {
    EXPECT_OK(load(rig, "id,lower,upper,size,alignment,offset\na,0,2,4096,4096,4096\nb,1,2,256,256,0\n"));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4096, .alignment = 4096};
    strata_block_t a = {0};
    strata_status_t status = strata_allocate_with(rig->s, rig->gpu, NULL, &options, &a);
    if (status == STRATA_OK) {
        EXPECT_EQ((uintptr_t)a.ptr % 4096, 0);
        EXPECT_OK(strata_free(rig->s, a.ref));
    }
    EXPECT_OK(strata_validate(rig->s));
}

/* ---- a trace, planned ahead ---- */

static void plan_trace(const strata_trace_t *trace, const char *path) {
    strata_plan_table_t table = {0};
    size_t *row = calloc(trace->lifetimes, sizeof *row);
    uint64_t now = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const strata_trace_event_t *e = &trace->events[i];
        if (e->op == STRATA_TRACE_alloc) {
            strata_plan_buffer_t buffer = {.lower = now, .upper = UINT32_MAX, .size = planned_rounded(e->value), .alignment = 256};
            row[e->id] = table.count;
            EXPECT_OK(strata_plan_table_add(&table, &buffer, "x"));
        }
        if (e->op == STRATA_TRACE_free) table.buffers[row[e->id]].upper = now;
        now += e->op == STRATA_TRACE_alloc || e->op == STRATA_TRACE_free;
    }
    uint64_t *at = calloc(table.count, sizeof *at);
    EXPECT_OK(strata_plan_steady(table.buffers, table.count, at));
    EXPECT_OK(strata_plan_table_write(&table, at, path));
    free(at);
    free(row);
    strata_plan_table_delete(&table);
}

static void expect_at_once(const char *name) {
    char path[1024], plan[1024];
    strata_trace_t *trace = NULL;
    snprintf(path, sizeof path, "%s/traces/%s", STRATA_SOURCE_DIR, name);
    snprintf(plan, sizeof plan, "%s", temporary("trace_plan.csv"));
    EXPECT_OK(strata_trace_load(path, &trace));
    plan_trace(trace, plan);
    strata_ref_t *refs = calloc(trace->lifetimes, sizeof *refs);
    RIG(rig, "planned", 0);
    EXPECT_OK(strata_plan_load(rig.s, rig.gpu, NULL, plan, NULL));
    uint64_t calls = planned_device_calls(&rig);
    for (int i = 0; i < 3; i++) planned_play(&rig, trace, refs);
    uint64_t reserved = rig_figures(&rig).peak_reserved_bytes;
    EXPECT_EQ(planned_device_calls(&rig), calls);
    EXPECT_EQ(planned_figure(&rig, "beside"), 0);
    printf("%s: reserved %.4f of the bound, from the first step\n", name, (double)reserved / (double)planned_bound(trace));
    EXPECT_LE(reserved, (uint64_t)(1.02 * (double)planned_bound(trace)));
    free(refs);
    strata_trace_delete(trace);
}

TEST(facade_planned_ahead, a_trace_is_served_at_its_bound_from_its_first_step) {
    expect_at_once("ddp-2rank-v100.csv.gz");
    expect_at_once("tinytorch-mnist.csv");
}

/* ---- what cannot be loaded ---- */

TEST_RIG(facade_planned_ahead, without_memory_for_it_nothing_is_loaded, 12 * MIB, "planned", CHUNKED) {
    small_t small = {.rig = rig};
    EXPECT_SAYS(STRATA_E_NO_MEMORY, load(rig, PLAN), "ahead.csv");
    EXPECT_EQ(planned_figure(rig, "plans"), 0);
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_validate(rig->s));
    (void)small;
}

TEST_STACK(facade_planned_ahead, a_stack_without_the_layer_follows_none, 0, "auto_growth, system", "system") {
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, load(rig, PLAN), "planned");
}

TEST_STACK(facade_planned_ahead, a_cache_that_adds_bytes_cannot_follow, 0, "planned, auto_growth: {padding: 16}, system",
           "planned, auto_growth: {alignment: 4096}, aligned, system") {
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, load(rig, PLAN), "bytes of 256");
    EXPECT_EQ(planned_figure(rig, "plans"), 0);
}

TEST_RIG(facade_planned_ahead, arguments_are_checked, 0, "planned") {
    strata_plan_load_options_t options = {.struct_size = sizeof options, .pool = 12345};
    const char *path = write_text("ahead.csv", PLAN);
    EXPECT_STATUS(STRATA_E_INVALID, strata_plan_load(rig->s, rig->gpu, NULL, NULL, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_plan_load(rig->s, rig->gpu, NULL, path, &options));
    options.struct_size = 1;
    EXPECT_STATUS(STRATA_E_INVALID, strata_plan_load(rig->s, rig->gpu, NULL, path, &options));
    EXPECT_STATUS(STRATA_E_STALE, strata_plan_load(0, rig->gpu, NULL, path, NULL));
    EXPECT_STATUS(STRATA_E_IO, strata_plan_load(rig->s, rig->gpu, NULL, temporary("nowhere"), NULL));
}

/* Of a plan of two streams each loads its own part. */
TEST_RIG(facade_planned_ahead, each_stream_loads_its_branch, 0, "planned") {
    const char *text = "id,lower,upper,size,branch,offset\na,0,3,4096,0,0\nb,1,2,8192,7,4096\nc,2,3,256,0,65536\n";
    strata_stream_t other = rig_stream(rig);
    strata_plan_load_options_t options = {.struct_size = sizeof options, .one_branch = true, .branch = 7};
    EXPECT_SAYS(STRATA_E_FORMAT, load(rig, text), "ahead.csv:3: ");
    EXPECT_OK(strata_plan_load(rig->s, rig->gpu, other, temporary("ahead.csv"), &options));
    options.branch = 0;
    EXPECT_OK(strata_plan_load(rig->s, rig->gpu, NULL, temporary("ahead.csv"), &options));
    options.branch = 8;
    EXPECT_STATUS(STRATA_E_FORMAT, strata_plan_load(rig->s, rig->gpu, NULL, temporary("ahead.csv"), &options));
    strata_block_t a = rig_allocate(rig, NULL, 4096), b = rig_allocate(rig, other, 8192), c = rig_allocate(rig, NULL, 100);
    EXPECT_EQ((uint64_t)(uintptr_t)c.ptr - (uint64_t)(uintptr_t)a.ptr, 65536);
    EXPECT_EQ(planned_figure(rig, "planned_hits"), 3);
    (void)b;
}

TEST_RIG(facade_planned_ahead, without_host_memory_nothing_is_loaded, 0, "planned") {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    const char *path = write_text("ahead.csv", PLAN);
    uint64_t k = 1;
    for (; status != STRATA_OK && k < 200; k++) {
        strata_host_fail_at(k, 0);
        status = strata_plan_load(rig->s, rig->gpu, NULL, path, NULL);
        strata_host_fail_at(0, 0);
        EXPECT_EQ(planned_figure(rig, "plans"), status == STRATA_OK);
        EXPECT_OK(strata_validate(rig->s));
    }
    EXPECT_OK(status);
    EXPECT_GT(k, 4);
}
