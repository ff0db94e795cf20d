/* What is known of some allocations beside their record: further owners, who asked, and when. It is a table beside the slab, made
 * when it is first needed, with an entry per slot. An entry counts for the generation of the record that it names; that record's
 * attention has STRATA_ATTENTION_NOTES, so a free without an entry costs nothing. After the free it still says whose the record
 * was, until the slot's next allocation has an entry. Guarded by the lock of the record's home stack. */
#ifndef STRATA_ALLOCATION_RECORD_NOTES_H
#define STRATA_ALLOCATION_RECORD_NOTES_H

#include "allocation/stack/stack.h"

/* Names are the facade's numbers; 0: none. */
typedef struct strata_note {
    uint32_t tag;
    uint32_t operator_name;
    uint64_t step;
} strata_note_t;

struct strata_record_notes {
    strata_note_t note;
    uint32_t owners; /* beyond the first */
    uint32_t unknown : 1; /* If set, some owner's last use has an unknown end, and the memory must never be reused. */
    uint32_t sent : 31; /* The number of its entry in allocation/domain/sent.h, which may have ended; 0 if it was never sent. */
    uint32_t generation; /* of the record when the entry was made */
    uint32_t graph_mark; /* of the pool of graphs that became an owner last; 0: none did */
};

/* The entry of a record; NULL: none. The lock of its home is held. */
const strata_record_notes_t *strata_record_notes_of(const strata_record_t *record);

/* What was noted about an allocation of a stack by its slot and generation, live or freed; NULL: nothing. The stack's lock is
 * held. */
const strata_record_notes_t *strata_record_notes_noted(const strata_stack_t *home, uint32_t slot, uint32_t generation);

/* For a record that was just served and that only the caller knows; no lock is held. If the host has no memory, nothing is
 * noted. */
void strata_record_note(strata_record_t *record, const strata_note_t *note);

/* Adds an owner to a record from strata_record_find(). The call's lock stays held, and may be open meanwhile. E_LIMIT,
 * E_HOST_MEMORY, E_STALE. */
strata_status_t strata_record_retain(strata_call_t *call, strata_record_t *record);
bool strata_record_is_shared(const strata_call_t *call, const strata_record_t *record);
/* Notes such a use. The call's lock is held, and the record has an entry. */
void strata_record_note_unknown_use(const strata_call_t *call, strata_record_t *record);
/* Whether one was noted. The call's lock is held. */
bool strata_record_has_unknown_use(const strata_call_t *call, const strata_record_t *record);
/* The mark of the pool of graphs that became an owner last. The call's lock is held; to mark, the record has an entry. */
uint32_t strata_record_graph_mark(const strata_call_t *call, const strata_record_t *record);
void strata_record_mark_graph(const strata_call_t *call, strata_record_t *record, uint32_t mark);
/* Removes an owner; false: it was the last, and the record must be freed. The call's lock is held. */
bool strata_record_give_up(strata_call_t *call, strata_record_t *record);

#endif
