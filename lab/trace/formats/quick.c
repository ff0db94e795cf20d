#include "lab/trace/formats/quick.h"

#include <endian.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/place.h"

enum { WORD = 8, NUMBER_DIGITS = 2 * WORD - 1 };
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define EMPTY      UINT64_MAX /* the value of an empty field; above all values that are accepted */

/* Loads eight bytes, the first one lowest. */
static uint64_t load(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

void strata_quick_begin(strata_quick_t *quick, const uint8_t *column_of, uint32_t field_count) {
    *quick = (strata_quick_t){.field_count = field_count, .reach = WORD, .place = STRATA_PLACE_GPU};
    for (int i = 0; i < STRATA_TRACE_OPS; i++) {
        const char *name = strata_trace_op_name((strata_trace_op_t)i);
        size_t length = strlen(name);
        char word[WORD] = {0}, mask[WORD] = {0};
        if (length >= WORD) continue;
        memcpy(word, name, length);
        word[length] = ',';
        memset(mask, 0xff, length + 1);
        quick->ops[i].word = load(word);
        quick->ops[i].mask = load(mask);
        quick->ops[i].length = (uint32_t)length;
    }
    for (int i = 0; i < STRATA_TRACE_COLUMNS; i++) quick->value[i] = EMPTY;
    for (uint32_t i = 0; i < field_count; i++) {
        uint8_t column = column_of[i];
        bool text = column == STRATA_COLUMN_tag || column == STRATA_COLUMN_stream_name || column == STRATA_TRACE_COLUMNS;
        bool word = text || column == STRATA_COLUMN_op || column == STRATA_COLUMN_place;
        quick->numbers |= (uint64_t)!word << i;
        quick->column_of[i] = column;
        quick->reach += text ? STRATA_TRACE_TAG_BYTES + 1 : 2 * WORD + 1;
        quick->optional |= column == STRATA_COLUMN_device || column == STRATA_COLUMN_thread || column == STRATA_COLUMN_align;
    }
}

/* ---- fields: each function returns the position after the field, or NULL for the slow path ----------------------------- */

/* Returns the bit at which the first byte begins that is marked in its highest bit. */
static unsigned first_bit(uint64_t marks) { return (unsigned)__builtin_ctzll(marks) & ~7u; }

static const char *parse_op(strata_quick_t *quick, const char *at) {
    uint64_t word = load(at);
    for (int i = 0; i < STRATA_TRACE_OPS; i++) {
        quick->op = (strata_trace_op_t)i;
        if ((word & quick->ops[i].mask) == quick->ops[i].word && quick->ops[i].length > 0) return at + quick->ops[i].length;
    }
    return NULL;
}

/* Returns the number with eight digits, less '0', in the bytes of a word. Neighbors are added, then pairs, then fours. */
static uint64_t eight_digits(uint64_t digits) {
    digits = digits * 10 + (digits >> 8);
    uint64_t high = (digits & UINT64_C(0x000000ff000000ff)) * (100 + (UINT64_C(1000000) << 32));
    uint64_t low = (digits >> 16 & UINT64_C(0x000000ff000000ff)) * (1 + (UINT64_C(10000) << 32));
    return (high + low) >> 32;
}

/* Returns a number of up to eight digits, from a word with '0' subtracted. *bits is eight for each digit. No
 * branch depends on the number of digits, so none is mispredicted by it. */
static uint64_t some_digits(uint64_t digits, uint64_t others, unsigned *bits) {
    *bits = first_bit(others);
    return eight_digits(digits << (63 - *bits) << 1);
}

/* Marks each byte that is not a digit, and some bytes that follow one. */
static uint64_t other_than_digits(uint64_t digits) { return ((digits + EACH(0x76)) | digits) & EACH(0x80); }

static const char *parse_long_number(const char *at, uint64_t high, uint64_t *value) {
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t digits = load(at + WORD) ^ EACH('0'), others = other_than_digits(digits);
    unsigned bits;
    if (!others) return NULL;
    uint64_t low = some_digits(digits, others, &bits);
    *value = high * tens[bits / 8] + low;
    return at + WORD + bits / 8;
}

static const char *parse_number(const char *at, uint64_t *value) {
    unsigned first = (unsigned char)at[0] - (unsigned)'0';
    if (at[1] == ',' && first <= 9) {
        *value = first;
        return at + 1;
    }
    if (at[0] == ',') {
        *value = EMPTY;
        return at;
    }
    uint64_t digits = load(at) ^ EACH('0'), others = other_than_digits(digits);
    unsigned bits;
    if (__builtin_expect(!others, 0)) return parse_long_number(at, eight_digits(digits), value);
    *value = some_digits(digits, others, &bits) | (bits > 0 ? 0 : EMPTY);
    return at + bits / 8;
}

static const char *parse_place(strata_quick_t *quick, const char *at) {
    quick->place = STRATA_PLACE_GPU;
    if (*at == ',' || *at == '\n' || *at == '\r') return at;
    for (int i = 0; i < STRATA_PLACE_KINDS; i++) {
        const char *name = strata_place_name((strata_place_kind_t)i);
        size_t length = strlen(name);
        quick->place = (strata_place_kind_t)i;
        if (strncmp(at, name, length) == 0) return at + length;
    }
    return NULL;
}

static const char *parse_text(const char *at, char *text) {
    size_t length = 0;
    if (*at == '"') return NULL;
    for (; at[length] != ',' && at[length] != '\n' && at[length] != '\r'; length++)
        if (at[length] == '\0' || length == STRATA_TRACE_TAG_BYTES - 1) return NULL;
    if (text) memcpy(text, at, length);
    if (text) text[length] = '\0';
    return at + length;
}

/* A row with a name takes the slow path: most streams have their name in one row only. */
static const char *expect_empty(const char *at) { return *at == ',' || *at == '\n' || *at == '\r' ? at : NULL; }

static const char *parse_word(strata_quick_t *quick, uint8_t column, const char *at) {
    switch (column) {
    case STRATA_COLUMN_stream_name: return expect_empty(at);
    case STRATA_COLUMN_op: return parse_op(quick, at);
    case STRATA_COLUMN_place: return parse_place(quick, at);
    case STRATA_COLUMN_tag: return parse_text(at, quick->tag);
    default: return parse_text(at, NULL);
    }
}

/* Takes the end of the line, LF or CR LF. */
static const char *parse_end(const char *at) {
    at += *at == '\r';
    return *at == '\n' ? at + 1 : NULL;
}

static const char *parse_fields(strata_quick_t *quick, const char *at) {
    const uint8_t *column = quick->column_of, *last = column + quick->field_count - 1;
    for (uint64_t numbers = quick->numbers;; column++, at++, numbers >>= 1) {
        at = numbers & 1 ? parse_number(at, &quick->value[*column]) : parse_word(quick, *column, at);
        if (!at) return NULL;
        if (column == last) return parse_end(at);
        if (*at != ',') return NULL;
    }
}

/* ---- requirements of each operation, as in own.c ------------------------------------------------------------------------ */

static bool has(const strata_quick_t *quick, strata_trace_column_t column, uint64_t most) { return quick->value[column] <= most; }

/* Rare operations take the slow path. */
static bool has_required(const strata_quick_t *quick) {
    switch (quick->op) {
    case STRATA_TRACE_alloc:
        return has(quick, STRATA_COLUMN_id, EMPTY - 1) && has(quick, STRATA_COLUMN_size, STRATA_TRACE_SIZE_MAX);
    case STRATA_TRACE_free:
    case STRATA_TRACE_borrow: return has(quick, STRATA_COLUMN_id, EMPTY - 1);
    case STRATA_TRACE_work: return has(quick, STRATA_COLUMN_dur_us, STRATA_TRACE_TIME_MAX);
    case STRATA_TRACE_wait: return has(quick, STRATA_COLUMN_other, STRATA_TRACE_NUMBER_MAX);
    default: return false;
    }
}

static uint64_t or_zero(const strata_quick_t *quick, strata_trace_column_t column) {
    return quick->value[column] == EMPTY ? 0 : quick->value[column];
}

static bool has_valid_options(const strata_quick_t *quick) {
    uint64_t align = or_zero(quick, STRATA_COLUMN_align);
    return or_zero(quick, STRATA_COLUMN_device) < STRATA_TRACE_DEVICES && or_zero(quick, STRATA_COLUMN_thread) <= UINT32_MAX &&
           align <= STRATA_TRACE_SIZE_MAX && (align & (align - 1)) == 0;
}

static bool is_valid(const strata_quick_t *quick, uint64_t last_time) {
    uint64_t time_us = quick->value[STRATA_COLUMN_time_us];
    return time_us <= STRATA_TRACE_TIME_MAX && time_us >= last_time && has(quick, STRATA_COLUMN_stream, STRATA_TRACE_NUMBER_MAX) &&
           has_required(quick) && (!quick->optional || has_valid_options(quick));
}

/* Sets each field separately, because a record is too large to be cleared cheaply. A column counts only for
 * the operations that have it. */
static void fill_record(const strata_quick_t *quick, strata_trace_record_t *record) {
    bool alloc = quick->op == STRATA_TRACE_alloc, work = quick->op == STRATA_TRACE_work, wait = quick->op == STRATA_TRACE_wait;
    record->op = quick->op;
    record->place = quick->place;
    record->has_id = !wait && quick->value[STRATA_COLUMN_id] != EMPTY;
    record->id = record->has_id ? quick->value[STRATA_COLUMN_id] : 0;
    record->size = alloc ? quick->value[STRATA_COLUMN_size] : 0;
    record->stream = quick->value[STRATA_COLUMN_stream];
    record->time_us = quick->value[STRATA_COLUMN_time_us];
    record->dur_us = work ? quick->value[STRATA_COLUMN_dur_us] : 0;
    record->other = wait ? quick->value[STRATA_COLUMN_other] : 0;
    record->has_pool = alloc && quick->value[STRATA_COLUMN_pool] != EMPTY;
    record->pool = record->has_pool ? quick->value[STRATA_COLUMN_pool] : 0;
    record->align = record->device = record->thread = 0;
    record->all_streams = false;
    record->line = 0;
    record->tag = quick->tag;
    record->stream_name = NULL;
    if (!quick->optional) return;
    record->align = or_zero(quick, STRATA_COLUMN_align);
    record->device = (uint32_t)or_zero(quick, STRATA_COLUMN_device);
    record->thread = (uint32_t)or_zero(quick, STRATA_COLUMN_thread);
}

size_t strata_quick_row(strata_quick_t *quick, const char *bytes, size_t count, uint64_t last_time, strata_trace_record_t *record) {
    if (count < quick->reach) return 0;
    const char *after = parse_fields(quick, bytes);
    if (!after || after - bytes > STRATA_TRACE_LINE_BYTES || !is_valid(quick, last_time)) return 0;
    fill_record(quick, record);
    return (size_t)(after - bytes);
}

uint32_t strata_quick_column(const char *row, uint32_t field) {
    uint32_t column = 1;
    for (; field > 0; row++) {
        field -= *row == ',';
        column += ((unsigned char)*row & 0xc0) != 0x80;
    }
    return column;
}
