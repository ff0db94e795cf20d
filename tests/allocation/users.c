/* The streams that a source of device scope knows: when an entry ends, and who may be meant by a handle. */
#include "allocation/users.h"

#include <pthread.h>

#include "platform/device.h"
#include "tests/harness/test.h"

static strata_nodes_t users;

TEST(users, an_entry_whose_stream_is_gone_stays_until_its_last_block_lets_go) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users));
    uint32_t node = strata_users_make(&users, &of_stream);
    strata_user_at(&users, node)->holds = 2;
    strata_user_at(&users, node)->state = STRATA_USER_BEHIND;
    strata_users_let_go(&users, node);
    EXPECT_EQ(STRATA_USER_BEHIND, strata_user_at(&users, node)->state);
    /* The handle means another stream by now. */
    uint32_t second = strata_users_make(&users, &of_stream);
    EXPECT_NE(node, second);
    strata_users_let_go(&users, node);
    EXPECT_EQ(STRATA_USER_UNUSED, strata_user_at(&users, node)->state);
    EXPECT_OK(strata_nodes_validate(&users));
    int of_another;
    EXPECT_EQ(node, strata_users_make(&users, &of_another));
    strata_nodes_destroy(&users);
}

TEST(users, an_entry_whose_stream_lives_outlasts_its_blocks) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users));
    uint32_t node = strata_users_make(&users, &of_stream);
    strata_user_at(&users, node)->holds = 1;
    strata_users_let_go(&users, node);
    EXPECT_EQ(STRATA_USER_NAMED, strata_user_at(&users, node)->state);
    EXPECT_EQ(node, strata_users_find(&users, &of_stream));
    strata_nodes_destroy(&users);
}

static void *make_own(void *node) {
    *(uint32_t *)node = strata_users_make(&users, STRATA_STREAM_PER_THREAD);
    return NULL;
}

static uint32_t of_an_exited_thread(void) {
    pthread_t thread;
    uint32_t node = 0;
    if (pthread_create(&thread, NULL, make_own, &node) == 0) pthread_join(thread, NULL);
    return node;
}

/* What it holds, and calls that still go by it, keep it. */
TEST(users, an_exited_threads_entry_that_holds_nothing_is_the_next_threads) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users));
    uint32_t holds = of_an_exited_thread();
    strata_user_at(&users, holds)->holds = 1;
    uint32_t busy = of_an_exited_thread();
    strata_user_at(&users, busy)->busy = 1;
    uint32_t idle = of_an_exited_thread(), named = strata_users_make(&users, &of_stream);
    EXPECT_EQ(users.used, 5);
    EXPECT_EQ(strata_users_make(&users, STRATA_STREAM_PER_THREAD), idle);
    EXPECT_EQ(strata_user_at(&users, holds)->state, STRATA_USER_NAMED);
    EXPECT_EQ(strata_user_at(&users, busy)->state, STRATA_USER_NAMED);
    EXPECT_EQ(strata_users_find(&users, &of_stream), named);
    /* A living thread's stays. */
    EXPECT_NE(of_an_exited_thread(), idle);
    EXPECT_EQ(strata_users_find(&users, STRATA_STREAM_PER_THREAD), idle);
    EXPECT_OK(strata_nodes_validate(&users));
    strata_nodes_destroy(&users);
}
