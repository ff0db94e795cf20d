#include "lab/trace/formats/numbers.h"

#include <string.h>

#include "platform/arithmetic.h"

static bool add_digit(uint64_t *value, unsigned base, char letter) {
    unsigned digit = letter >= '0' && letter <= '9' ? (unsigned)letter - '0' : (unsigned)(letter | 0x20) - 'a' + 10;
    return digit < base && strata_multiply(*value, base, value) && strata_add(*value, digit, value);
}

bool strata_parse_whole(const char *text, uint64_t *number) {
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++)
        if (!add_digit(&value, 10, *text)) return false;
    *number = value;
    return true;
}

bool strata_parse_address(const char *text, uint64_t *number) {
    uint64_t value = 0;
    if (strcmp(text, "(nil)") == 0) {
        *number = 0;
        return true;
    }
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) text += 2;
    if (!*text) return false;
    for (; *text; text++)
        if (!add_digit(&value, 16, *text)) return false;
    *number = value;
    return true;
}

/* The digits and the exponent of a number. */
typedef struct decimal {
    strata_json_slice_t digits; /* including the decimal point */
    size_t whole; /* digits before the decimal point */
    size_t count; /* all digits */
    int exponent;
    bool negative;
} decimal_t;

enum { MAX_EXPONENT = 400 }; /* larger than that of any double */

static bool read_decimal(strata_json_slice_t value, decimal_t *decimal) {
    size_t at = 0;
    bool below = value.length > 0 && value.at[0] == '-', pointed = false, shrinks = false;
    *decimal = (decimal_t){.negative = below, .digits.at = value.at + below};
    for (at = below; at < value.length; at++) {
        bool is_digit = value.at[at] >= '0' && value.at[at] <= '9';
        if (!is_digit && (pointed || value.at[at] != '.')) break;
        pointed |= !is_digit;
        decimal->count += is_digit;
        decimal->whole += is_digit && !pointed;
    }
    decimal->digits.length = at - below;
    if (decimal->whole == 0) return false;
    if (at == value.length) return true;
    if (value.at[at] != 'e' && value.at[at] != 'E') return false;
    if (++at < value.length && (value.at[at] == '-' || value.at[at] == '+')) shrinks = value.at[at++] == '-';
    if (at == value.length) return false;
    for (; at < value.length; at++) {
        if (value.at[at] < '0' || value.at[at] > '9') return false;
        decimal->exponent = decimal->exponent * 10 + (value.at[at] - '0');
        if (decimal->exponent > MAX_EXPONENT) return false;
    }
    if (shrinks) decimal->exponent = -decimal->exponent;
    return true;
}

/* Multiplies by 10^power and truncates. */
static bool scaled(strata_json_slice_t value, int power, uint64_t *number, bool *negative) {
    decimal_t decimal;
    uint64_t found = 0;
    if (!read_decimal(value, &decimal) || (decimal.negative && !negative)) return false;
    long long wanted = (long long)decimal.whole + decimal.exponent + power;
    const char *at = decimal.digits.at, *end = at + decimal.digits.length;
    for (long long i = 0; i < wanted; i++) {
        if (at < end && *at == '.') at++;
        if (!add_digit(&found, 10, at < end ? *at++ : '0')) return false;
    }
    *number = found;
    if (negative) *negative = decimal.negative;
    return true;
}

bool strata_json_whole(strata_json_slice_t value, uint64_t *number, bool *negative) { return scaled(value, 0, number, negative); }

bool strata_json_thousandths(strata_json_slice_t value, uint64_t *number) { return scaled(value, 3, number, NULL); }

bool strata_json_address(strata_json_slice_t value, uint64_t *number) {
    char text[32];
    bool negative = false;
    if (value.length < 3 || value.at[0] != '"') {
        if (!strata_json_whole(value, number, &negative)) return false;
        if (negative) *number = 0 - *number;
        return true;
    }
    if (value.length - 2 >= sizeof text) return false;
    memcpy(text, value.at + 1, value.length - 2);
    text[value.length - 2] = '\0';
    return strata_parse_address(text, number);
}
