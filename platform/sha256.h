/* SHA-256 (FIPS 180-4), for content hashes in reports that `sha256sum` can check. It protects no secrets. */
#ifndef STRATA_PLATFORM_SHA256_H
#define STRATA_PLATFORM_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { STRATA_SHA256_TEXT = 65 /* hexadecimal digest and terminating zero */ };

typedef struct strata_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[64]; /* the first length % 64 bytes are not hashed yet */
} strata_sha256_t;

void strata_sha256_begin(strata_sha256_t *hash);
void strata_sha256_add(strata_sha256_t *hash, const void *bytes, size_t count);
/* Writes the digest of all bytes added. Begin the hash again before the next use. */
void strata_sha256_finish(strata_sha256_t *hash, char text[STRATA_SHA256_TEXT]);

#endif
