#include "allocation/options/option.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/status.h"
#include "platform/text/nearest.h"
#include "platform/text/printable.h"

enum { SHOWN = 40 };
/* A fraction has at most nine digits after the point. */
#define BILLION 1000000000u

const strata_option_row_t *strata_option_find(const strata_layer_type_t *type, const char *name) {
    for (const strata_option_row_t *row = type->options; row && row->name; row++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

size_t strata_option_count(const strata_layer_type_t *type) {
    size_t count = 0;
    while (type->options && type->options[count].name) count++;
    return count;
}

size_t strata_choice_count(const strata_option_row_t *row) {
    size_t count = 1;
    for (const char *at = row->choices; *at; at++) count += *at == '|';
    return count;
}

void strata_choice_name(const strata_option_row_t *row, uint32_t index, char *text, size_t capacity) {
    const char *at = row->choices;
    for (; index > 0 && *at; at++) index -= *at == '|';
    snprintf(text, capacity, "%.*s", (int)strcspn(at, "|"), at);
}

static strata_status_t set_bool(bool *value, const char *text) {
    static const char *const words[2][4] = {{"false", "no", "off", "0"}, {"true", "yes", "on", "1"}};
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *value = *text == 't';
        return STRATA_OK;
    }
    for (size_t i = 0; i < 8; i++)
        if (strcasecmp(words[i / 4][i % 4], text) == 0)
            return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is neither true nor false; write %s", SHOWN, text, words[i / 4][0]);
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is neither true nor false; write one of them", SHOWN, text);
}

static strata_status_t parse_count(const char *text, uint64_t *value) {
    uint64_t count = 0;
    const char *at = text;
    bool fits = true;
    for (; *at >= '0' && *at <= '9'; at++)
        fits = fits && strata_multiply(count, 10, &count) && strata_add(count, (uint64_t)(*at - '0'), &count);
    if (*at || at == text)
        return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is not a count; write a whole number, as in 12", SHOWN, text);
    if (!fits) return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" does not fit in 64 bits; write a smaller number", SHOWN, text);
    *value = count;
    return STRATA_OK;
}

/* Parses a fraction in billionths. It does not use strtod(), which follows the program's locale. */
static strata_status_t parse_fraction(const char *text, uint64_t *billionths) {
    uint64_t value = 0, digit = BILLION;
    size_t whole = strspn(text, "0123456789");
    size_t decimals = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    const char *end = text + whole + (decimals ? decimals + 1 : 0);
    bool percent = strcmp(end, "%") == 0, form = whole > 0 && (*end == '\0' || percent);
    if (!form || whole > 6 || decimals > 9)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "\"%.*s\" is not a fraction; write a number such as 0.8 or 80%%, with at most 9 digits "
                           "after the point",
                           SHOWN, text);
    for (size_t i = 0; i < whole; i++) value = value * 10 + (uint64_t)(text[i] - '0');
    value *= BILLION;
    for (size_t i = 0; i < decimals; i++) value += (digit /= 10) * (uint64_t)(text[whole + 1 + i] - '0');
    *billionths = percent ? value / 100 : value;
    return STRATA_OK;
}

static void print_fraction(double value, char *text, size_t capacity) {
    uint64_t billionths = (uint64_t)(value * BILLION + 0.5);
    char digits[16];
    snprintf(digits, sizeof digits, "%09" PRIu64, billionths % BILLION);
    size_t length = 9;
    while (length > 0 && digits[length - 1] == '0') digits[--length] = '\0';
    snprintf(text, capacity, "%" PRIu64 "%s%s", billionths / BILLION, length ? "." : "", digits);
}

/* Prints a value, or one of its bounds, in the form of the row's kind. */
static void print_number(strata_option_kind_t kind, uint64_t value, char *text, size_t capacity) {
    switch (kind) {
    case STRATA_OPTION_SIZE: strata_print_size(value, text, capacity); break;
    case STRATA_OPTION_TIME: strata_print_time(value, text, capacity); break;
    case STRATA_OPTION_FRACTION: print_fraction((double)value / 1e6, text, capacity); break;
    default: snprintf(text, capacity, "%" PRIu64, value);
    }
}

static strata_status_t check_bounds(const strata_option_row_t *row, uint64_t value, const char *text) {
    uint64_t max = row->max ? row->max : UINT64_MAX;
    if (value >= row->min && value <= max) return STRATA_OK;
    char low[64], high[64];
    print_number(row->kind, row->min, low, sizeof low);
    print_number(row->kind, max, high, sizeof high);
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is too %s; write a value from %s to %s", SHOWN, text,
                       value < row->min ? "small" : "large", low, high);
}

static strata_status_t set_number(const strata_option_row_t *row, void *at, const char *text) {
    uint64_t value = 0;
    strata_status_t status = row->kind == STRATA_OPTION_SIZE   ? strata_parse_size(text, &value)
                             : row->kind == STRATA_OPTION_TIME ? strata_parse_time(text, &value)
                                                               : parse_count(text, &value);
    if (status == STRATA_OK) status = check_bounds(row, value, text);
    if (status == STRATA_OK) memcpy(at, &value, sizeof value);
    return status;
}

static strata_status_t set_fraction(const strata_option_row_t *row, void *at, const char *text) {
    uint64_t billionths = 0;
    strata_status_t status = parse_fraction(text, &billionths);
    if (status) return status;
    /* Bounds are in millionths; a value just above the upper one must not be rounded onto it. */
    bool above = row->max && billionths / 1000 == row->max && billionths % 1000 != 0;
    status = check_bounds(row, billionths / 1000 + above, text);
    if (status) return status;
    double value = (double)billionths / BILLION;
    memcpy(at, &value, sizeof value);
    return STRATA_OK;
}

