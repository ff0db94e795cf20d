#include "lab/trace/formats/pickle.h"

#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/text/printable.h"
#include "trace/pickle/pickle_words.h"

typedef strata_pickle_value_t value_t;
typedef strata_pickle_items_t items_t;

#define MEMORY_MAX ((uint64_t)4 << 30) /* for all values of a pickle */
enum { MARKS = 1000, PIECE_BYTES = 1 << 20, FIRST_PROTOCOL = 2, LAST_PROTOCOL = 5 };

/* Memory that is released all at once. */
typedef struct piece {
    struct piece *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} piece_t;

struct strata_pickle {
    const char *path;
    const unsigned char *bytes;
    size_t count, at;
    size_t opcode_at; /* position of the instruction, for messages */
    piece_t *pieces;
    uint64_t memory;
    value_t *stack, *memo;
    size_t height, stack_capacity, memo_count, memo_capacity;
    size_t marks[MARKS]; /* heights of the stack */
    size_t mark_count;
};

static strata_status_t wrong(const strata_pickle_t *p, const char *what) {
    return strata_fail(STRATA_E_FORMAT, 0, "%s: byte %zu: %s", p->path, p->opcode_at, what);
}

/* ---- memory ---- */

static strata_status_t count_memory(strata_pickle_t *p, uint64_t bytes) {
    p->memory += bytes;
    if (p->memory <= MEMORY_MAX) return STRATA_OK;
    return strata_fail(STRATA_E_LIMIT, 0, "%s: byte %zu: its values need more than 4 GiB; record fewer events (max_entries)",
                       p->path, p->opcode_at);
}

static void *arena_alloc(strata_pickle_t *p, size_t size) {
    piece_t *piece = p->pieces;
    size = (size + 15) & ~(size_t)15;
    if (!piece || piece->size - piece->used < size) {
        size_t room = size > PIECE_BYTES ? size : PIECE_BYTES;
        if (count_memory(p, room) != STRATA_OK) return NULL;
        piece = strata_host_new(1, sizeof *piece + room);
        if (!piece) return NULL;
        piece->size = room;
        piece->next = p->pieces;
        p->pieces = piece;
    }
    void *memory = piece->bytes + piece->used;
    piece->used += size;
    return memory;
}

static strata_status_t grow(strata_pickle_t *p, value_t **array, size_t *capacity, size_t needed) {
    if (needed <= *capacity) return STRATA_OK;
    size_t larger = *capacity * 2 > needed ? *capacity * 2 : needed + 64;
    strata_status_t status = count_memory(p, (larger - *capacity) * sizeof **array);
    if (status != STRATA_OK) return status;
    value_t *grown = strata_host_resize(*array, larger, sizeof *grown);
    if (!grown) return STRATA_E_HOST_MEMORY;
    memset(grown + *capacity, 0, (larger - *capacity) * sizeof *grown);
    *array = grown;
    *capacity = larger;
    return STRATA_OK;
}

static strata_status_t alloc_status(void) { return strata_last_error()->status; }

/* ---- bytes ---- */

static strata_status_t read_bytes(strata_pickle_t *p, uint64_t count, const unsigned char **bytes) {
    if (count > p->count - p->at) return wrong(p, "the file ends within an instruction; copy it again");
    *bytes = p->bytes + p->at;
    p->at += count;
    return STRATA_OK;
}

/* Reads a little-endian number of `width` bytes. */
static strata_status_t read_number(strata_pickle_t *p, unsigned width, uint64_t *number) {
    const unsigned char *bytes = NULL;
    strata_status_t status = read_bytes(p, width, &bytes);
    *number = 0;
    for (unsigned i = 0; i < width && status == STRATA_OK; i++) *number |= (uint64_t)bytes[i] << 8 * i;
    return status;
}

/* ---- the stack ---- */

