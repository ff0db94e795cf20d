#include "trace/recorder_stacks.h"

#include <stdio.h>
#include <string.h>

#include "platform/host/host_memory.h"

/* ---- names of frames ---- */

bool strata_recorder_names_complete(strata_recorder_stacks_t *stacks, const uint64_t *frames, uint32_t count) {
    stacks->missing_count = 0;
    for (uint32_t i = 0; i < count && stacks->missing_count < STRATA_RECORDER_NAMES; i++)
        if (strata_ids_find(&stacks->addresses, frames[i]) == STRATA_IDS_NONE) stacks->missing[stacks->missing_count++] = frames[i];
    return stacks->missing_count == 0;
}

void strata_recorder_names_missing(const strata_recorder_stacks_t *stacks, strata_recorder_names_t *names) {
    names->count = stacks->missing_count;
    memcpy(names->frames, stacks->missing, sizeof names->frames);
}

/* Replaces the characters in names that separate frames and fields. */
void strata_recorder_names_resolve(strata_recorder_names_t *names) {
    for (uint32_t i = 0; i < names->count; i++) {
        strata_call_stack_name(names->frames[i], names->texts[i]);
        for (char *at = names->texts[i]; *at; at++)
            if (*at == ';' || *at == ',' || *at == '"') *at = '_';
    }
}

/* Makes room for element `count` of an array. */
static bool reserve(void **array, size_t *room, size_t count, size_t size) {
    if (count < *room) return true;
    void *larger = strata_host_resize(*array, *room * 2 + 64, size);
    if (!larger) return false;
    *array = larger;
    *room = *room * 2 + 64;
    return true;
}

strata_status_t strata_recorder_names_add(strata_recorder_stacks_t *stacks, const strata_recorder_names_t *names) {
    for (uint32_t i = 0; i < names->count; i++) {
        /* The frame is twice in the stack, or another thread was first. */
        if (strata_ids_find(&stacks->addresses, names->frames[i]) != STRATA_IDS_NONE) continue;
        uint32_t number = stacks->addresses.count;
        if (!reserve((void **)&stacks->names, &stacks->name_room, number, sizeof *stacks->names)) return STRATA_E_HOST_MEMORY;
        stacks->names[number] = strata_host_strdup(names->texts[i]);
        if (!stacks->names[number]) return STRATA_E_HOST_MEMORY;
        strata_status_t status = strata_ids_add(&stacks->addresses, names->frames[i]);
        if (status == STRATA_OK) continue;
        strata_host_delete(stacks->names[number]);
        return status;
    }
    return STRATA_OK;
}

/* ---- stacks ---- */

/* Joins the names of the frames that fit completely. */
static void join_names(const strata_recorder_stacks_t *stacks, const uint64_t *frames, uint32_t count, char *text) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const char *name = stacks->names[strata_ids_find(&stacks->addresses, frames[i])];
        if (length + strlen(name) + 2 > STRATA_TRACE_STACK_BYTES) return;
        length += (size_t)snprintf(text + length, STRATA_TRACE_STACK_BYTES - length, "%s%s", i ? ";" : "", name);
    }
}

static bool is_same(const struct strata_recorder_stack *stack, const uint64_t *frames, uint32_t count) {
    return stack->count == count && memcmp(stack->frames, frames, count * sizeof *frames) == 0;
}

static strata_status_t add(strata_recorder_stacks_t *stacks, uint64_t key, const uint64_t *frames, uint32_t count) {
    char text[STRATA_TRACE_STACK_BYTES];
    uint32_t number = stacks->keys.count;
    if (!reserve((void **)&stacks->stacks, &stacks->stack_room, number, sizeof *stacks->stacks)) return STRATA_E_HOST_MEMORY;
    struct strata_recorder_stack *stack = &stacks->stacks[number];
    *stack = (struct strata_recorder_stack){.frames = strata_host_new(count, sizeof *frames), .count = count};
    if (!stack->frames) return STRATA_E_HOST_MEMORY;
    memcpy(stack->frames, frames, count * sizeof *frames);
    join_names(stacks, frames, count, text);
    strata_status_t status = strata_stacks_add(&stacks->texts, text, &stack->text);
    if (status == STRATA_OK) status = strata_ids_add(&stacks->keys, key);
    if (status != STRATA_OK) strata_host_delete(stack->frames);
    if (!stack->text) stack->text = "";
    return status;
}

/* Stacks with the same key by chance take the next keys in turn. Above the max number of stacks no new
 * ones are added. */
strata_status_t strata_recorder_stack(strata_recorder_stacks_t *stacks, const uint64_t *frames, uint32_t count, const char **text) {
    *text = "";
    if (stacks->keys.count == 0) (void)strata_ids_hash_word(&stacks->keys, "");
    uint64_t key = strata_sip_hash(&stacks->keys.secret, frames, count * sizeof *frames);
    uint32_t found = strata_ids_find(&stacks->keys, key);
    while (found != STRATA_IDS_NONE && !is_same(&stacks->stacks[found], frames, count))
        found = strata_ids_find(&stacks->keys, ++key);
    if (found == STRATA_IDS_NONE) {
        if (stacks->keys.count == STRATA_TRACE_STACKS) return STRATA_OK;
        found = stacks->keys.count;
        strata_status_t status = add(stacks, key, frames, count);
        if (status != STRATA_OK) return status;
    }
    *text = stacks->stacks[found].text;
    return STRATA_OK;
}

void strata_recorder_stacks_clear(strata_recorder_stacks_t *stacks) {
    for (uint32_t i = 0; i < stacks->addresses.count; i++) strata_host_delete(stacks->names[i]);
    for (uint32_t i = 0; i < stacks->keys.count; i++) strata_host_delete(stacks->stacks[i].frames);
    strata_host_delete(stacks->names);
    strata_host_delete(stacks->stacks);
    strata_ids_clear(&stacks->addresses);
    strata_ids_clear(&stacks->keys);
    strata_stacks_clear(&stacks->texts);
    *stacks = (strata_recorder_stacks_t){0};
}
