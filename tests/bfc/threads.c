/* bfc and threads that exit. */
#include "tests/bfc/bfc.h"
#include "tests/facade/support/many_threads.h"

/* Each has an entry of the table of users, which does not grow with the threads that there ever were. */
TEST(bfc_threads, that_exited_leave_no_entries_after) {
    RIG_BY(rig, bfc_open(&rig, "", 0));
    turns_t turns = {.rig = &rig, .size = MIB};
    turns_each(turns_use_the_same, &turns);
    EXPECT_LE(bfc_of(&rig)->last.users.nodes.used, 4);
    EXPECT_OK(strata_validate(rig.s));
}
