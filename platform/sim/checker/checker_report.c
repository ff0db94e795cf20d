/* The text of a fault: a description of it, and the history of both sides. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

enum { TEXT_BYTES = 4096, FIRST_NOTES = 3, LAST_NOTES = 7, ORDER_NOTES = 8 };

typedef struct text {
    char *at;
    size_t length;
} text_t;

static void append(text_t *text, const char *format, ...) STRATA_PRINTF(2, 3);
static void append(text_t *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text->at + text->length, TEXT_BYTES - text->length, format, arguments);
    va_end(arguments);
    if (written > 0) text->length = strata_min(text->length + (size_t)written, TEXT_BYTES - 1);
}

static void append_act(text_t *text, const strata_checker_t *checker, const check_note_t *note) {
    const char *who = checker->actors[note->actor].label;
    unsigned long long event = (unsigned long long)note->event;
    switch (note->kind) {
    case CHECK_NOTE_GOT: append(text, "obtained from the device"); break;
    case CHECK_NOTE_SERVED: append(text, "served to %s", who); break;
    case CHECK_NOTE_BORROWED: append(text, "borrowed by %s", who); break;
    case CHECK_NOTE_ERASED: append(text, "no longer borrowed by %s", who); break;
    case CHECK_NOTE_FREED: append(text, "freed on %s", who); break;
    case CHECK_NOTE_USED: append(text, "used by work on %s", who); break;
    case CHECK_NOTE_FILLED: append(text, "filled on %s", who); break;
    case CHECK_NOTE_HOST: append(text, "touched by %s", who); break;
    case CHECK_NOTE_GRAPH: append(text, "used by graph %llu, launched on %s", event, who); break;
    case CHECK_NOTE_CAPTURED: append(text, "captured by graph %llu on %s", event, who); break;
    case CHECK_NOTE_IMPLIED: append(text, "in use on %s", who); break;
    case CHECK_NOTE_GIVEN_BACK: append(text, "given back to the device by %s", who); break;
    case CHECK_NOTE_RECORDED: append(text, "event %llu recorded on %s", event, who); break;
    case CHECK_NOTE_WAITED: append(text, "%s waits for event %llu", who, event); break;
    case CHECK_NOTE_PASSED: append(text, "%s sees that event %llu has passed", who, event); break;
    case CHECK_NOTE_SYNCHRONISED: append(text, "the host has waited for %s", who); break;
    case CHECK_NOTE_DEVICE: append(text, "%s has waited for the device", who); break;
    }
}

static void append_note(text_t *text, const strata_checker_t *checker, uint64_t number, const char *mark) {
    const check_note_t *note = check_note_at(checker, number);
    if (!note) return;
    append(text, "    ");
    if (note->line) append(text, "line %-8llu ", (unsigned long long)note->line);
    append(text, "%12.6f ms  ", (double)note->time / 1e6);
    append_act(text, checker, note);
    if (strncmp(checker->actors[note->actor].label, "thread", 6) != 0) append(text, " (%s)", checker->actors[note->host].label);
    append(text, "%s\n", mark);
}

/* Writes the first and last few notes of one life. */
static void append_life(text_t *text, const strata_checker_t *checker, uint64_t life, uint64_t marked, const char *mark) {
    uint64_t all = 0, seen = 0, oldest = check_note_oldest(checker);
    for (uint64_t n = oldest; n <= checker->note_count; n++) all += check_note_at(checker, n)->life == life;
    for (uint64_t n = oldest; n <= checker->note_count; n++) {
        if (check_note_at(checker, n)->life != life) continue;
        seen++;
        bool shown = seen <= FIRST_NOTES || seen + LAST_NOTES > all || n == marked;
        if (shown) append_note(text, checker, n, n == marked ? mark : "");
        else if (seen == FIRST_NOTES + 1) append(text, "    ...\n");
    }
    if (all == 0) append(text, "    no longer recorded\n");
}

/* Returns true for a note between two accesses that might have ordered them. */
static bool orders(const check_note_t *note, uint32_t old_actor, uint32_t new_actor, uint32_t host) {
    switch (note->kind) {
    case CHECK_NOTE_RECORDED:
    case CHECK_NOTE_SYNCHRONISED: return note->actor == old_actor;
    case CHECK_NOTE_WAITED: return note->actor == new_actor;
    case CHECK_NOTE_PASSED:
    case CHECK_NOTE_DEVICE: return note->actor == host;
    default: return false;
    }
}

static void append_order(text_t *text, const strata_checker_t *checker, const check_fault_t *fault) {
    uint64_t oldest = strata_max(check_note_oldest(checker), strata_max(fault->old->note, 1)), shown[ORDER_NOTES];
    size_t count = 0;
    uint32_t host = checker->note_count ? check_note_at(checker, checker->note_count)->host : 0;
    for (uint64_t n = checker->note_count; n >= oldest && count < ORDER_NOTES; n--)
        if (orders(check_note_at(checker, n), fault->old->actor, fault->actor, host)) shown[count++] = n;
    append(text, count ? "  between the two:\n" : "  between the two: no event, no wait, no synchronize\n");
    while (count > 0) append_note(text, checker, shown[--count], "");
}

static void append_launch(text_t *text, const check_touch_t *launch) {
    append(text, "\n  graph %llu touches 0x%llx, %llu bytes, of", (unsigned long long)launch->captured->graph,
           (unsigned long long)launch->address, (unsigned long long)launch->size);
}

/* A launch over lost or newly served memory is at fault whatever its order. */
static bool is_about_order(strata_hazard_t kind) { return kind != STRATA_HAZARD_GIVEN_BACK && kind != STRATA_HAZARD_SERVED_SINCE; }

char *check_report_text(strata_checker_t *checker, const check_fault_t *fault, uint64_t number) {
    text_t text = {.at = malloc(TEXT_BYTES)};
    if (!text.at) return NULL;
    const check_life_t *life = fault->life;
    append(&text, "hazard %llu: %s", (unsigned long long)number, strata_hazard_text(fault->kind));
    if (fault->rule) append(&text, " (rule %d)", fault->rule);
    if (fault->launch) append_launch(&text, fault->launch);
    append(&text, "\n  0x%llx, %llu bytes, %s%llu, by %s:\n", (unsigned long long)life->address, (unsigned long long)life->size,
           life->raw ? "device memory " : "block ", (unsigned long long)life->number, checker->actors[fault->actor].label);
    append_life(&text, checker, life->number, fault->note, "  <- here");
    if (fault->old && fault->old->life && fault->old->life != life->number) {
        append(&text, "  the other side, block %llu, on %s:\n", (unsigned long long)fault->old->life,
               checker->actors[fault->old->actor].label);
        append_life(&text, checker, fault->old->life, fault->old->note, "  <- this");
    } else if (fault->old && fault->old->note) {
        append(&text, "  the other side, on %s:\n", checker->actors[fault->old->actor].label);
        append_note(&text, checker, fault->old->note, "  <- this");
    }
    if (fault->old && is_about_order(fault->kind)) append_order(&text, checker, fault);
    return text.at;
}