static strata_status_t push(strata_pickle_t *p, value_t value) {
    strata_status_t status = grow(p, &p->stack, &p->stack_capacity, p->height + 1);
    if (status == STRATA_OK) p->stack[p->height++] = value;
    return status;
}

/* Returns the number of values that may be popped. A mark protects the values below it. */
static size_t above_mark(const strata_pickle_t *p) { return p->height - (p->mark_count ? p->marks[p->mark_count - 1] : 0); }

static strata_status_t push_number(strata_pickle_t *p, strata_pickle_kind_t kind, int64_t integer) {
    return push(p, (value_t){.kind = kind, .integer = integer});
}

static strata_status_t push_items(strata_pickle_t *p, strata_pickle_kind_t kind, size_t from) {
    items_t *items = arena_alloc(p, sizeof *items);
    if (!items) return alloc_status();
    *items = (items_t){.count = p->height - from};
    if (items->count) {
        items->all = arena_alloc(p, items->count * sizeof *items->all);
        if (!items->all) return alloc_status();
        memcpy(items->all, p->stack + from, items->count * sizeof *items->all);
        items->capacity = items->count;
    }
    p->height = from;
    return push(p, (value_t){.kind = kind, .items = items});
}

static strata_status_t push_tuple(strata_pickle_t *p, size_t count) {
    if (above_mark(p) < count) return wrong(p, "a tuple of more values than are present");
    return push_items(p, STRATA_PICKLE_TUPLE, p->height - count);
}

static strata_status_t push_text(strata_pickle_t *p, strata_pickle_kind_t kind, unsigned width) {
    const unsigned char *bytes = NULL;
    uint64_t length = 0;
    strata_status_t status = read_number(p, width, &length);
    if (status == STRATA_OK && length > UINT32_MAX) return wrong(p, "a text of more than 4 GiB");
    if (status == STRATA_OK) status = read_bytes(p, length, &bytes);
    if (status != STRATA_OK) return status;
    return push(p, (value_t){.kind = kind, .length = (uint32_t)length, .text = (const char *)bytes});
}

static strata_status_t push_long(strata_pickle_t *p, unsigned width) {
    const unsigned char *bytes = NULL;
    uint64_t length = 0, number = 0;
    strata_status_t status = read_number(p, width, &length);
    if (status == STRATA_OK) status = read_bytes(p, length, &bytes);
    if (status != STRATA_OK) return status;
    bool is_unsigned = length == 9 && bytes[8] == 0 && bytes[7] >= 0x80;
    if (length > 8 && !is_unsigned) return push_number(p, STRATA_PICKLE_LARGE, 0);
    for (uint64_t i = 0; i < length && i < 8; i++) number |= (uint64_t)bytes[i] << 8 * i;
    if (is_unsigned) return push_number(p, STRATA_PICKLE_UNSIGNED, (int64_t)number);
    bool negative = length > 0 && bytes[length - 1] >= 0x80;
    if (negative && length < 8) number |= ~UINT64_C(0) << 8 * length;
    return push_number(p, STRATA_PICKLE_INTEGER, (int64_t)number);
}

static strata_status_t push_integer(strata_pickle_t *p, unsigned width) {
    uint64_t number = 0;
    strata_status_t status = read_number(p, width, &number);
    if (status != STRATA_OK) return status;
    return push_number(p, STRATA_PICKLE_INTEGER, width == 4 ? (int32_t)(uint32_t)number : (int64_t)number);
}

static strata_status_t push_real(strata_pickle_t *p) {
    const unsigned char *bytes = NULL;
    uint64_t bits = 0;
    strata_status_t status = read_bytes(p, 8, &bytes);
    for (unsigned i = 0; i < 8 && status == STRATA_OK; i++) bits = bits << 8 | bytes[i];
    value_t value = {.kind = STRATA_PICKLE_REAL};
    memcpy(&value.real, &bits, sizeof bits);
    return status == STRATA_OK ? push(p, value) : status;
}

/* ---- instructions that change a list or dict ---- */

