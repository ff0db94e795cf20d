/* Applies the rows of an import to a strategy model. */
#include <string.h>

#include "config/import/rows.h"
#include "platform/place.h"

enum { PATH = 128 };

typedef struct edit {
    strata_import_t *import;
    strata_strategy_t *strategy;
    import_setting_t *setting;
    strata_origin_t origin; /* the setting's origin, with a file name that the strategy owns */
} edit_t;

/* ---- layers of the gpu's stack ---- */

static size_t find_layer(const strata_model_stack_t *stack, const char *name) {
    size_t i = 0;
    while (i < stack->count && strcmp(stack->layers[i].type->name, name) != 0) i++;
    return i;
}

static void remove_layer(strata_model_stack_t *stack, const char *name) {
    size_t at = find_layer(stack, name);
    if (at == stack->count) return;
    memmove(&stack->layers[at], &stack->layers[at + 1], (stack->count - at - 1) * sizeof *stack->layers);
    stack->count--;
}

/* Returns the position for a new layer. A limit counts requests to the device, so it goes directly above
 * the source. Every other layer sees the program's requests, so it goes below the layer that waits. */
static size_t place_of(const strata_model_stack_t *stack, const char *name) {
    if (strcmp(name, "limit") == 0) return stack->count - 1;
    return find_layer(stack, "retry") == 0 ? 1 : 0;
}

static strata_status_t ensure_layer(const edit_t *edit, const char *name) {
    strata_model_stack_t *stack = &edit->strategy->stacks[STRATA_PLACE_GPU];
    strata_arena_t *memory = edit->strategy->memory;
    if (find_layer(stack, name) < stack->count) return STRATA_OK;
    size_t at = place_of(stack, name);
    strata_model_layer_t *layers = strata_arena_alloc(memory, stack->count + 1, sizeof *layers);
    if (!layers) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_model_layer_init(memory, &layers[at], strata_layer_find(name), &edit->origin);
    if (status) return status;
    memcpy(layers, stack->layers, at * sizeof *layers);
    memcpy(layers + at + 1, stack->layers + at, (stack->count - at) * sizeof *layers);
    stack->layers = layers;
    stack->count++;
    return STRATA_OK;
}

/* ---- values ---- */

static strata_place_kind_t place_of_path(const char *path) {
    char word[16];
    size_t length = strcspn(path, ".");
    if (length >= sizeof word) return STRATA_PLACE_GPU;
    memcpy(word, path, length);
    word[length] = '\0';
    strata_place_kind_t place = strata_place_find(word);
    return place == STRATA_PLACE_KINDS ? STRATA_PLACE_GPU : place;
}

/* Marks earlier settings of the same path as overridden. */
static void override_earlier(edit_t *edit, const char *path) {
    for (size_t i = 0; i < edit->import->count; i++) {
        import_setting_t *other = &edit->import->settings[i];
        if (other != edit->setting && other->target && strcmp(other->target, path) == 0 && !other->skip_reason)
            other->skip_reason = edit->setting->row->key;
    }
}

/* Sets "layer.option"; "+layer.option" adds a missing layer first. Sets *had to true if the strategy has the option. */
static strata_status_t set_path(edit_t *edit, const char *path, const char *value, bool *had) {
    char layer[PATH];
    strata_status_t status = STRATA_OK;
    if (*path == '+') {
        size_t length = strcspn(++path, ".");
        memcpy(layer, path, length);
        layer[length] = '\0';
        status = ensure_layer(edit, layer);
    }
    *had = status == STRATA_OK && strata_strategy_has(edit->strategy, path);
    if (!*had) return status;
    override_earlier(edit, path);
    if (!edit->setting->target) edit->setting->target = strata_arena_strndup(edit->import->memory, path, strlen(path));
    if (!edit->setting->target) return STRATA_E_HOST_MEMORY;
    edit->import->touched[place_of_path(path)] = true;
    return strata_strategy_set(edit->strategy, path, value, &edit->origin);
}

/* Copies the word at *list and moves *list past it. Returns false if there is none. */
static bool next_word(const char **list, char *word) {
    *list += strspn(*list, " ");
    size_t length = strcspn(*list, " ");
    if (length == 0 || length >= PATH) return false;
    memcpy(word, *list, length);
    word[length] = '\0';
    *list += length;
    return true;
}

static strata_status_t set_each(edit_t *edit, const char *list) {
    char path[PATH];
    bool any = false;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && next_word(&list, path)) {
        bool had = false;
        status = set_path(edit, path, edit->setting->converted, &had);
        any = any || had;
    }
    if (status == STRATA_OK && !any) edit->setting->skip_reason = "";
    return status;
}

static strata_status_t fix_all(edit_t *edit, const char *list) {
    char path[PATH];
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && next_word(&list, path)) {
        char *value = strchr(path, '=');
        bool had = false;
        *value++ = '\0';
        if (!strchr(path, '.')) continue; /* a place, which strata_read_import() has kept */
        status = set_path(edit, path, value, &had);
        if (status == STRATA_OK && !had) edit->setting->skip_reason = "";
    }
    return status;
}

/* If the strategy lacks the place's layer, as the preset `system` does, the setting has no effect. */
static strata_status_t replace_layer(edit_t *edit, const char *list) {
    char path[PATH], other[PATH];
    if (!next_word(&list, path) || !next_word(&list, other)) return STRATA_OK; /* cannot happen: every row has both words */
    strata_model_stack_t *stack = &edit->strategy->stacks[place_of_path(path)];
    size_t at = find_layer(stack, strchr(path, '.') + 1);
    if (at == stack->count) {
        edit->setting->skip_reason = "";
        return STRATA_OK;
    }
    strata_status_t status = strata_model_layer_init(edit->strategy->memory, &stack->layers[at], strata_layer_find(other),
                                                     &edit->origin);
    return status == STRATA_OK ? fix_all(edit, list) : status;
}

static strata_status_t apply(edit_t *edit) {
    const import_case_t *action = &edit->setting->action;
    switch (action->verb) {
    case IMPORT_SET: return set_each(edit, action->what);
    case IMPORT_FIX: return fix_all(edit, action->what);
    case IMPORT_PRESET: return fix_all(edit, action->what + strcspn(action->what, " "));
    case IMPORT_EXCHANGE: return replace_layer(edit, action->what);
    case IMPORT_DROP: remove_layer(&edit->strategy->stacks[STRATA_PLACE_GPU], action->what); return STRATA_OK;
    case IMPORT_NOTHING:
    case IMPORT_NONE:
    case IMPORT_END: return STRATA_OK;
    }
    return STRATA_OK;
}

static strata_status_t edit_one(strata_import_t *import, strata_strategy_t *strategy, import_setting_t *setting) {
    edit_t edit = {.import = import, .strategy = strategy, .setting = setting, .origin = setting->origin};
    edit.origin.file = strata_arena_strndup(strategy->memory, setting->origin.file, strlen(setting->origin.file));
    return edit.origin.file ? apply(&edit) : STRATA_E_HOST_MEMORY;
}

/* Applies settings in the order of the table, so their order in the string does not matter. */
strata_status_t strata_import_edit(strata_import_t *import, strata_strategy_t *strategy) {
    strata_status_t status = STRATA_OK;
    for (const import_row_t *row = import->peer->rows; row->key && status == STRATA_OK; row++) {
        import_setting_t *setting = strata_import_find(import, row->key);
        if (setting) status = edit_one(import, strategy, setting);
    }
    return status;
}
