#include "strategy/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* Records are bounded everywhere else, far below this maximum. */
enum { PIECE = 16384, LIMIT = 1 << 30 };

typedef struct piece {
    struct piece *next;
    size_t used, size; /* of the bytes after the head */
} piece_t;

/* The rounded size of a head keeps the memory after it aligned. */
enum { HEAD = (sizeof(piece_t) + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t) };

struct strata_arena {
    piece_t *pieces; /* the newest first */
};

strata_arena_t *strata_arena_new(void) { return strata_host_new(1, sizeof(strata_arena_t)); }

static piece_t *grow(strata_arena_t *arena, uint64_t bytes) {
    uint64_t size = strata_max(bytes, PIECE);
    piece_t *piece = strata_host_new(1, HEAD + size);
    if (!piece) return NULL;
    piece->size = size;
    piece->next = arena->pieces;
    arena->pieces = piece;
    return piece;
}

void *strata_arena_alloc(strata_arena_t *arena, size_t count, size_t size) {
    uint64_t bytes;
    if (!strata_multiply(count, size, &bytes) || bytes > LIMIT) {
        strata_fail(STRATA_E_HOST_MEMORY, 0, "more than %d bytes requested at once for Strata's own records", LIMIT);
        return NULL;
    }
    bytes = strata_round_down(bytes + alignof(max_align_t) - 1, alignof(max_align_t));
    piece_t *piece = arena->pieces;
    if (!piece || piece->size - piece->used < bytes) piece = grow(arena, bytes);
    if (!piece) return NULL;
    void *memory = (char *)piece + HEAD + piece->used;
    piece->used += bytes;
    return memory;
}

char *strata_arena_strndup(strata_arena_t *arena, const char *text, size_t length) {
    char *copy = strata_arena_alloc(arena, length + 1, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

void strata_arena_delete(strata_arena_t *arena) {
    if (!arena) return;
    for (piece_t *piece = arena->pieces, *next; piece; piece = next) {
        next = piece->next;
        strata_host_delete(piece);
    }
    strata_host_delete(arena);
}
