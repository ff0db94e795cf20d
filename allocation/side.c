#include "allocation/side.h"

#include "allocation/layer.h"
#include "platform/arithmetic.h"
#include "platform/host_memory.h"

enum { LEAST_ENTRIES = 1024 };

static strata_side_t *entry_of(const strata_stack_t *home, const strata_record_t *record) {
    uint32_t slot = strata_slab_slot(&home->slab, record);
    return slot < home->side_count ? &home->sides[slot] : NULL;
}

const strata_side_t *strata_side_noted(const strata_stack_t *home, uint32_t slot, uint32_t generation) {
    const strata_side_t *side = slot < home->side_count ? &home->sides[slot] : NULL;
    return side && side->generation == generation ? side : NULL;
}

const strata_side_t *strata_side_of(const strata_record_t *record) {
    const strata_stack_t *home = strata_stack_of(record->home);
    return strata_side_noted(home, strata_slab_slot(&home->slab, record), record->generation);
}

/* The table of a stack; no lock is held. It may have been made by another thread meanwhile. */
static strata_status_t make_table(strata_stack_t *home) {
    size_t reserved = 0;
    size_t most = (size_t)STRATA_SLAB_SLOTS * sizeof(strata_side_t);
    strata_side_t *sides = strata_host_reserve(most, LEAST_ENTRIES * sizeof *sides, &reserved);
    if (!sides) return STRATA_E_HOST_MEMORY;
    strata_lock(&home->lock);
    bool mine = home->open && !home->sides;
    if (mine) {
        home->sides = sides;
        home->side_count = (uint32_t)strata_min(reserved / sizeof *sides, STRATA_SLAB_SLOTS);
        home->sides_reserved = reserved;
    }
    strata_unlock(&home->lock);
    if (!mine) strata_host_unreserve(sides, reserved);
    return STRATA_OK;
}

/* A record's attention is its server's, guarded by that one's lock; the entry and the record's generation are its home's. */
static strata_stack_t *enter_home(const strata_path_t *path, const strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    if (path->held[0] == home || path->held[1] == home) return NULL;
    strata_lock(&home->lock);
    return home;
}

static void leave_home(strata_stack_t *home) {
    if (home) strata_unlock(&home->lock);
}

/* The entry of a record, made empty if it has none yet; NULL: the table is too short. Both locks are held. */
static strata_side_t *claim(strata_record_t *record) {
    strata_side_t *side = entry_of(strata_stack_of(record->home), record);
    if (side && !(record->attention & STRATA_ATTENTION_SIDE)) *side = (strata_side_t){.generation = record->generation};
    if (side) record->attention |= STRATA_ATTENTION_SIDE;
    return side;
}

void strata_record_note(strata_record_t *record, const strata_note_t *note) {
    strata_stack_t *server = strata_stack_of(record->stack), *home = strata_stack_of(record->home);
    strata_lock(&home->lock);
    bool has_table = home->sides != NULL;
    strata_unlock(&home->lock);
    if (!has_table && make_table(home) != STRATA_OK) return;
    strata_path_t path = {.stack = server};
    strata_lock(&server->lock);
    path.held[strata_path_level(&path, server)] = server;
    strata_stack_t *entered = enter_home(&path, record);
    strata_side_t *side = claim(record);
    if (side) side->note = *note;
    leave_home(entered);
    (void)strata_path_unlock(&path);
}

/* The table is made with the locks open: the block may be freed meanwhile. */
static strata_status_t ensure_table(strata_path_t *path, const strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    uint32_t generation = record->generation;
    strata_stack_t *entered = enter_home(path, record);
    bool has_table = home->sides != NULL;
    leave_home(entered);
    if (has_table) return STRATA_OK;
    strata_opened_t opened = strata_path_unlock(path);
    strata_status_t status = make_table(home);
    strata_path_lock(path, opened);
    if (status != STRATA_OK || record->generation == generation) return status;
    return strata_fail(STRATA_E_STALE, 0, "the block was freed while it was retained");
}

strata_status_t strata_record_retain(strata_path_t *path, strata_record_t *record) {
    strata_stack_t *home = strata_path_stay(path, record);
    strata_status_t status = ensure_table(path, record);
    strata_path_stayed(path, home);
    if (status != STRATA_OK) return status;
    strata_stack_t *entered = enter_home(path, record);
    strata_side_t *side = claim(record);
    if (!side) status = strata_fail(STRATA_E_LIMIT, 0, "the host has room to share the first %u blocks of a stack alone",
                                    strata_stack_of(record->home)->side_count);
    else if (side->owners == UINT32_MAX) status = strata_fail(STRATA_E_LIMIT, 0, "a block has %u owners, its most", UINT32_MAX);
    else side->owners++;
    leave_home(entered);
    return status;
}

bool strata_record_is_shared(const strata_path_t *path, const strata_record_t *record) {
    strata_stack_t *entered = enter_home(path, record);
    const strata_side_t *side = strata_side_of(record);
    bool shared = side && side->owners > 0;
    leave_home(entered);
    return shared;
}

void strata_record_note_unknown_use(const strata_path_t *path, strata_record_t *record) {
    strata_stack_t *entered = enter_home(path, record);
    strata_side_t *side = claim(record);
    if (side) side->unknown = true;
    leave_home(entered);
}

bool strata_record_has_unknown_use(const strata_path_t *path, const strata_record_t *record) {
    if (!(record->attention & STRATA_ATTENTION_SIDE)) return false;
    strata_stack_t *entered = enter_home(path, record);
    bool unknown = strata_side_of(record)->unknown != 0;
    leave_home(entered);
    return unknown;
}

bool strata_record_give_up(strata_path_t *path, strata_record_t *record) {
    if (!(record->attention & STRATA_ATTENTION_SIDE)) return false;
    strata_stack_t *entered = enter_home(path, record);
    strata_side_t *side = entry_of(strata_stack_of(record->home), record);
    bool shared = side->owners > 0;
    if (shared) side->owners--;
    else record->attention &= (uint16_t)~STRATA_ATTENTION_SIDE;
    leave_home(entered);
    return shared;
}
