#include "lab/replay/compare/cell.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/text/printable.h"

strata_cell_t strata_cell(const char *format, ...) {
    strata_cell_t cell;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cell.text, sizeof cell.text, format, arguments);
    va_end(arguments);
    strata_make_printable(cell.text, false);
    return cell;
}

strata_cell_t strata_cell_count(uint64_t value) {
    char digits[24];
    strata_cell_t cell;
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value), to = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) cell.text[to++] = ',';
        cell.text[to++] = digits[i];
    }
    cell.text[to] = '\0';
    return cell;
}

strata_cell_t strata_cell_bytes(uint64_t value) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double scaled = (double)value;
    size_t unit = 0;
    for (; scaled >= 1024 && unit < 6; unit++) scaled /= 1024;
    return unit == 0 ? strata_cell("%.0f B", scaled) : strata_cell("%.*f %s", scaled < 100 ? 2 : 1, scaled, units[unit]);
}

/* ---- text that is too wide ---- */

static bool is_inside(char letter) { return ((unsigned char)letter & 0xc0) == 0x80; /* a continuation byte of UTF-8 */ }

/* Returns the first `head` bytes, ".." and as much of the end as fits. */
static strata_cell_t shorten(const char *text, size_t width, size_t head) {
    size_t length = strlen(text), tail = length - (width - head - 2);
    while (head > 0 && is_inside(text[head])) head--;
    while (is_inside(text[tail])) tail++;
    return strata_cell("%.*s..%s", (int)head, text, text + tail);
}

strata_cell_t strata_cell_brief(strata_cell_t cell) {
    const char *open = strstr(cell.text, " ("), *close = open ? strchr(open, ')') : NULL;
    return close ? strata_cell("%.*s%s", (int)(open - cell.text), cell.text, close + 1) : cell;
}

strata_cell_t strata_cell_fit(strata_cell_t cell, size_t width) {
    if (strlen(cell.text) <= width) return cell;
    cell = strata_cell_brief(cell);
    return strlen(cell.text) <= width ? cell : shorten(cell.text, width, (width - 2) / 2);
}

/* Returns true if no two different names look alike. */
static bool are_distinct(const strata_cell_t *names, const strata_cell_t *shown, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[i].text, names[k].text) != 0 && strcmp(shown[i].text, shown[k].text) == 0) return false;
    return true;
}

static void shorten_all(const strata_cell_t *names, strata_cell_t *shown, size_t count, size_t width, size_t head) {
    for (size_t i = 0; i < count; i++) shown[i] = strlen(names[i].text) <= width ? names[i] : shorten(names[i].text, width, head);
}

static strata_cell_t numbered(const char *text, size_t head, size_t number) {
    while (head > 0 && is_inside(text[head])) head--;
    return strata_cell("%.*s#%zu", (int)head, text, number);
}

/* Names are cut in the middle first. If two different names then look alike, the cut moves. As a last resort,
 * each cut name gets its number. */
void strata_cells_fit_distinct(strata_cell_t *names, size_t count, size_t width) {
    enum { LIMIT = 64, NUMBER = 4 };
    strata_cell_t shown[LIMIT];
    count = count < LIMIT ? count : LIMIT;
    shorten_all(names, shown, count, width, (width - 2) / 2);
    for (size_t head = 0; head <= width - 2 && !are_distinct(names, shown, count); head++)
        shorten_all(names, shown, count, width, head);
    if (!are_distinct(names, shown, count))
        for (size_t i = 0; i < count; i++)
            if (strlen(names[i].text) > width) shown[i] = numbered(names[i].text, width - NUMBER, i + 1);
    memcpy(names, shown, count * sizeof *names);
}
