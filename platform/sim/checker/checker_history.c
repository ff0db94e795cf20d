/* The recorded history: a ring of notes, read only when a fault is reported. */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

static bool grow(strata_checker_t *checker) {
    uint64_t room = checker->note_room ? checker->note_room * 4 : 1024;
    check_note_t *notes = realloc(checker->notes, room * sizeof *notes);
    if (!notes) return false;
    checker->notes = notes;
    checker->note_room = room;
    return true;
}

/* Notes are numbered from 1. Number n is at (n - 1) modulo the length of the ring. */
uint64_t check_note(strata_checker_t *checker, check_note_kind_t kind, uint32_t actor, uint64_t life, uint64_t event) {
    if (checker->note_count == checker->note_room && checker->note_room < CHECK_NOTES_MAX && !grow(checker)) {
        checker->incomplete = true;
        return 0;
    }
    if (checker->note_room == 0) return 0;
    sim_thread_t *thread = sim_thread(checker->world);
    checker->notes[checker->note_count++ & (checker->note_room - 1)] = (check_note_t){
        .time = atomic_load_explicit(&thread->now, memory_order_relaxed),
        .line = checker->line,
        .life = life,
        .event = event,
        .actor = actor,
        .host = check_host(checker),
        .kind = kind};
    return checker->note_count;
}

const check_note_t *check_note_at(const strata_checker_t *checker, uint64_t number) {
    bool kept = number > 0 && number <= checker->note_count && checker->note_count - number < checker->note_room;
    return kept ? &checker->notes[(number - 1) & (checker->note_room - 1)] : NULL;
}

uint64_t check_note_oldest(const strata_checker_t *checker) {
    return checker->note_count > checker->note_room ? checker->note_count - checker->note_room + 1 : 1;
}

void check_report_history(strata_checker_t *checker, const check_fault_t *fault) {
    uint32_t bit = 1u << fault->kind;
    if (fault->life->reported_kinds & bit) return;
    fault->life->reported_kinds |= bit;
    checker->hazards[fault->kind]++;
    uint64_t number = 0;
    for (int i = 0; i < STRATA_HAZARDS; i++) number += checker->hazards[i];
    if (checker->report_count == CHECK_REPORTS) return;
    char *report = check_report_text(checker, fault, number);
    if (report) checker->reports[checker->report_count++] = report;
    else checker->incomplete = true;
}
