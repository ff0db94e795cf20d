/* Splits a string or the environment into keys and values with their positions. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/import/rows.h"
#include "platform/text/nearest.h"

/* The position of the reader in its input. */
typedef struct cursor {
    strata_import_t *import;
    const char *at;
    const char *file; /* "<pytorch>", or the variable's name */
    uint32_t line, column;
    bool blank_assigns; /* set for ENV and setenv, where a blank separates name and value */
} cursor_t;

static void step(cursor_t *cursor, size_t count) {
    for (; count > 0; count--, cursor->at++) {
        cursor->column++;
        if (*cursor->at == '\n') cursor->line++, cursor->column = 1;
    }
}

static strata_origin_t here(const cursor_t *cursor) {
    return (strata_origin_t){.source = cursor->import->input ? STRATA_FROM_FILE : STRATA_FROM_ENVIRONMENT,
                             .file = cursor->file,
                             .line = cursor->line,
                             .column = cursor->column};
}

static void skip_spaces(cursor_t *cursor) { step(cursor, strspn(cursor->at, " \t\r\n")); }

/* ---- keys ---- */

/* The rows in which a key is looked up: variables, or the keys inside one. */
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

/* Returns the known key nearest to an unknown one, or NULL if none is near. */
static const char *nearest_key(const level_t *level, const char *key) {
    size_t count = 0;
    while (row_at(level, count)) count++;
    return strata_nearest_word(key, count, key_word, level);
}

static strata_status_t fail_key(const cursor_t *cursor, const level_t *level, const char *key) {
    strata_origin_t origin = here(cursor);
    const char *nearest = nearest_key(level, key);
    const import_row_t *row = level->rows;
    while (row->key && (!row->inner || strcmp(row->key, key) != 0)) row++;
    if (!level->inner && row->key)
        return strata_fail_origin(&origin, "%s is a key of a string and needs its value after a colon; write %s:VALUE", key, key);
    if (!nearest)
        return strata_fail_origin(&origin, "%s has no memory setting \"%.60s\"; docs/import.md lists them",
                                  cursor->import->peer->name, key);
    return strata_fail_origin(&origin, "%s has no memory setting \"%.60s\"; write %s (docs/import.md lists all)",
                              cursor->import->peer->name, key, nearest);
}

/* Returns the greatest version that begins with the given parts: 1.13.1 belongs to 1.13. */
static uint64_t last_version_of(const char *text) {
    uint64_t version = 0, after = UINT64_C(1000000) * 1000000;
    (void)strata_import_version(text, &version);
    for (; *text; text++)
        if (*text == '.' || *text == '-') after /= 1000000;
    return version + after - 1;
}

bool strata_import_has(const strata_import_t *import, const char *since) {
    uint64_t first = 0;
    return !import->as_of || !strata_import_version(since, &first) || import->version >= first;
}

/* Returns -1 if the version is too old for the key, 1 if it is newer than the last version with the key, else 0. */
static int compare_version(const strata_import_t *import, const import_row_t *row) {
    if (!import->as_of) return 0;
    return row->since && !strata_import_has(import, row->since) ? -1 : row->until && import->version > last_version_of(row->until);
}

static strata_status_t check_version(const cursor_t *cursor, const import_row_t *row) {
    const strata_import_t *import = cursor->import;
    strata_origin_t origin = here(cursor);
    int order = compare_version(import, row);
    if (order < 0)
        return strata_fail_origin(&origin, "%s has %s from %s on, not as of %.20s; leave it out, or write --as-of %s",
                                  import->peer->name, row->key, row->since, import->as_of, row->since);
    if (order > 0)
        return strata_fail_origin(&origin, "%s had %s up to %s, not as of %.20s; leave it out, or write --as-of %s",
                                  import->peer->name, row->key, row->until, import->as_of, row->until);
    return STRATA_OK;
}

