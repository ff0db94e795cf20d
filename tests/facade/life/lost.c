/* Every function of a facade, its device lost, under every preset and in every place: each answers what it answers of a device
 * that is well, or that the device is lost; then the facade closes. */
#include <stdlib.h>

#include "tests/facade/support/ends.h"
#include "tests/facade/support/fixture.h"

enum { EVERY_CALL = 1000 };

/* Of the calls that meet the loss first an ordinary run tries every so many-th, in each place others. */
static size_t apart(void) {
    const char *text = getenv("STRATA_FAILURES_STRIDE");
    return text && strcmp(text, "1") == 0 ? 1 : STRIDE == 1 ? 11 : 61;
}

typedef struct answers {
    const char *name[EVERY_CALL];
    strata_status_t of[EVERY_CALL];
    size_t count;
} answers_t;

static void note(answers_t *answers, const char *name, strata_status_t status) {
    const strata_error_t *error = strata_last_error();
    if (status != STRATA_OK && (error->status != status || error->text[0] == '\0'))
        FAIL_TEST("%s answered %s without a text", name, strata_status_name(status));
    answers->name[answers->count] = name;
    answers->of[answers->count++] = status;
}

/* Serves, loses the device if that is asked, makes call `only` (EVERY_CALL: all in turn), and closes. */
static void make_calls(const char *preset, strata_place_t place, bool lost, size_t only, answers_t *answers) {
    rig_t rig;
    const char *name;
    strata_status_t status = STRATA_OK;
    answers->count = 0;
    rig_open(&rig, preset, NULL, 0, 0, 1);
    ends_t ends = {.s = rig.s, .place = place, .stream = rig_stream(&rig)};
    ends_fill(&ends);
    EXPECT_OK(strata_allocate(rig.s, place, NULL, 5000, &ends.block));
    if (lost) EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_DEVICE_CALLS, 1, true, STRATA_E_DEVICE_LOST));
    for (size_t i = only == EVERY_CALL ? 0 : only; (name = ends_call(&ends, i, &status)) != NULL; i++) {
        note(answers, name, status);
        if (only != EVERY_CALL) break;
    }
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_validate(rig.s));
    strata_device_close(rig.devices[0]);
    strata_sim_drop(rig.world);
    strata_strategy_delete(rig.strategy);
}

/* How many calls were told of the loss. */
static size_t lose_under(const char *preset, strata_place_t place, size_t only) {
    answers_t well, lost;
    size_t told = 0;
    make_calls(preset, place, false, only, &well);
    make_calls(preset, place, true, only, &lost);
    EXPECT_EQ(lost.count, well.count);
    for (size_t i = 0; i < lost.count; i++) {
        bool is_told = lost.of[i] == STRATA_E_DEVICE_LOST;
        told += is_told;
        if (!is_told && lost.of[i] != well.of[i])
            FAIL_TEST("%s in place %#x: %s answered %s of a lost device, %s of a well one", preset, (unsigned)place, lost.name[i],
                      strata_status_name(lost.of[i]), strata_status_name(well.of[i]));
    }
    return told;
}

TEST(facade_lost, every_call_under_every_preset_is_told_or_served) {
    const strata_place_t places[] = {strata_gpu(0), strata_managed(0), strata_pinned(), strata_host()};
    const char *preset;
    answers_t all;
    make_calls("strata", places[0], false, EVERY_CALL, &all);
    for (size_t i = 0; (preset = strata_preset_name(i)) != NULL && !strata_test_has_failed(); i++)
        for (size_t k = 0; k < 4 && !strata_test_has_failed(); k++) {
            EXPECT_GT(lose_under(preset, places[k], EVERY_CALL), 0);
            for (size_t only = (4 * i + k) % apart(); only < all.count; only += apart()) (void)lose_under(preset, places[k], only);
        }
}
