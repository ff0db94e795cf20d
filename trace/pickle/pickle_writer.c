#include "trace/pickle/pickle_writer.h"

#include <string.h>

#include "platform/text/printable.h"

enum { PROTOCOL = 4, TEXT_MAX = 4096 };

static void put(strata_pickler_t *p, const void *bytes, size_t count) { (void)strata_output_write(p->output, bytes, count); }

static void put_opcode(strata_pickler_t *p, unsigned char opcode) { put(p, &opcode, 1); }

/* Writes an instruction followed by a little-endian number. */
static void put_number(strata_pickler_t *p, unsigned char opcode, uint64_t number, unsigned width) {
    unsigned char bytes[9] = {opcode};
    for (unsigned i = 0; i < width; i++) bytes[1 + i] = (unsigned char)(number >> 8 * i);
    put(p, bytes, 1 + width);
}

void strata_pickler_begin(strata_pickler_t *p, strata_output_t *output) {
    *p = (strata_pickler_t){.output = output};
    put_number(p, 0x80, PROTOCOL, 1);
}

void strata_pickler_open_list(strata_pickler_t *p) { put(p, "](", 2); }
void strata_pickler_close_list(strata_pickler_t *p) { put_opcode(p, 'e'); }
void strata_pickler_open_dict(strata_pickler_t *p) { put(p, "}(", 2); }
void strata_pickler_close_dict(strata_pickler_t *p) { put_opcode(p, 'u'); }

void strata_pickler_text(strata_pickler_t *p, const char *text) {
    char copy[TEXT_MAX];
    size_t length = strlen(text);
    if (length >= sizeof copy) length = sizeof copy - 1;
    memcpy(copy, text, length);
    copy[length] = '\0';
    strata_make_printable(copy, true);
    length = strlen(copy);
    put_number(p, 'X', length, 4);
    put(p, copy, length);
}

uint32_t strata_pickler_remember(strata_pickler_t *p) {
    put_opcode(p, 0x94);
    return p->remembered++;
}

void strata_pickler_recall(strata_pickler_t *p, uint32_t number) {
    if (number < 256) put_number(p, 'h', number, 1);
    else put_number(p, 'j', number, 4);
}

void strata_pickler_word(strata_pickler_t *p, const char *word) {
    for (uint32_t i = 0; i < p->word_count; i++) {
        if (p->words[i].word != word) continue;
        strata_pickler_recall(p, p->words[i].number);
        return;
    }
    strata_pickler_text(p, word);
    if (p->word_count == STRATA_PICKLER_WORDS) return;
    p->words[p->word_count].word = word;
    p->words[p->word_count++].number = strata_pickler_remember(p);
}

void strata_pickler_integer(strata_pickler_t *p, int64_t integer) {
    if (integer >= 0 && integer < 256) put_number(p, 'K', (uint64_t)integer, 1);
    else if (integer >= INT32_MIN && integer <= INT32_MAX) put_number(p, 'J', (uint64_t)integer, 4);
    else {
        put_number(p, 0x8a, 8, 1);
        unsigned char bytes[8];
        for (unsigned i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)integer >> 8 * i);
        put(p, bytes, sizeof bytes);
    }
}

void strata_pickler_real(strata_pickler_t *p, double real) {
    unsigned char bytes[9] = {'G'};
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    for (unsigned i = 0; i < 8; i++) bytes[1 + i] = (unsigned char)(bits >> (56 - 8 * i));
    put(p, bytes, sizeof bytes);
}

void strata_pickler_bool(strata_pickler_t *p, bool value) { put_opcode(p, value ? 0x88 : 0x89); }

void strata_pickler_tuple(strata_pickler_t *p, unsigned count) { put_opcode(p, (unsigned char)(0x84 + count)); }

void strata_pickler_end(strata_pickler_t *p) { put_opcode(p, '.'); }
