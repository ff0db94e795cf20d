#include "trace/text/json_scan.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

static const char *value_end(strata_json_scan_t *scan, const char *at, unsigned depth, strata_json_member_fn member, void *context);

static const char *fail(strata_json_scan_t *scan, const char *at, const char *why) {
    scan->at = at;
    scan->error = why;
    return NULL;
}

const char *strata_json_spaces(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
    return at;
}

const char *strata_json_begin(const char *text) {
    bool marked = strncmp(text, "\xef\xbb\xbf", 3) == 0;
    return strata_json_spaces(marked ? text + 3 : text);
}

unsigned strata_json_line(const strata_json_scan_t *scan) {
    unsigned line = 1;
    for (const char *at = scan->begin; at < scan->at; at++) line += *at == '\n';
    return line;
}

bool strata_json_is(strata_json_slice_t slice, const char *text) {
    return slice.at && slice.length == strlen(text) && memcmp(slice.at, text, slice.length) == 0;
}

static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/* Returns true if the text here can follow a string. */
static bool follows_string(const char *at) {
    at = strata_json_spaces(at);
    return *at == ',' || *at == ':' || *at == '}' || *at == ']';
}

/* Profilers do not escape names, so a name may end with a backslash: "C:\dir\". Its closing quote then
 * looks escaped, and the opening quote of the next string looks like the end. But no comma, colon or
 * bracket follows that quote. */
static const char *loose_string_end(strata_json_scan_t *scan, const char *begin) {
    const char *escaped = NULL, *at = begin + 1;
    for (; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1] == '"' && follows_string(at + 2)) escaped = at + 2;
        if (*at == '\\' && at[1]) at++;
    }
    if (*at && (!escaped || follows_string(at + 1))) return at + 1;
    return escaped ? escaped : fail(scan, at, "unterminated string");
}

static const char *string_end(strata_json_scan_t *scan, const char *at) {
    if (*at != '"') return fail(scan, at, "expected a string");
    if (scan->lenient) return loose_string_end(scan, at);
    for (at++; *at != '"'; at++) {
        if ((unsigned char)*at < ' ') return fail(scan, at, "unterminated string");
        if (*at != '\\') continue;
        at++;
        if (*at == 'u' && strspn(at + 1, "0123456789abcdefABCDEF") >= 4) {
            at += 4;
        } else if (*at == '\0' || !strchr("\"\\/bfnrt", *at)) {
            return fail(scan, at, "invalid escape");
        }
    }
    return at + 1;
}

/* Returns the error position of a number without digits: its beginning, unless the text ends there. */
static const char *number_end(strata_json_scan_t *scan, const char *at) {
    const char *begin = at;
    at += *at == '-';
    if (!is_digit(*at)) return fail(scan, *at ? begin : at, "expected a value");
    at += *at == '0' ? 1 : strspn(at, "0123456789");
    if (*at == '.') {
        if (!is_digit(at[1])) return fail(scan, at[1] ? begin : at + 1, "incomplete number");
        at += 1 + strspn(at + 1, "0123456789");
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        if (!is_digit(*at)) return fail(scan, *at ? begin : at, "incomplete number");
        at += strspn(at, "0123456789");
    }
    return at;
}

/* Skips nan or inf as C++ and Python print them. Returns NULL if the text is something else. */
static const char *odd_number_end(const char *at) {
    static const char *const words[] = {"nan", "NaN", "Infinity", "inf"};
    at += *at == '-';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
    return NULL;
}

static const char *member_end(strata_json_scan_t *scan, const char *at, bool named, unsigned depth, strata_json_member_fn member,
                              void *context) {
    strata_json_slice_t name = {.at = NULL};
    if (named) {
        const char *end = string_end(scan, at);
        if (!end) return NULL;
        name = (strata_json_slice_t){.at = at + 1, .length = (size_t)(end - at) - 2};
        at = strata_json_spaces(end);
        if (*at != ':') return fail(scan, at, "expected a colon");
        at = strata_json_spaces(at + 1);
    }
    bool visited = scan->within && depth == 1 && *at == '[' && strata_json_is(name, scan->within);
    const char *end = value_end(scan, at, depth, visited ? member : NULL, context);
    if (!end || !member) return end;
    const char *why = member(context, name, (strata_json_slice_t){.at = at, .length = (size_t)(end - at)});
    return why ? fail(scan, at, why) : end;
}

/* Skips an object or array. */
static const char *group_end(strata_json_scan_t *scan, const char *at, unsigned depth, strata_json_member_fn member,
                             void *context) {
    bool named = *at == '{';
    char close = named ? '}' : ']';
    at = strata_json_spaces(at + 1);
    if (*at == close) return at + 1;
    for (;;) {
        at = member_end(scan, at, named, depth, member, context);
        if (!at) return NULL;
        at = strata_json_spaces(at);
        if (*at == close) return at + 1;
        if (*at != ',') return fail(scan, at, "expected a comma or the end");
        at = strata_json_spaces(at + 1);
        if (scan->lenient && *at == close) return at + 1;
    }
}

static const char *value_end(strata_json_scan_t *scan, const char *at, unsigned depth, strata_json_member_fn member,
                             void *context) {
    static const char *const words[] = {"true", "false", "null"};
    if (*at == '{' || *at == '[') {
        if (depth == MAX_DEPTH) return fail(scan, at, "nested too deep");
        return group_end(scan, at, depth + 1, member, context);
    }
    if (*at == '"') return string_end(scan, at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strspn(at, "aeflnrstu"), whole = strlen(words[i]);
        if (length >= whole && strncmp(at, words[i], whole) == 0) return at + whole;
        if (length > 0 && !at[length] && strncmp(at, words[i], length) == 0) return fail(scan, at + length, "incomplete word");
    }
    const char *after = scan->lenient ? odd_number_end(at) : NULL;
    return after ? after : number_end(scan, at);
}

const char *strata_json_value(strata_json_scan_t *scan, const char *at, strata_json_member_fn member, void *context) {
    return value_end(scan, strata_json_spaces(at), 0, member, context);
}
