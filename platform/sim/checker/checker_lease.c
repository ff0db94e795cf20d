/* Memory that the device has lent. A launch must find the memory of its capture still lent (rule 9). */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

check_lease_t *check_lease_first(const strata_checker_t *checker, uint64_t address, uint64_t size) {
    check_lease_t *lease = (check_lease_t *)sim_tree_floor(&checker->leases, address);
    if (lease && address - lease->node.key < lease->size) return lease;
    lease = (check_lease_t *)sim_tree_ceiling(&checker->leases, address, 0);
    return lease && lease->node.key - address < size ? lease : NULL;
}

void check_lease_begin(strata_checker_t *checker, uint64_t address, uint64_t size) {
    check_lease_t *lease = calloc(1, sizeof *lease);
    if (!lease) {
        checker->incomplete = true;
        return;
    }
    lease->node.key = address;
    lease->size = size;
    lease->refs = 1;
    sim_tree_insert(&checker->leases, &lease->node);
}

void check_lease_drop(check_lease_t *lease) {
    if (--lease->refs == 0) free(lease);
}

void check_lease_end(strata_checker_t *checker, uint64_t address, uint64_t size, uint32_t actor, uint64_t note) {
    check_lease_t *lease;
    while ((lease = check_lease_first(checker, address, size)) != NULL) {
        sim_tree_remove(&checker->leases, &lease->node);
        lease->over = true;
        lease->actor = actor;
        lease->note = note;
        check_lease_drop(lease);
    }
}
