/* Memory that could not be served, and that the device refused to take back. It has no other owner, so the
 * domain holds it. It stays reserved and counts as quarantined. Every release offers it to the device
 * again, and so does the end of the domain. */
#ifndef STRATA_ALLOCATION_QUARANTINE_H
#define STRATA_ALLOCATION_QUARANTINE_H

#include "allocation/tables/nodes.h"
#include "platform/device.h"
#include "strata/layer.h"

enum { STRATA_UNRETURNED = 1 << 12 }; /* the limit at one time, in one domain; memory beyond it is counted and not offered again */

typedef struct strata_quarantine {
    _Atomic uint64_t bytes; /* the total */
    strata_nodes_t nodes; /* guarded by the domain's lock, like `first` */
    uint32_t first;
} strata_quarantine_t;

strata_status_t strata_quarantine_init(strata_quarantine_t *quarantine);
void strata_quarantine_destroy(strata_quarantine_t *quarantine);

/* Puts memory into quarantine that counts as reserved (strata_domain_count()) but that a source can neither
 * serve nor return. Free by pointer no longer finds it. `pooled` is true if it returns to a driver's pool,
 * which keeps it. No lock is held. */
void strata_domain_quarantine(strata_domain_t *domain, strata_memory_t memory, uint64_t address, uint64_t bytes, bool pooled);
/* Offers the memory to the device again. Returns the bytes that the device took, without those that a pool
 * now keeps. No lock is held. */
uint64_t strata_domain_retry_quarantined(strata_domain_t *domain);

#endif
