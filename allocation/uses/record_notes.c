#include "allocation/uses/record_notes.h"

#include "allocation/domain/layer.h"
#include "platform/arithmetic.h"

enum { MIN_ENTRIES = 1024 };

/* The home's lock is held, here and in the next two functions. */
static bool has_entry(const strata_notes_table_t *table, uint32_t slot) { return slot < table->count; }

static strata_record_notes_t *entry_at(const strata_notes_table_t *table, uint32_t slot) {
    return has_entry(table, slot) ? &table->entries[slot] : NULL;
}

static strata_record_notes_t *entry_of(const strata_stack_t *home, const strata_record_t *record) {
    return entry_at(&home->notes, strata_slab_slot(&home->slab, record));
}

const strata_record_notes_t *strata_record_notes_find(const strata_stack_t *home, uint32_t slot, uint32_t generation) {
    const strata_record_notes_t *notes = entry_at(&home->notes, slot);
    return notes && notes->generation == generation ? notes : NULL;
}

const strata_record_notes_t *strata_record_notes_of(const strata_record_t *record) {
    const strata_stack_t *home = strata_stack_of(record->home);
    return strata_record_notes_find(home, strata_slab_slot(&home->slab, record), record->generation);
}

/* The lock is held. */
static uint32_t entries_in(const strata_growing_t *range) {
    return (uint32_t)strata_min(strata_growing_usable(range) / sizeof(strata_record_notes_t), STRATA_SLAB_SLOTS);
}

/* Creates a table that can grow to every slot of the slab. Another thread may have created or grown it,
 * and the stack may have ended. No lock is held. */
static strata_status_t make_table(strata_stack_t *home) {
    strata_growing_t range;
    strata_status_t status = strata_growing_reserve(&range, MIN_ENTRIES * sizeof(strata_record_notes_t),
                                                    (size_t)STRATA_SLAB_SLOTS * sizeof(strata_record_notes_t));
    if (status != STRATA_OK) return status;
    strata_stack_lock_own(home);
    bool mine = home->open && !home->notes.entries;
    if (mine) home->notes = (strata_notes_table_t){.entries = range.memory, .range = range, .count = entries_in(&range)};
    strata_unlock(&home->lock);
    if (!mine) strata_growing_release(&range);
    return STRATA_OK;
}

/* Creates the table, or grows it so that it has an entry for the slot. A record of the stack keeps the
 * stack from ending. No lock is held. */
static strata_status_t grow_table(strata_stack_t *home, uint32_t slot) {
    strata_stack_lock_own(home);
    bool made = home->notes.entries != NULL;
    strata_growing_t range = home->notes.range;
    strata_unlock(&home->lock);
    strata_status_t status = made ? STRATA_OK : make_table(home);
    if (status != STRATA_OK || !made) return status;
    size_t needed = ((size_t)slot + 1) * sizeof(strata_record_notes_t);
    if (needed > strata_growing_max(&range))
        return strata_fail(STRATA_E_LIMIT, 0, "the host has room to share only the first %u blocks of a stack", entries_in(&range));
    status = strata_growing_grow(&range, needed);
    strata_stack_lock_own(home);
    if (home->notes.entries == range.memory) home->notes.count = entries_in(&range);
    strata_unlock(&home->lock);
    return status;
}

/* No lock is held. */
static strata_status_t make_entry(strata_stack_t *home, uint32_t slot) {
    strata_status_t status = STRATA_OK;
    for (bool there = false; !there && status == STRATA_OK;) {
        status = grow_table(home, slot);
        strata_stack_lock_own(home);
        there = has_entry(&home->notes, slot) || !home->open;
        strata_unlock(&home->lock);
    }
    return status;
}

/* Takes the home's lock, which guards the entry and the record's generation, unless the call holds it.
 * The record's attention is guarded by the lock of its server. */
static strata_stack_t *lock_home(const strata_call_t *call, const strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    if (strata_call_holds(call, home)) return NULL;
    strata_stack_lock_own(home);
    return home;
}

static void unlock_home(strata_stack_t *home) {
    if (home) strata_unlock(&home->lock);
}

/* Returns the entry of a record, created empty if there is none. Returns NULL if the table is too short.
 * Both locks are held. */
static strata_record_notes_t *claim(strata_record_t *record) {
    strata_record_notes_t *notes = entry_of(strata_stack_of(record->home), record);
    if (notes && !(record->attention & STRATA_ATTENTION_NOTES)) *notes = (strata_record_notes_t){.generation = record->generation};
    if (notes) record->attention |= STRATA_ATTENTION_NOTES;
    return notes;
}

