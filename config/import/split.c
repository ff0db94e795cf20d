/* A string, or the environment, as keys and values with their places. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/import/rows.h"
#include "platform/text/nearest.h"

/* What is read, and its place. */
typedef struct cursor {
    strata_import_t *import;
    const char *at;
    const char *file; /* "<pytorch>", or the variable's name */
    uint32_t line, column;
} cursor_t;

static void step(cursor_t *cursor, size_t count) {
    for (; count > 0; count--, cursor->at++) {
        cursor->column++;
        if (*cursor->at == '\n') cursor->line++, cursor->column = 1;
    }
}

static strata_origin_t here(const cursor_t *cursor) {
    return (strata_origin_t){.source = cursor->import->said ? STRATA_FROM_FILE : STRATA_FROM_ENVIRONMENT,
                             .file = cursor->file,
                             .line = cursor->line,
                             .column = cursor->column};
}

static void skip_spaces(cursor_t *cursor) { step(cursor, strspn(cursor->at, " \t\r\n")); }

/* ---- keys ---- */

/* The rows among which a key is looked for: variables, or the keys inside one. */
typedef struct level {
    const import_row_t *rows;
    bool inner;
} level_t;

static const import_row_t *row_at(const level_t *level, size_t index) {
    for (const import_row_t *row = level->rows; row->key; row++)
        if (row->inner == level->inner && index-- == 0) return row;
    return NULL;
}

static const char *key_word(size_t index, const void *context) {
    const import_row_t *row = row_at(context, index);
    return row ? row->key : "";
}

static strata_status_t fail_key(const cursor_t *cursor, const level_t *level, const char *key) {
    strata_origin_t origin = here(cursor);
    size_t count = 0;
    while (row_at(level, count)) count++;
    const char *nearest = strata_nearest_word(key, count, key_word, level);
    const import_row_t *row = level->rows;
    while (row->key && (!row->inner || strcmp(row->key, key) != 0)) row++;
    if (!level->inner && row->key)
        return strata_fail_origin(&origin, "%s is a key of a string, and its value comes after a colon; write %s:VALUE", key, key);
    return strata_fail_origin(&origin, "%s knows no \"%.60s\" about memory; write %s (docs/import.md lists what there is)",
                              cursor->import->peer->name, key, nearest ? nearest : key_word(0, level));
}

/* The greatest version that begins with the parts that are written: 1.13.1 is one of 1.13. */
static uint64_t last_of(const char *text) {
    uint64_t version = 0, after = UINT64_C(1000000) * 1000000;
    (void)strata_import_version(text, &version);
    for (; *text; text++)
        if (*text == '.' || *text == '-') after /= 1000000;
    return version + after - 1;
}

/* -1: the version is before the key; 1: after it. */
static int beside_version(const strata_import_t *import, const import_row_t *row) {
    uint64_t since = 0;
    if (!import->as_of) return 0;
    if (row->since) (void)strata_import_version(row->since, &since);
    return import->version < since ? -1 : row->until && import->version > last_of(row->until);
}

static strata_status_t check_version(const cursor_t *cursor, const import_row_t *row) {
    const strata_import_t *import = cursor->import;
    strata_origin_t origin = here(cursor);
    int beside = beside_version(import, row);
    if (beside < 0)
        return strata_fail_origin(&origin, "%s has %s from %s on, not as of %.20s; leave it out, or write --as-of %s",
                                  import->peer->name, row->key, row->since, import->as_of, row->since);
    if (beside > 0)
        return strata_fail_origin(&origin, "%s had %s up to %s, not as of %.20s; leave it out, or write --as-of %s",
                                  import->peer->name, row->key, row->until, import->as_of, row->until);
    return STRATA_OK;
}

/* The key of `length` bytes at the cursor. */
static strata_status_t find_row(const cursor_t *cursor, const level_t *level, size_t length, const import_row_t **row) {
    char key[STRATA_IMPORT_VALUE];
    strata_origin_t origin = here(cursor);
    if (length == 0 || length >= sizeof key)
        return strata_fail_origin(&origin, length ? "this key is longer than %d bytes" : "a key is missing before the sign",
                                  STRATA_IMPORT_VALUE - 1);
    memcpy(key, cursor->at, length);
    key[length] = '\0';
    for (size_t i = 0; (*row = row_at(level, i)); i++)
        if (strcmp((*row)->key, key) == 0) return check_version(cursor, *row);
    return fail_key(cursor, level, key);
}

