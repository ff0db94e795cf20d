#include "lab/trace/formats/frames.h"

#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { TEXT_BYTES = 256, FRAMES_MAX = 512 /* per stack; outer frames are ignored */ };

typedef strata_pickle_value_t value_t;

/* In the order in which they are dropped if a stack is too long. */
typedef enum rank { RANK_NATIVE, RANK_PYTHON, RANK_USER, RANKS } rank_t;

typedef struct strata_frame {
    value_t file, name; /* texts or absent */
    int64_t line;
    rank_t rank;
} frame_t;

typedef struct strata_frames_sequence {
    uint32_t *frames; /* frame numbers */
    uint32_t count;
    strata_frames_named_t named;
} sequence_t;

/* Makes room for element `count` of an array. */
static bool reserve(void **array, size_t *room, size_t count, size_t size) {
    if (count < *room) return true;
    void *larger = strata_host_resize(*array, *room * 2 + 64, size);
    if (!larger) return false;
    *array = larger;
    *room = *room * 2 + 64;
    return true;
}

/* ---- frames ---- */

/* Returns true if a path contains these parts in sequence, separated by slashes or backslashes. */
static bool has_part(const value_t *path, const char *part) {
    size_t length = strlen(part);
    for (size_t i = 0; i + length <= path->length; i++) {
        size_t k = 0;
        while (k < length && (path->text[i + k] == '\\' ? '/' : path->text[i + k]) == part[k]) k++;
        if (k == length) return true;
    }
    return false;
}

static bool begins(const value_t *text, const char *with) {
    return text->length >= strlen(with) && memcmp(text->text, with, strlen(with)) == 0;
}

/* User code is interactive input and every script except those of PyTorch, generated code, other packages and Python's library. */
static rank_t rank_of(const value_t *file) {
    static const char *const typed[] = {"<stdin>", "<string>", "<console>", "<ipython"}, *const made[] = {"<frozen",
                                                                                                          "<eval_with_key>"};
    static const char *const others[] = {"/torch/", "/site-packages/", "/dist-packages/", "/torchinductor_", "/lib/python"};
    if (file->kind != STRATA_PICKLE_TEXT) return RANK_NATIVE;
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++)
        if (begins(file, typed[i])) return RANK_USER;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (begins(file, made[i])) return RANK_PYTHON;
    if (file->length <= 3 || memcmp(file->text + file->length - 3, ".py", 3) != 0) return RANK_NATIVE;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has_part(file, others[i])) return RANK_PYTHON;
    return RANK_USER;
}

static frame_t read_frame(const value_t *dict) {
    frame_t frame = {.file = strata_pickle_member(dict, "filename"), .name = strata_pickle_member(dict, "name")};
    value_t line = strata_pickle_member(dict, "line");
    if (frame.file.kind != STRATA_PICKLE_TEXT) frame.file = (value_t){.kind = STRATA_PICKLE_ABSENT};
    if (frame.name.kind != STRATA_PICKLE_TEXT) frame.name = (value_t){.kind = STRATA_PICKLE_ABSENT};
    if (line.kind == STRATA_PICKLE_INTEGER) frame.line = line.integer;
    frame.rank = rank_of(&frame.file);
    return frame;
}

