/* guard: what it says of its place at the end, by whoever listens to the library's messages. */
#include <stdio.h>

#include "tests/decorators/decorators.h"

typedef struct said {
    uint32_t times;
    char text[200];
} said_t;

static void hear(strata_log_level_t level, const char *text, void *context) {
    said_t *said = context;
    EXPECT_EQ(level, STRATA_LOG_WARNING);
    said->times++;
    snprintf(said->text, sizeof said->text, "%s", text);
}

/* A chunk that a cache with a live block gives back at its own end is kept to the guard's, and was counted at its free. */
TEST(guard_ends, what_it_keeps_where_it_could_not_look_is_counted_once) {
    rig_t rig;
    said_t said = {.times = 0};
    decorated_open(&rig, "[auto_growth, guard, system]", NULL, &(strata_sim_options_t){0});
    (void)rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_set_log(hear, &said, STRATA_LOG_WARNING));
    rig_close_by_force(&rig);
    EXPECT_OK(strata_set_log(NULL, NULL, STRATA_LOG_WARNING));
    EXPECT_EQ(said.times, 1);
    EXPECT_STREQ(said.text, "guard: 1 freed blocks were in memory that the host cannot read, so their red zones were not "
                            "checked");
}
