/* Reads a profile from a file. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/files.h"
#include "config/hint.h"
#include "config/profile/fields.h"
#include "config/profile/profile.h"
#include "config/tree.h"
#include "platform/host/host_memory.h"
#include "platform/text/printable.h"
#include "strategy/model.h"

/* Keys that are not fields. */
enum { KEY_PROFILE, KEY_EXTENDS, OWN_KEYS };
static const char *const own_keys[OWN_KEYS] = {"profile", "extends"};

static strata_origin_t place_of(const char *file, uint32_t line, uint32_t column) {
    return (strata_origin_t){.source = STRATA_FROM_FILE, .file = file, .line = line, .column = column};
}

static const char *key_word(size_t index, const void *unused) {
    (void)unused;
    return index < OWN_KEYS ? own_keys[index] : strata_profile_fields[index - OWN_KEYS].name;
}

static const char *profile_word(size_t index, const void *unused) {
    (void)unused;
    return strata_sim_profile_name(index);
}

static strata_status_t expect_value(const strata_origin_t *key, const strata_tree_t *node) {
    if (node->kind != STRATA_TREE_SCALAR_NODE || node->empty)
        return strata_fail_origin(key, "\"%.40s\" needs one value", node->key);
    return node->broken ? strata_fail_origin(key, "the value spans lines or contains a tab; write it on one line") : STRATA_OK;
}

/* ---- keys ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

void strata_profile_name(const char *text, char name[32]) {
    snprintf(name, 32, "%s", *text ? text : "_");
    for (char *at = name; *(at += strspn(at, letters));) *at = '_';
}

static strata_status_t read_name(const strata_origin_t *value, const char *text, strata_sim_profile_t *profile) {
    size_t length = strlen(text);
    if (length >= sizeof profile->name || strspn(text, letters) != length)
        return strata_fail_origin(value,
                                  "\"%.40s\" is not a valid profile name; write 1 to %zu letters, digits, \".\", \"_\" and \"-\"",
                                  text, sizeof profile->name - 1);
    memcpy(profile->name, text, length + 1);
    return STRATA_OK;
}

/* Accepts only built-in profiles, so that a file is complete without other files. */
static strata_status_t read_extends(const char *file, const strata_tree_t *node, strata_sim_profile_t *profile) {
    strata_origin_t key = place_of(file, node->key_line, node->key_column), value = place_of(file, node->line, node->column);
    strata_status_t status = expect_value(&key, node);
    if (status != STRATA_OK) return status;
    const strata_sim_profile_t *base = strata_sim_profile(node->text);
    size_t count = 0;
    while (strata_sim_profile_name(count)) count++;
    strata_hint_t hint = strata_hint(node->text, count, profile_word, NULL);
    if (!base) return strata_fail_origin(&value, "there is no profile \"%.40s\"; %s", node->text, hint.text);
    char name[sizeof profile->name];
    memcpy(name, profile->name, sizeof name);
    *profile = *base;
    memcpy(profile->name, name, sizeof name);
    return STRATA_OK;
}

/* The error begins with the key, as for options. */
static strata_status_t read_field(const strata_profile_field_t *field, const char *text, strata_sim_profile_t *profile) {
    if (field->number) return strata_option_set(field->number, profile, text);
    strata_status_t status = strata_cost_parse(text, (strata_sim_cost_t *)((char *)profile + field->offset));
    return status ? strata_fail_context("%s", field->name) : STRATA_OK;
}

static strata_status_t read_key(const char *file, const strata_tree_t *node, strata_sim_profile_t *profile,
                                bool given[STRATA_PROFILE_FIELDS]) {
    strata_origin_t key = place_of(file, node->key_line, node->key_column), value = place_of(file, node->line, node->column);
    if (strcmp(node->key, own_keys[KEY_EXTENDS]) == 0) return STRATA_OK; /* read before all others */
    size_t field = 0;
    bool is_name = strcmp(node->key, own_keys[KEY_PROFILE]) == 0;
    while (!is_name && field < STRATA_PROFILE_FIELDS && strcmp(strata_profile_fields[field].name, node->key) != 0) field++;
    if (field == STRATA_PROFILE_FIELDS) {
        strata_hint_t hint = strata_hint(node->key, OWN_KEYS + STRATA_PROFILE_FIELDS, key_word, NULL);
        return strata_fail_origin(&key, "a profile has no key \"%.40s\"; %s", node->key, hint.text);
    }
    strata_status_t status = expect_value(&key, node);
    if (status != STRATA_OK) return status;
    if (is_name) return read_name(&value, node->text, profile);
    given[field] = true;
    status = read_field(&strata_profile_fields[field], node->text, profile);
    return status == STRATA_E_STRATEGY ? strata_fail_origin(&value, "%s", strata_last_error()->text) : status;
}

/* ---- a profile ---- */

static strata_status_t read_tree(const char *file, const strata_tree_t *tree, strata_sim_profile_t *profile) {
    strata_origin_t origin = place_of(file, tree->line, tree->column);
    bool given[STRATA_PROFILE_FIELDS] = {false};
    if (tree->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&origin, "a profile must be a mapping; write keys as in \"extends: h100\"");
    const strata_tree_t *extends = strata_tree_get(tree, own_keys[KEY_EXTENDS]);
    strata_status_t status = extends ? read_extends(file, extends, profile) : STRATA_OK;
    for (const strata_tree_t *node = tree->first; node && status == STRATA_OK; node = node->next)
        status = read_key(file, node, profile, given);
    for (size_t i = 0; i < STRATA_PROFILE_FIELDS && status == STRATA_OK && !extends; i++)
        if (!given[i])
            status = strata_fail_origin(&origin, "\"%s\" is missing; write it, or extends: h100 to supply all missing keys",
                                        strata_profile_fields[i].name);
    if (status != STRATA_OK) return status;
    status = strata_sim_profile_check(profile);
    return status ? strata_fail_origin(&origin, "%s", strata_last_error()->text) : STRATA_OK;
}

strata_status_t strata_profile_read(const char *file, const char *name, const char *text, size_t length,
                                    strata_sim_profile_t *profile) {
    strata_sim_profile_t read = {.name = ""};
    strata_tree_t *tree;
    strata_arena_t *scratch = strata_arena_new();
    if (!scratch) return STRATA_E_HOST_MEMORY;
    strata_profile_name(name, read.name);
    strata_status_t status = strata_tree_read(scratch, file, text, length, &tree);
    if (status == STRATA_OK) status = read_tree(file, tree, &read);
    strata_arena_delete(scratch);
    if (status == STRATA_OK) *profile = read;
    return status;
}

strata_status_t strata_profile_load(const char *path, strata_file_named_t named, strata_sim_profile_t *profile) {
    char name[256], shown[STRATA_CONFIG_PATH], *text = NULL;
    size_t length = 0;
    strata_status_t status = strata_config_read_whole(path, named, &text, &length);
    snprintf(shown, sizeof shown, "%s", path);
    strata_make_printable(shown, false);
    strata_config_short_name(shown, name, sizeof name);
    if (status == STRATA_OK) status = strata_profile_read(shown, name, text, length, profile);
    strata_host_delete(text);
    return status;
}
