/* A pickle is a program. This reader knows plain data alone: what could run anything is refused by name, and nothing was run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/trace/formats/pickle.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/records/rows.h"

static const char *pickle(const char *bytes, size_t count) { return write_file("hostile.pickle", bytes, count); }
#define PICKLE(text) pickle(text, sizeof text - 1)

/* Each does what Python would do at load: run a command that makes a file. */
TEST(pickles, what_would_run_code_runs_nothing) {
    static const struct {
        const char *format, *name;
    } attacks[] = {
        {"\x80\x02"
         "cos\nsystem\nX%c%c%c%c%s\x85R.",
         "GLOBAL"},
        {"\x80\x04"
         "\x8c\x02os\x8c\x06system\x93X%c%c%c%c%s\x85R.",
         "STACK_GLOBAL"},
        {"\x80\x02"
         "(X%c%c%c%c%sios\nsystem\n.",
         "INST"},
    };
    char marker[512], command[600], text[1200];
    snprintf(marker, sizeof marker, "%s", temporary("was-run"));
    size_t length = (size_t)snprintf(command, sizeof command, "touch %s", marker);
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        /* The length has zero bytes, which end no format. */
        int count = snprintf(text, sizeof text, attacks[i].format, '\1', '\1', '\1', '\1', command);
        char *at = strstr(text, "X\1\1\1\1");
        ASSERT_NE(at, NULL);
        at[1] = (char)(length & 255);
        at[2] = (char)(length >> 8);
        at[3] = at[4] = 0;
        char wanted[64];
        snprintf(wanted, sizeof wanted, "the instruction %s would run code", attacks[i].name);
        expect_refused(pickle(text, (size_t)count), wanted);
        EXPECT_NE(access(marker, F_OK), 0);
    }
}

TEST(pickles, every_instruction_but_those_of_plain_data_is_refused_by_name) {
    static const struct {
        unsigned char opcode;
        const char *name;
    } refused[] = {{'c', "GLOBAL"},      {'R', "REDUCE"},       {'b', "BUILD"},         {'i', "INST"},       {'o', "OBJ"},
                   {0x81, "NEWOBJ"},     {0x92, "NEWOBJ_EX"},   {0x93, "STACK_GLOBAL"}, {'P', "PERSID"},     {'Q', "BINPERSID"},
                   {0x82, "EXT1"},       {0x83, "EXT2"},        {0x84, "EXT4"},         {0x8f, "EMPTY_SET"}, {0x91, "FROZENSET"},
                   {0x96, "BYTEARRAY8"}, {0x97, "NEXT_BUFFER"}, {'I', "INT"},           {'S', "STRING"},     {'d', "DICT"},
                   {'0', "POP"},         {'2', "DUP"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[] = "\x80\x04N?N.", wanted[64];
        text[3] = (char)refused[i].opcode;
        snprintf(wanted, sizeof wanted, "byte 3: the instruction %s ", refused[i].name);
        expect_refused(pickle(text, sizeof text - 1), wanted);
    }
    expect_refused(PICKLE("\x80\x04N\xffN."), "byte 3: unknown pickle instruction 0xff");
}

/* A user's script replaced plain values by NumPy's numbers or an OrderedDict. */
TEST(pickles, the_class_of_an_object_is_named_with_what_to_do) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *part;
    } files[] = {
#define ROW(bytes, part) {bytes, sizeof bytes - 1, part}
        ROW("\x80\x04\x8c\x16numpy._core.multiarray\x8c\x06scalar\x93.",
            "byte 34: the instruction STACK_GLOBAL would run code or create an object of a class, which no snapshot needs; it "
            "names numpy._core.multiarray.scalar. Nothing was run; convert NumPy's values by x.item() or int(x) before pickle.dump()"),
        ROW("\x80\x02"
            "cnumpy.core.multiarray\nscalar\n.",
            "byte 2: the instruction GLOBAL would run code or create an object of a class, which no snapshot needs; it names "
            "numpy.core.multiarray.scalar. Nothing was run; convert NumPy's values"),
        ROW("\x80\x04\x8c\x0b"
            "collections\x8c\x0bOrderedDict\x93.",
            "it names collections.OrderedDict. Nothing was run; convert it by dict(x)"),
        ROW("\x80\x02"
            "ctorch._utils\n_rebuild_tensor_v2\n.",
            "it names torch._utils._rebuild_tensor_v2. Nothing was run; convert tensors by x.item()"),
        ROW("\x80\x02"
            "cbuiltins\nset\n.",
            "it names builtins.set. Nothing was run; write the file with torch.cuda.memory._dump_snapshot()"),
        ROW("\x80\x02"
            "cnumpy",
            "which no snapshot needs. Nothing was run; write the file with"),
        ROW("\x80\x02(\x8c\x01"
            "a\x93.",
            "which no snapshot needs. Nothing was run; write the file with"),
        ROW("\x80\x02NK\x01\x93.", "which no snapshot needs. Nothing was run; write the file with"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) expect_refused(pickle(files[i].bytes, files[i].count), files[i].part);
}

