/* Sizes and times as text: a decimal number and a unit. Printing is exact; reading drops fractions of a byte or nanosecond. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/arithmetic.h"
#include "platform/status.h"

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit_t;

typedef struct measure {
    const char *what; /* "size" */
    const char *whole; /* the name of the smallest unit: "bytes" */
    const char *endless; /* the text of UINT64_MAX */
    const char *example;
    bool bare; /* a number without a unit is in the smallest unit */
    const unit_t *units; /* in descending order; ends with a NULL name */
} measure_t;

static const unit_t size_units[] = {
    {"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1}, {NULL, 0}};
static const unit_t time_units[] = {{"s", 1000000000u}, {"ms", 1000000u}, {"us", 1000u}, {"ns", 1}, {NULL, 0}};
static const measure_t size_measure = {"size", "bytes", "unlimited", "512, 64KiB, 20MiB, 1.5GiB or unlimited", true, size_units};
static const measure_t time_measure = {"time", "nanoseconds", "never", "0, 20us, 100ms, 2s or never", false, time_units};

/* More fraction digits than these could not be distinguished in 64 bits. */
enum { FRACTION_DIGITS = 18, SHOWN = 40 };

static strata_status_t fail_value(const measure_t *measure, const char *text, const char *why) {
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" is not a %s%s%s; write %s", SHOWN, text, measure->what, *why ? ": " : "",
                       why, measure->example);
}

/* Maps words that users write for an existing unit: another case, powers of ten, long names. */
static const char *meant_unit(const measure_t *measure, const char *text) {
    static const char *const meant[][2] = {
        {"b", "B"},      {"byte", "B"},    {"bytes", "B"}, {"k", "KiB"},   {"kb", "KiB"},       {"m", "MiB"},
        {"mb", "MiB"},   {"g", "GiB"},     {"gb", "GiB"},  {"t", "TiB"},   {"tb", "TiB"},       {"sec", "s"},
        {"second", "s"}, {"seconds", "s"}, {"msec", "ms"}, {"usec", "us"}, {"\xc2\xb5s", "us"}, {"nsec", "ns"},
    };
    for (const unit_t *unit = measure->units; unit->name; unit++) {
        if (strcasecmp(unit->name, text) == 0) return unit->name;
        for (size_t i = 0; i < sizeof meant / sizeof *meant; i++)
            if (strcasecmp(meant[i][0], text) == 0 && strcmp(meant[i][1], unit->name) == 0) return unit->name;
    }
    return NULL;
}

static strata_status_t fail_unit(const measure_t *measure, const char *text, size_t number, const char *unit) {
    char names[64] = "";
    for (const unit_t *each = measure->units; each->name; each++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", each->name);
    }
    if (!*unit)
        return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\" has no unit; write one of %s after it, as in %.*s%s", SHOWN, text, names,
                           (int)number, text, measure->units[1].name);
    const char *meant = meant_unit(measure, unit);
    if (!meant)
        return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\": unknown unit \"%.*s\"; write one of %s", SHOWN, text, SHOWN, unit,
                           names);
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%.*s\": unknown unit \"%.*s\"; write %.*s%s", SHOWN, text, SHOWN, unit,
                       number < SHOWN ? (int)number : SHOWN, text, meant);
}

/* The digits before and after the point. `fits` is false if there are too many. */
typedef struct decimal {
    uint64_t whole, fraction, scale; /* fraction / scale */
    size_t length; /* of the text; 0 if it has no number */
    bool fits;
} decimal_t;

static decimal_t decimal_of(const char *text) {
    decimal_t number = {.scale = 1, .fits = true};
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        number.fits = number.fits && strata_multiply(number.whole, 10, &number.whole) &&
                      strata_add(number.whole, (uint64_t)(*at - '0'), &number.whole);
    if (at > text && at[0] == '.' && at[1] >= '0' && at[1] <= '9') {
        at++;
        for (size_t digits = 0; *at >= '0' && *at <= '9'; at++) {
            if (*at == '0' && strspn(at, "0") == strspn(at, "0123456789")) continue; /* trailing zeros do not change the value */
            number.fits = number.fits && ++digits <= FRACTION_DIGITS;
            if (!number.fits) continue;
            number.fraction = number.fraction * 10 + (uint64_t)(*at - '0');
            number.scale *= 10;
        }
    }
    number.length = (size_t)(at - text);
    return number;
}

