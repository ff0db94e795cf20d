/* What a program has asked for of late, and whether it says the same again: the sizes of its requests, how long each block lived, and
 * the moments at which it comes back to where it was.
 *
 * Requests are numbered from 1. An *excursion* is a stretch between two moments at which equally many bytes live, and never fewer in
 * between: a step of a program that repeats itself is one, whoever does not say where its steps end. The last STRATA_PAST_LENGTH
 * requests are known, or a few less. Each step costs O(1), amortised, and no host allocation. Guarded by the owner, who keeps beside
 * each block the number of its request. */
#ifndef STRATA_ALLOCATION_MECHANISM_PAST_H
#define STRATA_ALLOCATION_MECHANISM_PAST_H

#include "allocation/tables/nodes.h"

enum { STRATA_PAST_LENGTH = 1 << 17 };

typedef struct strata_past_request {
    uint64_t key; /* what was asked for */
    uint64_t size; /* bytes served; 0: none yet */
    uint64_t hash; /* of all keys before it */
    uint64_t live; /* bytes that lived before it */
    uint32_t until; /* the number of the first request after its free; 0: it lives, or was never served */
    uint32_t slot; /* of its block */
    uint32_t below; /* the last request before which fewer bytes lived than before this one; 0: none known */
    uint32_t level; /* the last one before which equally many lived, and no fewer since; 0: none */
} strata_past_request_t;

typedef struct strata_past {
    strata_nodes_t nodes; /* number n is in node n % STRATA_PAST_LENGTH */
    uint32_t first; /* known are [first, next) */
    uint32_t next;
    uint32_t open; /* of [open, next) it is still to be told what was asked for: strata_past_tell() */
    uint32_t ready; /* requests that can be noted before strata_past_extend() must be asked */
    uint32_t quiet; /* the head of the chain of `below`; 0: none */
    uint32_t turned; /* the number at which `most` was turned over last */
    uint64_t hash; /* of all keys so far */
    uint64_t live;
    uint64_t most[2]; /* the most that lived, in this half of the length and in the one before */
} strata_past_t;

/* E_HOST_MEMORY. No lock is held. */
strata_status_t strata_past_init(strata_past_t *past);
void strata_past_destroy(strata_past_t *past);

static inline strata_past_request_t *strata_past_at(const strata_past_t *past, uint32_t number) {
    return (strata_past_request_t *)past->nodes.memory + number % STRATA_PAST_LENGTH;
}
static inline bool strata_past_knows(const strata_past_t *past, uint32_t number) {
    return number - past->first < past->next - past->first;
}

/* Makes the next requests ready to be noted, many at once. False: there is no room until the range has grown. After 2^32 requests
 * their numbers begin anew, and nothing is known. */
bool strata_past_extend(strata_past_t *past);
static inline bool strata_past_has_room(strata_past_t *past) {
    return __builtin_expect(past->ready > 0, 1) || strata_past_extend(past);
}
/* There was no room for a request: nothing is known any more. */
void strata_past_forget(strata_past_t *past);
/* The last request before which no more lived than now; one that is not known: there is none. More lived before those in between, so
 * no stretch from them on ends any more: they are passed by, and never looked at again. */
static inline uint32_t strata_past_level(strata_past_t *past) {
    uint32_t at = past->quiet;
    while (strata_past_knows(past, at) && strata_past_at(past, at)->live > past->live) at = strata_past_at(past, at)->below;
    past->quiet = at;
    return at;
}

/* Links the request that is about to be made: it begins a stretch. */
static inline void strata_past_link(strata_past_t *past, strata_past_request_t *request) {
    uint32_t at = strata_past_level(past);
    bool known = strata_past_knows(past, at), same = known && strata_past_at(past, at)->live == past->live;
    request->level = same ? at : 0;
    request->below = same ? strata_past_at(past, at)->below : known ? at : 0;
    past->quiet = past->next;
}

/* What a request asks for, and what it adds to the hash. */
typedef struct strata_past_key {
    uint64_t key, mixed;
} strata_past_key_t;

static inline uint64_t strata_past_mixed(uint64_t key) {
    uint64_t mixed = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return mixed ^ mixed >> 32;
}
static inline strata_past_key_t strata_past_key(uint64_t key) { return (strata_past_key_t){key, strata_past_mixed(key)}; }

static inline uint64_t strata_past_add(uint64_t hash, uint64_t mixed) { return hash * UINT64_C(0x9e3779b97f4a7c15) + mixed; }
static inline uint64_t strata_past_mix(uint64_t hash, uint64_t key) { return strata_past_add(hash, strata_past_mixed(key)); }