/* Moves the values above `from` into the object below them. */
static strata_status_t add_items(strata_pickle_t *p, strata_pickle_kind_t kind, size_t from) {
    size_t count = p->height - from;
    if (from == 0 || p->stack[from - 1].kind != kind || (p->mark_count && p->marks[p->mark_count - 1] == from))
        return wrong(p,
                     kind == STRATA_PICKLE_LIST ? "items for a value that is not a list" : "items for a value that is not a dict");
    if (kind == STRATA_PICKLE_DICT && count % 2) return wrong(p, "a key without a value");
    items_t *items = p->stack[from - 1].items;
    if (count > items->capacity - items->count) {
        size_t larger = items->count + count > items->capacity * 2 ? items->count + count : items->capacity * 2;
        value_t *grown = arena_alloc(p, larger * sizeof *grown);
        if (!grown) return alloc_status();
        if (items->count) memcpy(grown, items->all, items->count * sizeof *grown);
        items->all = grown;
        items->capacity = larger;
    }
    if (count) memcpy(items->all + items->count, p->stack + from, count * sizeof *items->all);
    items->count += count;
    p->height = from;
    return STRATA_OK;
}

static strata_status_t add_few(strata_pickle_t *p, strata_pickle_kind_t kind, size_t count) {
    if (above_mark(p) < count + 1) return wrong(p, "an item without a list or dict");
    return add_items(p, kind, p->height - count);
}

static strata_status_t pop_mark(strata_pickle_t *p, size_t *height) {
    if (p->mark_count == 0) return wrong(p, "the end of a group that has not begun");
    *height = p->marks[--p->mark_count];
    return STRATA_OK;
}

static strata_status_t add_many(strata_pickle_t *p, strata_pickle_kind_t kind) {
    size_t from = 0;
    strata_status_t status = pop_mark(p, &from);
    return status == STRATA_OK ? add_items(p, kind, from) : status;
}

static strata_status_t tuple_of_mark(strata_pickle_t *p) {
    size_t from = 0;
    strata_status_t status = pop_mark(p, &from);
    return status == STRATA_OK ? push_items(p, STRATA_PICKLE_TUPLE, from) : status;
}

static strata_status_t push_mark(strata_pickle_t *p) {
    if (p->mark_count == MARKS) return wrong(p, "lists and dicts are nested too deeply");
    p->marks[p->mark_count++] = p->height;
    return STRATA_OK;
}

/* ---- the memo ---- */

/* A pickle numbers its memo entries in turn. A number above those that the file can have made is hostile. */
static strata_status_t remember(strata_pickle_t *p, uint64_t number) {
    if (above_mark(p) == 0) return wrong(p, "a memo without a value");
    if (number > p->at) return wrong(p, "the number of a memo is too high");
    strata_status_t status = grow(p, &p->memo, &p->memo_capacity, number + 1);
    if (status != STRATA_OK) return status;
    p->memo[number] = p->stack[p->height - 1];
    if (number >= p->memo_count) p->memo_count = number + 1;
    return STRATA_OK;
}

static strata_status_t remember_at(strata_pickle_t *p, unsigned width) {
    uint64_t number = 0;
    strata_status_t status = read_number(p, width, &number);
    return status == STRATA_OK ? remember(p, number) : status;
}

static strata_status_t recall(strata_pickle_t *p, unsigned width) {
    uint64_t number = 0;
    strata_status_t status = read_number(p, width, &number);
    if (status != STRATA_OK) return status;
    if (number >= p->memo_count || p->memo[number].kind == STRATA_PICKLE_ABSENT) return wrong(p, "a memo that was never written");
    return push(p, p->memo[number]);
}

/* ---- instructions ---- */

static strata_status_t frame(strata_pickle_t *p) {
    uint64_t length = 0;
    strata_status_t status = read_number(p, 8, &length);
    if (status == STRATA_OK && length > p->count - p->at) return wrong(p, "a frame is longer than the file; copy the file again");
    return status;
}

