/* Converts one value from the peer's notation to ours, and selects the case of its row. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "allocation/options/option.h"
#include "config/hint.h"
#include "config/import/rows.h"

static strata_status_t fail_value(const import_setting_t *setting, const char *expected) {
    return strata_fail_origin(&setting->origin, "\"%.60s\" is not a value of %s; write %s", setting->value, setting->row->key,
                              expected);
}

/* The spellings of true and false that one framework accepts. */
typedef struct spelling {
    const char *const *yes, *const *no;
    bool any_case;
    const char *expected; /* what the error message suggests */
} spelling_t;

static const char *const words_yes[] = {"true", "1", "t", "yes", "y", NULL}, *const words_no[] = {"false", "0", "f",
                                                                                                  "no",    "n", NULL};
static const char *const python_yes[] = {"True", NULL}, *const python_no[] = {"False", NULL};
static const char *const digit_yes[] = {"1", NULL}, *const digit_no[] = {"0", NULL};
static const char *const exact_yes[] = {"true", NULL}, *const exact_no[] = {"false", NULL};
static const char *const env_yes[] = {"true", "1", NULL}, *const env_no[] = {"false", "0", NULL};
static const char *const jax_no[] = {"false", "False", "0", NULL}, *const nothing[] = {NULL};

static const spelling_t spellings[] = {
    [IMPORT_BOOL] = {words_yes, words_no, true, "true or false"},
    [IMPORT_BOOL_PYTORCH] = {python_yes, python_no, false, "True or False: PyTorch refuses every other spelling"},
    [IMPORT_BOOL_DIGIT] = {digit_yes, digit_no, false, "1 or 0: PyTorch ignores every other spelling since 2.7"},
    [IMPORT_BOOL_EXACT] = {exact_yes, exact_no, false, "true or false: TensorFlow ignores every other spelling"},
    [IMPORT_BOOL_TENSORFLOW] = {env_yes, env_no, true, "true, false, 1 or 0: TensorFlow ignores every other spelling"},
    [IMPORT_BOOL_JAX] = {nothing, jax_no, false, ""},
};

static bool one_of(const char *value, const char *const *words, bool any_case) {
    for (; *words; words++)
        if ((any_case ? strcasecmp : strcmp)(value, *words) == 0) return true;
    return false;
}

static strata_status_t convert_bool(const strata_import_t *import, import_setting_t *setting) {
    import_kind_t kind = setting->row->kind;
    const spelling_t *spelling = &spellings[kind];
    bool any_word = kind == IMPORT_BOOL_DIGIT && import->as_of && !strata_import_has(import, "2.7");
    bool no = !any_word && one_of(setting->value, spelling->no, spelling->any_case);
    bool yes = any_word || kind == IMPORT_BOOL_JAX || one_of(setting->value, spelling->yes, spelling->any_case);
    if (!yes && !no) return fail_value(setting, spelling->expected);
    strcpy(setting->converted, no ? "false" : "true");
    return STRATA_OK;
}

/* Returns the unit that the option needs after the number. */
static const char *unit_of(import_kind_t kind) {
    switch (kind) {
    case IMPORT_MIB: return "MiB";
    case IMPORT_GIB: return "GiB";
    case IMPORT_MS: return "ms";
    default: return "";
    }
}

static bool has_case(const import_row_t *row, const char *word) {
    for (size_t i = 0; i < IMPORT_CASES && row->cases[i].verb != IMPORT_END; i++)
        if (row->cases[i].word && strcmp(row->cases[i].word, word) == 0) return true;
    return false;
}

/* Removes signs and leading zeros. Every negative number becomes "-1", for keys that give that a meaning. */
static strata_status_t convert_number(import_setting_t *setting) {
    const char *digits = setting->value;
    bool negative = *digits == '-' && has_case(setting->row, "-1");
    if (negative || *digits == '+') digits++;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length]) return fail_value(setting, "a whole number");
    while (length > 1 && *digits == '0') digits++, length--;
    if (length > 20) return fail_value(setting, "a smaller number");
    if (negative && *digits != '0') digits = "-1";
    snprintf(setting->converted, sizeof setting->converted, "%s", digits);
    return STRATA_OK;
}

