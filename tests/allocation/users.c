/* The streams that a source of device scope knows: when an entry ends, and who may be meant by a handle. */
#include "allocation/uses/users.h"

#include <pthread.h>

#include "platform/device.h"
#include "tests/harness/test.h"

static strata_users_t users;

/* A fault that is planted in a word is found. */
#define EXPECT_CAUGHT(word, value)                                                                                                 \
    do {                                                                                                                           \
        __typeof__(word) was_ = (word);                                                                                            \
        (word) = (value);                                                                                                          \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_users_validate(&users));                                                            \
        (word) = was_;                                                                                                             \
        EXPECT_OK(strata_users_validate(&users));                                                                                  \
    } while (0)

TEST(users, an_entry_whose_stream_is_gone_stays_until_its_last_block_lets_go) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    uint32_t node = strata_users_make(&users, &of_stream);
    strata_user_at(&users, node)->holds = 2;
    strata_users_leave(&users, node, STRATA_USER_BEHIND);
    strata_users_let_go(&users, node);
    EXPECT_EQ(STRATA_USER_BEHIND, strata_user_at(&users, node)->state);
    /* The handle means another stream by now. */
    uint32_t second = strata_users_make(&users, &of_stream);
    EXPECT_NE(node, second);
    strata_users_let_go(&users, node);
    EXPECT_EQ(STRATA_USER_UNUSED, strata_user_at(&users, node)->state);
    EXPECT_OK(strata_users_validate(&users));
    int of_another;
    EXPECT_EQ(node, strata_users_make(&users, &of_another));
    strata_users_destroy(&users);
}

TEST(users, an_entry_whose_stream_lives_outlasts_its_blocks) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    uint32_t node = strata_users_make(&users, &of_stream);
    strata_user_at(&users, node)->holds = 1;
    strata_users_let_go(&users, node);
    EXPECT_EQ(STRATA_USER_NAMED, strata_user_at(&users, node)->state);
    EXPECT_EQ(node, strata_users_find(&users, &of_stream));
    strata_users_destroy(&users);
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
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    uint32_t holds = of_an_exited_thread();
    strata_user_at(&users, holds)->holds = 1;
    uint32_t busy = of_an_exited_thread();
    strata_user_at(&users, busy)->busy = 1;
    uint32_t idle = of_an_exited_thread(), named = strata_users_make(&users, &of_stream);
    EXPECT_EQ(users.nodes.used, 5);
    EXPECT_EQ(strata_users_make(&users, STRATA_STREAM_PER_THREAD), idle);
    EXPECT_EQ(strata_user_at(&users, holds)->state, STRATA_USER_NAMED);
    EXPECT_EQ(strata_user_at(&users, busy)->state, STRATA_USER_NAMED);
    EXPECT_EQ(strata_users_find(&users, &of_stream), named);
    /* A living thread's stays. */
    EXPECT_NE(of_an_exited_thread(), idle);
    EXPECT_EQ(strata_users_find(&users, STRATA_STREAM_PER_THREAD), idle);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

enum { MANY = 2000, LOOKS = 3 };

static strata_stream_t handle_of(uint32_t i) { return (strata_stream_t)(uintptr_t)(0x7f0000000000u + 512ull * i); }

/* Every third is forgotten, some of these while they hold something; then their handles are used again. */
TEST(users, of_many_one_is_found_at_a_few_looks) {
    static uint32_t nodes[MANY];
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    for (uint32_t i = 0; i < MANY; i++) {
        strata_growing_serve();
        nodes[i] = strata_users_make(&users, handle_of(i));
        strata_user_at(&users, nodes[i])->holds = i % 2;
    }
    EXPECT_LE(users.index.looked, LOOKS * MANY);
    for (uint32_t i = 0; i < MANY; i += 3) {
        if (i % 2) strata_users_leave(&users, nodes[i], STRATA_USER_BEHIND);
        else strata_users_end(&users, nodes[i]);
    }
    ASSERT_OK(strata_users_validate(&users));
    users.index.looked = 0;
    for (uint32_t i = 0; i < MANY; i++) EXPECT_EQ(strata_users_find(&users, handle_of(i)), i % 3 ? nodes[i] : 0);
    for (uint32_t i = 0; i < MANY; i += 3) nodes[i] = strata_users_make(&users, handle_of(i));
    for (uint32_t i = 0; i < MANY; i++) EXPECT_EQ(strata_users_find(&users, handle_of(i)), nodes[i]);
    EXPECT_LE(users.index.looked, LOOKS * 3 * MANY);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

TEST(users, the_dead_are_looked_for_where_threads_have_entries) {
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    for (uint32_t i = 0; i < 40; i++) strata_users_make(&users, handle_of(i));
    users.index.looked = 0;
    EXPECT_EQ(strata_users_next_of_the_dead(&users, 0, STRATA_USER_NAMED), 0);
    EXPECT_EQ(users.index.looked, 0);
    uint32_t dead = of_an_exited_thread();
    EXPECT_EQ(strata_users_next_of_the_dead(&users, 0, STRATA_USER_LOST), 0);
    EXPECT_EQ(strata_users_next_of_the_dead(&users, 0, STRATA_USER_NAMED), dead);
    EXPECT_EQ(strata_users_next_of_the_dead(&users, dead, STRATA_USER_NAMED), 0);
    strata_users_leave(&users, dead, STRATA_USER_LOST);
    EXPECT_EQ(strata_users_next_of_the_dead(&users, 0, STRATA_USER_LOST), dead);
    strata_users_end(&users, dead);
    users.index.looked = 0;
    EXPECT_EQ(strata_users_next_of_the_dead(&users, 0, STRATA_USER_LOST), 0);
    EXPECT_EQ(users.index.looked, 0);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

/* Two threads may forget one stream at once. */
TEST(users, an_entry_leaves_once) {
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    uint32_t node = strata_users_make(&users, handle_of(1));
    strata_users_leave(&users, node, STRATA_USER_BEHIND);
    uint32_t next = strata_users_make(&users, handle_of(1));
    strata_users_leave(&users, node, STRATA_USER_LOST);
    EXPECT_EQ(strata_users_find(&users, handle_of(1)), next);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

TEST(users, validate_finds_planted_faults) {
    ASSERT_OK(strata_users_init(&users, sizeof(strata_user_t)));
    for (uint32_t i = 0; i < 10; i++) strata_users_make(&users, handle_of(i));
    strata_user_t *user = strata_user_at(&users, 5);
    EXPECT_CAUGHT(user->stream, handle_of(50));
    EXPECT_CAUGHT(user->state, STRATA_USER_LOST);
    EXPECT_CAUGHT(user->thread, 1);
    EXPECT_CAUGHT(users.of_threads, 1);
    EXPECT_CAUGHT(users.nodes.unused, 100);
    EXPECT_CAUGHT(user->link.hash, user->link.hash + 1);
    strata_users_destroy(&users);
}
