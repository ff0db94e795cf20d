#include "config/words.h"

#include <errno.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/page.h"
#include "platform/status.h"

const char *strata_role_word(strata_role_t role) {
    static const char *const words[] = {
        [STRATA_SOURCE] = "source", [STRATA_CACHE] = "cache", [STRATA_DECORATOR] = "decorator", [STRATA_ROUTER] = "router"};
    return words[role];
}

const char *strata_scope_word(strata_scope_t scope) {
    static const char *const words[] = {[STRATA_SCOPE_NONE] = "none",
                                        [STRATA_SCOPE_STREAM] = "stream",
                                        [STRATA_SCOPE_THREAD] = "thread",
                                        [STRATA_SCOPE_DEVICE] = "device"};
    return words[scope];
}

const char *strata_kind_word(strata_option_kind_t kind) {
    static const char *const words[] = {
        [STRATA_OPTION_BOOL] = "true or false", [STRATA_OPTION_COUNT] = "count",       [STRATA_OPTION_SIZE] = "size",
        [STRATA_OPTION_TIME] = "time",          [STRATA_OPTION_FRACTION] = "fraction", [STRATA_OPTION_CHOICE] = "choice",
        [STRATA_OPTION_TEXT] = "text"};
    return words[kind];
}

/* Returns the length of the next word and the blanks before it, so that the indentation of a line is kept. */
static size_t word_length(const char *at) {
    size_t blanks = strspn(at, " ");
    return blanks + strcspn(at + blanks, " \n");
}

void strata_print_wrapped(FILE *out, const char *text, size_t indent, size_t width) {
    size_t column = indent;
    for (const char *at = text; *at;) {
        size_t length = word_length(at);
        bool ended = *at == '\n';
        if (!ended && column > indent && column + length > width) {
            ended = true;
            at += strspn(at, " ");
        } else if (ended) {
            at++;
        }
        if (ended) {
            bool empty = *at == '\n' || !*at;
            fprintf(out, "\n%*s", empty ? 0 : (int)indent, "");
            column = indent;
            length = word_length(at);
        }
        if (*at == '\n') continue;
        fprintf(out, "%.*s", (int)length, at);
        column += length;
        at += length;
    }
    fputc('\n', out);
}

strata_status_t strata_config_written(FILE *out) {
    bool before = ferror(out) != 0;
    int why = fflush(out) == 0 ? 0 : errno;
    if (!why && !before) return STRATA_OK;
    clearerr(out);
    return strata_fail(STRATA_E_IO, 0, "%s cannot be written: %s", out == stdout ? "standard output" : "the text",
                       why ? strerror(why) : "an earlier write failed");
}

static const char *how_to_write(strata_option_kind_t kind) {
    switch (kind) {
    case STRATA_OPTION_BOOL: return "`true`, `false`";
    case STRATA_OPTION_COUNT: return "a whole number";
    case STRATA_OPTION_SIZE: return strata_size_example();
    case STRATA_OPTION_TIME: return strata_time_example();
    case STRATA_OPTION_FRACTION: return "a decimal number or a percentage: 0.8, 80%";
    case STRATA_OPTION_CHOICE: return "one of the words that docs/layers.md lists with the option";
    case STRATA_OPTION_TEXT:
        return "a path or a name in UTF-8, without control characters; leading and trailing blanks are dropped";
    }
    return "";
}

void strata_page_kinds(FILE *out) {
    fprintf(out, "\n## Values\n\n| kind | syntax |\n|---|---|\n");
    for (strata_option_kind_t kind = STRATA_OPTION_BOOL; kind <= STRATA_OPTION_TEXT; kind++)
        fprintf(out, "| %s | %s |\n", strata_kind_word(kind), how_to_write(kind));
    fprintf(
        out,
        "\nA text has at most %d bytes. A number with a unit (13.7GiB) is rounded down to whole bytes or nanoseconds. A number\n"
        "without a unit must be whole.\n",
        STRATA_OPTION_TEXT_BYTES - 1);
}
