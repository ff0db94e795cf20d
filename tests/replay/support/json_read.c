#include "tests/replay/support/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platform/text/printable.h"
#include "tests/harness/test.h"

static const char *blanks(const char *at) { return at + strspn(at, " \t\n\r"); }

static const char *after_string(const char *at) {
    if (*at++ != '"') return NULL;
    while (*at != '"') {
        size_t length = strata_utf8_length(at);
        if ((unsigned char)*at < ' ' || length == 0) return NULL;
        if (*at == '\\') {
            at++;
            if (*at == 'u' && strspn(at + 1, "0123456789abcdefABCDEF") < 4) return NULL;
            if (!strchr("\"\\/bfnrtu", *at)) return NULL;
            length = 1;
        }
        at += length;
    }
    return blanks(at + 1);
}

static const char *after_number(const char *at) {
    const char *digits = at + (*at == '-');
    size_t whole = strspn(digits, "0123456789");
    if (whole == 0 || (whole > 1 && *digits == '0')) return NULL;
    at = digits + whole;
    if (*at == '.') {
        size_t more = strspn(at + 1, "0123456789");
        if (more == 0) return NULL;
        at += 1 + more;
    }
    return blanks(at);
}

/* Behind the elements of an array or object. */
static const char *after_elements(const char *at, char end, bool named) {
    at = blanks(at + 1);
    if (*at == end) return blanks(at + 1);
    for (;;) {
        if (named) {
            at = after_string(at);
            if (!at || *at != ':') return NULL;
            at = blanks(at + 1);
        }
        at = json_after(at);
        if (!at || (*at != ',' && *at != end)) return NULL;
        if (*at == end) return blanks(at + 1);
        at = blanks(at + 1);
    }
}

const char *json_after(const char *value) {
    static const char *const words[] = {"true", "false", "null"};
    value = blanks(value);
    if (*value == '{') return after_elements(value, '}', true);
    if (*value == '[') return after_elements(value, ']', false);
    if (*value == '"') return after_string(value);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(value, words[i], strlen(words[i])) == 0) return blanks(value + strlen(words[i]));
    return after_number(value);
}

const char *json_member(const char *object, const char *name) {
    if (!object || *(object = blanks(object)) != '{') return NULL;
    object = blanks(object + 1);
    while (*object == '"') {
        size_t length = strlen(name);
        bool found = strncmp(object + 1, name, length) == 0 && object[1 + length] == '"';
        const char *value = blanks(after_string(object) + 1);
        if (found) return value;
        object = json_after(value);
        if (*object == ',') object = blanks(object + 1);
    }
    return NULL;
}

const char *json_item(const char *array, size_t index) {
    if (!array || *(array = blanks(array)) != '[') return NULL;
    for (array = blanks(array + 1); *array != ']'; array = *array == ',' ? blanks(array + 1) : array) {
        if (index-- == 0) return array;
        array = json_after(array);
    }
    return NULL;
}

size_t json_count(const char *array) {
    size_t count = 0;
    if (!array || *(array = blanks(array)) != '[') return 0;
    for (array = blanks(array + 1); *array != ']'; array = *array == ',' ? blanks(array + 1) : array) {
        array = json_after(array);
        count++;
    }
    return count;
}

const char *json_at(const char *value, const char *const *path) {
    for (; *path && value; path++)
        value = **path == '#' ? json_item(value, strtoul(*path + 1, NULL, 10)) : json_member(value, *path);
    return value;
}

double json_number_at(const char *value, const char *const *path) {
    const char *found = json_at(value, path);
    if (found && after_number(found)) return strtod(found, NULL);
    FAIL_TEST("no number at %s ...", *path);
    return (double)NAN;
}

size_t json_sums(const char *array, double *values, size_t most) {
    double sum = 0;
    size_t count = 0;
    if (!array || *(array = blanks(array)) != '[') return 0;
    for (array = blanks(array + 1); *array != ']' && count < most; array = *array == ',' ? blanks(array + 1) : array) {
        values[count++] = sum += strtod(array, NULL);
        array = json_after(array);
    }
    return count;
}
