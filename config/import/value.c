/* One value: from the peer's notation to ours, and to which case of its row it belongs. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "allocation/options/option.h"
#include "config/hint.h"
#include "config/import/rows.h"

static strata_status_t fail_value(const import_setting_t *setting, const char *wants) {
    return strata_fail_origin(&setting->origin, "\"%.60s\" is no value of %s; write %s", setting->value, setting->row->key, wants);
}

static bool one_of(const char *value, const char *const *words) {
    for (; *words; words++)
        if (strcasecmp(value, *words) == 0) return true;
    return false;
}

static strata_status_t mean_bool(import_setting_t *setting) {
    static const char *const yes[] = {"true", "1", "t", "yes", "y", NULL}, *const no[] = {"false", "0", "f", "no", "n", NULL};
    bool is = one_of(setting->value, yes);
    if (!is && !one_of(setting->value, no)) return fail_value(setting, setting->row->inner ? "True or False" : "true or false");
    strcpy(setting->meant, is ? "true" : "false");
    return STRATA_OK;
}

/* What follows a number for the option. */
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

/* Without signs and leading zeros. Every negative number is "-1", for keys that give that a meaning. */
static strata_status_t mean_number(import_setting_t *setting) {
    const char *digits = setting->value;
    bool negative = *digits == '-' && has_case(setting->row, "-1");
    if (negative || *digits == '+') digits++;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length]) return fail_value(setting, "a whole number");
    while (length > 1 && *digits == '0') digits++, length--;
    if (length > 20) return fail_value(setting, "a smaller number");
    if (negative && *digits != '0') digits = "-1";
    snprintf(setting->meant, sizeof setting->meant, "%s", digits);
    return STRATA_OK;
}

static strata_status_t mean_fraction(import_setting_t *setting) {
    const char *value = setting->value;
    size_t whole = strspn(value, "0123456789");
    size_t after = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
    bool form = whole + after > 0 && !value[whole + (value[whole] == '.') + after];
    if (!form) return fail_value(setting, "a decimal number, as in 0.75");
    /* An option has nine digits after the point. */
    snprintf(setting->meant, sizeof setting->meant, "%.*s%s%.*s", (int)whole, whole ? value : "0", after ? "." : "",
             (int)(after < 9 ? after : 9), value + whole + 1 * (after > 0));
    if (whole == 0) {
        memmove(setting->meant + 1, setting->meant, strlen(setting->meant) + 1);
        setting->meant[0] = '0';
    }
    size_t length = strlen(setting->meant);
    while (after > 0 && setting->meant[length - 1] == '0') setting->meant[--length] = '\0';
    if (setting->meant[length - 1] == '.') setting->meant[length - 1] = '\0';
    return STRATA_OK;
}

static const char *case_word(size_t index, const void *row) { return ((const import_row_t *)row)->cases[index].word; }

static strata_status_t mean_word(import_setting_t *setting) {
    const import_row_t *row = setting->row;
    size_t words = 0;
    while (words < IMPORT_CASES && row->cases[words].verb != IMPORT_END && row->cases[words].word) words++;
    if (!has_case(row, setting->value) && words > 0)
        return fail_value(setting, strata_hint(setting->value, words, case_word, row).text + strlen("write "));
    snprintf(setting->meant, sizeof setting->meant, "%s", setting->value);
    return STRATA_OK;
}

/* Blanks inside a list mean nothing. */
static strata_status_t mean_text(import_setting_t *setting) {
    size_t length = 0;
    if (!*setting->value) return fail_value(setting, "one");
    for (const char *c = setting->value; *c; c++)
        if (!setting->row->inner || !isspace((unsigned char)*c)) setting->meant[length++] = *c;
    setting->meant[length] = '\0';
    return STRATA_OK;
}

static strata_status_t mean(import_setting_t *setting) {
    switch (setting->row->kind) {
    case IMPORT_CONF: return STRATA_OK;
    case IMPORT_BOOL: return mean_bool(setting);
    case IMPORT_COUNT:
    case IMPORT_BYTES:
    case IMPORT_MIB:
    case IMPORT_GIB:
    case IMPORT_MS: return mean_number(setting);
    case IMPORT_FRACTION: return mean_fraction(setting);
    case IMPORT_WORD: return mean_word(setting);
    case IMPORT_TEXT: return mean_text(setting);
    }
    return STRATA_OK;
}

strata_status_t strata_import_value(import_setting_t *setting) {
    strata_status_t status = mean(setting);
    if (status || setting->row->kind == IMPORT_CONF) return status;
    for (size_t i = 0; i < IMPORT_CASES && setting->row->cases[i].verb != IMPORT_END; i++) {
        const import_case_t *one = &setting->row->cases[i];
        if (one->word && strcmp(one->word, setting->meant) != 0) continue;
        setting->act = *one;
        break;
    }
    if (setting->act.verb == IMPORT_SET) strcat(setting->meant, unit_of(setting->row->kind));
    return STRATA_OK;
}
