/* docs/strategy.md is what the grammar's own tables say, and its examples are strategies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/import/import.h"
#include "tests/config/refused.h"
#include "tests/paths.h"

TEST(pages, examples_of_the_strategy_page_load) {
    static char page[32768];
    FILE *file = fopen(STRATA_SOURCE_DIR "/docs/strategy.md", "rb");
    ASSERT_NE(file, NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    size_t count = 0;
    for (char *at = page, *begin; (begin = strstr(at, "```yaml\n")); count++) {
        char *end = strstr(begin += 8, "```");
        ASSERT_NE(end, NULL);
        *end = '\0';
        strata_strategy_delete(load_text(begin));
        at = end + 1;
    }
    EXPECT_EQ(count, 11);
}

static void expect_current(const char *path, strata_status_t (*write_page)(FILE *)) {
    static char page[65536], now[65536];
    FILE *file = fopen(path, "rb"), *out = tmpfile();
    ASSERT_TRUE(file != NULL && out != NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    EXPECT_OK(write_page(out));
    rewind(out);
    now[fread(now, 1, sizeof now - 1, out)] = '\0';
    fclose(out);
    if (strcmp(page, now) != 0) FAIL_TEST("%s is not what the command writes", path);
}

/* `strata grammar` generates the first page, `strata import --markdown` the second. */
TEST(pages, the_strategy_page_is_current) { expect_current(STRATA_SOURCE_DIR "/docs/strategy.md", strata_config_grammar); }
TEST(pages, the_import_page_is_current) { expect_current(STRATA_SOURCE_DIR "/docs/import.md", strata_import_page); }

/* Whatever key the reader has, the page tells of it. */
TEST(pages, the_strategy_page_has_every_key) {
    static char now[32768];
    FILE *out = tmpfile(), *errors = tmpfile();
    ASSERT_TRUE(out != NULL && errors != NULL);
    EXPECT_OK(strata_config_grammar(out));
    rewind(out);
    now[fread(now, 1, sizeof now - 1, out)] = '\0';
    fclose(out);
    /* The reader lists its keys to whoever writes one that is near none. */
    EXPECT_EQ(strata_config_check(file_of("no-key.yaml", "zzzzzzzzzzzzzzzz: 1\n"), false, errors), 1);
    rewind(errors);
    char line[1024] = "";
    ASSERT_NE(fgets(line, sizeof line, errors), NULL);
    fclose(errors);
    char *list = strstr(line, "write one of ");
    ASSERT_NE(list, NULL);
    size_t count = 0;
    for (char *key = strtok(list + strlen("write one of "), ", \n"); key; key = strtok(NULL, ", \n"), count++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "`%s`", key);
        EXPECT_CONTAINS(now, wanted);
    }
    EXPECT_GT(count, 8);
}
