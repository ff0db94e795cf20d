/* The streams that a source of device scope knows: when an entry ends, and who may be meant by a handle. */
#include "allocation/uses/users.h"

#include <pthread.h>

#include "platform/device.h"
#include "tests/harness/test.h"

static strata_users_t users;
static strata_events_t events; /* of no device: none is taken */

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
    ASSERT_OK(strata_users_init(&users, &events));
    uint32_t node = strata_users_make(&users, &of_stream);
    strata_user_at(&users, node)->holds = 2;
    strata_users_detach(&users, node, STRATA_USER_DESTROYED);
    strata_users_release(&users, node);
    EXPECT_EQ(STRATA_USER_DESTROYED, strata_user_at(&users, node)->state);
    /* The handle means another stream by now. */
    uint32_t second = strata_users_make(&users, &of_stream);
    EXPECT_NE(node, second);
    strata_users_release(&users, node);
    EXPECT_EQ(STRATA_USER_UNUSED, strata_user_at(&users, node)->state);
    EXPECT_OK(strata_users_validate(&users));
    int of_another;
    EXPECT_EQ(node, strata_users_make(&users, &of_another));
    strata_users_destroy(&users);
}

TEST(users, an_entry_whose_stream_lives_outlasts_its_blocks) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users, &events));
    uint32_t node = strata_users_make(&users, &of_stream);
    strata_user_at(&users, node)->holds = 1;
    strata_users_release(&users, node);
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

static uint32_t left;

static void leave(void *of, uint32_t node) {
    left++;
    strata_users_detach(of, node, STRATA_USER_UNOBSERVABLE);
}

static uint32_t bury(void) {
    left = 0;
    strata_users_reap(&users, leave, &users);
    return left;
}

