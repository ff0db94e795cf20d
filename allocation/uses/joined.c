/* Reuses a block inside the capture in which it was lent and freed (`reuse`). The owner's next operation
 * must come after everything that the borrowers were captured to do.
 *
 * Events of a capture cannot be queried. But the device has the edges of the graph, so it can report
 * whether the owner has joined a borrower. Then all work captured on the borrower so far, which includes
 * the use of the block, precedes the owner's next operation at every launch. That covers no work
 * submitted to the borrower before it was captured. So a use counts only if it was noted inside the
 * capture, and never outside it. */
#include "allocation/domain/layer.h"
#include "allocation/stack/threads.h"
#include "allocation/uses/waiting.h"
#include "platform/place.h"

enum { LOOKS = 64, ANSWERS = 8 }; /* blocks that one poll examines; streams whose answer it caches */

strata_status_t strata_uses_check_reuse(bool reuse, strata_place_kind_t place) {
    if (!reuse || !strata_place_is_ownerless(place)) return STRATA_OK;
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "graph pools are never in %s memory, so no block is borrowed inside a capture; remove it",
                       strata_place_name(place));
}

uint64_t strata_uses_capture_of(const strata_uses_t *uses, uint32_t user) {
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    const strata_user_t *borrower = strata_user_at(&uses->users, user);
    uint64_t id = 0;
    if (!uses->reuse || uses->captures == 0 || !strata_user_is_nameable(borrower)) return 0;
    strata_status_t status = strata_device_capture_status(domain_of(uses)->device, borrower->stream, &capture, &id);
    return status == STRATA_OK && capture == STRATA_CAPTURE_ACTIVE ? id : 0;
}

/* ---- joins of the owner with the borrowers ---- */

typedef struct answer {
    const strata_stack_t *owner;
    uint32_t user;
    uint64_t id; /* of the capture in which the owner follows the user, or 0 if it does not */
} answer_t;

typedef struct answers {
    answer_t list[ANSWERS];
    uint32_t count;
} answers_t;

static uint64_t ask(const strata_uses_t *uses, const strata_stack_t *owner, uint32_t user) {
    const strata_user_t *borrower = strata_user_at(&uses->users, user);
    uint64_t id = 0;
    bool named = !owner->forgotten.orphan &&
                 (owner->stream != STRATA_STREAM_PER_THREAD || owner->thread == strata_threads_self()) &&
                 strata_user_is_nameable(borrower);
    if (!named) return 0;
    strata_status_t status = strata_device_capture_follows(domain_of(uses)->device, owner->stream, borrower->stream, &id);
    return status == STRATA_OK ? id : 0;
}

static uint64_t joined_in(const strata_uses_t *uses, const strata_stack_t *owner, uint32_t user, answers_t *answers) {
    for (uint32_t i = 0; i < answers->count; i++)
        if (answers->list[i].owner == owner && answers->list[i].user == user) return answers->list[i].id;
    uint64_t id = ask(uses, owner, user);
    if (answers->count < ANSWERS) answers->list[answers->count++] = (answer_t){.owner = owner, .user = user, .id = id};
    return id;
}

static bool is_captured(const strata_uses_t *uses, uint32_t head) {
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next)
        if (strata_use_at(uses, node)->capture == 0) return false;
    return true;
}

static bool is_joined(const strata_uses_t *uses, uint32_t head, answers_t *answers) {
    const strata_stack_t *owner = strata_stack_of(strata_use_at(uses, head)->record->stack);
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        const strata_use_t *use = strata_use_at(uses, node);
        if (joined_in(uses, owner, use->user, answers) != use->capture) return false;
    }
    return true;
}

static void complete_all(strata_uses_t *uses, uint32_t head) {
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) strata_uses_end(uses, node, STRATA_USE_PASSED);
}

/* ---- blocks that are not joined yet, in the order in which they are examined ---- */

static void append_joining(strata_uses_t *uses, uint32_t head) {
    uses->stack->figures.deferred_bytes += strata_use_at(uses, head)->bytes;
    strata_use_at(uses, head)->next_waiting = 0;
    if (uses->last_joining) strata_use_at(uses, uses->last_joining)->next_waiting = head;
    else uses->joining = head;
    uses->last_joining = head;
}

static uint32_t pop_joining(strata_uses_t *uses) {
    uint32_t head = uses->joining;
    uses->stack->figures.deferred_bytes -= strata_use_at(uses, head)->bytes;
    uses->joining = strata_use_at(uses, head)->next_waiting;
    if (uses->joining == 0) uses->last_joining = 0;
    return head;
}

strata_freed_t strata_uses_free_in_capture(strata_uses_t *uses, uint32_t head) {
    answers_t answers = {.count = 0};
    if (!is_captured(uses, head)) {
        strata_uses_hold_for_captures(uses, head);
    } else if (!is_joined(uses, head, &answers)) {
        append_joining(uses, head);
    } else {
        complete_all(uses, head);
        return STRATA_FREED_DONE;
    }
    return STRATA_FREED_WAITS;
}

uint32_t strata_uses_poll_in_capture(strata_uses_t *uses) {
    strata_done_t done = {0};
    answers_t answers = {.count = 0};
    uint32_t last = uses->last_joining, head = 0;
    for (uint32_t looks = 0; looks < LOOKS && uses->joining && head != last; looks++) {
        head = pop_joining(uses);
        if (is_joined(uses, head, &answers)) {
            complete_all(uses, head);
            strata_uses_add_done(uses, &done, head);
        } else {
            append_joining(uses, head);
        }
    }
    return done.first;
}

void strata_uses_keep_joining(strata_uses_t *uses) {
    while (uses->joining) strata_uses_hold_for_captures(uses, pop_joining(uses));
}
