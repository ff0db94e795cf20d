#include "config/tree.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "allocation/options/option.h"
#include "config/page.h"
#include "platform/arithmetic.h"
#include "platform/text/printable.h"

/* An open collection, and the key that waits for its value. */
typedef struct frame {
    strata_tree_t *node;
    strata_tree_t **tail;
    const char *key;
    uint32_t key_line, key_column;
} frame_t;

typedef struct reading {
    strata_arena_t *arena;
    const char *file, *text;
    size_t length;
    yaml_parser_t parser;
    frame_t frames[STRATA_TREE_DEPTH];
    size_t depth, nodes;
    strata_tree_t *root;
} reading_t;

/* The UTF-8 byte order mark. Editors put it at the beginning, and some put a second one before it. */
static const char order_mark[] = "\xef\xbb\xbf";

static uint32_t from_one(size_t number) { return number < UINT32_MAX ? (uint32_t)number + 1 : UINT32_MAX; }

static strata_status_t fail_at(const reading_t *reading, uint32_t line, uint32_t column, const char *what) {
    return strata_fail_at(STRATA_E_STRATEGY, line, column, "%.1500s:%u:%u: %s", reading->file, line, column, what);
}

static strata_status_t fail_mark(const reading_t *reading, yaml_mark_t mark, const char *what) {
    return fail_at(reading, from_one(mark.line), from_one(mark.column), what);
}