/* What it holds keeps it. */
TEST(users, an_exited_threads_entry_that_holds_nothing_ends) {
    int of_stream;
    ASSERT_OK(strata_users_init(&users, &events));
    uint32_t holds = of_an_exited_thread();
    strata_user_at(&users, holds)->holds = 1;
    uint32_t idle = of_an_exited_thread(), named = strata_users_make(&users, &of_stream);
    uint32_t own = strata_users_make(&users, STRATA_STREAM_PER_THREAD);
    EXPECT_EQ(bury(), 1);
    EXPECT_EQ(strata_user_at(&users, holds)->state, STRATA_USER_UNOBSERVABLE);
    EXPECT_EQ(strata_user_at(&users, idle)->state, STRATA_USER_UNUSED);
    EXPECT_EQ(strata_users_find(&users, &of_stream), named);
    /* A living thread's stays. */
    EXPECT_EQ(strata_users_find(&users, STRATA_STREAM_PER_THREAD), own);
    EXPECT_EQ(strata_users_next_exited_thread(&users, 0), holds);
    EXPECT_EQ(strata_users_next_exited_thread(&users, holds), 0);
    strata_users_release(&users, holds);
    EXPECT_EQ(strata_users_next_exited_thread(&users, 0), 0);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

static void *find_own(void *node) {
    *(uint32_t *)node = strata_users_find(&users, STRATA_STREAM_PER_THREAD);
    return NULL;
}

/* The entry that was found last has the same name, and is another stream. */
TEST(users, the_per_thread_stream_of_another_thread_is_another_entry) {
    pthread_t thread;
    uint32_t found = 12345;
    ASSERT_OK(strata_users_init(&users, &events));
    uint32_t own = strata_users_make(&users, STRATA_STREAM_PER_THREAD);
    EXPECT_EQ(strata_users_find(&users, STRATA_STREAM_PER_THREAD), own);
    ASSERT_EQ(pthread_create(&thread, NULL, find_own, &found), 0);
    pthread_join(thread, NULL);
    EXPECT_EQ(found, 0);
    EXPECT_EQ(strata_users_find(&users, STRATA_STREAM_PER_THREAD), own);
    EXPECT_NE(of_an_exited_thread(), own);
    EXPECT_EQ(users.index.count, 2);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

enum { MANY = 2000, LOOKS = 3 };

static strata_stream_t handle_of(uint32_t i) { return (strata_stream_t)(uintptr_t)(0x7f0000000000u + 512ull * i); }

/* Every third is forgotten, some of these while they hold something; then their handles are used again. */
TEST(users, of_many_one_is_found_at_a_few_looks) {
    static uint32_t nodes[MANY];
    ASSERT_OK(strata_users_init(&users, &events));
    for (uint32_t i = 0; i < MANY; i++) {
        strata_growing_grow_if_marked();
        nodes[i] = strata_users_make(&users, handle_of(i));
        strata_user_at(&users, nodes[i])->holds = i % 2;
    }
    EXPECT_LE(users.index.examined, LOOKS * MANY);
    for (uint32_t i = 0; i < MANY; i += 3) {
        if (i % 2) strata_users_detach(&users, nodes[i], STRATA_USER_DESTROYED);
        else strata_users_end(&users, nodes[i]);
    }
    ASSERT_OK(strata_users_validate(&users));
    users.index.examined = 0;
    for (uint32_t i = 0; i < MANY; i++) EXPECT_EQ(strata_users_find(&users, handle_of(i)), i % 3 ? nodes[i] : 0);
    for (uint32_t i = 0; i < MANY; i += 3) nodes[i] = strata_users_make(&users, handle_of(i));
    for (uint32_t i = 0; i < MANY; i++) EXPECT_EQ(strata_users_find(&users, handle_of(i)), nodes[i]);
    EXPECT_LE(users.index.examined, LOOKS * 3 * MANY);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

TEST(users, the_dead_are_looked_for_once_after_each_exit) {
    ASSERT_OK(strata_users_init(&users, &events));
    for (uint32_t i = 0; i < 40; i++) strata_users_make(&users, handle_of(i));
    uint32_t dead[2] = {of_an_exited_thread(), of_an_exited_thread()};
    for (int i = 0; i < 2; i++) strata_user_at(&users, dead[i])->holds = 1;
    users.index.examined = 0;
    EXPECT_EQ(bury(), 2);
    EXPECT_EQ(users.index.examined, 2);
    users.index.examined = 0;
    EXPECT_EQ(bury(), 0);
    EXPECT_EQ(users.index.examined, 0);
    uint32_t third = of_an_exited_thread();
    strata_user_at(&users, third)->holds = 1;
    EXPECT_EQ(bury(), 1);
    EXPECT_EQ(strata_user_at(&users, third)->state, STRATA_USER_UNOBSERVABLE);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

/* Two threads may forget one stream at once. */
TEST(users, an_entry_leaves_once) {
    ASSERT_OK(strata_users_init(&users, &events));
    uint32_t node = strata_users_make(&users, handle_of(1));
    strata_users_detach(&users, node, STRATA_USER_DESTROYED);
    uint32_t next = strata_users_make(&users, handle_of(1));
    strata_users_detach(&users, node, STRATA_USER_UNOBSERVABLE);
    EXPECT_EQ(strata_user_at(&users, node)->state, STRATA_USER_DESTROYED);
    EXPECT_EQ(strata_users_find(&users, handle_of(1)), next);
    EXPECT_OK(strata_users_validate(&users));
    strata_users_destroy(&users);
}

TEST(users, validate_finds_planted_faults) {
    ASSERT_OK(strata_users_init(&users, &events));
    for (uint32_t i = 0; i < 10; i++) strata_users_make(&users, handle_of(i));
    strata_user_t *user = strata_user_at(&users, 5);
    EXPECT_CAUGHT(user->stream, handle_of(50));
    EXPECT_CAUGHT(user->state, STRATA_USER_UNOBSERVABLE);
    EXPECT_CAUGHT(user->thread, 1);
    EXPECT_CAUGHT(users.first_thread, 3);
    EXPECT_CAUGHT(users.nodes.unused, 100);
    EXPECT_CAUGHT(user->link.hash, user->link.hash + 1);
    strata_users_destroy(&users);
}