static strata_status_t parse(const measure_t *measure, const char *text, uint64_t *value) {
    if (strcmp(text, measure->endless) == 0) {
        *value = UINT64_MAX;
        return STRATA_OK;
    }
    decimal_t number = decimal_of(text);
    if (number.length == 0) return fail_value(measure, text, "");
    const char *name = text + number.length;
    while (*name == ' ') name++;
    const unit_t *unit = measure->units;
    while (unit->name && strcmp(unit->name, name) != 0) unit++;
    bool zero = number.fits && number.whole == 0 && number.fraction == 0;
    uint64_t factor = unit->name ? unit->factor : 1;
    if (!unit->name && (*name || !(measure->bare || zero))) return fail_unit(measure, text, number.length, name);
    unsigned __int128 part = (unsigned __int128)number.fraction * factor;
    uint64_t bytes;
    if (!number.fits || !strata_multiply(number.whole, factor, &bytes) ||
        !strata_add(bytes, (uint64_t)(part / number.scale), &bytes) || bytes == UINT64_MAX)
        return fail_value(measure, text, "it does not fit in 64 bits");
    char why[64];
    snprintf(why, sizeof why, "it is not a whole number of %s", measure->whole);
    /* 13.7GiB is not a whole number of bytes, but users write it. So the fraction of a byte is dropped. */
    if (factor == 1 && part % number.scale != 0) return fail_value(measure, text, why);
    *value = bytes;
    return STRATA_OK;
}

/* Prints `value` exactly in `unit`. Returns false if that takes more than `capacity` characters. */
static bool print_in(uint64_t value, const unit_t *unit, bool bare, char *text, size_t capacity) {
    char digits[FRACTION_DIGITS + 2] = "";
    uint64_t rest = value % unit->factor;
    size_t count = 0;
    for (; rest && count < FRACTION_DIGITS; rest %= unit->factor) {
        if (count == 0) digits[count++] = '.';
        rest *= 10;
        digits[count++] = (char)('0' + rest / unit->factor);
    }
    digits[count] = '\0';
    if (rest) return false;
    int length = snprintf(text, capacity, "%" PRIu64 "%s%s", value / unit->factor, digits, bare ? "" : unit->name);
    return length > 0 && (size_t)length < capacity;
}

static void print(const measure_t *measure, uint64_t value, char *text, size_t capacity) {
    if (value == UINT64_MAX) {
        snprintf(text, capacity, "%s", measure->endless);
        return;
    }
    char best[64] = "0";
    size_t length = value ? sizeof best : 1;
    for (const unit_t *unit = measure->units; unit->name; unit++) {
        char candidate[64];
        if (!print_in(value, unit, measure->bare && unit->factor == 1, candidate, sizeof candidate)) continue;
        if (value < unit->factor || strlen(candidate) >= length) continue;
        length = strlen(candidate);
        memcpy(best, candidate, length + 1);
    }
    snprintf(text, capacity, "%s", best);
}

strata_status_t strata_parse_size(const char *text, uint64_t *bytes) { return parse(&size_measure, text, bytes); }

strata_status_t strata_parse_time(const char *text, uint64_t *nanoseconds) { return parse(&time_measure, text, nanoseconds); }

const char *strata_size_example(void) { return size_measure.example; }

const char *strata_time_example(void) { return time_measure.example; }

void strata_print_size(uint64_t bytes, char *text, size_t capacity) { print(&size_measure, bytes, text, capacity); }

void strata_print_time(uint64_t nanoseconds, char *text, size_t capacity) { print(&time_measure, nanoseconds, text, capacity); }
