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
    uint32_t at = strata_nodes_take(&quarantine->nodes);
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
    strata_growing_serve();
    (void)has_enlisted(domain, what);
}

/* Takes all entries as a private list, so that refused memory is not offered again in the same pass. */
static uint32_t take_all(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    uint32_t first = domain->quarantine.first;
    domain->quarantine.first = 0;
    strata_unlock(&domain->lock);
    return first;
}

/* Takes one entry off that list. */
static quarantine_node_t take(strata_domain_t *domain, uint32_t *list) {
    strata_nodes_t *nodes = &domain->quarantine.nodes;
    strata_lock(&domain->lock);
    quarantine_node_t taken = *(quarantine_node_t *)strata_node(nodes, *list);
    strata_nodes_give(nodes, *list);
    strata_unlock(&domain->lock);
    *list = taken.next;
    return taken;
}

static bool give_back(strata_device_t *device, const quarantine_node_t *what) {
    bool on_host = what->memory == STRATA_MEMORY_PINNED || what->memory == STRATA_MEMORY_HOST;
    strata_status_t status = on_host ? strata_device_host_free(device, what->memory, what->address)
                                     : strata_device_free(device, what->memory, what->address);
    return status == STRATA_OK || status == STRATA_E_SHUTDOWN;
}

void strata_domain_quarantine(strata_domain_t *domain, strata_memory_t memory, uint64_t address, uint64_t bytes, bool pooled) {
    atomic_fetch_add(&domain->quarantine.bytes, bytes);
    enlist(domain, &(quarantine_node_t){.address = address, .bytes = bytes, .memory = memory, .pooled = pooled});
}

uint64_t strata_domain_offer_quarantined(strata_domain_t *domain) {
    uint64_t given = 0;
    if (atomic_load(&domain->quarantine.bytes) == 0) return 0;
    for (uint32_t list = take_all(domain); list != 0;) {
        quarantine_node_t what = take(domain, &list);
        if (give_back(domain->device, &what)) {
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