static strata_status_t fail_byte(const reading_t *reading, size_t offset, const char *what) {
    uint32_t line = 1, column = 1;
    for (size_t i = 0; i < offset && i < reading->length; i++) {
        if (reading->text[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)reading->text[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return fail_at(reading, line, column, what);
}

/* Converts a mark, which counts characters, to a byte offset. */
static size_t byte_of(const reading_t *reading, yaml_mark_t mark) {
    size_t at = 0;
    for (size_t left = mark.index; at < reading->length; at++)
        if (((unsigned char)reading->text[at] & 0xc0) != 0x80 && left-- == 0) break;
    return at;
}

/* Finds the tab that made libyaml fail, which its message does not name. It is at the mark, or, outside
 * brackets, in the indentation of the mark's line. Returns the length of the text if there is none. */
static size_t find_tab(const reading_t *reading, yaml_mark_t mark) {
    size_t at = byte_of(reading, mark), begin = at;
    if (at < reading->length && reading->text[at] == '\t') return at;
    const char *context = reading->parser.context;
    if (reading->parser.flow_level > 0 || (context && strstr(context, "flow"))) return reading->length;
    while (begin > 0 && reading->text[begin - 1] != '\n') begin--;
    while (begin < at && reading->text[begin] == ' ') begin++;
    return begin < at && reading->text[begin] == '\t' ? begin : reading->length;
}

/* Reports the error that libyaml found. */
static strata_status_t fail_parser(const reading_t *reading) {
    const yaml_parser_t *parser = &reading->parser;
    char what[256];
    if (parser->error == YAML_MEMORY_ERROR)
        return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory while reading \"%.200s\"", reading->file);
    const char *problem = parser->problem ? parser->problem : "this is not YAML";
    snprintf(what, sizeof what, "%s; check the indentation, the quotes and the brackets up to here", problem);
    if (parser->error == YAML_READER_ERROR) {
        snprintf(what, sizeof what, "%s; write plain text in UTF-8", problem);
        return fail_byte(reading, parser->problem_offset, what);
    }
    size_t tab = find_tab(reading, parser->problem_mark);
    if (tab == reading->length) return fail_mark(reading, parser->problem_mark, what);
    return fail_byte(reading, tab, "a tab is here, but YAML indents with spaces only; write spaces");
}

/* ---- nodes ---- */

static bool is_word(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) return false;
    return length > 0 && length <= 128;
}

static strata_status_t add_key(reading_t *reading, const yaml_event_t *event, frame_t *frame) {
    const char *text = (const char *)event->data.scalar.value;
    char what[256];
    if (!is_word(text, event->data.scalar.length))
        return fail_mark(reading, event->start_mark, "this is not a key; write a word and a colon");
    if (frame->node->count == STRATA_TREE_KEYS)
        return fail_mark(reading, event->start_mark, "a mapping has at most 256 keys; remove some");
    for (const strata_tree_t *child = frame->node->first; child; child = child->next) {
        if (strcmp(child->key, text) != 0) continue;
        snprintf(what, sizeof what, "\"%s\" is here twice, first in line %u; remove one", text, child->key_line);
        return fail_mark(reading, event->start_mark, what);
    }
    frame->key = strata_arena_strndup(reading->arena, text, event->data.scalar.length);
    frame->key_line = from_one(event->start_mark.line);
    frame->key_column = from_one(event->start_mark.column);
    return frame->key ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

static strata_status_t add_node(reading_t *reading, yaml_mark_t mark, strata_tree_kind_t kind, strata_tree_t **added) {
    frame_t *frame = reading->depth ? &reading->frames[reading->depth - 1] : NULL;
    if (++reading->nodes > STRATA_TREE_NODES)
        return fail_mark(reading, mark, "the file has more than 65536 values; make it smaller");
    strata_tree_t *node = strata_arena_alloc(reading->arena, 1, sizeof *node);
    if (!node) return STRATA_E_HOST_MEMORY;
    node->kind = kind;
    node->line = from_one(mark.line);
    node->column = from_one(mark.column);
    if (!frame) {
        reading->root = node;
    } else {
        node->key = frame->key;
        node->key_line = frame->key_line;
        node->key_column = frame->key_column;
        frame->key = NULL;
        frame->node->count++;
        *frame->tail = node;
        frame->tail = &node->next;
    }
    *added = node;
    return STRATA_OK;
}

static strata_status_t open_collection(reading_t *reading, yaml_mark_t mark, strata_tree_kind_t kind) {
    frame_t *frame = reading->depth ? &reading->frames[reading->depth - 1] : NULL;
    strata_tree_t *node = NULL;
    if (frame && frame->node->kind == STRATA_TREE_MAP && !frame->key)
        return fail_mark(reading, mark, "a list or mapping cannot be a key; write a word and a colon");
    if (reading->depth == STRATA_TREE_DEPTH) return fail_mark(reading, mark, "this is nested more than 64 deep; make it flatter");
    strata_status_t status = add_node(reading, mark, kind, &node);
    if (status == STRATA_OK) reading->frames[reading->depth++] = (frame_t){.node = node, .tail = &node->first};
    return status;
}

/* Joins a value to one line because messages quote it, whatever its layout in the file. Returns false if
 * it has a control character. */
static bool make_one_line(char *text, bool *broken) {
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\n", text[length - 1])) text[--length] = '\0';
    for (size_t i = 0, character; i < length; i += character) {
        bool breaks = text[i] == '\n' || text[i] == '\t';
        *broken = *broken || breaks;
        if (breaks) text[i] = ' ';
        character = strata_printable_length(text + i);
        if (character == 0) return false;
    }
    return true;
}

/* A block (| and >) always begins below its mark. */
static bool spans_lines(const yaml_event_t *event) {
    yaml_scalar_style_t style = event->data.scalar.style;
    bool block = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE;
    return !block && event->end_mark.line > event->start_mark.line;
}

/* Returns true if the scalar is read as no value at all. */
static bool is_null_scalar(const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static strata_status_t add_scalar(reading_t *reading, const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    frame_t *frame = reading->depth ? &reading->frames[reading->depth - 1] : NULL;
    strata_tree_t *node = NULL;
    if (event->data.scalar.tag)
        return fail_mark(reading, event->start_mark, "tags (\"!\") are not supported; write the plain value");
    if (length > STRATA_TREE_SCALAR)
        return fail_mark(reading, event->start_mark, "this value is longer than 4096 bytes; write a shorter one");
    if (memchr(text, '\0', length)) return fail_mark(reading, event->start_mark, "this value contains a NUL byte; remove it");
    if (frame && frame->node->kind == STRATA_TREE_MAP && !frame->key) return add_key(reading, event, frame);
    strata_status_t status = add_node(reading, event->start_mark, STRATA_TREE_SCALAR_NODE, &node);
    if (status) return status;
    char *copy = strata_arena_strndup(reading->arena, text, length);
    if (!copy) return STRATA_E_HOST_MEMORY;
    node->broken = spans_lines(event);
    if (!make_one_line(copy, &node->broken))
        return fail_mark(reading, event->start_mark, "this value contains a control character; remove it");
    node->text = copy;
    node->empty = is_null_scalar(event);
    return STRATA_OK;
}

/* ---- directives ---- */

static bool has_text_at(const reading_t *reading, size_t at, const char *word) {
    size_t length = strlen(word);
    return reading->length - at >= length && memcmp(reading->text + at, word, length) == 0;
}

/* Returns the bytes of YAML's line end at this offset, or 0 if there is none. */
static size_t line_break(const reading_t *reading, size_t at) {
    static const char *const breaks[] = {"\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++)
        if (has_text_at(reading, at, breaks[i])) return strlen(breaks[i]);
    return 0;
}

static size_t next_line(const reading_t *reading, size_t at) {
    size_t length = 0;
    for (; at < reading->length && (length = line_break(reading, at)) == 0; at++) continue;
    return at + length;
}

/* Returns true for a blank line, a comment, and the mark that ends a document. None of them begins a document. */
static bool is_ignored_line(const reading_t *reading, size_t at) {
    if (has_text_at(reading, at, "...")) return true;
    while (has_text_at(reading, at, " ") || has_text_at(reading, at, "\t")) at++;
    return at == reading->length || has_text_at(reading, at, "#") || line_break(reading, at) > 0;
}

/* Refuses directives before a document that may begin at or after this byte. Otherwise libyaml would take
 * quadratic time: it compares each directive with all earlier ones before it reports any. It refuses a
 * second %YAML itself. */
static strata_status_t refuse_directives(const reading_t *reading, size_t at) {
    for (; at < reading->length; at = next_line(reading, at)) {
        if (has_text_at(reading, at, "%YAML")) continue;
        if (has_text_at(reading, at, "%"))
            return fail_byte(reading, at, "directives (\"%TAG\") other than %YAML are not supported; remove this line");
        if (!is_ignored_line(reading, at)) return STRATA_OK;
    }
    return STRATA_OK;
}

/* ---- events ---- */

static strata_status_t handle_event(reading_t *reading, const yaml_event_t *event) {
    static const char no_tags[] = "tags (\"!\") are not supported; remove this one";
    switch (event->type) {
    case YAML_STREAM_START_EVENT: return refuse_directives(reading, 0);
    case YAML_DOCUMENT_END_EVENT: return refuse_directives(reading, byte_of(reading, event->end_mark));
    case YAML_DOCUMENT_START_EVENT:
        if (!reading->root) return STRATA_OK;
        return fail_mark(reading, event->start_mark, "a second document begins here; a file must contain one strategy");
    case YAML_ALIAS_EVENT:
        return fail_mark(reading, event->start_mark, "aliases (\"*\") are not supported; write the value itself");
    case YAML_SCALAR_EVENT: return add_scalar(reading, event);
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.tag) return fail_mark(reading, event->start_mark, no_tags);
        return open_collection(reading, event->start_mark, STRATA_TREE_LIST);
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.tag) return fail_mark(reading, event->start_mark, no_tags);
        return open_collection(reading, event->start_mark, STRATA_TREE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: reading->depth--; return STRATA_OK;
    default: return STRATA_OK;
    }
}

static strata_status_t parse_all(reading_t *reading) {
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reading->parser, &event)) return fail_parser(reading);
        strata_status_t status = handle_event(reading, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (status) return status;
    }
    if (reading->root) return STRATA_OK;
    return fail_at(reading, 1, 1, "the file is empty; write a strategy, as in \"stack: [system]\"");
}

strata_status_t strata_tree_read(strata_arena_t *arena, const char *file, const char *text, size_t length, strata_tree_t **tree) {
    reading_t reading = {.arena = arena, .file = file, .text = text, .length = length};
    while (has_text_at(&reading, 0, order_mark)) {
        reading.text += strlen(order_mark);
        reading.length -= strlen(order_mark);
    }
    text = reading.text;
    length = reading.length;
    if (length > STRATA_TREE_BYTES) return fail_at(&reading, 1, 1, "the file is larger than 1 MiB; a strategy must be smaller");
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return fail_at(&reading, 1, 1, "the file is UTF-16 text; save it as UTF-8");
    const char *zero = memchr(text, '\0', length);
    if (zero) return fail_byte(&reading, (size_t)(zero - text), "a NUL byte is here; write plain text in UTF-8");
    if (!yaml_parser_initialize(&reading.parser))
        return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory while reading \"%.200s\"", file);
    yaml_parser_set_encoding(&reading.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, length);
    strata_status_t status = parse_all(&reading);
    yaml_parser_delete(&reading.parser);
    if (status == STRATA_OK) *tree = reading.root;
    return status;
}

const strata_tree_t *strata_tree_get(const strata_tree_t *map, const char *key) {
    const strata_tree_t *child = map->kind == STRATA_TREE_MAP ? map->first : NULL;
    while (child && strcmp(child->key, key) != 0) child = child->next;
    return child;
}

/* ---- the page ---- */

static const char about_limits[] =
    "\n## Errors and limits\n\n"
    "Every error is reported as `file:line:column: what is wrong; what to write`. `strata check` reports as many errors as\n"
    "it can separate. Aliases, tags, directives other than `%%YAML`, and second documents of YAML are refused. A file has\n"
    "at most %s, %d nested collections, %d values of %s, and %d keys in a mapping. Values must be one line without tabs,\n"
    "except texts for people, such as `description`. A byte order mark at the beginning is skipped.\n";

void strata_page_limits(FILE *out) {
    char file[64], value[64];
    strata_print_size(STRATA_TREE_BYTES, file, sizeof file);
    strata_print_size(STRATA_TREE_SCALAR, value, sizeof value);
    fprintf(out, about_limits, file, STRATA_TREE_DEPTH, STRATA_TREE_NODES, value, STRATA_TREE_KEYS);
}
