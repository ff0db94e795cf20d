/* What programs that capture have found, and what was mended then: under every preset, and under stacks of their own. */
#include "lab/torture/campaign.h"
#include "tests/harness/test.h"

enum { MOST_OPS = 24 };

typedef struct found {
    const char *name;
    uint32_t devices, threads;
    strata_torture_mode_t mode;
    const char *text; /* a strategy of its own; NULL: every preset */
    torture_op_t ops[MOST_OPS];
} found_t;

#define OP(k, s, ...)                                                                                                              \
    { .kind = STRATA_TORTURE_##k, .stream = s, __VA_ARGS__ }
#define GET(b, s, ...)                                                                                                             \
    { .kind = STRATA_TORTURE_ALLOCATE, .stream = s, .count = 1, .blocks = {b}, .size = 4096, __VA_ARGS__ }
#define ON(k, b, s)                                                                                                                \
    { .kind = STRATA_TORTURE_##k, .stream = s, .count = 1, .blocks = {b}, .us = 50, .writes = 1 }
#define MANAGED  .place = STRATA_TORTURE_MANAGED
#define BEGIN(s) OP(POOL_BEGIN, s), OP(CAPTURE, s)
#define END      OP(END_CAPTURE, 0), OP(POOL_END, 0)
#define ENOUGH                                                                                                                     \
    { .kind = STRATA_TORTURE_KINDS }

static const found_t found[] = {
    {"a_pool_of_another_place_gives_back_what_it_owned",
     .ops = {GET(0, 0), OP(POOL_BEGIN, 2, MANAGED), OP(CAPTURE, 2), ON(BORROW, 0, 2), END, OP(POOL_REMOVE, 0), OP(DESTROY, 0),
             ON(FREE, 0, 0), ENOUGH}},
    {"a_stream_of_another_device_is_not_asked_about_on_this_one", .devices = 2,
     .ops = {BEGIN(2), GET(0, 5, .place = STRATA_TORTURE_PINNED), ON(BORROW, 0, 6), END, ENOUGH}},
    {"a_block_is_freed_whose_borrower_is_captured_by_now",
     .ops = {GET(0, 0), ON(BORROW, 0, 2), BEGIN(2), ON(FREE, 0, 0), END, ENOUGH}},
    {"and_its_owner_is_forgotten_meanwhile",
     .ops = {GET(0, 1), ON(BORROW, 0, 2), BEGIN(2), ON(FREE, 0, 0), OP(RENEW, 1, .other = 1), END, ENOUGH}},
    {"what_a_captured_stream_has_from_a_forgotten_one_is_the_graphs",
     .ops = {GET(0, 2), OP(RENEW, 2, .other = 2), GET(1, 2), OP(POOL_BEGIN, 2, MANAGED), OP(CAPTURE, 2), ON(FREE, 1, 0),
             OP(END_CAPTURE, 0), GET(2, 2), ON(FREE, 0, 0), ON(FREE, 2, 0), OP(DESTROY, 0), ENOUGH}},
    {"and_so_it_is_where_a_layer_wraps_it",
     .text = "stack: [guard: {quarantine: 0, poison: false, report: false}, stream_safe, thread_local, system]\n",
     .ops = {GET(0, 1), OP(RENEW, 1, .other = 2), GET(1, 2), OP(POOL_BEGIN, 2, MANAGED), OP(CAPTURE, 2), ON(FREE, 1, 0),
             OP(END_CAPTURE, 0), GET(2, 2), ON(FREE, 0, 0), ON(FREE, 2, 0), OP(DESTROY, 0), ENOUGH}},
    {"a_borrow_inside_covers_work_before_the_capture",
     .ops = {GET(0, 2), ON(WORK, 0, 3), OP(POOL_BEGIN, 2, MANAGED), OP(CAPTURE, 2), OP(ORDER, 3, .other = 2), ON(FREE, 0, 2), END,
             OP(DESTROY, 0), OP(POOL_REMOVE, 0), GET(1, 2), ON(WORK, 1, 2), ENOUGH}},
    {"nobody_waits_for_ever_for_a_stream_that_is_gone", .threads = 3, .mode = STRATA_TORTURE_TURNS,
     .ops = {GET(0, 1), OP(POOL_BEGIN, 2, .thread = 2), ON(FREE, 0, 1), OP(RENEW, 1, .thread = 2, .other = 1),
             GET(1, 1, .thread = 1), ENOUGH}},
    {"what_a_gone_stream_used_is_waited_for_beside_a_capture",
     .ops = {OP(POOL_BEGIN, 2), GET(0, 1), ON(WORK, 0, 1), OP(RENEW, 1, .other = 2), ON(FREE, 0, 1),
             GET(1, 1, .flags = STRATA_NO_RETRY), ON(WORK, 1, 1), ENOUGH}},
    {"a_pool_begins_again_after_its_stream_was_forgotten",
     .ops = {OP(POOL_BEGIN, 2),
             GET(0, 2),
             {.kind = STRATA_TORTURE_FREE, .how = STRATA_TORTURE_COVER_FREE_ON, .count = 1},
             GET(1, 2),
             OP(POOL_END, 2),
             OP(RENEW, 2, .other = 2),
             OP(POOL_BEGIN, 2),
             GET(2, 2),
             ENOUGH}},
    {"a_cache_that_cannot_wait_grows_once",
     .ops = {GET(0, 2), ON(WORK, 0, 2), ON(FREE, 0, 0), BEGIN(2), GET(1, 0), ON(WORK, 1, 0), ENOUGH}},
    {"what_is_freed_in_a_pool_is_not_poisoned_under_a_launch",
     .text = "stack: [guard: {poison: false, report: false}, guard: {quarantine: 0, report: false}, auto_growth, system]\n",
     .ops = {BEGIN(2), GET(0, 2), ON(WORK, 0, 2), ON(FREE, 0, 2), END, OP(LAUNCH, 3), OP(POOL_BEGIN, 3), ENOUGH}},
    {"what_a_release_cannot_wait_for_stays_mapped_and_is_no_gap", .text = "stack: [stream_safe, best_fit_vmm, vmm]\n",
     .ops = {GET(0, 2), ON(FREE, 0, 2), OP(CAPTURE, 2), OP(RELEASE, 0), END, GET(1, 2), OP(DESTROY, 0), ON(FREE, 1, 2), ENOUGH}},
    {"a_guard_keeps_no_borrowed_block_until_a_capture", .text = "stack: [guard: {quarantine: 165}, log, vmm]\n",
     .ops = {{.kind = STRATA_TORTURE_ALLOCATE, .count = 1, .writes = 3, .size = 1},
             {.kind = STRATA_TORTURE_FREE, .stream = 2, .other = 2, .how = 3, .count = 1, .writes = 1},
             OP(CAPTURE, 2, .graph = 1),
             OP(RELEASE, 0, .other = 2),
             OP(END_CAPTURE, 2, .graph = 1),
             OP(DESTROY, 0, .graph = 1),
             ENOUGH}},
    {"nor_until_its_stream_is_forgotten_in_a_capture", .text = "stack: [guard: {report: false}, vmm]\n",
     .ops = {GET(0, 1), ON(BORROW, 0, 2), ON(FREE, 0, 1), OP(CAPTURE, 2), OP(RENEW, 1, .other = 2), OP(END_CAPTURE, 2),
             OP(DESTROY, 0), ENOUGH}},
    {"fill_waits_for_no_device_beside_a_capture", .text = "stack: [fill: {synchronise: true}, auto_growth, system]\n",
     .ops = {BEGIN(2), GET(0, 3), END, ENOUGH}},
};

static uint32_t count_of(const found_t *row) {
    uint32_t count = 0;
    while (row->ops[count].kind != STRATA_TORTURE_KINDS) count++;
    return count;
}

static void run(const found_t *row, const torture_strategy_t *strategy) {
    static torture_verdict_t verdict;
    torture_program_t program = {.devices = row->devices ? row->devices : 1, .threads = row->threads ? row->threads : 1};
    program.count = count_of(row);
    ASSERT_TRUE(torture_program_reserve(&program, program.count));
    for (uint32_t i = 0; i < program.count; i++) program.ops[i] = row->ops[i];
    EXPECT_TRUE(torture_make_well_formed(&program, strategy->dialect));
    torture_play(&program, strategy->strategy, strategy->may_refuse, row->mode, &verdict);
    if (verdict.fault) FAIL_TEST("under %s: %s: %s", strategy->name, torture_fault_text(verdict.fault), verdict.text);
    torture_program_delete(&program);
}

TEST_EACH(torture_captured, found, found_t, found) {
    torture_strategies_t list = {0};
    if (row->text) ASSERT_OK(torture_add_text(&list, row->name, row->text));
    else ASSERT_OK(torture_add_presets(&list));
    for (uint32_t i = 0; i < list.count; i++) run(row, &list.all[i]);
    torture_strategies_delete(&list);
}
