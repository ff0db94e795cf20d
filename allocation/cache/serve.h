/* The loop that serves a request after the fast path of a cache missed.
 *
 *     serve where the last step of the program was served -------------> done
 *            | unknown, or in use
 *     search the free blocks --------------------------- found -------> done
 *            | none fits                                    ^
 *     may the request grow the cache? --- no ---> E_NO_MEMORY
 *            | yes                                          |
 *     wait for memory that becomes free soon --- freed ---->+
 *            |                                              |
 *     does another thread grow the cache? --- sleep until --+
 *            | no                             it has
 *     grow ------------------------------------------------>+  (or done, if the growth served the request itself)
 *
 * Every cache that splits or coalesces blocks runs this loop. Its policy defines how to search, how much memory to request
 * and how to get it. All functions run under the lock of the cache's stack. The hooks wait, search and grow may open the
 * lock, so a policy reads its state again after each of them. */
#ifndef STRATA_ALLOCATION_CACHE_SERVE_H
#define STRATA_ALLOCATION_CACHE_SERVE_H

#include "allocation/cache/chunks.h"
#include "allocation/reclaim/patience.h"

/* One request in a cache. A cache that needs more fields begins a struct of its own with this. */
typedef struct strata_lookup {
    const strata_request_t *request; /* NULL on the fast path, which neither waits nor grows */
    uint64_t size; /* requested bytes */
    uint64_t rounded; /* bytes of the block */
    uint32_t user; /* the stream or bank that the block is for, by the cache's own number; 0 if the cache has only one */
    bool grown; /* a growth was tried for this request, so it does not count as a hit */
} strata_lookup_t;

typedef struct strata_cache_policy {
    /* Serves the request from a free block. The loop counts the hit. Returns E_NO_MEMORY, without a text, if no
     * block fits. Any other error ends the request. */
    strata_status_t (*search)(strata_layer_t *self, strata_lookup_t *lookup, strata_record_t **record);
    /* Serves the request at a place, or returns NULL. May be NULL if the cache has no `stable_addresses`. */
    strata_record_t *(*serve_at)(strata_layer_t *self, const strata_extent_t *place, strata_lookup_t *lookup);
    /* Returns the bytes to request from below, or 0 if the request's flags forbid that growth. If it is NULL, a
     * growth has the rounded size. The loop checks STRATA_NO_GROW first. */
    uint64_t (*growth_size)(const strata_layer_t *self, const strata_lookup_t *lookup);
    /* Returns true if a block may have become free, so that another search is worth it. May be NULL. */
    bool (*wait)(strata_layer_t *self, strata_lookup_t *lookup, uint64_t growth_size, strata_patience_t *patience);
    /* Gets memory from below while other threads wait. Sets *record if it served the request itself. Clears
     * lookup->grown if that counts as a hit. */
    strata_status_t (*grow)(strata_layer_t *self, strata_lookup_t *lookup, uint64_t growth_size, strata_record_t **record);
} strata_cache_policy_t;

/* Serves a request. `growing` is true while a thread grows the part of the cache that this request needs: &cache->growing, unless
 * parts grow separately. Returns E_NO_MEMORY, or the error of a hook. */
strata_status_t strata_cache_serve(strata_chunks_t *cache, const strata_cache_policy_t *policy, bool *growing,
                                   strata_lookup_t *lookup, strata_record_t **record);

/* Rounds the size of a request, with `padding` bytes more, to the cache's unit. Returns E_UNSUPPORTED if its
 * alignment exceeds a unit, or E_INVALID if the sum exceeds 64 bits. */
strata_status_t strata_cache_round(const strata_chunks_t *cache, const strata_request_t *request, uint64_t padding,
                                   uint64_t *rounded);

/* The `wait` of a patient cache: waits until pending frees of its stack are done. Does nothing while a thread grows the cache. */
bool strata_cache_wait_for_pending(strata_layer_t *self, strata_lookup_t *lookup, uint64_t growth_size,
                                   strata_patience_t *patience);

#endif