/* Finds the row of the key of `length` bytes at the cursor. */
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
            return strata_fail_origin(&origin, "a byte is not printable ASCII, which %s's settings require", import->peer->name);
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
    /* A list in brackets contains commas of its own. */
    const char *close = *cursor->at == '[' ? strchr(cursor->at, ']') : NULL;
    size_t length = close ? (size_t)(close + 1 - cursor->at) : strcspn(cursor->at, ", \t\r\n");
    status = strata_import_add(cursor->import, row, cursor->at, length, &origin);
    step(cursor, length);
    skip_spaces(cursor);
    origin = here(cursor);
    if (status == STRATA_OK && *cursor->at && *cursor->at != ',')
        return strata_fail_origin(&origin, "a comma must follow the value of %s; write key:value,key:value", row->key);
    return status;
}

/* One comma may follow the last setting, as in PyTorch. Versions up to 1.13 also ignored every other extra comma. */
static strata_status_t split_inner(cursor_t *cursor) {
    level_t level = {cursor->import->peer->rows, true};
    bool lenient = cursor->import->as_of && !strata_import_has(cursor->import, "2.0");
    strata_status_t status = STRATA_OK;
    for (skip_spaces(cursor); *cursor->at && status == STRATA_OK; skip_spaces(cursor)) {
        strata_origin_t origin = here(cursor);
        if (*cursor->at != ',') status = split_one_inner(cursor, &level);
        else if (!lenient) return strata_fail_origin(&origin, "no key before the comma, which PyTorch refuses; remove the comma");
        if (status == STRATA_OK && *cursor->at == ',') step(cursor, 1);
    }
    return status;
}

/* ---- NAME=value NAME=value, as in scripts and images ---- */

static const char blanks[] = " \t\r\n";
static const char ends[] = " \t\r\n;&"; /* characters that end an unquoted word */

/* The words that may precede a name. `blank_assigns` is true if a blank may separate name and value after them. */
static const struct {
    const char *word;
    bool blank_assigns;
} commands[] = {{"export", false}, {"ENV", true}, {"env", false},  {"set", false},
                {"setenv", true},  {"-e", false}, {"--env", false}};

/* Skips blanks, command separators, continued line ends and comments. */
static void skip_between(cursor_t *cursor) {
    for (;;) {
        const char *before = cursor->at;
        size_t blank = strspn(cursor->at, blanks);
        if (memchr(cursor->at, '\n', blank)) cursor->blank_assigns = false;
        step(cursor, blank);
        if (*cursor->at == '\\' && (!cursor->at[1] || strchr(blanks, cursor->at[1])))
            step(cursor, 1 + strspn(cursor->at + 1, "\r\n"));
        if (*cursor->at == ';' || *cursor->at == '&') step(cursor, 1);
        if (*cursor->at == '#') step(cursor, strcspn(cursor->at, "\n"));
        if (cursor->at == before) return;
    }
}

/* Skips a command that is not an assignment, up to the end of its last line, ';' or "&&". */
static void skip_command(cursor_t *cursor) {
    while (*cursor->at && !strchr("\n;&", *cursor->at)) {
        bool goes_on = *cursor->at == '\\' && cursor->at[1];
        step(cursor, 1 + goes_on);
    }
}

static bool skip_command_word(cursor_t *cursor) {
    size_t length = strcspn(cursor->at, " \t\r\n=");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bool is = strlen(commands[i].word) == length && memcmp(cursor->at, commands[i].word, length) == 0;
        if (!is || (cursor->at[length] != ' ' && cursor->at[length] != '\t')) continue;
        step(cursor, length);
        cursor->blank_assigns = commands[i].blank_assigns;
        return true;
    }
    return false;
}

/* One word of a command: a name, and a value if it is an assignment. */
typedef struct word {
    const char *name, *value, *after;
    size_t key, length;
    char around; /* the quote before the name, or 0 */
    bool assigns;
} word_t;