/* Returns the class or function that an instruction imports, as "module.name". It is in the two lines after
 * GLOBAL and INST, and in the two texts before STACK_GLOBAL. Returns "" if there is none. */
static void imported_name(const strata_pickle_t *p, unsigned char opcode, char *name, size_t room) {
    const char *bytes = (const char *)p->bytes + p->at;
    const char *end = memchr(bytes, '\n', p->count - p->at);
    const char *last = end ? memchr(end + 1, '\n', p->count - p->at - (size_t)(end + 1 - bytes)) : NULL;
    name[0] = '\0';
    if ((opcode == 'c' || opcode == 'i') && last)
        snprintf(name, room, "%.*s.%.*s", (int)strata_min((size_t)(end - bytes), 80), bytes,
                 (int)strata_min((size_t)(last - end - 1), 80), end + 1);
    const value_t *module = opcode == 0x93 && above_mark(p) >= 2 ? &p->stack[p->height - 2] : NULL;
    if (module && module[0].kind == STRATA_PICKLE_TEXT && module[1].kind == STRATA_PICKLE_TEXT)
        snprintf(name, room, "%.*s.%.*s", (int)strata_min(module[0].length, 80), module[0].text,
                 (int)strata_min(module[1].length, 80), module[1].text);
    strata_make_printable(name, false);
}

