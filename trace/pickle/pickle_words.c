#include "trace/pickle/pickle_words.h"

static const strata_pickle_word_t words[] = {
    {'c', "GLOBAL", true},     {0x93, "STACK_GLOBAL", true}, {'R', "REDUCE", true},
    {'b', "BUILD", true},      {'i', "INST", true},          {'o', "OBJ", true},
    {0x81, "NEWOBJ", true},    {0x92, "NEWOBJ_EX", true},    {'P', "PERSID", true},
    {'Q', "BINPERSID", true},  {0x82, "EXT1", true},         {0x83, "EXT2", true},
    {0x84, "EXT4", true},      {0x97, "NEXT_BUFFER", true},  {0x98, "READONLY_BUFFER", true},
    {'I', "INT", false},       {'L', "LONG", false},         {'F', "FLOAT", false},
    {'S', "STRING", false},    {'T', "BINSTRING", false},    {'U', "SHORT_BINSTRING", false},
    {'V', "UNICODE", false},   {'p', "PUT", false},          {'g', "GET", false},
    {'d', "DICT", false},      {'l', "LIST", false},         {'0', "POP", false},
    {'1', "POP_MARK", false},  {'2', "DUP", false},          {0x8f, "EMPTY_SET", false},
    {0x90, "ADDITEMS", false}, {0x91, "FROZENSET", false},   {0x96, "BYTEARRAY8", false},
    {0x80, "PROTO", false},
};

const strata_pickle_word_t *strata_pickle_word(unsigned char opcode) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].opcode == opcode) return &words[i];
    return NULL;
}
