/* What a file may say cannot be chosen against the hash that finds it. */
#include <stdio.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "trace/ids.h"
#include "trace/trace.h"

enum { BLOCKS = 8, BLOCK_BYTES = 13, WORDS = 1 << BLOCKS, WORD_BYTES = BLOCKS * BLOCK_BYTES };

/* Whichever of each two is taken, FNV-1a comes to the same 64 bits after it. */
static const char *const blocks[BLOCKS][2] = {
    {"\x35\x3c\x76\x0f\x16\xc1\x89\x66\x13\x28\x3e\x0b\x19", "\x2e\x28\x55\x1e\x63\xcb\x84\x25\x75\x18\xe4\x06\xee"},
    {"\x75\x16\x45\x0e\xc6\x74\x13\x24\x43\xdf\x9d\x12\x9d", "\x76\x3c\x76\x69\xbc\xb0\x04\xde\xce\xa8\x90\x04\x8e"},
    {"\x6e\x10\x9e\x05\x97\x32\x54\x72\x15\xd4\x24\x9a\x55", "\x66\x73\x9f\x03\xb1\x07\x4b\xd2\x59\x4d\x24\x80\x38"},
    {"\xe2\x36\x1e\xb6\x99\x51\x69\x1b\xc6\x0b\x99\x14\xa8", "\xda\xd3\x19\x6c\xff\x42\x6c\x3b\x2a\x18\xe7\x12\x9d"},
    {"\x89\x6f\xeb\x74\x7e\x18\x80\xf5\x79\x1d\x53\x15\xd5", "\xb7\x65\x14\x5f\x46\x06\x8d\x5f\xf8\x13\xdd\x16\xea"},
    {"\xbd\x46\x18\xad\x2e\xa4\x87\x5f\xc5\x93\xdb\x18\x24", "\xbf\x4c\x6b\xa6\x16\x62\x8a\x45\x34\x91\xa1\x19\x19"},
    {"\x75\x32\x5f\x2d\x87\x3a\x1c\xb0\x0b\x73\x9b\xf4\xea", "\x6d\x4d\xde\xe3\x81\x5d\x01\x90\xff\x02\xa9\xba\xfd"},
    {"\x61\x63\xa9\xb7\x7e\x05\x0f\x4d\x5b\xb7\xb4\x13\x13", "\x5c\x69\x72\xe8\x29\x3f\x08\xcc\x3d\xc3\xee\x1c\x1e"}};

static void word_of(uint32_t choice, char *word) {
    for (uint32_t i = 0; i < BLOCKS; i++) memcpy(word + i * BLOCK_BYTES, blocks[i][choice >> i & 1], BLOCK_BYTES);
    word[WORD_BYTES] = '\0';
}

static uint64_t fnv_1a(const char *word) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *word; word++) hash = (hash ^ (unsigned char)*word) * UINT64_C(1099511628211);
    return hash;
}

/* The first is of the key 0, 1 .. 15, the others of the key 0; Rust's library and CPython (PYTHONHASHSEED=0) have the same. */
TEST(trace_ids, sip_hash_is_the_published_one) {
    const strata_sip_key_t counted = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}, zero = {0, 0};
    EXPECT_EQ(strata_sip_hash(&counted, "", 0), UINT64_C(0xabac0158050fc4dc));
    EXPECT_EQ(strata_sip_hash(&zero, "a", 1), UINT64_C(0x407448d2b89b1813));
    EXPECT_EQ(strata_sip_hash(&zero, "abcdefg", 7), UINT64_C(0x6db12aae9070f506));
    EXPECT_EQ(strata_sip_hash(&zero, "abcdefgh", 8), UINT64_C(0x3f7b849c0b8e35ea));
}

