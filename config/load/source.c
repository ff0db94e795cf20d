/* Finds the text of a strategy: a preset or a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation/report/log.h"
#include "config/config.h"
#include "config/files.h"
#include "config/hint.h"
#include "config/import/import.h"
#include "config/reader/reader.h"
#include "platform/host/host_memory.h"
#include "platform/text/printable.h"

/* Logs each setting without an equivalent as one warning. If the host has no memory for the text, there
 * are no warnings. */
static void warn_of(const strata_import_t *import) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return;
    strata_import_print(import, "strata: ", out);
    bool whole = fclose(out) == 0;
    for (char *rest, *line = whole ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        strata_log_report(STRATA_LOG_WARNING, line);
    free(text);
}

/* Reads the strategy that another allocator's environment variables describe, by the name "import:pytorch". */
static strata_status_t read_environment(strata_reader_t *reader, const char *name) {
    strata_import_t *import = NULL;
    strata_import_request_t request = {.peer = name + strlen(STRATA_IMPORT_PREFIX)};
    strata_status_t status = strata_import_new(&request, &import);
    if (status == STRATA_OK) status = strata_read_import(reader, import);
    if (status == STRATA_OK) warn_of(import);
    strata_import_delete(import);
    return status;
}

strata_status_t strata_read_preset(strata_reader_t *reader, const char *name) {
    if (strata_import_is(name)) return read_environment(reader, name);
    const char *text = strata_preset_text(name);
    if (!text) {
        strata_hint_t hint = strata_hint(name, strata_preset_words(), strata_preset_word, NULL);
        return strata_fail(STRATA_E_STRATEGY, 0, "there is no preset \"%.40s\"; %s", name, hint.text);
    }
    char file[128];
    snprintf(file, sizeof file, "preset %s", name);
    return strata_read_text(
        reader,
        &(strata_text_t){.source = STRATA_FROM_PRESET, .file = file, .short_name = name, .text = text, .length = strlen(text)});
}

strata_status_t strata_read_file(strata_reader_t *reader, const char *path, strata_file_named_t named) {
    char name[256], shown[STRATA_CONFIG_PATH], *text = NULL;
    size_t length = 0;
    strata_status_t status = strata_config_read_whole(path, named, &text, &length);
    snprintf(shown, sizeof shown, "%s", path);
    strata_make_printable(shown, false);
    strata_config_short_name(shown, name, sizeof name);
    if (status == STRATA_OK)
        status = strata_read_text(
            reader,
            &(strata_text_t){
                .source = STRATA_FROM_FILE, .file = shown, .short_name = name, .path = path, .text = text, .length = length});
    strata_host_delete(text);
    return status;
}

static bool looks_like_path(const char *name) {
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".yaml") == 0) ||
           (length > 4 && strcmp(name + length - 4, ".yml") == 0);
}

strata_status_t strata_read_named(strata_reader_t *reader, const char *name, const char *base, const strata_origin_t *origin) {
    char path[STRATA_CONFIG_PATH];
    if (strata_preset_text(name) || strata_import_is(name)) return strata_read_preset(reader, name);
    bool fits = strata_path_relative_to(name, base, path, sizeof path);
    if (!fits || (!looks_like_path(name) && access(path, R_OK) != 0)) {
        strata_hint_t hint = strata_hint(name, strata_preset_words(), strata_preset_word, NULL);
        return strata_fail_origin(origin, "\"%.40s\" is neither a preset nor a file; %s, or a file's path", name, hint.text);
    }
    bool by_file = origin->source == STRATA_FROM_FILE;
    strata_status_t status = strata_read_file(reader, path, by_file ? STRATA_FILE_NAMED_BY_FILE : STRATA_FILE_NAMED_BY_USER);
    return status == STRATA_E_IO
               ? strata_fail_origin(origin, "%s; write a preset's name or a file's path", strata_last_error()->text)
               : status;
}