/* Suggests how to convert objects that a user's script put into a snapshot. */
static const char *remedy(const char *imported) {
    static const struct {
        const char *begins, *remedy;
    } known[] = {{"numpy.", "convert NumPy's values by x.item() or int(x) before pickle.dump()"},
                 {"torch.", "convert tensors by x.item() or x.tolist() before pickle.dump()"},
                 {"collections.", "convert it by dict(x) or list(x) before pickle.dump()"},
                 {"pandas.", "convert it by x.to_dict() before pickle.dump()"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(imported, known[i].begins, strlen(known[i].begins)) == 0) return known[i].remedy;
    return "write the file with torch.cuda.memory._dump_snapshot()";
}

static strata_status_t refuse(const strata_pickle_t *p, unsigned char opcode) {
    const strata_pickle_word_t *word = strata_pickle_word(opcode);
    char imported[168];
    if (!word)
        return strata_fail(STRATA_E_FORMAT, 0, "%s: byte %zu: unknown pickle instruction 0x%02x", p->path, p->opcode_at, opcode);
    imported_name(p, opcode, imported, sizeof imported);
    return strata_fail(STRATA_E_FORMAT, 0, "%s: byte %zu: the instruction %s %s%s%s. Nothing was run; %s", p->path, p->opcode_at,
                       word->name,
                       word->calls ? "would run code or create an object of a class, which no snapshot needs"
                                   : "is not needed for the plain data of a snapshot and is not supported",
                       *imported ? "; it names " : "", imported, remedy(imported));
}

static strata_status_t step(strata_pickle_t *p, unsigned char opcode) {
    switch (opcode) {
    case '(': return push_mark(p);
    case '}': return push_items(p, STRATA_PICKLE_DICT, p->height);
    case ']': return push_items(p, STRATA_PICKLE_LIST, p->height);
    case ')': return push_items(p, STRATA_PICKLE_TUPLE, p->height);
    case 't': return tuple_of_mark(p);
    case 0x85: return push_tuple(p, 1);
    case 0x86: return push_tuple(p, 2);
    case 0x87: return push_tuple(p, 3);
    case 'a': return add_few(p, STRATA_PICKLE_LIST, 1);
    case 'e': return add_many(p, STRATA_PICKLE_LIST);
    case 's': return add_few(p, STRATA_PICKLE_DICT, 2);
    case 'u': return add_many(p, STRATA_PICKLE_DICT);
    case 'N': return push_number(p, STRATA_PICKLE_NONE, 0);
    case 0x88: return push_number(p, STRATA_PICKLE_BOOL, 1);
    case 0x89: return push_number(p, STRATA_PICKLE_BOOL, 0);
    case 'K': return push_integer(p, 1);
    case 'M': return push_integer(p, 2);
    case 'J': return push_integer(p, 4);
    case 0x8a: return push_long(p, 1);
    case 0x8b: return push_long(p, 4);
    case 'G': return push_real(p);
    case 0x8c: return push_text(p, STRATA_PICKLE_TEXT, 1);
    case 'X': return push_text(p, STRATA_PICKLE_TEXT, 4);
    case 0x8d: return push_text(p, STRATA_PICKLE_TEXT, 8);
    case 'C': return push_text(p, STRATA_PICKLE_BYTES, 1);
    case 'B': return push_text(p, STRATA_PICKLE_BYTES, 4);
    case 0x8e: return push_text(p, STRATA_PICKLE_BYTES, 8);
    case 'q': return remember_at(p, 1);
    case 'r': return remember_at(p, 4);
    case 0x94: return remember(p, p->memo_count);
    case 'h': return recall(p, 1);
    case 'j': return recall(p, 4);
    case 0x95: return frame(p);
    default: return refuse(p, opcode);
    }
}

static strata_status_t run(strata_pickle_t *p) {
    if (p->count < 2 || p->bytes[0] != 0x80) return wrong(p, "not a pickle of protocol 2 to 5");
    if (p->bytes[1] < FIRST_PROTOCOL || p->bytes[1] > LAST_PROTOCOL) return wrong(p, "the protocol of the pickle is not 2 to 5");
    for (p->at = 2; p->at < p->count;) {
        p->opcode_at = p->at;
        unsigned char opcode = p->bytes[p->at++];
        if (opcode == '.') {
            if (p->height == 1 && p->mark_count == 0) return STRATA_OK;
            return wrong(p, "the pickle does not end with exactly one object");
        }
        strata_status_t status = step(p, opcode);
        if (status != STRATA_OK) return status;
    }
    p->opcode_at = p->count;
    return wrong(p, "the file ends before its pickle does; copy it again");
}

strata_status_t strata_pickle_read(const char *path, const char *bytes, size_t count, strata_pickle_t **pickle) {
    strata_pickle_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    made->path = path;
    made->bytes = (const unsigned char *)bytes;
    made->count = count;
    strata_status_t status = run(made);
    if (status != STRATA_OK) {
        strata_pickle_delete(made);
        return status;
    }
    *pickle = made;
    return STRATA_OK;
}

const strata_pickle_value_t *strata_pickle_root(const strata_pickle_t *pickle) { return &pickle->stack[0]; }

void strata_pickle_delete(strata_pickle_t *pickle) {
    if (!pickle) return;
    while (pickle->pieces) {
        piece_t *next = pickle->pieces->next;
        strata_host_delete(pickle->pieces);
        pickle->pieces = next;
    }
    strata_host_delete(pickle->stack);
    strata_host_delete(pickle->memo);
    strata_host_delete(pickle);
}

/* ---- access to the values ---- */

bool strata_pickle_is(const strata_pickle_value_t *value, const char *text) {
    return value->kind == STRATA_PICKLE_TEXT && value->length == strlen(text) && memcmp(value->text, text, value->length) == 0;
}

strata_pickle_value_t strata_pickle_member(const strata_pickle_value_t *dict, const char *name) {
    if (dict->kind != STRATA_PICKLE_DICT) return (value_t){.kind = STRATA_PICKLE_ABSENT};
    const items_t *items = dict->items;
    for (size_t i = items->count; i >= 2; i -= 2)
        if (strata_pickle_is(&items->all[i - 2], name)) return items->all[i - 1];
    return (value_t){.kind = STRATA_PICKLE_ABSENT};
}

size_t strata_pickle_count(const strata_pickle_value_t *list) {
    return list->kind == STRATA_PICKLE_LIST || list->kind == STRATA_PICKLE_TUPLE ? list->items->count : 0;
}