/* The choices of a row as separate words, for strata_nearest_word(). */
typedef struct choices {
    char names[STRATA_OPTION_CHOICES][32];
} choices_t;

static const char *choice_word(size_t index, const void *context) { return ((const choices_t *)context)->names[index]; }

static strata_status_t set_choice(const strata_option_row_t *row, void *at, const char *text) {
    choices_t words = {.names = {{0}}};
    size_t most = STRATA_OPTION_CHOICES, count = strata_choice_count(row) < most ? strata_choice_count(row) : most;
    for (uint32_t i = 0; i < count; i++) {
        strata_choice_name(row, i, words.names[i], sizeof words.names[i]);
        if (strcmp(words.names[i], text) != 0) continue;
        memcpy(at, &i, sizeof i);
        return STRATA_OK;
    }
    const char *nearest = strata_nearest_word(text, count, choice_word, &words);
    char all[256] = "";
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", words.names[i]);
    }
    if (nearest)
        return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is not a valid choice; write %s (the choices are %s)", SHOWN, text,
                           nearest, all);
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is not a valid choice; write %s", SHOWN, text, all);
}

static bool is_shown(const char *text) {
    for (size_t letter; *text; text += letter) {
        letter = strata_printable_length(text);
        if (letter == 0) return false;
    }
    return true;
}

/* Drops blanks at the ends of a text. In a path they are rarely intended, and a configuration file drops
 * some despite quotes. All ways to set a value must give the same result. */
static strata_status_t set_text(char *at, const char *text) {
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') length--;
    if (length == 0 || length >= STRATA_OPTION_TEXT_BYTES || !is_shown(text))
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "\"%.*s\" is not a valid text; write 1 to %d bytes of UTF-8 without control characters", SHOWN, text,
                           STRATA_OPTION_TEXT_BYTES - 1);
    memcpy(at, text, length);
    at[length] = '\0';
    return STRATA_OK;
}

strata_status_t strata_option_set(const strata_option_row_t *row, void *options, const char *text) {
    void *at = (char *)options + row->offset;
    strata_status_t status = STRATA_OK;
    switch (row->kind) {
    case STRATA_OPTION_BOOL: status = set_bool(at, text); break;
    case STRATA_OPTION_FRACTION: status = set_fraction(row, at, text); break;
    case STRATA_OPTION_CHOICE: status = set_choice(row, at, text); break;
    case STRATA_OPTION_TEXT: status = set_text(at, text); break;
    case STRATA_OPTION_COUNT:
    case STRATA_OPTION_SIZE:
    case STRATA_OPTION_TIME: status = set_number(row, at, text); break;
    }
    return status ? strata_fail_context("%s", row->name) : STRATA_OK;
}

void strata_option_print(const strata_option_row_t *row, const void *options, char *text, size_t capacity) {
    const char *at = (const char *)options + row->offset;
    uint64_t number;
    uint32_t choice;
    double fraction;
    switch (row->kind) {
    case STRATA_OPTION_BOOL: snprintf(text, capacity, "%s", *(const bool *)at ? "true" : "false"); return;
    case STRATA_OPTION_TEXT: snprintf(text, capacity, "%s", at); return;
    case STRATA_OPTION_FRACTION:
        memcpy(&fraction, at, sizeof fraction);
        print_fraction(fraction, text, capacity);
        return;
    case STRATA_OPTION_CHOICE:
        memcpy(&choice, at, sizeof choice);
        strata_choice_name(row, choice, text, capacity);
        return;
    case STRATA_OPTION_COUNT:
    case STRATA_OPTION_SIZE:
    case STRATA_OPTION_TIME:
        memcpy(&number, at, sizeof number);
        print_number(row->kind, number, text, capacity);
        return;
    }
}

static const strata_option_row_t *row_of(const strata_option_row_t *rows, const char *name) {
    while (strcmp(rows->name, name) != 0) rows++;
    return rows;
}

static bool has_value(const strata_option_row_t *row, const void *options, const char *value) {
    char text[STRATA_OPTION_TEXT_BYTES];
    strata_option_print(row, options, text, sizeof text);
    return strcmp(text, value) == 0;
}

strata_status_t strata_option_check_dependencies(const strata_option_row_t *rows, const strata_option_dependency_t *dependencies,
                                                 const void *options, const char **option) {
    for (; dependencies->name; dependencies++) {
        const strata_option_row_t *row = row_of(rows, dependencies->name), *other = row_of(rows, dependencies->other);
        bool any_but = dependencies->value[0] == '!';
        const char *value = dependencies->value + any_but;
        if (has_value(row, options, row->default_text) || has_value(other, options, value) != any_but) continue;
        *option = dependencies->name;
        return strata_fail(STRATA_E_STRATEGY, 0, "it has no effect where %s is%s %s; change %s, or remove %s", dependencies->other,
                           any_but ? "" : " not", value, dependencies->other, dependencies->name);
    }
    return STRATA_OK;
}

void strata_option_defaults(const strata_layer_type_t *type, void *options) {
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        if (strata_option_set(row, options, row->default_text) == STRATA_OK) continue;
        fprintf(stderr, "strata: the default of %s.%s is wrong: %s\n", type->name, row->name, strata_last_error()->text);
        abort();
    }
}
