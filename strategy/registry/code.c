#include "strategy/registry/code.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/host/file.h"

enum { PATH_LETTERS = 4096 };

/* Returns the address of a function as data, as dlsym() does. */
static void *own_entry(void) {
    void (*function)(strata_record_t *, strata_call_t *) = strata_below_free;
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

/* An object could be bound to another copy of the library: a second one in the process, beside one that
 * is linked in statically. It would then work on that copy's stacks. The symbols of the whole program are
 * tried first, then those that the object loaded. */
static bool bound_to_another(void *object) {
    void *seen = dlsym(RTLD_DEFAULT, "strata_below_free");
    if (!seen) seen = dlsym(object, "strata_below_free");
    return seen && seen != own_entry();
}

static strata_status_t table_of(void *object, const char *path, const strata_layer_type_t *const **layers, size_t *count) {
    *layers = dlsym(object, "strata_layers");
    *count = 0;
    if (!*layers)
        return strata_fail(STRATA_E_INVALID, 0, "%.1500s has no table strata_layers; write STRATA_LAYERS(&my_layer_type);", path);
    if (bound_to_another(object))
        return strata_fail(STRATA_E_INVALID, 0, "%.1500s is linked with a different copy of Strata than this program", path);
    while (*count <= STRATA_CODE_LAYERS && (*layers)[*count]) ++*count;
    if (*count == 0 || *count > STRATA_CODE_LAYERS)
        return strata_fail(STRATA_E_INVALID, 0, "%.1500s: its table strata_layers is empty, or has more than %d layers", path,
                           STRATA_CODE_LAYERS);
    return STRATA_OK;
}

strata_status_t strata_code_load(const char *path, const strata_layer_type_t *const **layers) {
    char file[PATH_LETTERS];
    int length = snprintf(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./", path);
    if ((size_t)length >= sizeof file) return strata_fail(STRATA_E_IO, 0, "%.80s...: the path is too long", path);
    struct stat found;
    /* dlopen() of a pipe waits for a writer. For a missing file its own message is used. */
    if (stat(file, &found) == 0 && strata_file_is_regular(file) != STRATA_OK)
        return strata_fail(STRATA_E_IO, 0, "cannot load the object: %.1500s", strata_last_error()->text);
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object) return strata_fail(STRATA_E_IO, 0, "cannot load the object: %.1500s", dlerror());
    const strata_layer_type_t *const *table;
    size_t count;
    strata_status_t status = table_of(object, path, &table, &count);
    if (status == STRATA_OK) status = strata_layers_register(table, count, true);
    /* The registered layers point into the object, so it is never closed. */
    if (status != STRATA_OK) (void)dlclose(object);
    else if (layers) *layers = table;
    return status;
}
