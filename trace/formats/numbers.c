#include "trace/formats/numbers.h"

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
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) text += 2;
    if (!*text) return false;
    for (; *text; text++)
        if (!add_digit(&value, 16, *text)) return false;
    *number = value;
    return true;
}

bool strata_json_whole(strata_json_slice_t value, uint64_t *number, bool *negative) {
    size_t at = 0, digits = 0;
    bool below = value.length > 0 && value.at[0] == '-';
    uint64_t found = 0;
    if (below && !negative) return false;
    for (at = below; at < value.length && value.at[at] >= '0' && value.at[at] <= '9'; at++, digits++)
        if (!add_digit(&found, 10, value.at[at])) return false;
    if (digits == 0) return false;
    if (at < value.length && value.at[at] != '.') return false;
    for (at++; at < value.length; at++)
        if (value.at[at] < '0' || value.at[at] > '9') return false;
    *number = found;
    if (negative) *negative = below;
    return true;
}

bool strata_json_thousandths(strata_json_slice_t value, uint64_t *number) {
    uint64_t found, factor = 100;
    if (!strata_json_whole(value, &found, NULL) || !strata_multiply(found, 1000, &found)) return false;
    const char *point = memchr(value.at, '.', value.length);
    for (size_t i = 1; point && i <= 3 && point + i < value.at + value.length; i++, factor /= 10)
        if (!strata_add(found, factor * ((uint64_t)point[i] - '0'), &found)) return false;
    *number = found;
    return true;
}

bool strata_json_address(strata_json_slice_t value, uint64_t *number) {
    char text[32];
    if (value.length < 3 || value.at[0] != '"') return strata_json_whole(value, number, NULL);
    if (value.length - 2 >= sizeof text) return false;
    memcpy(text, value.at + 1, value.length - 2);
    text[value.length - 2] = '\0';
    return strata_parse_address(text, number);
}
