#include "allocation/domain/driver_memory.h"

#include "allocation/tables/index.h"
#include "platform/host/host_memory.h"

enum { LIMIT = 1 << 20 };

/* `address` is 0 while the entry is in no chain. */
typedef struct entry {
    uint32_t unused;
    strata_index_link_t link;
    uint64_t address, capture;
    bool freed;
} entry_t;

struct strata_driver_memory {
    strata_lock_t lock; /* rank DEVICE */
    strata_nodes_t nodes; /* entry_t */
    strata_index_t index; /* by address */
};

static entry_t *at(const strata_driver_memory_t *memory, uint32_t entry) { return strata_node(&memory->nodes, entry); }

/* ---- life ---- */

static void destroy(strata_driver_memory_t *memory) {
    if (!memory) return;
    strata_nodes_destroy(&memory->nodes);
    strata_lock_destroy(&memory->lock);
    strata_host_delete(memory);
}

/* If two threads create it concurrently, one deletes its own. Returns NULL on E_HOST_MEMORY. */
static strata_driver_memory_t *ensure(strata_domain_t *domain) {
    strata_driver_memory_t *memory = atomic_load(&domain->driver_memory), *none = NULL;
    if (memory || !(memory = strata_host_new(1, sizeof *memory))) return memory;
    if (strata_nodes_init(&memory->nodes, sizeof(entry_t), LIMIT) != STRATA_OK) {
        strata_host_delete(memory);
        return NULL;
    }
    strata_lock_init(&memory->lock, STRATA_RANK_DEVICE, NULL);
    strata_index_init(&memory->index, &memory->nodes, offsetof(entry_t, link));
    if (atomic_compare_exchange_strong(&domain->driver_memory, &none, memory)) return memory;
    destroy(memory);
    return none;
}

void strata_driver_memory_end(strata_domain_t *domain) {
    destroy(atomic_load(&domain->driver_memory));
    atomic_store(&domain->driver_memory, NULL);
}

/* ---- entries ---- */

static uint32_t acquire_entry(strata_driver_memory_t *memory, uint64_t capture) {
    strata_lock(&memory->lock);
    uint32_t entry = strata_nodes_acquire(&memory->nodes);
    if (entry) {
        at(memory, entry)->address = 0;
        at(memory, entry)->capture = capture;
        at(memory, entry)->freed = false;
    }
    strata_unlock(&memory->lock);
    return entry;
}

/* One capture may need more entries than there is room for now. */
uint32_t strata_driver_memory_new(strata_domain_t *domain, uint64_t capture) {
    strata_driver_memory_t *memory = ensure(domain);
    if (!memory) return 0;
    uint32_t entry = acquire_entry(memory, capture);
    if (entry) return entry;
    strata_growing_grow_if_marked();
    entry = acquire_entry(memory, capture);
    if (!entry) strata_fail(STRATA_E_LIMIT, 0, "graphs of one place allocate %d blocks, the maximum", LIMIT - 1);
    return entry;
}

/* The lock is held. */
static void unlink_entry(strata_driver_memory_t *memory, uint32_t entry) {
    if (at(memory, entry)->address) strata_index_remove(&memory->index, entry);
    at(memory, entry)->address = 0;
}

/* Ends the entry of an address, which has at most one. The lock is held. */
static void end_earlier(strata_driver_memory_t *memory, uint64_t address) {
    uint32_t entry = strata_index_first(&memory->index, strata_index_hash(address, 0));
    while (entry && at(memory, entry)->address != address) entry = strata_index_next(&memory->index, entry);
    if (!entry) return;
    at(memory, entry)->freed = true;
    unlink_entry(memory, entry);
}

void strata_driver_memory_served(strata_domain_t *domain, uint64_t address) {
    strata_driver_memory_t *memory = atomic_load(&domain->driver_memory);
    if (!memory) return;
    strata_lock(&memory->lock);
    end_earlier(memory, address);
    strata_unlock(&memory->lock);
}

void strata_driver_memory_set_address(strata_domain_t *domain, uint32_t entry, uint64_t address) {
    strata_driver_memory_t *memory = atomic_load(&domain->driver_memory);
    strata_lock(&memory->lock);
    end_earlier(memory, address);
    at(memory, entry)->address = address;
    strata_index_add(&memory->index, entry, strata_index_hash(address, 0));
    strata_unlock(&memory->lock);
}

bool strata_driver_memory_is_of(strata_domain_t *domain, uint32_t entry, uint64_t capture) {
    strata_driver_memory_t *memory = atomic_load(&domain->driver_memory);
    strata_lock(&memory->lock);
    bool is = at(memory, entry)->capture == capture;
    strata_unlock(&memory->lock);
    return is;
}

bool strata_driver_memory_is_freed(strata_domain_t *domain, uint32_t entry) {
    strata_driver_memory_t *memory = atomic_load(&domain->driver_memory);
    strata_lock(&memory->lock);
    bool freed = at(memory, entry)->freed;
    strata_unlock(&memory->lock);
    return freed;
}

void strata_driver_memory_delete(strata_domain_t *domain, uint32_t entry) {
    strata_driver_memory_t *memory = atomic_load(&domain->driver_memory);
    strata_lock(&memory->lock);
    unlink_entry(memory, entry);
    strata_nodes_release(&memory->nodes, entry);
    strata_unlock(&memory->lock);
}
