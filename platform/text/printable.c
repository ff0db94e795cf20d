#include "platform/text/printable.h"

size_t strata_utf8_length(const char *text) {
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80 ? 1 : byte[0] >> 5 == 6 ? 2 : byte[0] >> 4 == 14 ? 3 : byte[0] >> 3 == 30 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if (byte[i] >> 6 != 2) return 0;
    bool overlong = (byte[0] == 0xc0 || byte[0] == 0xc1) || (byte[0] == 0xe0 && byte[1] < 0xa0) ||
                    (byte[0] == 0xf0 && byte[1] < 0x90);
    bool outside = (byte[0] == 0xed && byte[1] > 0x9f) || byte[0] > 0xf4 || (byte[0] == 0xf4 && byte[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

/* Returns true for characters that a terminal obeys: C0, delete, C1, U+2028 to U+202E and U+2066 to U+2069. */
static bool is_obeyed(const unsigned char *byte, size_t length) {
    if (length == 1) return byte[0] < ' ' || byte[0] == 0x7f;
    if (length == 2) return byte[0] == 0xc2 && byte[1] < 0xa0;
    if (length != 3 || byte[0] != 0xe2) return false;
    return byte[1] == 0x80 ? byte[2] >= 0xa8 && byte[2] <= 0xae : byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9;
}

size_t strata_printable_length(const char *text) {
    size_t length = strata_utf8_length(text);
    return is_obeyed((const unsigned char *)text, length) ? 0 : length;
}

void strata_make_printable(char *text, bool lines) {
    while (*text) {
        size_t length = lines && *text == '\n' ? 1 : strata_printable_length(text);
        if (length == 0) *text = '?';
        text += length ? length : 1;
    }
}
