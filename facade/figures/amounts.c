#include "facade/figures/amounts.h"

#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"

enum { UNITS = 4, LETTERS = 48 };
static const char *const units[UNITS] = {"B", "KiB", "MiB", "GiB"};

/* ---- one size ---- */

/* Groups digits: "81920" becomes "81,920". */
static void print_grouped(uint64_t number, char *text, size_t capacity) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t at = 0;
    for (int i = 0; i < length && at + 2 < capacity; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

/* Returns the largest unit that is not larger than the size. */
static unsigned unit_for(uint64_t bytes) {
    unsigned unit = 0;
    while (unit + 1 < UNITS && bytes >= 1ull << 10 * (unit + 1)) unit++;
    return unit;
}

void strata_amount_print(uint64_t bytes, unsigned unit, char *text, size_t capacity) {
    char whole[32];
    if (bytes < (1ull << 10 * unit) / 100 + 1 && unit > 0) unit = unit_for(bytes);
    uint64_t one = 1ull << 10 * unit, rest = bytes & (one - 1);
    unsigned hundredths = (unsigned)(rest * 100 / one); /* rounded down, so the text never exceeds the real size */
    print_grouped(bytes / one, whole, sizeof whole);
    if (bytes == 0) snprintf(text, capacity, "0");
    else if (hundredths == 0) snprintf(text, capacity, "%s%s", whole, units[unit]);
    else if (hundredths % 10 == 0) snprintf(text, capacity, "%s.%u%s", whole, hundredths / 10, units[unit]);
    else snprintf(text, capacity, "%s.%02u%s", whole, hundredths, units[unit]);
}

/* ---- several sizes ---- */

static bool read_alike(uint64_t a, uint64_t b, unsigned unit) {
    char first[LETTERS], second[LETTERS];
    strata_amount_print(a, unit, first, sizeof first);
    strata_amount_print(b, unit, second, sizeof second);
    return a != b && strcmp(first, second) == 0;
}

static bool any_read_alike(const uint64_t *bytes, size_t count, unsigned unit) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (read_alike(bytes[i], bytes[j], unit)) return true;
    return false;
}

unsigned strata_amounts_unit(const uint64_t *bytes, size_t count) {
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) most = strata_max(most, bytes[i]);
    unsigned unit = unit_for(most), lowest = unit > 0 ? unit - 1 : 0;
    uint64_t tenth = (1ull << 10 * unit) / 10, crumb = (1ull << 10 * lowest) - 1;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] < tenth && bytes[i] > crumb) unit = lowest; /* smaller sizes have their own unit */
    while (unit > lowest && any_read_alike(bytes, count, unit)) unit--;
    return unit;
}

void strata_text_append_amounts(strata_text_t *text, const char *format, const uint64_t *bytes, size_t count) {
    char amount[LETTERS];
    unsigned unit = strata_amounts_unit(bytes, count);
    for (size_t i = 0; *format; i++) {
        size_t before = strcspn(format, "%");
        strata_text_append(text, "%.*s", (int)before, format);
        format += before;
        if (!*format) return;
        strata_amount_print(i < count ? bytes[i] : 0, unit, amount, sizeof amount);
        strata_text_append(text, "%s", amount);
        format++;
    }
}