static bool is_same_text(const value_t *a, const value_t *b) {
    return a->kind == b->kind && a->length == b->length && (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static bool is_same_frame(const frame_t *a, const frame_t *b) {
    return a->line == b->line && is_same_text(&a->file, &b->file) && is_same_text(&a->name, &b->name);
}

static uint64_t hash_text(const strata_ids_t *ids, const value_t *text) {
    return text->kind == STRATA_PICKLE_TEXT ? strata_sip_hash(&ids->secret, text->text, text->length) : 0;
}

/* Returns the number of a frame by its contents. On a hash collision, the next keys are tried in turn. */
static strata_status_t frame_number(strata_frames_t *self, const frame_t *frame, uint32_t *number) {
    if (self->contents.count == 0) (void)strata_ids_hash_word(&self->contents, "");
    uint64_t parts[] = {hash_text(&self->contents, &frame->file), hash_text(&self->contents, &frame->name), (uint64_t)frame->line};
    uint64_t key = strata_sip_hash(&self->contents.secret, parts, sizeof parts);
    uint32_t found = strata_ids_find(&self->contents, key);
    while (found != STRATA_IDS_NONE && !is_same_frame(&self->frames[found], frame)) found = strata_ids_find(&self->contents, ++key);
    *number = found == STRATA_IDS_NONE ? self->contents.count : found;
    if (found != STRATA_IDS_NONE) return STRATA_OK;
    if (!reserve((void **)&self->frames, &self->frame_room, *number, sizeof *self->frames)) return STRATA_E_HOST_MEMORY;
    self->frames[*number] = *frame;
    return strata_ids_add(&self->contents, key);
}

/* Returns the number of the frame in a list item, which may not be a dict. */
static strata_status_t item_number(strata_frames_t *self, const value_t *item, uint32_t *number) {
    static const frame_t none = {.rank = RANK_NATIVE};
    if (item->kind != STRATA_PICKLE_DICT) return frame_number(self, &none, number);
    uint64_t place = (uintptr_t)item->items;
    uint32_t object = strata_ids_find(&self->objects, place);
    if (object != STRATA_IDS_NONE) {
        *number = self->frame_of[object];
        return STRATA_OK;
    }
    frame_t frame = read_frame(item);
    strata_status_t status = frame_number(self, &frame, number);
    if (status != STRATA_OK) return status;
    object = self->objects.count;
    if (!reserve((void **)&self->frame_of, &self->object_room, object, sizeof *self->frame_of)) return STRATA_E_HOST_MEMORY;
    self->frame_of[object] = *number;
    return strata_ids_add(&self->objects, place);
}

/* ---- texts of stacks ---- */

static size_t base_name(const value_t *file) {
    size_t base = file->length;
    while (base > 0 && file->text[base - 1] != '/' && file->text[base - 1] != '\\') base--;
    return base;
}

/* Writes "train.py:31 forward", or "forward" without a file, or "" without both. Characters that a stack
 * cannot hold become spaces. */
static size_t put_frame(const frame_t *frame, char *text) {
    size_t base = frame->file.length ? base_name(&frame->file) : 0, length = frame->file.length - base;
    int written = 0;
    if (length)
        written = snprintf(text, TEXT_BYTES, "%.*s:%lld%s", (int)strata_min(length, 80), frame->file.text + base,
                           (long long)frame->line, frame->name.length ? " " : "");
    if (frame->name.length)
        written += snprintf(text + written, TEXT_BYTES - (size_t)written, "%.*s", (int)strata_min(frame->name.length, 120),
                            frame->name.text);
    text[written] = '\0';
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == ';' || *at == '"' || *at == 0x7f) *at = ' ';
    return strlen(text);
}

/* Writes the innermost frame of user code, else of Python code, else any frame with a text. */
static void put_tag(const strata_frames_t *self, const sequence_t *sequence, char *text) {
    const frame_t *best = NULL;
    for (uint32_t i = 0; i < sequence->count; i++) {
        const frame_t *frame = &self->frames[sequence->frames[i]];
        bool has_text = frame->file.length > 0 || frame->name.length > 0;
        if (has_text && (!best || frame->rank > best->rank)) best = frame;
    }
    text[0] = '\0';
    if (best) (void)put_frame(best, text);
}

/* Selects the frames that fit. User frames take precedence, then Python frames; among equals, inner frames. */
static void put_stack(const strata_frames_t *self, const sequence_t *sequence, char *text) {
    bool kept[FRAMES_MAX] = {false};
    char one[TEXT_BYTES];
    size_t used = 0, length = 0;
    for (int rank = RANKS - 1; rank >= 0; rank--) {
        for (uint32_t i = 0; i < sequence->count; i++) {
            const frame_t *frame = &self->frames[sequence->frames[i]];
            if ((int)frame->rank != rank) continue;
            size_t more = put_frame(frame, one);
            if (used + more + 2 > STRATA_TRACE_STACK_BYTES) break;
            kept[i] = more > 0;
            if (more) used += more + 1;
        }
    }
    text[0] = '\0';
    for (uint32_t i = 0; i < sequence->count; i++) {
        if (!kept[i]) continue;
        (void)put_frame(&self->frames[sequence->frames[i]], one);
        length += (size_t)snprintf(text + length, STRATA_TRACE_STACK_BYTES - length, "%s%s", length ? ";" : "", one);
    }
}

/* Returns the number of a stack in the trace. Lists that differ only in dropped frames share one text. */
static strata_status_t stack_number(strata_frames_t *self, const char *text, strata_frames_named_t *named) {
    const char *added;
    uint64_t key = strata_ids_hash_word(&self->texts, text);
    uint32_t found = strata_ids_find(&self->texts, key);
    while (found != STRATA_IDS_NONE && strcmp(self->stacks->texts[found], text) != 0) found = strata_ids_find(&self->texts, ++key);
    if (found != STRATA_IDS_NONE) {
        named->stack = found + 1;
        return STRATA_OK;
    }
    strata_status_t status = strata_stacks_add(self->stacks, text, &added);
    named->no_room = status == STRATA_OK && !added;
    if (added) named->stack = (uint32_t)self->stacks->count;
    return added ? strata_ids_add(&self->texts, key) : status;
}

/* ---- lists ---- */

static strata_status_t name_sequence(strata_frames_t *self, sequence_t *sequence) {
    char tag[TEXT_BYTES], stack[STRATA_TRACE_STACK_BYTES];
    put_tag(self, sequence, tag);
    put_stack(self, sequence, stack);
    sequence->named = (strata_frames_named_t){.tag = strata_host_strdup(tag)};
    if (!sequence->named.tag) return STRATA_E_HOST_MEMORY;
    return *stack ? stack_number(self, stack, &sequence->named) : STRATA_OK;
}

static strata_status_t add_sequence(strata_frames_t *self, uint64_t key, const uint32_t *numbers, uint32_t count) {
    uint32_t at = self->sequences.count;
    if (!reserve((void **)&self->all, &self->sequence_room, at, sizeof *self->all)) return STRATA_E_HOST_MEMORY;
    sequence_t *sequence = &self->all[at];
    *sequence = (sequence_t){.frames = strata_host_new(count, sizeof *numbers), .count = count};
    if (!sequence->frames) return STRATA_E_HOST_MEMORY;
    memcpy(sequence->frames, numbers, count * sizeof *numbers);
    strata_status_t status = name_sequence(self, sequence);
    if (status == STRATA_OK) status = strata_ids_add(&self->sequences, key);
    if (status == STRATA_OK) return STRATA_OK;
    strata_host_delete(sequence->frames);
    strata_host_delete(sequence->named.tag);
    return status;
}

static strata_status_t sequence_number(strata_frames_t *self, const value_t *list, uint32_t *number) {
    uint32_t numbers[FRAMES_MAX];
    uint32_t count = (uint32_t)strata_min(strata_pickle_count(list), FRAMES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        strata_status_t status = item_number(self, &list->items->all[i], &numbers[i]);
        if (status != STRATA_OK) return status;
    }
    if (self->sequences.count == 0) (void)strata_ids_hash_word(&self->sequences, "");
    uint64_t key = strata_sip_hash(&self->sequences.secret, numbers, count * sizeof *numbers);
    *number = strata_ids_find(&self->sequences, key);
    while (*number != STRATA_IDS_NONE &&
           (self->all[*number].count != count || memcmp(self->all[*number].frames, numbers, count * sizeof *numbers) != 0))
        *number = strata_ids_find(&self->sequences, ++key);
    if (*number != STRATA_IDS_NONE) return STRATA_OK;
    *number = self->sequences.count;
    return add_sequence(self, key, numbers, count);
}

strata_status_t strata_frames_name(strata_frames_t *self, const value_t *list, const strata_frames_named_t **named) {
    *named = NULL;
    if (strata_pickle_count(list) == 0) return STRATA_OK;
    uint64_t place = (uintptr_t)list->items;
    uint32_t found = strata_ids_find(&self->lists, place);
    if (found == STRATA_IDS_NONE) {
        uint32_t sequence;
        strata_status_t status = sequence_number(self, list, &sequence);
        if (status != STRATA_OK) return status;
        found = self->lists.count;
        if (!reserve((void **)&self->sequence_of, &self->list_room, found, sizeof sequence)) return STRATA_E_HOST_MEMORY;
        self->sequence_of[found] = sequence;
        status = strata_ids_add(&self->lists, place);
        if (status != STRATA_OK) return status;
    }
    *named = &self->all[self->sequence_of[found]].named;
    return STRATA_OK;
}

void strata_frames_clear(strata_frames_t *self) {
    for (uint32_t i = 0; i < self->sequences.count; i++) {
        strata_host_delete(self->all[i].frames);
        strata_host_delete(self->all[i].named.tag);
    }
    strata_host_delete(self->all);
    strata_host_delete(self->sequence_of);
    strata_host_delete(self->frames);
    strata_host_delete(self->frame_of);
    strata_ids_clear(&self->objects);
    strata_ids_clear(&self->contents);
    strata_ids_clear(&self->lists);
    strata_ids_clear(&self->sequences);
    strata_ids_clear(&self->texts);
    *self = (strata_frames_t){.stacks = self->stacks};
}
