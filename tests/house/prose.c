/* The rules of scripts/prose find what they are for. Each planted sentence breaks one rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/house/house.h"
#include "tests/paths.h"

/* Returns the output of scripts/prose on a file, to be freed. */
static char *checked(const char *path) {
    char command[1200];
    snprintf(command, sizeof command, "'" STRATA_SOURCE_DIR "/scripts/prose' '%s' 2>&1 || true", path);
    return command_output(command);
}

/* The words are written in pieces, so that this file breaks no rule itself. */
typedef struct planted {
    const char *name, *rule, *sentence;
} planted_t;

static const planted_t planted[] = {
    {"verdict", "verdict",
     "NU"
     "LL: there is none."},
    {"state", "state",
     "The block st"
     "ands in the index."},
    {"noun_clause", "noun clause",
     "Returns the size of wh"
     "at is free."},
    {"acting_data", "acting data",
     "The layer is t"
     "old of the free."},
    {"person", "person",
     "The block belongs to no"
     "body."},
    {"idiom", "idiom",
     "The lock is open mean"
     "while."},
    {"fragment", "fragment",
     "Of"
     " the block that is free."},
    {"superlative", "superlative",
     "A stack holds 16 blocks, it"
     "s most."},
    {"length", "length",
     "This sentence has one word after another until it has more words than a reader can keep in mind, which is why the rule "
     "about the length of sentences exists at all here."},
};

TEST_EACH(prose, finds, planted_t, planted) {
    static const char *const forms[][2] = {{"x.c", "/* %s */\nint a;\n"},
                                           {"x.py", "# %s\na = 1\n"},
                                           {"x.sh", "# %s\na=1\n"},
                                           {"x.md", "# A page\n\n%s\n"},
                                           {"x.c", "const char *a = \"%s\";\n"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[600], wanted[64];
        snprintf(text, sizeof text, forms[i][1], row->sentence);
        snprintf(wanted, sizeof wanted, ": %s: ", row->rule);
        char *output CLOSED_BY(text_cleanup) = checked(write_text(forms[i][0], text));
        ASSERT_NE(output, NULL);
        EXPECT_CONTAINS(output, wanted);
        EXPECT_CONTAINS(output, "scripts/prose: 1 hit");
    }
}

TEST(prose, accepts_plain_sentences_and_quoted_code) {
    char *output CLOSED_BY(text_cleanup) = checked(
        write_text("x.c", "/* Returns the block, or NULL if there is none. `nobody` is code. */\nconst char *a = \"nobody\";\n"));
    EXPECT_STREQ(output, "");
}
