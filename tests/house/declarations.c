#include "tests/house/declarations.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/house/house.h"

/* Pointer types without a star: handles and function types, whose names end in _fn. */
static const char *const pointer_types[] = {"strata_stream_t", "strata_graph_t", "strata_checkpoint_t", "strata_event_t"};

static bool is_pointer(const char *type) {
    for (size_t i = 0; i < sizeof pointer_types / sizeof *pointer_types; i++)
        if (strcmp(type, pointer_types[i]) == 0) return true;
    return strcmp(type, "(*)") == 0 || ends_with(type, "*") || ends_with(type, "_fn");
}

/* Copies words, separated by single blanks, without comments. */
static void copy_words(char *to, size_t capacity, const char *from, size_t length) {
    size_t at = 0;
    for (size_t i = 0; i < length && at + 2 < capacity; i++) {
        if (isspace((unsigned char)from[i])) {
            if (at > 0 && to[at - 1] != ' ') to[at++] = ' ';
        } else {
            to[at++] = from[i];
        }
    }
    while (at > 0 && to[at - 1] == ' ') at--;
    to[at] = '\0';
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* "const uint64_t *offsets", or "void (*found)(void *context, ...)". */
static bool read_parameter(const char *text, parameter_t *parameter) {
    const char *function = strstr(text, "(*");
    if (function) {
        size_t length = strcspn(function + 2, ")");
        snprintf(parameter->type, sizeof parameter->type, "(*)");
        snprintf(parameter->name, sizeof parameter->name, "%.*s", (int)length, function + 2);
        return true;
    }
    const char *name = text + strlen(text);
    while (name > text && is_word(name[-1])) name--;
    if (name == text || !*name || strlen(name) >= sizeof parameter->name) return false;
    copy_words(parameter->type, sizeof parameter->type, text, (size_t)(name - text));
    snprintf(parameter->name, sizeof parameter->name, "%s", name);
    return true;
}

/* Reads the parameters between the outer parentheses. */
static bool read_parameters(const char *text, function_t *function) {
    char one[256];
    while (*text && *text != ')') {
        size_t length = 0;
        for (int depth = 0; text[length] && (depth > 0 || (text[length] != ',' && text[length] != ')')); length++)
            depth += (text[length] == '(') - (text[length] == ')');
        copy_words(one, sizeof one, text + strspn(text, " "), length - strspn(text, " "));
        text += length + (text[length] == ',');
        if (strcmp(one, "void") == 0 || strcmp(one, "...") == 0) continue;
        parameter_t *parameter = &function->parameters[function->count];
        if (function->count == PARAMETERS || !read_parameter(one, parameter)) return false;
        parameter->is_pointer = is_pointer(parameter->type);
        function->count++;
    }
    return true;
}

/* Reads what the comment states about a parameter. */
static void read_comment(const char *comment, parameter_t *parameter) {
    char words[2][64];
    snprintf(words[0], sizeof words[0], "`%s` (may be NULL", parameter->name);
    snprintf(words[1], sizeof words[1], "*%s (may be NULL", parameter->name);
    for (int i = 0; i < 2 && !parameter->may_be_null; i++) {
        const char *found = strstr(comment, words[i]);
        if (!found) continue;
        found += strlen(words[i]);
        parameter->may_be_null = true;
        if (sscanf(found, " if `%31[a-z_]` is 0)", parameter->unless) != 1) parameter->unless[0] = '\0';
    }
}

/* `text` starts after the marker. */
static bool read_function(const char *text, const char *comment, function_t *function) {
    char whole[1024];
    *function = (function_t){.count = 0};
    copy_words(whole, sizeof whole, text, strcspn(text, ";"));
    char *open = strchr(whole, '(');
    if (!open) return false;
    char *name = open;
    while (name > whole && is_word(name[-1])) name--;
    copy_words(function->result, sizeof function->result, whole, (size_t)(name - whole));
    snprintf(function->name, sizeof function->name, "%.*s", (int)(open - name), name);
    function->not_checked = strstr(comment, "(not checked)") != NULL;
    if (!read_parameters(open + 1, function)) return false;
    for (size_t i = 0; i < function->count; i++) read_comment(comment, &function->parameters[i]);
    return true;
}

/* Reads the fields of "typedef struct name {", one per line, if the first one is the size. Function pointers are skipped. */
static void read_struct(const char *text, declarations_t *declarations) {
    sized_t *it = &declarations->structs[declarations->struct_count];
    char line[512];
    *it = (sized_t){.count = 0};
    if (sscanf(text, "typedef struct %40[a-z_0-9] {", it->name) != 1) return;
    strcat(it->name, "_t");
    next_line(&text, line, sizeof line);
    next_line(&text, line, sizeof line);
    if (!strstr(line, "size_t struct_size;") || declarations->struct_count + 1 == 64) return;
    declarations->struct_count++;
    while (next_line(&text, line, sizeof line) && line[0] != '}') {
        char *end = strchr(line, ';'), *comment = strstr(line, "/*");
        if (!end || strchr(line, '(') != NULL || (comment && comment < end)) continue;
        char *name = end;
        while (name > line && is_word(name[-1])) name--;
        if (name > line && name[-1] == '*' && it->count < 8)
            snprintf(it->pointers[it->count++], 32, "%.*s", (int)(end - name), name);
    }
}

/* Reads the next comment, declaration or other line. A comment applies to all declarations up to the next comment. */
void declarations_read(declarations_t *declarations, const char *header) {
    static const char mark[] = "STRATA_API ";
    char comment[8192] = "";
    for (const char *at = header; *at;) {
        const char *end = at + strcspn(at, "\n");
        if (starts_with(at, "/*")) {
            end = strstr(at, "*/");
            if (!end) break;
            /* Comment lines start with " * ". */
            size_t length = 0;
            for (const char *from = at + 2; from < end && length + 1 < sizeof comment; from++) {
                if (starts_with(from, "\n * ")) from += 3;
                comment[length++] = *from == '\n' ? ' ' : *from;
            }
            comment[length] = '\0';
        } else if (starts_with(at, mark)) {
            bool room = declarations->count < FUNCTIONS;
            if (room && read_function(at + strlen(mark), comment, &declarations->functions[declarations->count]))
                declarations->count++;
            else declarations->fault = at;
            end = at + strcspn(at, ";");
        } else if (starts_with(at, "typedef struct ")) {
            read_struct(at, declarations);
        }
        at = end + strcspn(end, "\n");
        at += *at == '\n';
    }
}

static declarations_t *reading;

static void read_header(const char *path, const char *text, report_t *report) {
    (void)report;
    if (starts_with(path, "include/strata/")) declarations_read(reading, text);
}

void declarations_read_all(declarations_t *declarations) {
    static const char *const headers[] = {".h", NULL};
    static report_t report;
    reading = declarations;
    tree_check(headers, read_header, &report);
}
