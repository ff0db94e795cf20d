#include "trace/stacks.h"

#include <string.h>

#include "platform/host/host_memory.h"

#define BYTES_MAX ((size_t)64 << 20) /* of all stacks of a trace */

static bool can_hold(char letter) { return (unsigned char)letter >= ' ' && letter != '"' && letter != 0x7f; }

bool strata_stack_is_valid(const char *text) {
    size_t length = 0;
    for (; text[length]; length++)
        if (!can_hold(text[length]) || length + 1 == STRATA_TRACE_STACK_BYTES) return false;
    return true;
}

static bool has_room(const strata_stacks_t *stacks) {
    return stacks->count < STRATA_TRACE_STACKS && stacks->bytes <= BYTES_MAX - STRATA_TRACE_STACK_BYTES;
}

strata_status_t strata_stacks_add(strata_stacks_t *stacks, const char *text, const char **added) {
    *added = NULL;
    if (!has_room(stacks)) return STRATA_OK;
    if (stacks->count == stacks->room) {
        size_t larger = stacks->room * 2 + 64;
        char **grown = strata_host_resize(stacks->texts, larger, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        stacks->texts = grown;
        stacks->room = larger;
    }
    size_t length = strnlen(text, STRATA_TRACE_STACK_BYTES - 1);
    char *copy = strata_host_new(length + 1, 1);
    if (!copy) return STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < length; i++) copy[i] = can_hold(text[i]) ? text[i] : ' ';
    stacks->texts[stacks->count++] = copy;
    stacks->bytes += length + 1;
    *added = copy;
    return STRATA_OK;
}

/* Returns the number up to the colon or the end, or SIZE_MAX if it is not a number. */
static size_t number_at(const char *field, const char **after) {
    size_t number = 0;
    const char *at = field;
    for (; *at >= '0' && *at <= '9' && at - field < 8; at++) number = number * 10 + (size_t)(*at - '0');
    *after = at;
    return at > field && (*at == ':' || !*at) ? number : SIZE_MAX;
}

strata_status_t strata_stacks_read(strata_stacks_t *stacks, const char *field, const char **text, const char **why) {
    const char *after;
    size_t number = number_at(field, &after);
    *text = "";
    *why = NULL;
    if (!*field) return STRATA_OK;
    bool is_known = number >= 1 && number <= stacks->count, says = *after == ':';
    if (number == SIZE_MAX) *why = "it is not a stack number; write 1:frames, later 1";
    else if (is_known && says) *why = "this stack already has frames; write only its number";
    else if (is_known) *text = stacks->texts[number - 1];
    else if (number != stacks->count + 1 || !says)
        *why = "a new stack needs the next number, starting at 1, then a colon and its frames";
    else if (!after[1] || !strata_stack_is_valid(after + 1))
        *why = "the frames are empty, longer than 2047 bytes, or contain a quote";
    else if (!has_room(stacks)) *why = "more than 65535 different stacks, or 64 MiB of them; omit the others";
    else return strata_stacks_add(stacks, after + 1, text);
    return STRATA_OK;
}

void strata_stacks_clear(strata_stacks_t *stacks) {
    for (size_t i = 0; i < stacks->count; i++) strata_host_delete(stacks->texts[i]);
    strata_host_delete(stacks->texts);
    *stacks = (strata_stacks_t){0};
}