/* A request is made, and all before it are told. There is room for it. */
static inline strata_past_request_t *strata_past_append(strata_past_t *past, const strata_past_key_t *key, bool levels) {
    uint32_t number = past->next;
    strata_past_request_t *request = strata_past_at(past, number);
    past->ready--;
    request->key = key->key;
    request->size = 0;
    request->hash = past->hash;
    request->live = past->live;
    request->until = 0;
    request->below = request->level = 0;
    if (levels) strata_past_link(past, request);
    else past->quiet = 0;
    past->hash = strata_past_add(past->hash, key->mixed);
    past->open = past->next = number + 1;
    return request;
}

/* A request is made; its number. 0: it could not be noted, and nothing is known any more. Without `levels` no excursion will begin
 * before it or with it. */
static inline uint32_t strata_past_ask(strata_past_t *past, uint64_t key, bool levels) {
    if (__builtin_expect(!strata_past_has_room(past), 0)) {
        strata_past_forget(past);
        return 0;
    }
    const strata_past_key_t mixed = strata_past_key(key);
    (void)strata_past_append(past, &mixed, levels);
    return past->next - 1;
}

static inline void strata_past_count(strata_past_t *past, uint64_t size) {
    uint64_t live = past->live += size;
    if (live > past->most[0]) past->most[0] = live;
}

/* It was served by the block of a slot. */
static inline void strata_past_serve(strata_past_t *past, uint32_t number, uint32_t slot, uint64_t size) {
    strata_past_request_t *request = strata_past_at(past, number);
    request->size = size;
    request->slot = slot;
    strata_past_count(past, size);
}

/* Both at once; its number. There is room. */
static inline uint32_t strata_past_note(strata_past_t *past, const strata_past_key_t *key, bool levels, uint32_t slot,
                                        uint64_t size) {
    strata_past_request_t *request = strata_past_append(past, key, levels);
    request->size = size;
    request->slot = slot;
    strata_past_count(past, size);
    return past->next - 1;
}

/* The same, but what it asked for is told later, with that of all others that are open. No excursion begins with it. */
static inline uint32_t strata_past_note_open(strata_past_t *past, uint32_t slot, uint64_t size) {
    uint32_t number = past->next;
    strata_past_request_t *request = strata_past_at(past, number);
    request->size = size;
    request->until = 0;
    request->slot = slot;
    strata_past_count(past, size);
    past->ready--;
    past->next = number + 1;
    return number;
}

/* Of the open ones only the last `most` are to be told: nothing before them is known any more, if there are more. */
static inline void strata_past_skip(strata_past_t *past, uint32_t most) {
    if (past->next - past->open > most) past->first = past->open = past->next - most;
}

/* What the first of the open ones asked for. */
static inline void strata_past_tell(strata_past_t *past, const strata_past_key_t *key) {
    strata_past_request_t *request = strata_past_at(past, past->open++);
    request->key = key->key;
    request->hash = past->hash;
    request->live = 0;
    request->below = request->level = 0;
    past->hash = strata_past_add(past->hash, key->mixed);
    past->quiet = 0;
}

/* The block that served the request of a number, 0 if that was not noted, was freed: its bytes. */
static inline void strata_past_free(strata_past_t *past, uint32_t number, uint64_t size) {
    if (__builtin_expect(number == 0, 0)) return;
    past->live -= size;
    if (__builtin_expect(strata_past_knows(past, number), 1)) strata_past_at(past, number)->until = past->next;
}

/* ---- repetition ---- */

/* The hash of the keys of [from, from + count), all of which are known; from + count may be the next request. */
uint64_t strata_past_hash(const strata_past_t *past, uint32_t from, uint32_t count);
/* Whether the last `count` requests asked for exactly what the `count` before them did. */
bool strata_past_repeats(const strata_past_t *past, uint32_t count);
/* The length of the excursion that ends now, before the next request; 0: none does. */
static inline uint32_t strata_past_excursion(strata_past_t *past) {
    uint32_t at = strata_past_level(past);
    bool same = strata_past_knows(past, at) && strata_past_at(past, at)->live == past->live;
    return same ? past->next - at : 0;
}
/* The most bytes that lived in the last `count` requests, none of which was open. O(count). */
uint64_t strata_past_peak(const strata_past_t *past, uint32_t count);
/* The most of late. */
static inline uint64_t strata_past_most(const strata_past_t *past) {
    return past->most[0] > past->most[1] ? past->most[0] : past->most[1];
}
/* How many requests the block of `number`, of the last `count`, lived: it, or the one of `count` requests before, whichever lived longer.
 * More than `count`: longer than that, or nobody knows. */
uint32_t strata_past_life(const strata_past_t *past, uint32_t number, uint32_t count);

/* E_CORRUPT. */
strata_status_t strata_past_validate(const strata_past_t *past);

#endif
