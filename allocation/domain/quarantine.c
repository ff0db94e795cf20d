#include "allocation/domain/quarantine.h"

#include "allocation/domain/domain.h"

typedef struct quarantine_node {
    uint64_t unused_link;
    uint64_t address, bytes;
    strata_memory_t memory;
    uint32_t next;
    bool pooled;
} quarantine_node_t;

strata_status_t strata_quarantine_init(strata_quarantine_t *quarantine) {
    return strata_nodes_init(&quarantine->nodes, sizeof(quarantine_node_t), STRATA_UNRETURNED);
}

void strata_quarantine_destroy(strata_quarantine_t *quarantine) { strata_nodes_destroy(&quarantine->nodes); }

static bool has_enlisted(strata_domain_t *domain, const quarantine_node_t *what) {
    strata_quarantine_t *quarantine = &domain->quarantine;
    strata_lock(&domain->lock);
    uint32_t at = strata_nodes_acquire(&quarantine->nodes);
    if (at) {
        quarantine_node_t *node = strata_node(&quarantine->nodes, at);
        *node = *what;
        node->next = quarantine->first;
        quarantine->first = at;
    }
    strata_unlock(&domain->lock);
    return at != 0;
}

/* One call may leave more blocks than there is room for now. */
static void enlist(strata_domain_t *domain, const quarantine_node_t *what) {
    if (has_enlisted(domain, what)) return;
    strata_growing_grow_if_marked();
    (void)has_enlisted(domain, what);
}

void strata_domain_quarantine(strata_domain_t *domain, strata_memory_t memory, uint64_t address, uint64_t bytes, bool pooled) {
    atomic_fetch_add(&domain->quarantine.bytes, bytes);
    enlist(domain, &(quarantine_node_t){.address = address, .bytes = bytes, .memory = memory, .pooled = pooled});
}

uint64_t strata_domain_retry_quarantined(strata_domain_t *domain) {
    uint64_t given = 0;
    if (atomic_load(&domain->quarantine.bytes) == 0) return 0;
    /* All entries become a private list, so that refused memory is not offered again in the same pass. */
    strata_quarantine_t *quarantine = &domain->quarantine;
    strata_lock(&domain->lock);
    uint32_t list = quarantine->first;
    quarantine->first = 0;
    strata_unlock(&domain->lock);
    while (list != 0) {
        strata_lock(&domain->lock);
        quarantine_node_t what = *(quarantine_node_t *)strata_node(&quarantine->nodes, list);
        strata_nodes_release(&quarantine->nodes, list);
        strata_unlock(&domain->lock);
        list = what.next;
        bool on_host = what.memory == STRATA_MEMORY_PINNED || what.memory == STRATA_MEMORY_HOST;
        strata_status_t status = on_host ? strata_device_host_free(domain->device, what.memory, what.address)
                                         : strata_device_free(domain->device, what.memory, what.address);
        if (status == STRATA_OK || status == STRATA_E_SHUTDOWN) {
            atomic_fetch_sub(&domain->quarantine.bytes, what.bytes);
            given += what.pooled ? 0 : what.bytes;
            if (what.pooled) strata_domain_discount(domain, what.bytes);
            else strata_domain_unbook(domain, what.bytes);
        } else {
            enlist(domain, &what);
        }
    }
    return given;
}
