#define _DEFAULT_SOURCE
#include "lab/torture/strategies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/conform/stacks.h"
#include "platform/host/file.h"
#include "platform/host/host_memory.h"
#include "programs/load.h"

static strata_status_t make_room(torture_strategies_t *list) {
    if (list->count < list->room) return STRATA_OK;
    uint32_t room = list->room ? list->room * 2 : 16;
    torture_strategy_t *all = strata_host_resize(list->all, room, sizeof *all);
    if (!all) return STRATA_E_HOST_MEMORY;
    list->all = all;
    list->room = room;
    return STRATA_OK;
}

/* Copies `text`. */
static strata_status_t add(torture_strategies_t *list, const char *name, const char *text, strata_config_request_t *request,
                           torture_strategy_t made) {
    char *copy = NULL;
    strata_status_t status = make_room(list);
    if (status == STRATA_OK) copy = strata_host_strdup(text);
    if (status == STRATA_OK && !copy) status = STRATA_E_HOST_MEMORY;
    request->devices = "sim";
    if (status == STRATA_OK) status = torture_load(request, &made.strategy, &made.dialect);
    if (status != STRATA_OK) {
        strata_strategy_delete(made.strategy);
        strata_host_delete(copy);
        return status;
    }
    snprintf(made.name, sizeof made.name, "%s", name);
    made.text = copy;
    list->all[list->count++] = made;
    list->drawn += made.drawn;
    return STRATA_OK;
}

strata_status_t torture_add_presets(torture_strategies_t *list) {
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; strata_preset_name(i) && status == STRATA_OK; i++) {
        strata_config_request_t request = {.preset = strata_preset_name(i)};
        status = add(list, request.preset, strata_preset_text(request.preset), &request, (torture_strategy_t){.drawn = false});
    }
    return status;
}

strata_status_t torture_add_text(torture_strategies_t *list, const char *name, const char *text) {
    strata_config_request_t request = {.text = text};
    return add(list, name, text, &request, (torture_strategy_t){.drawn = false});
}

enum { FILE_BYTES = 1 << 16 };

/* The text is only for the page of a failure. The configuration reads the file itself. */
static strata_status_t read_text(const char *path, char *text) {
    int file;
    size_t length = 0;
    ssize_t got = 1;
    strata_status_t status = strata_file_open(path, STRATA_FILE_NAMED_BY_FILE, &file);
    if (status != STRATA_OK) return status;
    for (; got > 0 && length<FILE_BYTES - 1; length += got> 0 ? (size_t)got : 0)
        got = read(file, text + length, FILE_BYTES - 1 - length);
    text[length] = '\0';
    close(file);
    return STRATA_OK;
}

/* A user's layers may have their own reasons to refuse. */
strata_status_t torture_add_file(torture_strategies_t *list, const char *file, bool allow_code) {
    strata_config_request_t request = {.file = file, .allow_code = allow_code};
    if (strata_preset_text(file)) request = (strata_config_request_t){.preset = file};
    const char *slash = strrchr(file, '/');
    char *text = strata_host_new(1, FILE_BYTES);
    if (!text) return STRATA_E_HOST_MEMORY;
    strata_status_t status = request.preset ? STRATA_OK : read_text(file, text);
    if (status == STRATA_OK)
        status = add(list, slash ? slash + 1 : file, request.preset ? strata_preset_text(file) : text, &request,
                     (torture_strategy_t){.may_refuse = !request.preset});
    strata_host_delete(text);
    return status;
}

enum { PATH_BYTES = 4096 };

static strata_status_t add_text(torture_strategies_t *list, const char *name, const char *text, const char *object,
                                torture_strategy_t made) {
    char *path = object ? realpath(object, NULL) : NULL, *whole = strata_host_new(1, PATH_BYTES + STACK_LETTERS);
    strata_status_t status = whole ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (whole && object) snprintf(whole, PATH_BYTES + STACK_LETTERS, "load: [\"%s\"]\n%s", path ? path : object, text);
    strata_config_request_t request = {.text = object ? whole : text, .allow_code = object != NULL};
    if (status == STRATA_OK) status = add(list, name, request.text, &request, made);
    free(path);
    strata_host_delete(whole);
    return status;
}

strata_status_t torture_add_loading(torture_strategies_t *list, const char *name, const char *text, const char *object) {
    return add_text(list, name, text, object, (torture_strategy_t){.may_refuse = true});
}

strata_status_t torture_add_drawn(torture_strategies_t *list, uint64_t seed, uint32_t count, const strata_layer_type_t *with,
                                  const char *object) {
    drawn_stack_t *stack = strata_host_new(1, sizeof *stack);
    strata_status_t status = stack ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; i < count && status == STRATA_OK; i++) {
        if (!stack_draw(stack, seed * 100000 + i, with)) {
            status = strata_fail(STRATA_E_STRATEGY, 0, "no legal stack with the layer \"%s\" was found", with ? with->name : "?");
            break;
        }
        status = add_text(list, stack->subject.name, stack->text, object, (torture_strategy_t){.drawn = true, .may_refuse = true});
    }
    strata_host_delete(stack);
    return status;
}

void torture_strategies_delete(torture_strategies_t *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        strata_strategy_delete(list->all[i].strategy);
        strata_host_delete((void *)(uintptr_t)list->all[i].text);
    }
    strata_host_delete(list->all);
    *list = (torture_strategies_t){0};
}
