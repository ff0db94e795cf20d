/* A child of fork() under every preset; what a driver that shuts down does to a facade is tests/cuda/test_facade.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/facade/support/ends.h"
#include "tests/facade/support/fixture.h"
#include "tests/paths.h"

static void fork_under(const char *preset, bool noted) {
    OPENED(rig_t, rig, rig_close_by_force, rig_open(&rig, preset, NULL, 0, 0, 1));
    ends_t ends = {.s = rig.s, .place = rig.gpu, .stream = rig_stream(&rig)};
    ends_fill(&ends);
    ends.block = rig_allocate(&rig, NULL, 5000);
    /* Once pointers are noted their frees go another way. */
    if (noted) EXPECT_OK(strata_free_pointer(rig.s, rig_allocate(&rig, NULL, 1000).ptr));
    int wrong = ends_in_child(ends_forked_calls, &ends);
    strata_status_t status;
    if (wrong) FAIL_TEST("%s: %s", preset, ends_call(&ends, (size_t)wrong - 1, &status));
    /* The parent goes on. */
    strata_block_t more = rig_allocate(&rig, ends.stream, 5000);
    EXPECT_OK(strata_free(rig.s, more.ref));
    EXPECT_OK(strata_free_pointer(rig.s, ends.block.ptr));
}

TEST(facade_forked, a_child_is_told_so_by_every_call_under_every_preset) {
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++) fork_under(name, i % 2 != 0);
}

/* Children are made while other threads hold whatever locks there are; none of their calls may wait for one. */
typedef struct busy {
    rig_t *rig;
    _Atomic bool stop;
} busy_t;

static void *be_busy(void *context) {
    busy_t *busy = context;
    while (!busy->stop) {
        strata_block_t b;
        if (strata_allocate(busy->rig->s, busy->rig->gpu, NULL, 30 * MIB, &b) == STRATA_OK) (void)strata_free(busy->rig->s, b.ref);
        (void)strata_release(busy->rig->s, busy->rig->gpu, NULL);
    }
    return NULL;
}

static void *call_once(void *context) { return strata_free(((rig_t *)context)->s, 1) == STRATA_OK ? context : NULL; }

/* Threads that come and go take the lock of the threads' list. */
static void *start_threads(void *context) {
    busy_t *busy = context;
    pthread_t thread;
    while (!busy->stop)
        if (pthread_create(&thread, NULL, call_once, busy->rig) == 0) pthread_join(thread, NULL);
    return NULL;
}

/* The forking thread has made no call before: in the child it is a new one. */
static void *fork_often(void *context) {
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
    (void)strata_fail(STRATA_E_INVALID, 0, "so that no child asks a sanitizer for memory: their locks do not know forks");
#endif
    for (int i = 0; i < 30; i++) EXPECT_EQ(ends_in_child(ends_forked_calls, context), 0);
    return NULL;
}

TEST(facade_forked, no_call_of_a_child_waits_for_a_lock_of_the_parents_threads) {
    pthread_t threads[3], forking;
    OPENED(rig_t, rig, rig_close_by_force, rig_open(&rig, "strata", NULL, 0, 0, 1));
    busy_t busy = {.rig = &rig};
    ends_t ends = {.s = rig.s, .place = rig.gpu, .stream = rig_stream(&rig), .block = rig_allocate(&rig, NULL, 5000)};
    for (int i = 0; i < 3; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, i ? start_threads : be_busy, &busy), 0);
    ASSERT_EQ(pthread_create(&forking, NULL, fork_often, &ends), 0);
    ASSERT_EQ(pthread_join(forking, NULL), 0);
    busy.stop = true;
    for (int i = 0; i < 3; i++) ASSERT_EQ(pthread_join(threads[i], NULL), 0);
}

/* The list of calls is the header's. */
TEST(facade_forked, every_function_of_a_facade_is_called) {
    char line[4096], name[128];
    size_t functions = 0;
    FILE *header = fopen(STRATA_SOURCE_DIR "/include/strata/strata.h", "r");
    ASSERT_NE(header, NULL);
    while (fgets(line, sizeof line, header)) {
        const char *taken = strstr(line, "(strata_t facade");
        if (strncmp(line, "STRATA_API strata_status_t ", 27) != 0 || !taken) continue;
        snprintf(name, sizeof name, "%.*s(", (int)(taken - line - 27), line + 27);
        functions++;
        bool found = strcmp(name, "strata_close(") == 0;
        const char *call;
        strata_status_t status;
        for (size_t i = 0; !found && (call = ends_call(&(ends_t){.s = 0}, i, &status)) != NULL; i++)
            found = strncmp(call, name, strlen(name)) == 0;
        if (!found) FAIL_TEST("%s) is not called by tests/facade/support/ends.c", name);
    }
    fclose(header);
    EXPECT_GT(functions, 45);
}
