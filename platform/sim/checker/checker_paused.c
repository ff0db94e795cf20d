/* Memory that a pause has unmapped. It still belongs to its owners, but must not be used until it is
 * mapped again. */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

typedef struct paused {
    sim_node_t node; /* key: address; first */
    uint64_t size;
} paused_t;

static paused_t *first(const strata_checker_t *checker, uint64_t address, uint64_t size) {
    paused_t *paused = (paused_t *)sim_tree_floor(&checker->paused, address);
    if (paused && address - paused->node.key < paused->size) return paused;
    paused = (paused_t *)sim_tree_ceiling(&checker->paused, address, 0);
    return paused && paused->node.key - address < size ? paused : NULL;
}

bool check_is_paused(const strata_checker_t *checker, uint64_t address, uint64_t size) {
    return first(checker, address, size) != NULL;
}

bool check_is_pausing(strata_checker_t *checker) { return check_actor(checker, check_host(checker))->pausing; }

void check_paused_begin(strata_checker_t *checker, uint64_t address, uint64_t size) {
    paused_t *paused = calloc(1, sizeof *paused);
    if (!paused) {
        checker->incomplete = true;
        return;
    }
    paused->node.key = address;
    paused->size = size;
    sim_tree_insert(&checker->paused, &paused->node);
}

bool check_paused_end(strata_checker_t *checker, uint64_t address, uint64_t size) {
    paused_t *paused = first(checker, address, size);
    bool was = paused != NULL;
    for (; paused; paused = first(checker, address, size)) {
        sim_tree_remove(&checker->paused, &paused->node);
        free(paused);
    }
    return was;
}

void strata_checker_pausing(strata_checker_t *checker, bool pausing) {
    strata_lock(&checker->world->lock);
    check_actor(checker, check_host(checker))->pausing = pausing;
    strata_unlock(&checker->world->lock);
}
