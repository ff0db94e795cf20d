/* A table from keys to numbers. It uses open addressing and closes the gap when a key is removed. */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

static size_t place_of(const check_map_t *map, uint64_t key) {
    uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed ^ mixed >> 29) & (map->room - 1);
}

static size_t find(const check_map_t *map, uint64_t key) {
    size_t at = place_of(map, key);
    while (map->pairs[at].key && map->pairs[at].key != key) at = (at + 1) & (map->room - 1);
    return at;
}

static bool grow(check_map_t *map) {
    check_map_t larger = {.room = map->room ? map->room * 2 : 64, .count = map->count};
    larger.pairs = calloc(larger.room, sizeof *larger.pairs);
    if (!larger.pairs) return false;
    for (size_t i = 0; i < map->room; i++)
        if (map->pairs[i].key) larger.pairs[find(&larger, map->pairs[i].key)] = map->pairs[i];
    free(map->pairs);
    *map = larger;
    return true;
}

uint64_t *check_map_at(check_map_t *map, uint64_t key, bool make) {
    if (make && map->count * 2 >= map->room && !grow(map)) return NULL;
    if (key == 0 || map->room == 0) return NULL;
    struct check_pair *pair = &map->pairs[find(map, key)];
    if (!pair->key && !make) return NULL;
    if (!pair->key) {
        *pair = (struct check_pair){.key = key};
        map->count++;
    }
    return &pair->value;
}

void check_map_remove(check_map_t *map, uint64_t key) {
    if (key == 0 || map->room == 0) return;
    size_t hole = find(map, key);
    if (!map->pairs[hole].key) return;
    map->count--;
    for (size_t at = (hole + 1) & (map->room - 1); map->pairs[at].key; at = (at + 1) & (map->room - 1)) {
        size_t home = place_of(map, map->pairs[at].key);
        /* An entry may move into the hole unless its home is after the hole. */
        if (((at - home) & (map->room - 1)) < ((at - hole) & (map->room - 1))) continue;
        map->pairs[hole] = map->pairs[at];
        hole = at;
    }
    map->pairs[hole].key = 0;
}
