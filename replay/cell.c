#include "replay/cell.h"

#include <stdarg.h>
#include <stdio.h>

#include "platform/printable.h"

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
