/* Validates the whole structure of uses against the rules in uses.h. */
#include "allocation/domain/domain.h"
#include "allocation/uses/uses.h"

typedef struct tally {
    uint64_t bytes, reduced;
    uint32_t waiting, queued; /* uses of the blocks that wait; uses in the users' queues */
} tally_t;

static strata_status_t corrupt(const char *layer, const char *what) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s", layer, what);
}

/* Checks that a waiting block has `unfinished` waiting uses, and that the end of each can be observed. */
static strata_status_t validate_block(const strata_uses_t *uses, const char *layer, uint32_t head, tally_t *tally) {
    const strata_use_t *block = strata_use_at(uses, head);
    uint32_t left = 0, steps = 0;
    if (block->record && (block->record->state != STRATA_RECORD_DEFERRED || block->record->borrows != head))
        return corrupt(layer, "a pending block is not freed, or has no use");
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        if (node >= uses->nodes.used || ++steps > uses->nodes.used) return corrupt(layer, "a block's list of uses is broken");
        const strata_use_t *use = strata_use_at(uses, node);
        if (use->head != head) return corrupt(layer, "two blocks wait for one use");
        if (use->state != STRATA_USE_WAITING && use->state != STRATA_USE_PASSED)
            return corrupt(layer, "a block waits without a use");
        if (use->state != STRATA_USE_WAITING) continue;
        left++;
        if (!use->event && strata_user_at(&uses->users, use->user)->state != STRATA_USER_DESTROYED)
            return corrupt(layer, "a use has no event");
    }
    tally->waiting += left;
    tally->bytes += block->bytes;
    if (!block->record) tally->reduced += block->reduced;
    if (left == 0 || left != block->unfinished || !block->counted || block->unobservable)
        return corrupt(layer, "a block waits without a use");
    return STRATA_OK;
}

static strata_status_t validate_blocks(const strata_uses_t *uses, const char *layer, tally_t *tally) {
    uint32_t last = 0, count = 0;
    for (uint32_t head = uses->first; head; head = strata_use_at(uses, head)->next_waiting) {
        if (head >= uses->nodes.used || ++count > uses->nodes.used || strata_use_at(uses, head)->prev_waiting != last)
            return corrupt(layer, "the list of deferred frees is broken");
        strata_status_t status = validate_block(uses, layer, head, tally);
        if (status != STRATA_OK) return status;
        last = head;
    }
    if (last != uses->last) return corrupt(layer, "the end of the list of deferred frees is wrong");
    if (tally->reduced != uses->reduced_bytes) return corrupt(layer, "the sum of bytes in use again is wrong");
    if (tally->bytes != uses->pending_bytes || tally->bytes > uses->stack->figures.deferred_bytes)
        return corrupt(layer, "the sum of deferred bytes is wrong");
    return STRATA_OK;
}

static strata_status_t validate_queue(const strata_uses_t *uses, const char *layer, uint32_t user, tally_t *tally) {
    uint32_t last = 0;
    for (uint32_t node = strata_user_at(&uses->users, user)->first; node; node = strata_use_at(uses, node)->next_of_user) {
        if (node >= uses->nodes.used || ++tally->queued > uses->nodes.used)
            return corrupt(layer, "a stream's list of uses is broken");
        const strata_use_t *use = strata_use_at(uses, node);
        if (use->user != user || use->state != STRATA_USE_WAITING) return corrupt(layer, "a stream has a use of another stream");
        last = node;
    }
    return last && last == strata_user_at(&uses->users, user)->last ? STRATA_OK
                                                                    : corrupt(layer, "the end of a stream's uses is wrong");
}

/* The uses of a quarantined block continue, so the queues may have more uses than the blocks that wait. */
static strata_status_t validate_queues(const strata_uses_t *uses, const char *layer, tally_t *tally) {
    uint32_t last = 0, count = 0;
    for (uint32_t user = uses->first_awaited; user; user = strata_user_at(&uses->users, user)->next_awaited) {
        if (user >= uses->users.nodes.used || ++count > uses->users.nodes.used ||
            strata_user_at(&uses->users, user)->prev_awaited != last)
            return corrupt(layer, "the list of awaited streams is broken");
        strata_status_t status = validate_queue(uses, layer, user, tally);
        if (status != STRATA_OK) return status;
        last = user;
    }
    if (last != uses->last_awaited) return corrupt(layer, "the end of the list of awaited streams is wrong");
    return uses->mode == STRATA_USES_BY_BLOCK || tally->queued + uses->on_host >= tally->waiting
               ? STRATA_OK
               : corrupt(layer, "a stream does not have the uses that blocks wait for");
}

strata_status_t strata_uses_validate(strata_uses_t *uses, const char *layer) {
    tally_t tally = {0};
    strata_status_t status = validate_blocks(uses, layer, &tally);
    if (status == STRATA_OK) status = validate_queues(uses, layer, &tally);
    if (status == STRATA_OK) status = strata_users_validate(&uses->users);
    return status == STRATA_OK ? strata_nodes_validate(&uses->nodes) : status;
}
