/* Memory that a pause has unmapped. It still belongs to its owners, but must not be used until it is
 * mapped again. */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

typedef struct away {
    sim_node_t node; /* key: address; first */
    uint64_t size;
} away_t;

static away_t *first(const strata_checker_t *checker, uint64_t address, uint64_t size) {
    away_t *away = (away_t *)sim_tree_floor(&checker->away, address);
    if (away && address - away->node.key < away->size) return away;
    away = (away_t *)sim_tree_ceiling(&checker->away, address, 0);
    return away && away->node.key - address < size ? away : NULL;
}

bool check_is_away(const strata_checker_t *checker, uint64_t address, uint64_t size) {
    return first(checker, address, size) != NULL;
}

bool check_is_pausing(strata_checker_t *checker) { return check_actor(checker, check_host(checker))->pausing; }

void check_away_begin(strata_checker_t *checker, uint64_t address, uint64_t size) {
    away_t *away = calloc(1, sizeof *away);
    if (!away) {
        checker->lost = true;
        return;
    }
    away->node.key = address;
    away->size = size;
    sim_tree_insert(&checker->away, &away->node);
}

bool check_away_end(strata_checker_t *checker, uint64_t address, uint64_t size) {
    away_t *away = first(checker, address, size);
    bool was = away != NULL;
    for (; away; away = first(checker, address, size)) {
        sim_tree_remove(&checker->away, &away->node);
        free(away);
    }
    return was;
}

void strata_checker_pausing(strata_checker_t *checker, bool pausing) {
    strata_lock(&checker->world->lock);
    check_actor(checker, check_host(checker))->pausing = pausing;
    strata_unlock(&checker->world->lock);
}
