/* SipHash-1-3. Inputs with equal hashes cannot be chosen without the key. J.-P. Aumasson and D. J.
 * Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012; with one round per word and three at
 * the end, as hash tables use it. */
#ifndef STRATA_TRACE_SIP_HASH_H
#define STRATA_TRACE_SIP_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct strata_sip_key {
    uint64_t low, high;
} strata_sip_key_t;

typedef struct strata_sip_state {
    uint64_t v0, v1, v2, v3;
} strata_sip_state_t;

static inline uint64_t strata_sip_rotate(uint64_t value, unsigned bits) { return value << bits | value >> (64 - bits); }

static inline void strata_sip_round(strata_sip_state_t *s) {
    s->v0 += s->v1, s->v2 += s->v3;
    s->v1 = strata_sip_rotate(s->v1, 13) ^ s->v0, s->v3 = strata_sip_rotate(s->v3, 16) ^ s->v2;
    s->v0 = strata_sip_rotate(s->v0, 32);
    s->v2 += s->v1, s->v0 += s->v3;
    s->v1 = strata_sip_rotate(s->v1, 17) ^ s->v2, s->v3 = strata_sip_rotate(s->v3, 21) ^ s->v0;
    s->v2 = strata_sip_rotate(s->v2, 32);
}

static inline void strata_sip_absorb(strata_sip_state_t *s, uint64_t word) {
    s->v3 ^= word;
    strata_sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t strata_sip_hash(const strata_sip_key_t *key, const void *bytes, size_t count) {
    strata_sip_state_t s = {key->low ^ UINT64_C(0x736f6d6570736575), key->high ^ UINT64_C(0x646f72616e646f6d),
                            key->low ^ UINT64_C(0x6c7967656e657261), key->high ^ UINT64_C(0x7465646279746573)};
    const unsigned char *at = bytes;
    uint64_t word;
    size_t left = count;
    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        strata_sip_absorb(&s, word);
    }
    word = (uint64_t)count << 56;
    for (size_t i = 0; i < left; i++) word |= (uint64_t)at[i] << 8 * i;
    strata_sip_absorb(&s, word);
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++) strata_sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
