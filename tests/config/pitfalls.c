/* What people and their editors write without meaning to: marks of the byte order, tabs, ends of lines, versions that there never
 * were. */
#include <string.h>

#include "config/import/import.h"
#include "config/tree.h"
#include "tests/config/refused.h"

TEST(pitfalls, a_byte_order_mark_is_no_text) {
    strata_strategy_t *strategy = load_text(
        "\xef\xbb\xbfversion: 1\nstrategy: marked\nstack: [auto_growth: {chunk_size: 2MiB}, system]\n");
    EXPECT_STREQ(strategy->name, "marked");
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_GPU].layers[0].origin.line, 3);
    strata_strategy_delete(strategy);
}

TEST(pitfalls, text_of_another_encoding_is_called_so) {
    strata_tree_t *tree;
    strata_arena_t *arena = strata_arena_new();
    static const char *const texts[] = {"\xff\xfes\0t\0", "\xfe\xff\0s\0t"};
    for (size_t i = 0; i < 2; i++) {
        EXPECT_STATUS(STRATA_E_STRATEGY, strata_tree_read(arena, "f.yaml", texts[i], 6, &tree));
        EXPECT_STREQ(strata_last_error()->text, "f.yaml:1:1: the file is UTF-16 text; save it as UTF-8");
    }
    strata_arena_delete(arena);
}

TEST(pitfalls, a_route_of_nothing_is_refused) {
    strata_strategy_t *strategy = NULL;
    const char *set = "binning.up_to_1=0";
    strata_config_request_t request = {
        .text = "stack: [binning: {routes: [{up_to: 1MiB, stack: [system]}, {stack: [system]}]}]\n", .set = &set, .set_count = 1};
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&request, &strategy), "--set: up_to: 0: no request would match");
}

/* ---- versions of other allocators ---- */

static strata_status_t import_as_of(const char *peer, const char *version) {
    strata_import_t *import = NULL;
    strata_status_t status = strata_import_new(&(strata_import_request_t){.peer = peer, .text = "", .as_of = version}, &import);
    if (status == STRATA_OK) strata_import_delete(import);
    return status;
}

TEST(pitfalls, a_version_that_there_never_was_is_refused) {
    static const char *const none[][2] = {{"pytorch", "9.9"},    {"pytorch", "1.14"},       {"pytorch", "0.4"},
                                          {"pytorch", "2.14"},   {"pytorch", "2026-01"},    {"paddle", "77"},
                                          {"paddle", "2025-13"}, {"paddle", "2025-00"},     {"paddle", "2026-08-32"},
                                          {"paddle", "2.6"},     {"tensorflow", "2031-01"}, {"tensorflow", "2.9"}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        EXPECT_SAYS(STRATA_E_STRATEGY, import_as_of(none[i][0], none[i][1]), "; write one of ");
    }
    EXPECT_SAYS(STRATA_E_STRATEGY, import_as_of("pytorch", "9.9"),
                "\"9.9\" is not a known version of pytorch; write one of 1.9 to 1.13, 2.0 to 2.13");
    EXPECT_SAYS(STRATA_E_STRATEGY, import_as_of("paddle", "77"), "write one of 2018 to 2026, as in 2025-08");
    static const char *const known[][2] = {
        {"pytorch", "1.9"},    {"pytorch", "1.13.1"},    {"pytorch", "2.0"}, {"pytorch", "2.13.1"}, {"pytorch", "2.9"},
        {"paddle", "2025-01"}, {"paddle", "2026-08-31"}, {"paddle", "2026"}, {"paddle", "2018"},    {"tensorflow", "2026-12"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) EXPECT_OK(import_as_of(known[i][0], known[i][1]));
    strata_strategy_t *strategy = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.preset = "import:pytorch@9.9"}, &strategy),
                "\"9.9\" is not a known version of pytorch");
}