static strata_status_t read_word(const cursor_t *cursor, word_t *word) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    bool quoted = *cursor->at == '"' || *cursor->at == '\'';
    *word = (word_t){.name = cursor->at + quoted, .around = quoted ? *cursor->at : '\0'};
    word->key = strspn(word->name, letters);
    const char *at = word->name + word->key;
    bool line = cursor->blank_assigns && !quoted && (*at == ' ' || *at == '\t');
    word->assigns = word->key > 0 && (*at == '=' || line);
    if (!word->assigns) return STRATA_OK;
    at += line ? strspn(at, " \t") : 1;
    char quote = quoted ? word->around : *at == '"' || *at == '\'' ? *at : '\0';
    if (quote && !quoted) at++;
    const char *end = quote ? strchr(at, quote) : at + strcspn(at, line ? "\r\n" : ends);
    strata_origin_t origin = here(cursor);
    if (!end) return strata_fail_origin(&origin, "the value of %.*s has no closing %c", (int)word->key, word->name, quote);
    if (quote && end[1] && !strchr(ends, end[1]))
        return strata_fail_origin(&origin, "a space must follow the value of %.*s", (int)word->key, word->name);
    word->after = end + (quote != '\0');
    while (!quote && line && end > at && (end[-1] == ' ' || end[-1] == '\t')) end--;
    word->value = at;
    word->length = (size_t)(end - at);
    return STRATA_OK;
}

static const import_row_t *row_named(const level_t *level, const char *name, size_t length) {
    size_t i = 0;
    const import_row_t *row;
    while ((row = row_at(level, i++)) && (strlen(row->key) != length || memcmp(row->key, name, length) != 0)) continue;
    return row;
}

/* Keeps a variable that is not a memory setting, so that the output lists it as ignored. */
static strata_status_t add_other(strata_import_t *import, const word_t *word, const strata_origin_t *origin) {
    if (import->count == STRATA_IMPORT_SETTINGS)
        return strata_fail_origin(origin, "more than %d settings; write fewer", STRATA_IMPORT_SETTINGS);
    size_t shown = 0;
    while (shown < word->length && shown < STRATA_IMPORT_VALUE && word->value[shown] >= ' ') shown++;
    import_row_t *row = strata_arena_alloc(import->memory, 1, sizeof *row);
    if (!row) return STRATA_E_HOST_MEMORY;
    import_setting_t other = {.row = row, .origin = *origin, .action = {NULL, IMPORT_NOTHING, NULL}};
    *row = (import_row_t){.key = strata_import_text(import, "%.*s", (int)word->key, word->name), .kind = IMPORT_TEXT};
    other.value = strata_import_text(import, "%.*s", (int)shown, word->value);
    other.skip_reason = strata_import_text(import, "it is not a known memory setting of %s", import->peer->name);
    if (!row->key || !other.value || !other.skip_reason) return STRATA_E_HOST_MEMORY;
    import->settings[import->count++] = other;
    return STRATA_OK;
}

/* If this version lacks a variable with inner keys, the variable is kept but not read, as in the
 * framework. Any other missing variable is an error. */
static strata_status_t add_word(cursor_t *cursor, const import_row_t *row, const word_t *word) {
    strata_import_t *import = cursor->import;
    strata_origin_t origin = here(cursor);
    bool conf = row->kind == IMPORT_CONF, unread = conf && compare_version(import, row) != 0;
    strata_status_t status = unread ? STRATA_OK : check_version(cursor, row);
    /* A value with inner keys has its own position in the input. */
    if (conf) step(cursor, (size_t)(word->value - cursor->at));
    strata_origin_t inside = here(cursor);
    if (status == STRATA_OK) status = strata_import_add(import, row, word->value, word->length, conf ? &inside : &origin);
    if (status == STRATA_OK && unread) import->settings[import->count - 1].skip_reason = "this version does not read it";
    return status;
}

