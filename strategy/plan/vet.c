#include "strategy/plan/vet.h"

#include <ctype.h>
#include <string.h>

#include "allocation/call/figures.h"
#include "allocation/options/option.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

enum { ROWS_MAX = STRATA_STAT_ROWS, STATE_MAX = 1 << 20, OPTIONS_MAX = 1 << 16, WORD_MAX = 64 };

/* The size of the fields that every version of the header has. */
#define OLDEST_SIZE (offsetof(strata_layer_type_t, free) + sizeof((strata_layer_type_t *)0)->free)

static strata_status_t copy_type(const strata_layer_type_t *type, strata_layer_type_t *full) {
    if (type->struct_size < OLDEST_SIZE || type->struct_size > STATE_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "the layer's struct_size is %zu; write sizeof(strata_layer_type_t)",
                           type->struct_size);
    for (size_t at = sizeof *full; at < type->struct_size; at++)
        if (((const unsigned char *)type)[at])
            return strata_fail(STRATA_E_UNSUPPORTED, 0, "the layer needs a newer Strata: byte %zu of its type is not 0", at);
    memset(full, 0, sizeof *full);
    memcpy(full, type, type->struct_size < sizeof *full ? type->struct_size : sizeof *full);
    full->struct_size = sizeof *full;
    return STRATA_OK;
}

/* Returns whether it is a word of a strategy file: letters, digits and _, a letter first. */
static bool is_word(const char *word) {
    size_t length = word ? strnlen(word, WORD_MAX + 1) : 0;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)word[i]) && word[i] != '_') return false;
    return length > 0 && length <= WORD_MAX && isalpha((unsigned char)word[0]);
}

static strata_status_t check_name(const strata_layer_type_t *type) {
    if (!is_word(type->name))
        return strata_fail(STRATA_E_INVALID, 0, "a layer name must be up to %d letters, digits and _, starting with a letter",
                           WORD_MAX);
    if (strcmp(type->name, "stack") == 0 || strcmp(type->name, STRATA_RECLAIM_KEY) == 0 ||
        strata_place_find(type->name) != STRATA_PLACE_KINDS)
        return strata_fail(STRATA_E_INVALID, 0, "\"%s\" is a word of strategy files; give the layer another name", type->name);
    return STRATA_OK;
}

static strata_status_t check_shape(const strata_layer_type_t *type) {
    const char *missing = !type->create     ? "create"
                          : !type->destroy  ? "destroy"
                          : !type->allocate ? "allocate"
                          : !type->free     ? "free"
                          : !type->doc      ? "doc"
                                            : NULL;
    if (missing) return strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\" has no %s", type->name, missing);
    if ((unsigned)type->role > STRATA_ROUTER || (unsigned)type->scope > STRATA_SCOPE_DEVICE)
        return strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\": invalid role or scope", type->name);
    /* A block has the locks of its stack and of one shared stack. So an instance of thread scope must begin a new route, as only a
     * cache does. */
    if (type->scope == STRATA_SCOPE_THREAD && type->role != STRATA_CACHE)
        return strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\": only a cache may have thread scope", type->name);
    if (type->state_size < sizeof(strata_layer_t) || type->state_size > STATE_MAX)
        return strata_fail(STRATA_E_INVALID, 0,
                           "the layer \"%s\": state_size is %zu; a state begins with strata_layer_t, %zu bytes", type->name,
                           type->state_size, sizeof(strata_layer_t));
    if (type->notices >> STRATA_NOTICE_KINDS || (type->notices && !type->notify))
        return strata_fail(STRATA_E_INVALID, 0,
                           "the layer \"%s\": notices is %#x; write bits of the %d kinds in strata/notice.h, and set notify",
                           type->name, (unsigned)type->notices, STRATA_NOTICE_KINDS);
    if (type->options_size > OPTIONS_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\": options_size is %zu", type->name, type->options_size);
    return STRATA_OK;
}

/* ---- rows ---- */

static size_t size_of_kind(strata_option_kind_t kind) {
    switch (kind) {
    case STRATA_OPTION_BOOL: return sizeof(bool);
    case STRATA_OPTION_COUNT:
    case STRATA_OPTION_SIZE:
    case STRATA_OPTION_TIME: return sizeof(uint64_t);
    case STRATA_OPTION_FRACTION: return sizeof(double);
    case STRATA_OPTION_CHOICE: return sizeof(uint32_t);
    case STRATA_OPTION_TEXT: return STRATA_OPTION_TEXT_BYTES;
    }
    return 0;
}

/* Texts may begin at any offset, all other kinds at a multiple of their size. */
static bool fits(size_t offset, size_t bytes, size_t whole) {
    return bytes > 0 && (bytes == STRATA_OPTION_TEXT_BYTES || offset % bytes == 0) && offset <= whole && bytes <= whole - offset;
}

static strata_status_t check_option(const strata_layer_type_t *type, size_t index, void *scratch) {
    const strata_option_row_t *row = &type->options[index];
    const char *wrong = NULL;
    if (!is_word(row->name) || strcmp(row->name, "name") == 0 || strata_option_find(type, row->name) != row)
        wrong = "its name is invalid, is `name`, or is a duplicate";
    else if (!fits(row->offset, size_of_kind(row->kind), type->options_size)) wrong = "it is outside the options struct";
    else if (row->kind == STRATA_OPTION_CHOICE && (!row->choices || !*row->choices)) wrong = "it has no choices";
    else if (row->kind == STRATA_OPTION_CHOICE && strata_choice_count(row) > STRATA_OPTION_CHOICES)
        wrong = "it has more than 32 choices";
    else if (!row->doc || !row->default_text) wrong = "it has no doc or no default";
    if (wrong) return strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\", option %zu: %s", type->name, index + 1, wrong);
    if (strata_option_set(row, scratch, row->default_text) == STRATA_OK) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\": the default of %s is wrong: %s", type->name, row->name,
                       strata_last_error()->text);
}

/* Parses each default once here. Later a default that cannot be parsed would end the process. */
static strata_status_t check_options(const strata_layer_type_t *type) {
    if (!type->options) return STRATA_OK;
    void *scratch = strata_host_new(1, type->options_size + 1);
    strata_status_t status = scratch ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; status == STRATA_OK && type->options[i].name; i++)
        status = i < ROWS_MAX ? check_option(type, i, scratch)
                              : strata_fail(STRATA_E_INVALID, 0, "the layer \"%s\" has more than %d options, or no terminating row",
                                            type->name, ROWS_MAX);
    strata_host_delete(scratch);
    return status;
}

static strata_status_t check_stats(const strata_layer_type_t *type) {
    for (size_t i = 0; type->stats && type->stats[i].name; i++) {
        const strata_stat_row_t *row = &type->stats[i];
        if (i >= ROWS_MAX || !is_word(row->name) || !row->unit || !row->doc ||
            !fits(row->offset, sizeof(uint64_t), type->state_size))
            return strata_fail(STRATA_E_INVALID, 0,
                               "the layer \"%s\", figure %zu: it has no name, unit or doc, or is outside the state", type->name,
                               i + 1);
    }
    return STRATA_OK;
}

strata_status_t strata_vet_layer(const strata_layer_type_t *type, strata_layer_type_t *full) {
    strata_status_t status = copy_type(type, full);
    if (status == STRATA_OK) status = check_name(full);
    if (status == STRATA_OK) status = check_shape(full);
    if (status == STRATA_OK) status = check_options(full);
    return status == STRATA_OK ? check_stats(full) : status;
}