/* The first slot is as empty as the others: with this secret the number 0 belongs there. */
TEST(trace_ids, what_was_never_added_is_not_found) {
    strata_ids_t ids = {.secret = {.low = 0, .high = 1}};
    EXPECT_EQ(strata_ids_find(&ids, 0), STRATA_IDS_NONE);
    ASSERT_OK(strata_ids_add(&ids, 77));
    EXPECT_EQ(strata_ids_find(&ids, 0), STRATA_IDS_NONE);
    EXPECT_EQ(strata_ids_find(&ids, 77), 0);
    ASSERT_OK(strata_ids_add(&ids, 0));
    EXPECT_EQ(strata_ids_find(&ids, 0), 1);
    strata_ids_clear(&ids);
}

/* Numbers that count up have no table; what comes before, after a gap or out of order makes one, and all keep theirs. */
TEST(trace_ids, numbers_that_count_up_until_one_does_not) {
    static const uint64_t firsts[] = {0, 1724, UINT64_MAX - 3}, others[] = {17, 1723, 5000, UINT64_MAX - 40};
    for (size_t f = 0; f < 3; f++) {
        for (size_t o = 0; o < 4; o++) {
            strata_ids_t ids = {0};
            for (uint32_t i = 0; i < 10; i++) ASSERT_OK(strata_ids_add(&ids, firsts[f] + i));
            EXPECT_EQ(strata_ids_find(&ids, firsts[f] - 1), STRATA_IDS_NONE);
            EXPECT_EQ(strata_ids_find(&ids, firsts[f] + 10), STRATA_IDS_NONE);
            ASSERT_OK(strata_ids_add(&ids, others[o]));
            ASSERT_OK(strata_ids_add(&ids, firsts[f] + 10));
            for (uint32_t i = 0; i < 10; i++) EXPECT_EQ(strata_ids_find(&ids, firsts[f] + i), i);
            EXPECT_EQ(strata_ids_find(&ids, others[o]), 10);
            EXPECT_EQ(strata_ids_find(&ids, firsts[f] + 10), 11);
            EXPECT_EQ(strata_ids_find(&ids, firsts[f] - 1), others[o] == firsts[f] - 1 ? 10 : STRATA_IDS_NONE);
            strata_ids_clear(&ids);
        }
    }
}

/* A plain hash is one that a file can be written against; one with a key is not, and each table has its own. */
TEST(trace_ids, words_of_one_plain_hash_have_keys_of_their_own) {
    strata_ids_t ids = {0}, others = {0};
    char first[WORD_BYTES + 1], word[WORD_BYTES + 1];
    word_of(0, first);
    EXPECT_NE(strata_ids_hash_word(&ids, first), strata_ids_hash_word(&others, first));
    for (uint32_t i = 0; i < WORDS; i++) {
        word_of(i, word);
        ASSERT_EQ(strlen(word), WORD_BYTES);
        EXPECT_EQ(fnv_1a(word), fnv_1a(first));
        uint64_t key = strata_ids_hash_word(&ids, word);
        EXPECT_EQ(strata_ids_find(&ids, key), STRATA_IDS_NONE);
        ASSERT_OK(strata_ids_add(&ids, key));
        EXPECT_EQ(strata_ids_find(&ids, strata_ids_hash_word(&ids, word)), i);
    }
    strata_ids_clear(&ids);
}

TEST(trace_ids, tags_of_one_plain_hash_are_told_apart) {
    static char text[WORDS * (WORD_BYTES + 32)];
    char word[WORD_BYTES + 1];
    size_t length = (size_t)sprintf(text, "op,id,size,stream,time_us,tag\n");
    for (uint32_t i = 0; i < WORDS; i++) {
        word_of(i, word);
        length += (size_t)sprintf(text + length, "step,,,,0,%s\n", word);
    }
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_file("words.csv", text, length), &trace));
    EXPECT_EQ(trace->tag_count, WORDS + 1);
    for (uint32_t i = 0; i < WORDS; i++) {
        word_of(i, word);
        EXPECT_STREQ(trace->tags[trace->events[i].tag], word);
    }
}
