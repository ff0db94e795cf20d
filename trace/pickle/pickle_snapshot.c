#include "trace/pickle/pickle_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

#define SMALL_SEGMENT ((uint64_t)2 << 20) /* PyTorch's small segments have this size */

/* Returns the length of the file in "train.py:31 forward" or "libmine.so+0x12f0 forward". Returns 0 if
 * the text is only the name of a function. */
static size_t file_of(const char *text, const char **name, uint64_t *line) {
    const char *space = strchr(text, ' '), *colon = NULL;
    *line = 0;
    *name = text;
    if (!space) return 0;
    for (const char *at = text; at < space; at++)
        if (*at == ':') colon = at;
    bool counts = colon && colon + 1 + strspn(colon + 1, "0123456789") == space && colon + 1 < space;
    bool is_module = !counts && memmem(text, (size_t)(space - text), "+0x", 3);
    if (!counts && !is_module) return 0;
    *name = space + 1;
    if (counts) *line = strtoul(colon + 1, NULL, 10);
    return (size_t)((counts ? colon : space) - text);
}

bool strata_pickle_is_frame(const char *tag) {
    const char *name;
    uint64_t line;
    return file_of(tag, &name, &line) > 0;
}

static void put_frame(strata_pickler_t *pickler, char *text) {
    const char *name;
    uint64_t line;
    size_t length = file_of(text, &name, &line);
    if (length) text[length] = '\0';
    strata_pickler_open_dict(pickler);
    strata_pickler_word(pickler, "filename");
    strata_pickler_text(pickler, length ? text : "");
    strata_pickler_word(pickler, "line");
    strata_pickler_integer(pickler, (int64_t)line);
    strata_pickler_word(pickler, "name");
    strata_pickler_text(pickler, name);
    strata_pickler_close_dict(pickler);
}

/* Writes the first part of `from`, up to a mark or the end, as a frame. Returns the text after the
 * mark, or NULL. */
static const char *put_part(strata_pickler_t *pickler, const char *from, char mark) {
    char text[STRATA_TRACE_STACK_BYTES];
    const char *end = strchrnul(from, mark);
    size_t length = (size_t)(end - from) < sizeof text ? (size_t)(end - from) : sizeof text - 1;
    memcpy(text, from, length);
    text[length] = '\0';
    if (length) put_frame(pickler, text);
    return *end ? end + 1 : NULL;
}

void strata_pickle_frames(strata_pickler_t *pickler, const char *tag, const char *stack) {
    strata_pickler_open_list(pickler);
    size_t length = strlen(tag);
    bool begins = strncmp(stack, tag, length) == 0 && (stack[length] == ';' || !stack[length]);
    if (*tag && !begins) (void)put_part(pickler, tag, '\0');
    for (const char *at = stack; at;) at = put_part(pickler, at, ';');
    strata_pickler_close_list(pickler);
}

static void put_integer(strata_pickler_t *pickler, const char *name, uint64_t number) {
    strata_pickler_word(pickler, name);
    strata_pickler_integer(pickler, (int64_t)number);
}

void strata_pickle_open_segment(strata_pickler_t *pickler, const strata_pickle_segment_t *segment) {
    strata_pickler_open_dict(pickler);
    put_integer(pickler, "device", segment->device);
    put_integer(pickler, "address", segment->address);
    put_integer(pickler, "total_size", segment->size);
    put_integer(pickler, "allocated_size", segment->allocated);
    put_integer(pickler, "active_size", segment->active);
    put_integer(pickler, "requested_size", segment->requested);
    put_integer(pickler, "stream", segment->stream);
    strata_pickler_word(pickler, "segment_type");
    strata_pickler_text(pickler, segment->size <= SMALL_SEGMENT ? "small" : "large");
    strata_pickler_word(pickler, "segment_pool_id");
    strata_pickler_integer(pickler, 0);
    strata_pickler_integer(pickler, 0);
    strata_pickler_tuple(pickler, 2);
    strata_pickler_word(pickler, "is_expandable");
    strata_pickler_bool(pickler, false);
    strata_pickler_word(pickler, "frames");
    strata_pickle_frames(pickler, "", "");
    strata_pickler_word(pickler, "blocks");
    strata_pickler_open_list(pickler);
}

void strata_pickle_block(strata_pickler_t *pickler, const strata_pickle_block_t *block) {
    static const char *const states[STRATA_PICKLE_STATES] = {"inactive", "active_allocated", "active_pending_free"};
    strata_pickler_open_dict(pickler);
    put_integer(pickler, "address", block->address);
    put_integer(pickler, "size", block->size);
    put_integer(pickler, "requested_size", block->requested);
    strata_pickler_word(pickler, "state");
    strata_pickler_word(pickler, states[block->state]);
    strata_pickler_word(pickler, "frames");
    strata_pickle_frames(pickler, block->tag, block->stack);
    strata_pickler_close_dict(pickler);
}

void strata_pickle_close_segment(strata_pickler_t *pickler) {
    strata_pickler_close_list(pickler);
    strata_pickler_close_dict(pickler);
}
