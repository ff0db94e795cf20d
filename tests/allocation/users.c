/* The streams that a source of device scope knows: when an entry ends, and who may be meant by a handle. */
#include "allocation/users.h"

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
