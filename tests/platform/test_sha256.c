/* SHA-256 against the published examples (FIPS 180-4) and `sha256sum`. */
#include "platform/sha256.h"

#include <string.h>

#include "tests/harness/test.h"

typedef struct example {
    const char *name, *text;
    size_t repeated;
    const char *digest;
} example_t;

static const example_t examples[] = {
    {"empty", "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"two_blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"million", "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST_EACH(sha256, of_a_published_example, example_t, examples) {
    strata_sha256_t hash;
    char digest[STRATA_SHA256_TEXT];
    strata_sha256_begin(&hash);
    for (size_t i = 0; i < row->repeated; i++) strata_sha256_add(&hash, row->text, strlen(row->text));
    strata_sha256_finish(&hash, digest);
    EXPECT_STREQ(digest, row->digest);
}

/* Tests every length near the end of a block, in one piece and byte by byte. */
TEST(sha256, does_not_depend_on_the_pieces) {
    char text[200];
    memset(text, 'x', sizeof text);
    for (size_t length = 0; length <= sizeof text; length++) {
        strata_sha256_t whole, pieces;
        char digests[2][STRATA_SHA256_TEXT];
        strata_sha256_begin(&whole);
        strata_sha256_begin(&pieces);
        strata_sha256_add(&whole, text, length);
        for (size_t i = 0; i < length; i++) strata_sha256_add(&pieces, text + i, 1);
        strata_sha256_finish(&whole, digests[0]);
        strata_sha256_finish(&pieces, digests[1]);
        EXPECT_STREQ(digests[0], digests[1]);
    }
}
