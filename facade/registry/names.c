#include "facade/registry/names.h"

#include <string.h>

#include "platform/host/host_memory.h"
#include "platform/text/printable.h"

enum { SLOTS = STRATA_NAMES * 2, OTHERS = 1 };
#define OTHERS_TEXT "(other names)"

void strata_names_init(strata_names_t *names) {
    *names = (strata_names_t){.text = NULL};
    strata_lock_init(&names->lock, STRATA_RANK_FACADE, NULL);
}

void strata_names_destroy(strata_names_t *names) {
    if (names->text) strata_host_unreserve(names->text, names->reserved);
    names->text = NULL;
    strata_lock_destroy(&names->lock);
}

static strata_status_t make_table(strata_names_t *names) {
    size_t size = STRATA_NAME_BYTES + SLOTS * sizeof(uint32_t), reserved = 0;
    char *text = strata_host_reserve(size, size, &reserved);
    if (!text) return STRATA_E_HOST_MEMORY;
    strata_lock(&names->lock);
    bool mine = !names->text;
    if (mine) {
        memcpy(text + OTHERS, OTHERS_TEXT, sizeof OTHERS_TEXT);
        names->slots = (uint32_t *)(void *)(text + STRATA_NAME_BYTES);
        names->reserved = reserved;
        names->used = OTHERS + sizeof OTHERS_TEXT;
        names->text = text;
    }
    strata_unlock(&names->lock);
    if (!mine) strata_host_unreserve(text, reserved);
    return STRATA_OK;
}

/* Copies the beginning of a name, made printable for a report of one line. */
static size_t clean(const char *name, char *kept) {
    size_t length = strnlen(name, STRATA_NAME_LENGTH);
    memcpy(kept, name, length);
    kept[length] = 0;
    strata_make_printable(kept, false);
    return length;
}

static uint32_t hash_of(const char *name, size_t length) {
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 1099511628211ull;
    return (uint32_t)(hash ^ hash >> 32);
}

/* Requires the lock. The table is never full, because it has twice as many slots as names. */
static uint32_t find_or_add(strata_names_t *names, const char *name, size_t length) {
    uint32_t at = hash_of(name, length) % SLOTS;
    for (; names->slots[at]; at = (at + 1) % SLOTS)
        if (strcmp(names->text + names->slots[at], name) == 0) return names->slots[at];
    if (names->count == STRATA_NAMES || names->used + length + 1 > STRATA_NAME_BYTES) return OTHERS;
    memcpy(names->text + names->used, name, length + 1);
    names->slots[at] = names->used;
    names->used += (uint32_t)length + 1;
    names->count++;
    return names->slots[at];
}

strata_status_t strata_names_number(strata_names_t *names, const char *name, uint32_t *number) {
    *number = 0;
    if (!name || !*name) return STRATA_OK;
    char kept[STRATA_NAME_LENGTH + 1];
    size_t length = clean(name, kept);
    strata_lock(&names->lock);
    bool made = names->text != NULL;
    strata_unlock(&names->lock);
    strata_status_t status = made ? STRATA_OK : make_table(names);
    if (status != STRATA_OK) return status;
    strata_lock(&names->lock);
    *number = find_or_add(names, kept, length);
    strata_unlock(&names->lock);
    return STRATA_OK;
}

/* A valid number is an offset after the zero of the name before. */
const char *strata_names_find(strata_names_t *names, uint64_t number) {
    strata_lock(&names->lock);
    bool known = names->text && number > OTHERS && number < names->used && names->text[number - 1] == 0;
    const char *text = known ? names->text + number : NULL;
    strata_unlock(&names->lock);
    return text;
}

const char *strata_names_text(const strata_names_t *names, uint32_t number) { return number ? names->text + number : ""; }