TEST(pickles, a_broken_one_is_refused_at_its_byte) {
    expect_refused(PICKLE("\x80\x01N."), "the protocol of the pickle is not 2 to 5");
    expect_refused(PICKLE("\x80\x06N."), "the protocol of the pickle is not 2 to 5");
    expect_refused(PICKLE("\x80\x04N"), "byte 3: the file ends before its pickle does");
    expect_refused(PICKLE("\x80\x04NN."), "does not end with exactly one object");
    expect_refused(PICKLE("\x80\x04(N."), "does not end with exactly one object");
    expect_refused(PICKLE("\x80\x04."), "does not end with exactly one object");
    expect_refused(PICKLE("\x80\x04X\xff\xff\xff\xff"
                          "abc."),
                   "byte 2: the file ends within an instruction");
    expect_refused(PICKLE("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "byte 2: a text of more than 4 GiB");
    expect_refused(PICKLE("\x80\x04\x95\x09\0\0\0\0\0\0\0N."), "byte 2: a frame is longer than the file");
    expect_refused(PICKLE("\x80\x04h\x05."), "byte 2: a memo that was never written");
    expect_refused(PICKLE("\x80\x04Nr\xff\xff\xff\xff."), "byte 3: the number of a memo is too high");
    expect_refused(PICKLE("\x80\x04\x94."), "byte 2: a memo without a value");
    expect_refused(PICKLE("\x80\x04Na."), "byte 3: an item without a list or dict");
    expect_refused(PICKLE("\x80\x04NNa."), "byte 4: items for a value that is not a list");
    expect_refused(PICKLE("\x80\x04](Ns."), "byte 5: an item without a list or dict");
    expect_refused(PICKLE("\x80\x04}(Nu."), "byte 5: a key without a value");
    expect_refused(PICKLE("\x80\x04](Nu."), "byte 5: items for a value that is not a dict");
    expect_refused(PICKLE("\x80\x04](((ee."), "byte 6: items for a value that is not a list");
    expect_refused(PICKLE("\x80\x04]e."), "byte 3: the end of a group that has not begun");
    expect_refused(PICKLE("\x80\x04N\x86."), "byte 3: a tuple of more values than are present");
}

TEST(pickles, depth_is_bounded) {
    enum { DEEP = 5000 };
    char *text = malloc(DEEP + 2);
    ASSERT_NE(text, NULL);
    memset(text, '(', DEEP + 2);
    memcpy(text, "\x80\x04", 2);
    expect_refused(pickle(text, DEEP + 2), "byte 1002: lists and dicts are nested too deeply");
    free(text);
}

/* A list that holds itself, where a segment is wanted, and a table of the same 65,536 empty dicts 65,536 times. */
TEST(pickles, what_holds_itself_comes_to_an_end) {
    expect_refused(PICKLE("\x80\x04}\x94(\x8c\x08segments]\x94h\x01"
                          "a\x8c\x0d"
                          "device_tracesh\x01u."),
                   "it is not a dict");
    expect_refused(PICKLE("\x80\x04]\x94h\0a."), "segment 0 of the snapshot: it is not a dict");
}

TEST(pickles, what_is_no_snapshot_is_refused) {
    expect_refused(PICKLE("\x80\x04N."), "the pickle is not a memory snapshot");
    expect_refused(PICKLE("\x80\x04}."), "it has no list \"segments\" or \"device_traces\"");
    expect_refused(PICKLE("\x80\x04}(\x8c\x08segmentsK\x05u."), "it has no list \"segments\"");
    expect_refused(PICKLE("\x80\x04}(\x8c\x08segments]\x8c\x0d"
                          "device_traces](K\x05"
                          "eu."),
                   "its events are not a list");
    expect_refused(PICKLE("\x80\x04}(\x8c\x08segments]\x8c\x0d"
                          "device_traces](](K\x05"
                          "eeu."),
                   "event 0 of the snapshot: it is not a dict");
    expect_refused(PICKLE("\x80\x04}(\x8c\x08segments]\x8c\x0d"
                          "device_traces](](}eeu."),
                   "event 0 of the snapshot: it has no action");
    expect_refused(PICKLE("\x80\x04](}e."), "segment 0 of the snapshot: it has no address");
}

static strata_pickle_t *read_all(const char *bytes, size_t count) {
    strata_pickle_t *read = NULL;
    if (strata_pickle_read("x", bytes, count, &read) != STRATA_OK) FAIL_TEST("%s", strata_last_error()->text);
    return read;
}
#define READ(text) read_all(text, sizeof text - 1)

static int64_t integer_of(strata_pickle_t *read) {
    const strata_pickle_value_t *root = strata_pickle_root(read);
    int64_t integer = root->integer;
    EXPECT_EQ(root->kind, STRATA_PICKLE_INTEGER);
    strata_pickle_delete(read);
    return integer;
}

TEST(pickles, numbers_are_as_python_writes_them) {
    EXPECT_EQ(integer_of(READ("\x80\x02K\xff.")), 255);
    EXPECT_EQ(integer_of(READ("\x80\x02M\x00\x80.")), 32768);
    EXPECT_EQ(integer_of(READ("\x80\x02J\xff\xff\xff\xff.")), -1);
    EXPECT_EQ(integer_of(READ("\x80\x02\x8a\x00.")), 0);
    EXPECT_EQ(integer_of(READ("\x80\x02\x8a\x02\x00\xff.")), -256);
    EXPECT_EQ(integer_of(READ("\x80\x02\x8a\x05\x00\x00\x00\x00\x7f.")), INT64_C(0x7f00000000));
    EXPECT_EQ(integer_of(READ("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.")), INT64_MIN);
    strata_pickle_t *read = READ("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.");
    EXPECT_EQ(strata_pickle_root(read)->kind, STRATA_PICKLE_UNSIGNED);
    EXPECT_EQ(strata_pickle_root(read)->integer, INT64_MIN);
    strata_pickle_delete(read);
    read = READ("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.");
    EXPECT_EQ(strata_pickle_root(read)->kind, STRATA_PICKLE_UNSIGNED);
    EXPECT_EQ(strata_pickle_root(read)->integer, -1);
    strata_pickle_delete(read);
    read = READ("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.");
    EXPECT_EQ(strata_pickle_root(read)->kind, STRATA_PICKLE_LARGE);
    strata_pickle_delete(read);
    read = READ("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff.");
    EXPECT_EQ(strata_pickle_root(read)->kind, STRATA_PICKLE_LARGE);
    strata_pickle_delete(read);
    read = READ("\x80\x02G\xbf\xf8\x00\x00\x00\x00\x00\x00.");
    EXPECT_TRUE(strata_pickle_root(read)->real == -1.5);
    strata_pickle_delete(read);
}

/* Of a name that stands twice the last counts, as in a dict of Python. */
TEST(pickles, members_are_found) {
    strata_pickle_t *read = READ("\x80\x04}(\x8c\x01"
                                 "aK\x01\x8c\x01"
                                 "bK\x02u\x8c\x01"
                                 "aK\x03s.");
    EXPECT_EQ(strata_pickle_member(strata_pickle_root(read), "a").integer, 3);
    EXPECT_EQ(strata_pickle_member(strata_pickle_root(read), "b").integer, 2);
    EXPECT_EQ(strata_pickle_member(strata_pickle_root(read), "c").kind, STRATA_PICKLE_ABSENT);
    strata_pickle_delete(read);
}