void strata_record_note(strata_record_t *record, const strata_note_t *note) {
    strata_stack_t *serving_stack = strata_stack_of(record->stack), *home = strata_stack_of(record->home);
    uint32_t slot = strata_slab_slot(&home->slab, record);
    strata_stack_lock_own(home);
    bool there = has_entry(&home->notes, slot);
    strata_unlock(&home->lock);
    if (!there && make_entry(home, slot) != STRATA_OK) return;
    strata_call_t call = {.stack = serving_stack};
    strata_stack_lock_own(serving_stack);
    call.held[strata_call_level(&call, serving_stack)] = serving_stack;
    strata_stack_t *entered = lock_home(&call, record);
    strata_record_notes_t *notes = claim(record);
    if (notes) notes->note = *note;
    unlock_home(entered);
    (void)strata_call_unlock(&call);
}

/* Releases the locks to create the table, so the block may be freed by another thread. */
static strata_status_t ensure_entry(strata_call_t *call, const strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    uint32_t generation = record->generation;
    strata_stack_t *entered = lock_home(call, record);
    uint32_t slot = strata_slab_slot(&home->slab, record);
    bool there = has_entry(&home->notes, slot);
    unlock_home(entered);
    if (there) return STRATA_OK;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = make_entry(home, slot);
    strata_call_lock(call, opened);
    if (status != STRATA_OK || record->generation == generation) return status;
    return strata_fail(STRATA_E_STALE, 0, "the block was freed while it was being retained");
}

strata_status_t strata_record_ready_notes(strata_call_t *call, strata_record_t *record) {
    strata_stack_t *home = strata_call_pin_home(call, record);
    strata_status_t status = ensure_entry(call, record);
    strata_call_unpin_home(call, home);
    return status;
}

strata_status_t strata_record_retain(strata_call_t *call, strata_record_t *record) {
    strata_status_t status = strata_record_ready_notes(call, record);
    if (status != STRATA_OK) return status;
    strata_stack_t *entered = lock_home(call, record);
    strata_record_notes_t *notes = claim(record);
    if (!notes) status = strata_fail(STRATA_E_LIMIT, 0, "the host has no room to share the block");
    else if (notes->owners == UINT32_MAX) status = strata_fail(STRATA_E_LIMIT, 0, "a block has %u owners, the maximum", UINT32_MAX);
    else notes->owners++;
    unlock_home(entered);
    return status;
}

bool strata_record_is_shared(const strata_call_t *call, const strata_record_t *record) {
    strata_stack_t *entered = lock_home(call, record);
    const strata_record_notes_t *notes = strata_record_notes_of(record);
    bool shared = notes && notes->owners > 0;
    unlock_home(entered);
    return shared;
}

void strata_record_note_unknown_use(const strata_call_t *call, strata_record_t *record) {
    strata_stack_t *entered = lock_home(call, record);
    claim(record)->unknown = true;
    unlock_home(entered);
}

bool strata_record_has_unknown_use(const strata_call_t *call, const strata_record_t *record) {
    if (!(record->attention & STRATA_ATTENTION_NOTES)) return false;
    strata_stack_t *entered = lock_home(call, record);
    bool unknown = strata_record_notes_of(record)->unknown != 0;
    unlock_home(entered);
    return unknown;
}

uint32_t strata_record_sent_number(const strata_call_t *call, const strata_record_t *record) {
    if (!(record->attention & STRATA_ATTENTION_NOTES)) return 0;
    strata_stack_t *entered = lock_home(call, record);
    uint32_t number = strata_record_notes_of(record)->sent;
    unlock_home(entered);
    return number;
}

void strata_record_mark_sent(const strata_call_t *call, strata_record_t *record, uint32_t number) {
    strata_stack_t *entered = lock_home(call, record);
    claim(record)->sent = number & INT32_MAX;
    unlock_home(entered);
}

uint32_t strata_record_graph_mark(const strata_call_t *call, const strata_record_t *record) {
    if (!(record->attention & STRATA_ATTENTION_NOTES)) return 0;
    strata_stack_t *entered = lock_home(call, record);
    uint32_t mark = strata_record_notes_of(record)->graph_mark;
    unlock_home(entered);
    return mark;
}

void strata_record_mark_graph(const strata_call_t *call, strata_record_t *record, uint32_t mark) {
    strata_stack_t *entered = lock_home(call, record);
    claim(record)->graph_mark = mark;
    unlock_home(entered);
}

bool strata_record_drop_owner(strata_call_t *call, strata_record_t *record) {
    if (!(record->attention & STRATA_ATTENTION_NOTES)) return false;
    strata_stack_t *entered = lock_home(call, record);
    strata_record_notes_t *notes = entry_of(strata_stack_of(record->home), record);
    bool shared = notes->owners > 0;
    if (shared) notes->owners--;
    else record->attention &= (uint16_t)~STRATA_ATTENTION_NOTES;
    unlock_home(entered);
    return shared;
}
