#include "config/import/import.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/hint.h"
#include "config/import/rows.h"
#include "platform/place.h"

static const import_peer_t *const peers[] = {&strata_import_pytorch, &strata_import_paddle, &strata_import_tensorflow};

const import_peer_t *strata_import_peer_at(size_t index) { return index < sizeof peers / sizeof *peers ? peers[index] : NULL; }

bool strata_import_is(const char *name) { return strncmp(name, STRATA_IMPORT_PREFIX, strlen(STRATA_IMPORT_PREFIX)) == 0; }

static const char *peer_word(size_t index, const void *context) {
    (void)context;
    return peers[index]->name;
}

/* ---- settings ---- */

import_setting_t *strata_import_find(const strata_import_t *import, const char *key) {
    for (size_t i = 0; i < import->count; i++)
        if (!import->settings[i].skip_reason && strcmp(import->settings[i].row->key, key) == 0) return &import->settings[i];
    return NULL;
}

const char *strata_import_text(strata_import_t *import, const char *format, ...) {
    char text[2 * STRATA_IMPORT_VALUE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return strata_arena_strndup(import->memory, text, strlen(text));
}

const char *strata_import_written(strata_import_t *import, const import_setting_t *setting) {
    return strata_import_text(import, "%s%c%.60s", setting->row->key, setting->row->inner ? ':' : '=', setting->value);
}

/* Unused text is shown on a terminal and in a comment of the file, so it must not contain a line end. */
static bool is_of_one_line(const char *value, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (value[i] < ' ') return false;
    return true;
}

strata_status_t strata_import_add(strata_import_t *import, const import_row_t *row, const char *value, size_t length,
                                  const strata_origin_t *origin) {
    if (import->count == STRATA_IMPORT_SETTINGS)
        return strata_fail_origin(origin, "more than %d settings; write fewer", STRATA_IMPORT_SETTINGS);
    if (row->kind != IMPORT_CONF && length >= STRATA_IMPORT_VALUE)
        return strata_fail_origin(origin, "the value of %s is longer than %d bytes; write a shorter one", row->key,
                                  STRATA_IMPORT_VALUE - 1);
    if (row->kind != IMPORT_CONF && !is_of_one_line(value, length))
        return strata_fail_origin(origin, "the value of %s contains a tab or a line break; write it on one line", row->key);
    import_setting_t *before = strata_import_find(import, row->key);
    import_setting_t *setting = &import->settings[import->count];
    *setting = (import_setting_t){.row = row, .value = strata_arena_strndup(import->memory, value, length), .origin = *origin};
    if (!setting->value) return STRATA_E_HOST_MEMORY;
    if (before) before->skip_reason = "it is set again later";
    import->count++;
    return strata_import_value(import, setting);
}

strata_status_t strata_import_imply(strata_import_t *import, const char *key, const char *value, const import_setting_t *because) {
    const import_row_t *row = import->peer->rows;
    while (strcmp(row->key, key) != 0) row++;
    strata_status_t status = strata_import_add(import, row, value, strlen(value), &because->origin);
    if (status == STRATA_OK) import->settings[import->count - 1].implied = true;
    return status;
}

/* ---- a request ---- */

static strata_status_t copy_text(strata_import_t *import, const char *text, const char **kept) {
    *kept = text ? strata_arena_strndup(import->memory, text, strnlen(text, STRATA_IMPORT_BYTES + 1)) : NULL;
    return text && !*kept ? STRATA_E_HOST_MEMORY : STRATA_OK;
}

/* Accepts "pytorch" and "pytorch@2.9". */
static strata_status_t read_peer(strata_import_t *import, const strata_import_request_t *request) {
    size_t length = strcspn(request->peer, "@");
    const char *after = request->peer[length] ? request->peer + length + 1 : NULL;
    for (size_t i = 0; strata_import_peer_at(i); i++)
        if (strlen(peers[i]->name) == length && memcmp(peers[i]->name, request->peer, length) == 0) import->peer = peers[i];
    if (!import->peer) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), request->peer);
        strata_hint_t hint = strata_hint(word, sizeof peers / sizeof *peers, peer_word, NULL);
        return strata_fail(STRATA_E_STRATEGY, 0, "there is no allocator \"%.40s\"; %s", word, hint.text);
    }
    strata_status_t status = copy_text(import, request->as_of ? request->as_of : after, &import->as_of);
    if (status || !import->as_of || strata_import_known(import->peer, import->as_of, &import->version)) return status;
    char known[128] = "";
    strata_import_known_text(import->peer, known, sizeof known);
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%.20s\" is not a known version of %s; write one of %s, as in %s", import->as_of,
                       import->peer->name, known, import->peer->version);
}