/* Sets *unknown to the first unknown word, for the error if no word is known. Its `at` is NULL until then. */
static strata_status_t split_word(cursor_t *cursor, const level_t *level, cursor_t *unknown) {
    word_t word;
    char key[STRATA_IMPORT_VALUE];
    if (skip_command_word(cursor)) return STRATA_OK;
    strata_status_t status = read_word(cursor, &word);
    if (status) return status;
    strata_origin_t origin = here(cursor);
    const import_row_t *row = row_named(level, word.name, word.key);
    snprintf(key, sizeof key, "%.*s", (int)(word.key < sizeof key ? word.key : sizeof key - 1), word.name);
    if (row && !word.assigns) return strata_fail_origin(&origin, "%s has no value; write %s=VALUE", row->key, row->key);
    if (!row && (word.key >= sizeof key || nearest_key(level, key))) return find_row(cursor, level, word.key, &row);
    if (!row && !unknown->at) *unknown = *cursor;
    if (!word.assigns) {
        skip_command(cursor);
        return STRATA_OK;
    }
    status = row ? add_word(cursor, row, &word) : add_other(cursor->import, &word, &origin);
    step(cursor, (size_t)(word.after - cursor->at));
    return status;
}

static strata_status_t split_assignments(cursor_t *cursor) {
    level_t level = {cursor->import->peer->rows, false};
    cursor_t unknown = {.at = NULL};
    strata_status_t status = STRATA_OK;
    for (skip_between(cursor); *cursor->at && status == STRATA_OK; skip_between(cursor))
        status = split_word(cursor, &level, &unknown);
    if (status || !unknown.at) return status;
    for (size_t i = 0; i < cursor->import->count; i++)
        if (row_named(&level, cursor->import->settings[i].row->key, strlen(cursor->import->settings[i].row->key))) return STRATA_OK;
    const import_row_t *row = NULL;
    return find_row(&unknown, &level, strcspn(unknown.at, "= \t\r\n"), &row);
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
        if (status == STRATA_OK && compare_version(import, row) != 0)
            import->settings[import->count - 1].skip_reason = "this version does not read it";
    }
    return status;
}

/* ---- all input ---- */

/* If several variables have inner keys, only the first one in the table is read. */
static strata_status_t split_values(strata_import_t *import) {
    import_setting_t *first = NULL;
    for (const import_row_t *row = import->peer->rows; row->key && !first; row++)
        if (row->kind == IMPORT_CONF) first = strata_import_find(import, row->key);
    if (!first) return STRATA_OK;
    for (size_t i = 0; i < import->count; i++)
        if (import->settings[i].row->kind == IMPORT_CONF && &import->settings[i] != first && !import->settings[i].skip_reason)
            import->settings[i].skip_reason = first->row->key;
    cursor_t cursor = {.import = import,
                       .at = first->value,
                       .file = first->origin.file,
                       .line = first->origin.line,
                       .column = first->origin.column};
    return split_inner(&cursor);
}

/* Returns true for "PYTORCH_CUDA_ALLOC_CONF=..." and false for "max_split_size_mb:128". */
static bool has_variables(const cursor_t *cursor) {
    const level_t inner = {cursor->import->peer->rows, true};
    cursor_t first = *cursor;
    if (!row_at(&inner, 0)) return true;
    skip_between(&first);
    if (first.at != cursor->at && cursor->at[strspn(cursor->at, blanks)] == '#') return true;
    return skip_command_word(&first) || *first.at == '"' || *first.at == '\'' || first.at[strcspn(first.at, "=: \t\r\n,")] == '=';
}

strata_status_t strata_import_split(strata_import_t *import, const char *text) {
    char name[64];
    if (!text) {
        strata_status_t status = read_environment(import);
        return status ? status : split_values(import);
    }
    snprintf(name, sizeof name, "<%s>", import->peer->name);
    cursor_t cursor = {
        .import = import, .at = text, .file = strata_arena_strndup(import->memory, name, strlen(name)), .line = 1, .column = 1};
    if (!cursor.file) return STRATA_E_HOST_MEMORY;
    strata_status_t status = check_text(import, cursor.file, text);
    if (status) return status;
    if (!has_variables(&cursor)) return split_inner(&cursor);
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

/* Checks that months are 1 to 12 and days 1 to 31. */
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
        if (*version >= first && *version <= last_version_of(peer->known[i].last)) return true;
    }
    return false;
}

void strata_import_known_text(const import_peer_t *peer, char *text, size_t capacity) {
    size_t length = 0;
    for (size_t i = 0; peer->known[i].first && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s to %s", i ? ", " : "", peer->known[i].first,
                                   peer->known[i].last);
}
