/* Where texts come from: presets and files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation/report/log.h"
#include "config/config.h"
#include "config/hint.h"
#include "config/import/import.h"
#include "config/reader/reader.h"
#include "platform/host/host_memory.h"
#include "platform/text/printable.h"

enum { PATH_LETTERS = 4096, READ_AT_ONCE = 65536 };

/* Reports each setting without an equivalent, one message a line. If the host has no memory for the text, there are no warnings. */
static void warn_of(const strata_import_t *import) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return;
    strata_import_tell(import, "strata: ", out);
    bool whole = fclose(out) == 0;
    for (char *rest, *line = whole ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        strata_log_tell(STRATA_LOG_WARNING, line);
    free(text);
}

/* What the environment's variables mean to another allocator, by the name "import:pytorch". */
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

static ssize_t read_some(int file, char *bytes) {
    ssize_t got;
    do { got = read(file, bytes, READ_AT_ONCE); } while (got < 0 && errno == EINTR);
    return got;
}

/* The whole file, up to a piece more than a strategy may have. The caller gives it back by strata_host_delete(), also after a
 * failure. */
static strata_status_t read_whole(const char *path, strata_file_named_t named, char **text, size_t *length) {
    char *bytes = NULL;
    size_t used = 0;
    int file;
    strata_status_t status = strata_file_open(path, named, &file);
    if (status) return status;
    ssize_t got = 1;
    while (status == STRATA_OK && got > 0 && used <= STRATA_TREE_BYTES) {
        char *larger = strata_host_resize(bytes, used + READ_AT_ONCE, 1);
        if (larger) bytes = larger;
        got = larger ? read_some(file, bytes + used) : 0;
        if (!larger) status = STRATA_E_HOST_MEMORY;
        else if (got < 0) status = strata_fail(STRATA_E_IO, 0, "%.1500s: the file cannot be read: %s", path, strerror(errno));
        else used += (size_t)got;
    }
    close(file);
    *text = bytes;
    *length = used;
    return status;
}

/* "training" of "some/where/training.yaml". */
static void short_name_of(const char *path, char *name, size_t capacity) {
    const char *slash = strrchr(path, '/');
    snprintf(name, capacity, "%.*s", (int)capacity - 1, slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) *dot = '\0';
}

strata_status_t strata_read_file(strata_reader_t *reader, const char *path, strata_file_named_t named) {
    char name[256], shown[PATH_LETTERS], *text = NULL;
    size_t length = 0;
    strata_status_t status = read_whole(path, named, &text, &length);
    snprintf(shown, sizeof shown, "%s", path);
    strata_make_printable(shown, false);
    short_name_of(shown, name, sizeof name);
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

bool strata_call_beside(const char *name, const char *beside, char *path, size_t capacity) {
    const char *slash = beside && name[0] != '/' ? strrchr(beside, '/') : NULL;
    int folder = slash ? (int)(slash - beside + 1) : 0;
    int length = snprintf(path, capacity, "%.*s%s", folder, folder ? beside : "", name);
    return length > 0 && (size_t)length < capacity;
}

strata_status_t strata_read_named(strata_reader_t *reader, const char *name, const char *beside, const strata_origin_t *origin) {
    char path[PATH_LETTERS];
    if (strata_preset_text(name) || strata_import_is(name)) return strata_read_preset(reader, name);
    bool fits = strata_call_beside(name, beside, path, sizeof path);
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