static strata_status_t convert_fraction(import_setting_t *setting) {
    const char *value = setting->value + (setting->row->kind == IMPORT_REAL && setting->value[0] == '-');
    size_t whole = strspn(value, "0123456789");
    size_t after = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
    bool form = whole + after > 0 && !value[whole + (value[whole] == '.') + after];
    if (!form) return fail_value(setting, "a decimal number, as in 0.75");
    /* An option has nine digits after the point. */
    snprintf(setting->converted, sizeof setting->converted, "%.*s%s%.*s", (int)whole, whole ? value : "0", after ? "." : "",
             (int)(after < 9 ? after : 9), value + whole + 1 * (after > 0));
    if (whole == 0) {
        memmove(setting->converted + 1, setting->converted, strlen(setting->converted) + 1);
        setting->converted[0] = '0';
    }
    size_t length = strlen(setting->converted);
    while (after > 0 && setting->converted[length - 1] == '0') setting->converted[--length] = '\0';
    if (setting->converted[length - 1] == '.') setting->converted[length - 1] = '\0';
    return STRATA_OK;
}

static const char *case_word(size_t index, const void *row) { return ((const import_row_t *)row)->cases[index].word; }

static strata_status_t convert_word(import_setting_t *setting) {
    const import_row_t *row = setting->row;
    size_t words = 0;
    while (words < IMPORT_CASES && row->cases[words].verb != IMPORT_END && row->cases[words].word) words++;
    snprintf(setting->converted, sizeof setting->converted, "%s", setting->value);
    for (char *c = setting->converted; row->kind == IMPORT_WORD_ANY_CASE && *c; c++) *c = (char)tolower((unsigned char)*c);
    if (!has_case(row, setting->converted) && words > 0)
        return fail_value(setting, strata_hint(setting->converted, words, case_word, row).text + strlen("write "));
    return STRATA_OK;
}

/* Blanks inside a list have no meaning. */
static strata_status_t convert_text(import_setting_t *setting) {
    size_t length = 0;
    if (!*setting->value) return fail_value(setting, "one");
    for (const char *c = setting->value; *c; c++)
        if (!setting->row->inner || !isspace((unsigned char)*c)) setting->converted[length++] = *c;
    setting->converted[length] = '\0';
    return STRATA_OK;
}

static strata_status_t convert(const strata_import_t *import, import_setting_t *setting) {
    switch (setting->row->kind) {
    case IMPORT_CONF: return STRATA_OK;
    case IMPORT_BOOL:
    case IMPORT_BOOL_PYTORCH:
    case IMPORT_BOOL_DIGIT:
    case IMPORT_BOOL_EXACT:
    case IMPORT_BOOL_TENSORFLOW:
    case IMPORT_BOOL_JAX: return convert_bool(import, setting);
    case IMPORT_COUNT:
    case IMPORT_BYTES:
    case IMPORT_MIB:
    case IMPORT_GIB:
    case IMPORT_MS: return convert_number(setting);
    case IMPORT_FRACTION:
    case IMPORT_REAL: return convert_fraction(setting);
    case IMPORT_WORD:
    case IMPORT_WORD_ANY_CASE: return convert_word(setting);
    case IMPORT_TEXT: return convert_text(setting);
    }
    return STRATA_OK;
}

static strata_status_t check_range(const strata_import_t *import, const import_setting_t *setting) {
    const import_range_t *range = import->peer->ranges;
    while (range && range->key && strcmp(range->key, setting->row->key) != 0) range++;
    if (!range || !range->key) return STRATA_OK;
    char expected[128];
    double value = strtod(setting->converted, NULL);
    bool inside = range->open ? value > range->least && value < range->most : value >= range->least && value <= range->most;
    if (inside && range->power_of_two) inside = ((uint64_t)value & ((uint64_t)value - 1)) == 0;
    snprintf(expected, sizeof expected, "%s: %s", range->accepted, import->peer->refuses);
    return inside ? STRATA_OK : fail_value(setting, expected);
}

strata_status_t strata_import_value(const strata_import_t *import, import_setting_t *setting) {
    strata_status_t status = convert(import, setting);
    if (status || setting->row->kind == IMPORT_CONF) return status;
    status = check_range(import, setting);
    if (status) return status;
    for (size_t i = 0; i < IMPORT_CASES && setting->row->cases[i].verb != IMPORT_END; i++) {
        const import_case_t *one = &setting->row->cases[i];
        if (one->word && strcmp(one->word, setting->converted) != 0) continue;
        setting->action = *one;
        break;
    }
    if (setting->action.verb == IMPORT_SET) strcat(setting->converted, unit_of(setting->row->kind));
    return STRATA_OK;
}