static strata_status_t check_text(const strata_import_t *import, const char *file, const char *text) {
    size_t length = strnlen(text, STRATA_IMPORT_BYTES + 1);
    strata_origin_t origin = {.source = STRATA_FROM_FILE, .file = file, .line = 1, .column = 1};
    if (length > STRATA_IMPORT_BYTES)
        return strata_fail_origin(&origin, "more than %d bytes; write a shorter string", STRATA_IMPORT_BYTES);
    for (const char *c = text; *c; c++, origin.column++) {
        bool space = *c == '\n' || *c == '\t' || *c == '\r';
        if (!space && (*c < ' ' || *c > '~'))
            return strata_fail_origin(&origin, "a byte that is no printable ASCII letter; %s's settings have none",
                                      import->peer->name);
        if (*c == '\n') origin.line++, origin.column = 0;
    }
    return STRATA_OK;
}

/* ---- key:value,key:value ---- */

static strata_status_t split_one_inner(cursor_t *cursor, const level_t *level) {
    const import_row_t *row = NULL;
    size_t key = strcspn(cursor->at, ":, \t\r\n");
    strata_origin_t origin = here(cursor);
    strata_status_t status = find_row(cursor, level, key, &row);
    if (status) return status;
    step(cursor, key);
    skip_spaces(cursor);
    if (*cursor->at != ':') {
        origin = here(cursor);
        return strata_fail_origin(&origin, "%s has no value; write %s:VALUE", row->key, row->key);
    }
    step(cursor, 1);
    skip_spaces(cursor);
    /* A list in brackets has commas of its own. */
    const char *close = *cursor->at == '[' ? strchr(cursor->at, ']') : NULL;
    size_t length = close ? (size_t)(close + 1 - cursor->at) : strcspn(cursor->at, ", \t\r\n");
    status = strata_import_add(cursor->import, row, cursor->at, length, &origin);
    step(cursor, length);
    skip_spaces(cursor);
    origin = here(cursor);
    if (status == STRATA_OK && *cursor->at && *cursor->at != ',')
        return strata_fail_origin(&origin, "a comma should follow the value of %s; write key:value,key:value", row->key);
    return status;
}

static strata_status_t split_inner(cursor_t *cursor) {
    level_t level = {cursor->import->peer->rows, true};
    strata_status_t status = STRATA_OK;
    for (skip_spaces(cursor); *cursor->at && status == STRATA_OK; skip_spaces(cursor)) {
        if (*cursor->at == ',') step(cursor, 1);
        else status = split_one_inner(cursor, &level);
    }
    return status;
}

/* ---- NAME=value NAME=value ---- */

static strata_status_t split_assignment(cursor_t *cursor, const level_t *level) {
    const import_row_t *row = NULL;
    size_t key = strcspn(cursor->at, "= \t\r\n");
    strata_origin_t origin = here(cursor);
    if (key == 6 && memcmp(cursor->at, "export", 6) == 0 && cursor->at[6] != '=') {
        step(cursor, 6);
        return STRATA_OK;
    }
    strata_status_t status = find_row(cursor, level, key, &row);
    if (status) return status;
    step(cursor, key);
    if (*cursor->at != '=') return strata_fail_origin(&origin, "%s has no value; write %s=VALUE", row->key, row->key);
    step(cursor, 1);
    char quote = *cursor->at == '"' || *cursor->at == '\'' ? *cursor->at : '\0';
    const char *end = quote ? strchr(cursor->at + 1, quote) : NULL;
    if (quote && !end) return strata_fail_origin(&origin, "the value of %s has no closing %c", row->key, quote);
    if (quote) step(cursor, 1);
    size_t length = end ? (size_t)(end - cursor->at) : strcspn(cursor->at, " \t\r\n");
    /* A value with keys of its own begins where it stands. */
    strata_origin_t place = row->kind == IMPORT_CONF ? here(cursor) : origin;
    status = strata_import_add(cursor->import, row, cursor->at, length, &place);
    step(cursor, length + !!quote);
    return status;
}

static strata_status_t split_assignments(cursor_t *cursor) {
    level_t level = {cursor->import->peer->rows, false};
    strata_status_t status = STRATA_OK;
    for (skip_spaces(cursor); *cursor->at && status == STRATA_OK; skip_spaces(cursor)) status = split_assignment(cursor, &level);
    return status;
}

