/* Takes and restores checkpoints of a pool of graphs. */
#include "allocation/domain/paused.h"
#include "allocation/graphs/graphs.h"
#include "facade/graphs/graphs.h"
#include "platform/arguments.h"
#include "platform/host/growing.h"
#include "platform/host/host_memory.h"

struct strata_checkpoint {
    strata_t facade;
    strata_place_t place;
    uint64_t pool;
    strata_graph_blocks_t live;
};

static strata_status_t refuse_begun(const strata_graph_pool_state_t *state) {
    if (!state->open) return STRATA_OK;
    return strata_fail(STRATA_E_BUSY, 0, "this pool is open; end it first");
}

/* ---- taking ---- */

static strata_status_t take(strata_graph_pool_t *pool, void *context) {
    strata_checkpoint_t checkpoint = context;
    strata_graph_pool_state_t state;
    strata_graph_pool_read(pool, &state);
    strata_status_t status = refuse_begun(&state);
    return status == STRATA_OK ? strata_graph_pool_live(pool, &checkpoint->live) : status;
}

strata_status_t strata_graph_pool_checkpoint(strata_t facade, strata_place_t place, uint64_t pool,
                                             strata_checkpoint_t *checkpoint) {
    STRATA_REFUSE_NULL(checkpoint);
    strata_checkpoint_t fresh = strata_host_new(1, sizeof *fresh);
    if (!fresh) return STRATA_E_HOST_MEMORY;
    *fresh = (struct strata_checkpoint){.facade = facade, .place = place, .pool = pool};
    strata_status_t status = strata_facade_with_graph_pool(facade, place, pool, take, fresh);
    if (status == STRATA_OK) *checkpoint = fresh;
    else strata_host_delete(fresh);
    return status;
}

void strata_graph_checkpoint_drop(strata_checkpoint_t checkpoint) {
    if (!checkpoint) return;
    strata_graph_blocks_delete(&checkpoint->live);
    strata_host_delete(checkpoint);
}

/* ---- restoring ---- */

typedef struct restoring {
    const struct strata_checkpoint *checkpoint;
    strata_graph_blocks_t changes;
} restoring_t;

static strata_status_t restore(strata_graph_pool_t *pool, void *context) {
    restoring_t *restoring = context;
    strata_graph_pool_state_t state;
    strata_graph_pool_read(pool, &state);
    strata_status_t status = refuse_begun(&state);
    if (status == STRATA_OK) status = strata_group_refuse_paused(pool->group);
    if (status != STRATA_OK) return status;
    if (!strata_graph_pool_hold(pool))
        return strata_fail(STRATA_E_INVALID, 0, "nothing keeps this pool, so its memory goes back as it is freed");
    status = strata_graph_pool_set_live(pool, &restoring->checkpoint->live, &restoring->changes);
    (void)strata_graph_pool_release(pool);
    return status;
}

strata_status_t strata_graph_pool_restore(strata_t facade, strata_place_t place, strata_checkpoint_t checkpoint,
                                          strata_restored_fn changed, void *context) {
    STRATA_REFUSE_NULL(checkpoint);
    if (checkpoint->facade != facade || checkpoint->place != place)
        return strata_fail(STRATA_E_INVALID, 0, "the checkpoint was taken of a pool of another facade or place");
    restoring_t restoring = {.checkpoint = checkpoint};
    strata_growing_grow_if_marked();
    strata_status_t status = strata_facade_with_graph_pool(facade, place, checkpoint->pool, restore, &restoring);
    for (size_t i = 0; i < restoring.changes.count && changed; i++)
        changed(&restoring.changes.all[i].block, restoring.changes.all[i].is_restored, context);
    strata_graph_blocks_delete(&restoring.changes);
    return status;
}
