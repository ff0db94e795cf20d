/* The pool under other layers: a random program with contents, and a close by force with blocks, chunks and borrows left. */
#include "tests/async/async.h"
#include "tests/facade/support/program.h"

#define NO_REUSE                                                                                                                   \
    "version: 1\nstack:\n  - cuda_malloc_async: {reuse_follow_events: false, reuse_opportunistic: false, "                         \
    "reuse_internal: false, release_threshold: 0}\n"

static const char *const stacks[] = {"version: 1\nstack: [retry, cuda_malloc_async]\n",
                                     "version: 1\nstack: [retry, stream_safe, cuda_malloc_async]\n",
                                     "version: 1\nstack: [retry, stream_safe, auto_growth, cuda_malloc_async]\n",
                                     "version: 1\nstack:\n  - cuda_malloc_async: {pool: own, throttle: 0.01}\n", NO_REUSE};

static void run(const char *text, bool to_the_end) {
    rig_t rig;
    program_t program;
    strata_sim_options_t options = {.capacity = 256 * MIB, .contents = true};
    rig_open_on(&rig, rig_strategy(text, NULL, 0), &options, 0);
    rig.borrowed_strategy = false;
    program_begin(&program, &rig);
    program_run(&program, PROGRAM_LENGTH);
    program_check(&program);
    if (to_the_end) {
        program_finish(&program);
        rig_close(&rig);
    } else {
        EXPECT_GT(program.live, 0);
        rig_close_by_force(&rig);
    }
    if (strata_test_has_failed()) FAIL_TEST("so far with %s", text);
}

TEST(async_stacks, a_random_program) {
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) run(stacks[i], true);
}

TEST(async_stacks, close_by_force) {
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) run(stacks[i], false);
}
