/* What is too wide for a column. */
#include <string.h>

#include "lab/replay/compare/cell.h"
#include "tests/harness/test.h"

TEST(cells, names_that_are_cut_stay_apart) {
    static const char *const groups[][3] = {{"aaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaa2", "short"},
                                            {"1aaaaaaaaaaaaaaaaaaaaaa", "2aaaaaaaaaaaaaaaaaaaaaa", "1aaaaaaaaaaaaaaaaaaaaaab"},
                                            {"aaaaaaaaaa1aaaaaaaaaa", "aaaaaaaaaa2aaaaaaaaaa", "aaaaaaaaaa3aaaaaaaaaa"},
                                            {"a1aaaaaaaaaaaaaaaaa1a", "a1aaaaaaaaaaaaaaaaa2a", "a2aaaaaaaaaaaaaaaaa1a"},
                                            {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "b", "c"}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (size_t width = 8; width < 24; width++) {
            strata_cell_t names[3];
            for (size_t k = 0; k < 3; k++) names[k] = strata_cell("%s", groups[i][k]);
            strata_cells_fit_distinct(names, 3, width);
            for (size_t k = 0; k < 3; k++) {
                EXPECT_LE(strlen(names[k].text), width);
                EXPECT_EQ(strchr(names[k].text, '?'), NULL); /* no letter is cut in two */
                EXPECT_NE(strcmp(names[k].text, names[(k + 1) % 3].text), 0);
                if (strlen(groups[i][k]) <= width) EXPECT_STREQ(names[k].text, groups[i][k]);
            }
        }
}

TEST(cells, what_is_in_brackets_goes_first) {
    strata_cell_t cell = strata_cell("4729.7 (4664.4 .. 4810.6) ns");
    EXPECT_STREQ(strata_cell_fit(cell, 28).text, "4729.7 (4664.4 .. 4810.6) ns");
    EXPECT_STREQ(strata_cell_fit(cell, 27).text, "4729.7 ns");
    EXPECT_STREQ(strata_cell_fit(strata_cell("auto_growth.chunk_size=20MiB"), 16).text, "auto_gr..e=20MiB");
}
