/* What is laid over a strategy: --set strings and the environment. What is refused leaves nothing behind, what is not is told
 * in letters that a terminal shows. */
#include <string.h>

#include "config/config.h"
#include "platform/text/printable.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/owned.h"

enum { SETTINGS = 32 };

/* Cuts the text at its ends of lines; answers how many of at most `most` there are. */
static size_t cut(char *text, const char **lines, size_t most) {
    size_t count = 0;
    while (count < most) {
        char *end = strchr(text, '\n');
        lines[count++] = text;
        if (!end) break;
        *end = '\0';
        text = end + 1;
    }
    return count;
}

/* Whatever the values say. */
static void expect_nothing_that_a_terminal_obeys(const strata_strategy_t *strategy) {
    char *text CLOSED_BY(text_cleanup) = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) abort();
    FUZZ_EXPECT_OK(strata_config_explain(strategy, out));
    fclose(out);
    for (size_t at = 0, letter; at < length; at += letter) {
        letter = text[at] == '\n' ? 1 : strata_printable_length(text + at);
        FUZZ_EXPECT(letter > 0);
    }
}

static void expect_loaded_or_refused(const strata_config_request_t *request) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(request, &strategy);
    if (status == STRATA_OK) {
        expect_nothing_that_a_terminal_obeys(strategy);
        strata_strategy_delete(strategy);
    } else {
        FUZZ_EXPECT(status == STRATA_E_STRATEGY);
        FUZZ_EXPECT(strata_last_error()->text[0] != '\0');
    }
}

void fuzz_settings(const uint8_t *bytes, size_t count) {
    char *text CLOSED_BY(text_cleanup) = fuzz_text(bytes, count);
    const char *lines[SETTINGS];
    size_t used = cut(text, lines, SETTINGS);
    bool known = strata_preset_text(lines[0]) != NULL;
    expect_loaded_or_refused(
        &(strata_config_request_t){.preset = known ? lines[0] : "strata", .set = lines + known, .set_count = used - known});
}

void fuzz_environment(const uint8_t *bytes, size_t count) {
    char *text CLOSED_BY(text_cleanup) = fuzz_text(bytes, count);
    const char *lines[2] = {"", ""};
    cut(text, lines, 2);
    setenv("STRATA_STRATEGY", lines[0], 1);
    setenv("STRATA_SET", lines[1], 1);
    expect_loaded_or_refused(&(strata_config_request_t){.environment = true});
    unsetenv("STRATA_STRATEGY");
    unsetenv("STRATA_SET");
}
