/* Notes about some allocations: further owners, tag, operator, step. They are in a side table of the
 * slab, which is created when first needed and has an entry per slot. An entry is valid for the
 * generation of the record that it names. The attention of that record has STRATA_ATTENTION_NOTES, so a
 * free without an entry costs nothing. After the free the entry still describes the allocation, until the
 * slot's next allocation has an entry. Guarded by the lock of the record's home stack. */
#ifndef STRATA_ALLOCATION_RECORD_NOTES_H
#define STRATA_ALLOCATION_RECORD_NOTES_H

#include "allocation/stack/stack.h"

/* Names are the facade's numbers, and 0 means none. */
typedef struct strata_note {
    uint32_t tag;
    uint32_t operator_name;
    uint64_t step;
} strata_note_t;

struct strata_record_notes {
    strata_note_t note;
    uint32_t owners; /* owners beyond the first */
    uint32_t unknown : 1; /* If set, some owner's last use has an unknown end, and the memory must never be reused. */
    uint32_t sent : 31; /* The number of its entry in allocation/domain/sent.h, which may have ended; 0 if it was never sent. */
    uint32_t generation; /* of the record when the entry was made */
    uint32_t graph_mark; /* of the graph pool that became an owner last, or 0 if none did */
};

/* Returns the entry of a record, or NULL. The lock of its home is held. */
const strata_record_notes_t *strata_record_notes_of(const strata_record_t *record);

/* Returns the entry of an allocation, live or freed, by its slot and generation. Returns NULL if there is
 * none. The stack's lock is held. */
const strata_record_notes_t *strata_record_notes_find(const strata_stack_t *home, uint32_t slot, uint32_t generation);

/* Stores a note for a record that was just served and is not visible to other threads yet. Stores nothing
 * if the host has no memory. No lock is held. */
void strata_record_note(strata_record_t *record, const strata_note_t *note);

/* Adds an owner to a record from strata_record_find(). The call holds its lock, which may be released in
 * between. E_LIMIT, E_HOST_MEMORY. E_STALE if the record was freed while it was released. */
strata_status_t strata_record_retain(strata_call_t *call, strata_record_t *record);
bool strata_record_is_shared(const strata_call_t *call, const strata_record_t *record);
/* Sets `unknown`. The call's lock is held, and the record has an entry. */
void strata_record_note_unknown_use(const strata_call_t *call, strata_record_t *record);
/* Returns whether `unknown` is set. The call's lock is held. */
bool strata_record_has_unknown_use(const strata_call_t *call, const strata_record_t *record);
/* Return and set the mark of the graph pool that became an owner last. The call's lock is held. To set
 * it, the record must have an entry. */
uint32_t strata_record_graph_mark(const strata_call_t *call, const strata_record_t *record);
void strata_record_mark_graph(const strata_call_t *call, strata_record_t *record, uint32_t mark);
/* Removes an owner. Returns false if it was the last, and the record must be freed. The call's lock is
 * held. */
bool strata_record_drop_owner(strata_call_t *call, strata_record_t *record);

#endif