/* Chooses the preset of the last matching row of the table; earlier rows that select a preset are ignored. */
static strata_status_t choose_preset(strata_import_t *import) {
    const import_peer_t *peer = import->peer;
    import_setting_t *decided = NULL;
    uint64_t old = 0;
    const char *preset = peer->preset;
    if (import->as_of && peer->old && strata_import_version(peer->old, &old) && import->version < old) preset = peer->old_preset;
    for (const import_row_t *row = peer->rows; row->key; row++) {
        import_setting_t *setting = strata_import_find(import, row->key);
        if (!setting || setting->action.verb != IMPORT_PRESET) continue;
        if (decided) decided->skip_reason = setting->row->key;
        decided = setting;
    }
    import->decided = decided;
    if (!decided) return copy_text(import, preset, &import->preset);
    size_t length = strcspn(decided->action.what, " ");
    import->preset = strata_arena_strndup(import->memory, decided->action.what, length);
    return import->preset ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

static strata_status_t read_request(strata_import_t *import, const strata_import_request_t *request) {
    import->settings = strata_arena_alloc(import->memory, STRATA_IMPORT_SETTINGS, sizeof *import->settings);
    if (!import->settings) return STRATA_E_HOST_MEMORY;
    strata_status_t status = read_peer(import, request);
    if (status == STRATA_OK) status = copy_text(import, request->text, &import->input);
    if (status == STRATA_OK) status = strata_import_split(import, import->input);
    if (status == STRATA_OK && import->peer->resolve) status = import->peer->resolve(import);
    return status ? status : choose_preset(import);
}

strata_status_t strata_import_new(const strata_import_request_t *request, strata_import_t **import) {
    strata_arena_t *arena = strata_arena_new();
    strata_import_t *made = arena ? strata_arena_alloc(arena, 1, sizeof *made) : NULL;
    if (!made) {
        strata_arena_delete(arena);
        return STRATA_E_HOST_MEMORY;
    }
    made->memory = arena;
    strata_status_t status = read_request(made, request);
    if (status == STRATA_OK) {
        *import = made;
    } else {
        strata_import_delete(made);
    }
    return status;
}

void strata_import_delete(strata_import_t *import) {
    if (import) strata_arena_delete(import->memory);
}

/* ---- the strategy ---- */

/* A preset of one peer can serve another peer. Its `places` then do not fit that peer's pinned and host
 * memory, so those places stay as in the preset strata. */
static void keep_places(strata_import_t *import, strata_strategy_t *strategy, const strata_model_stack_t *before) {
    for (strata_place_kind_t place = STRATA_PLACE_MANAGED; import->decided && place < STRATA_PLACE_KINDS; place++) {
        char word[32];
        snprintf(word, sizeof word, "%s=strata", strata_place_name(place));
        if (!strstr(import->decided->action.what, word)) continue;
        strategy->stacks[place] = before[place];
        import->touched[place] = true;
    }
}

strata_status_t strata_read_import(strata_reader_t *reader, strata_import_t *import) {
    char name[STRATA_NAME_LETTERS];
    /* Keys may concern places that the peer's preset leaves as in the preset strata. */
    strata_status_t status = strata_read_preset(reader, "strata");
    strata_model_stack_t before[STRATA_PLACE_KINDS];
    memcpy(before, reader->strategy->stacks, sizeof before);
    if (status == STRATA_OK) status = strata_read_preset(reader, import->preset);
    if (status) return status;
    keep_places(import, reader->strategy, before);
    snprintf(name, sizeof name, "imported-%s", import->peer->name);
    char *kept = strata_arena_strndup(reader->strategy->memory, name, strlen(name));
    if (!kept) return STRATA_E_HOST_MEMORY;
    reader->strategy->name = kept;
    return strata_import_edit(import, reader->strategy);
}
