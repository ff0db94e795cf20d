/* The examples of docs/strategy.md are strategies. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/config/refused.h"

TEST(pages, examples_of_the_strategy_page_load) {
    static char page[32768];
    FILE *file = fopen(STRATA_SOURCE_DIR "/docs/strategy.md", "rb");
    ASSERT_TRUE(file != NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    size_t count = 0;
    for (char *at = page, *begin; (begin = strstr(at, "```yaml\n")); count++) {
        char *end = strstr(begin += 8, "```");
        ASSERT_TRUE(end != NULL);
        *end = '\0';
        strata_strategy_delete(load_text(begin));
        at = end + 1;
    }
    EXPECT_EQ(count, 5);
}