/* An environment may hold variables for other versions than the requested one, which ignores them. */
static strata_status_t read_environment(strata_import_t *import) {
    strata_status_t status = STRATA_OK;
    for (const import_row_t *row = import->peer->rows; row->key && status == STRATA_OK; row++) {
        const char *value = row->inner ? NULL : getenv(row->key);
        if (!value) continue;
        cursor_t cursor = {.import = import, .at = value, .file = row->key, .line = 1, .column = 1};
        status = check_text(import, row->key, value);
        strata_origin_t origin = here(&cursor);
        if (status == STRATA_OK) status = strata_import_add(import, row, value, strlen(value), &origin);
        if (status == STRATA_OK && beside_version(import, row) != 0)
            import->settings[import->count - 1].passed_over = "this version does not read it";
    }
    return status;
}

/* ---- the whole ---- */

/* Of several variables with keys inside, only the first in the table is read. */
static strata_status_t split_values(strata_import_t *import) {
    import_setting_t *first = NULL;
    for (const import_row_t *row = import->peer->rows; row->key && !first; row++)
        if (row->kind == IMPORT_CONF) first = strata_import_find(import->settings, import->count, row->key);
    if (!first) return STRATA_OK;
    for (size_t i = 0; i < import->count; i++)
        if (import->settings[i].row->kind == IMPORT_CONF && &import->settings[i] != first && !import->settings[i].passed_over)
            import->settings[i].passed_over = "the other variable is read before it";
    cursor_t cursor = {.import = import,
                       .at = first->value,
                       .file = first->origin.file,
                       .line = first->origin.line,
                       .column = first->origin.column};
    return split_inner(&cursor);
}

/* "PYTORCH_CUDA_ALLOC_CONF=..." and not "max_split_size_mb:128". */
static bool has_variables(const strata_import_t *import, const char *text) {
    const level_t inner = {import->peer->rows, true};
    size_t word = strspn(text, " \t\r\n");
    word += strcspn(text + word, "=: \t\r\n,");
    return !row_at(&inner, 0) || text[word] == '=' || strncmp(text + strspn(text, " \t\r\n"), "export ", 7) == 0;
}

strata_status_t strata_import_split(strata_import_t *import, const char *text) {
    char name[64];
    if (!text) {
        strata_status_t status = read_environment(import);
        return status ? status : split_values(import);
    }
    snprintf(name, sizeof name, "<%s>", import->peer->name);
    cursor_t cursor = {
        .import = import, .at = text, .file = strata_arena_text(import->memory, name, strlen(name)), .line = 1, .column = 1};
    if (!cursor.file) return STRATA_E_HOST_MEMORY;
    strata_status_t status = check_text(import, cursor.file, text);
    if (status) return status;
    if (!has_variables(import, text)) return split_inner(&cursor);
    status = split_assignments(&cursor);
    return status ? status : split_values(import);
}

bool strata_import_version(const char *text, uint64_t *version) {
    uint64_t value = 0;
    const char *at = text;
    for (int part = 0; part < 3; part++) {
        uint64_t number = 0;
        size_t digits = strspn(at, "0123456789");
        if (part > 0 && !*at) digits = 0;
        else if (digits == 0 || digits > 6) return false;
        for (size_t i = 0; i < digits; i++) number = number * 10 + (uint64_t)(at[i] - '0');
        value = value * 1000000 + number;
        at += digits;
        if (part < 2 && (*at == '.' || *at == '-') && isdigit((unsigned char)at[1])) at++;
    }
    if (*at) return false;
    *version = value;
    return true;
}

/* Months have numbers up to 12, days up to 31. */
static bool is_date(const char *text) {
    unsigned most = 12;
    for (const char *at = strchr(text, '-'); at; at = strchr(at + 1, '-'), most = 31) {
        unsigned long number = strtoul(at + 1, NULL, 10);
        if (number < 1 || number > most) return false;
    }
    return true;
}

bool strata_import_known(const import_peer_t *peer, const char *text, uint64_t *version) {
    bool dates = strchr(peer->version, '-') != NULL;
    if (!strata_import_version(text, version) || strchr(text, dates ? '.' : '-') || !is_date(text)) return false;
    for (size_t i = 0; peer->known[i].first; i++) {
        uint64_t first = 0;
        (void)strata_import_version(peer->known[i].first, &first);
        if (*version >= first && *version <= last_of(peer->known[i].last)) return true;
    }
    return false;
}

void strata_import_known_text(const import_peer_t *peer, char *text, size_t capacity) {
    size_t length = 0;
    for (size_t i = 0; peer->known[i].first && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s to %s", i ? ", " : "", peer->known[i].first,
                                   peer->known[i].last);
}
