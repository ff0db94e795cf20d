/* Pause and resume, step by step. Every step that can fail runs before the first handle is taken away, or
 * is undone before the return. */
#include "facade/pause/pause.h"

#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/report/log.h"
#include "facade/figures/figures.h"
#include "facade/registry/inside.h"
#include "platform/arguments.h"

/* ---- one thread at a time ---- */

bool strata_pauses_begin(strata_facade_t *facade, bool wait) {
    strata_lock(&facade->lock);
    while (wait && facade->pausing) strata_condition_wait(&facade->built, &facade->lock, UINT64_MAX);
    bool mine = !facade->pausing;
    if (mine) facade->pausing = true;
    strata_unlock(&facade->lock);
    return mine;
}

void strata_pauses_end(strata_facade_t *facade) {
    strata_lock(&facade->lock);
    facade->pausing = false;
    strata_condition_broadcast(&facade->built);
    strata_unlock(&facade->lock);
}

/* ---- steps of pause and resume ---- */

#define EACH_PART(parts, part) for (const strata_pause_part_t *part = (parts)->all; part < (parts)->all + (parts)->count; part++)

static bool has_paused(const strata_pause_parts_t *parts, const strata_group_t *group) {
    uint32_t away = 0;
    EACH_PART(parts, part)
    if (part->group == group) away += part->pausing->count_paused(part->source);
    return away > 0;
}

/* Clears the selection. A pool serves again if it has all of its memory. */
static void finish(const strata_pause_parts_t *parts, bool back) {
    EACH_PART(parts, part) part->pausing->finish(part->source, back);
    strata_kept_prune(parts->facade);
    EACH_PART(parts, part) strata_group_set_paused(part->group, has_paused(parts, part->group));
}

/* Idle chunks of a paused pool are released, because there is no need to restore them. */
static void release_idle(const strata_pause_parts_t *parts) {
    EACH_PART(parts, part)
    if (strata_group_is_paused(part->group)) (void)strata_domain_release_group(parts->domain, part->group);
}

static strata_status_t choose(const strata_pause_parts_t *parts, bool away, uint64_t *handles) {
    strata_status_t status = parts->tag ? strata_pause_mark(parts, !away) : STRATA_OK;
    for (uint32_t i = 0; i < parts->count && status == STRATA_OK; i++) {
        uint32_t count;
        status = parts->all[i].pausing->choose(parts->all[i].source, away, parts->tag != 0, &count);
        *handles += count;
    }
    return status;
}

/* Returns the metrics of the selected pools. */
static strata_statistics_t figures_of(const strata_pause_parts_t *parts) {
    strata_statistics_t figures = {0};
    if (parts->pool == STRATA_POOL_EVERY) strata_facade_place_figures(parts->domain, &figures);
    else strata_facade_pool_figures(parts->domain, parts->pool, &figures);
    return figures;
}

/* ---- pause ---- */

static strata_status_t check_options(const strata_pause_options_t *options) {
    if (options->contents > STRATA_PAUSE_FILE)
        return strata_fail(STRATA_E_INVALID, 0, "strata_pause: contents: %u is none of STRATA_PAUSE_DROP, _PINNED, _FILE",
                           (unsigned)options->contents);
    if (options->contents == STRATA_PAUSE_FILE && !options->directory)
        return strata_fail(STRATA_E_INVALID, 0, "strata_pause: `directory` is NULL, but STRATA_PAUSE_FILE needs one");
    return STRATA_OK;
}

/* After this the pools serve nothing, and no work uses their idle memory. */
static strata_status_t close_pools(const strata_pause_parts_t *parts) {
    strata_pending_t pending;
    strata_domain_t *domain = parts->domain;
    EACH_PART(parts, part) {
        strata_group_set_paused(part->group, true);
        strata_group_drain(part->group);
    }
    bool done = atomic_load(&domain->peers) ? strata_domain_wait_for_all(domain) : strata_domain_wait_for_own(domain);
    if (!done) return strata_last_error()->status;
    (void)strata_domain_poll(domain, &pending);
    release_idle(parts);
    return STRATA_OK;
}

static strata_status_t make_room(strata_copy_t *copy, const strata_pause_part_t *part, strata_kept_file_t *file, uint64_t *bytes) {
    strata_held_t handle;
    uint64_t from = 0;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && part->pausing->next(part->source, &from, &handle)) {
        strata_kept_t *kept = strata_kept_add(copy->facade, part->source, &handle);
        status = kept ? strata_copy_reserve(copy, kept, file) : STRATA_E_HOST_MEMORY;
        *bytes += handle.size;
    }
    return status;
}

/* Reserves all room first, so that no copy is made for nothing and copies run back to back. */
static strata_status_t save_to(const strata_pause_parts_t *parts, const strata_pause_options_t *options, strata_kept_file_t *file,
                               strata_paused_t *done) {
    strata_copy_t copy;
    size_t first = strata_kept_count(parts->facade);
    strata_status_t status = strata_copy_begin(&copy, parts->facade, parts->domain, options->staging);
    for (uint32_t i = 0; i < parts->count && status == STRATA_OK; i++)
        status = make_room(&copy, &parts->all[i], file, &done->kept_bytes);
    strata_copy_start(&copy);
    for (size_t i = first; i < strata_kept_count(parts->facade) && status == STRATA_OK; i++)
        status = strata_copy_save(&copy, strata_kept_at(parts->facade, i));
    if (status == STRATA_OK) status = strata_copy_finish(&copy, file);
    done->copy_ns = strata_copy_end(&copy);
    return status;
}

static strata_status_t save(const strata_pause_parts_t *parts, const strata_pause_options_t *options, strata_paused_t *done) {
    if (options->contents == STRATA_PAUSE_DROP) return strata_pause_refuse_graphs(parts);
    if (options->contents == STRATA_PAUSE_PINNED) return save_to(parts, options, NULL, done);
    strata_kept_file_t *file = strata_kept_file_make(options->directory);
    if (!file) return strata_last_error()->status;
    strata_status_t status = save_to(parts, options, file, done);
    strata_kept_file_release(file);
    return status;
}

static strata_status_t pause_parts(const strata_pause_parts_t *parts, const strata_pause_options_t *options,
                                   strata_paused_t *done) {
    size_t kept_before = strata_kept_count(parts->facade);
    strata_status_t status = close_pools(parts);
    if (status == STRATA_OK) status = choose(parts, false, &done->handles);
    if (status == STRATA_OK && done->handles > 0) status = save(parts, options, done);
    const strata_error_t reason = *strata_last_error();
    if (status == STRATA_OK) {
        EACH_PART(parts, part) done->bytes += part->pausing->release(part->source);
    } else {
        strata_kept_drop_from(parts->facade, kept_before);
    }
    finish(parts, false);
    done->rest_bytes = figures_of(parts).reserved_bytes;
    return status == STRATA_OK ? status : strata_fail_again(&reason);
}

static strata_status_t begin(strata_t handle, const char *what, strata_paused_t *report, strata_facade_t **facade) {
    *facade = strata_facade_of(handle);
    if (!*facade) return strata_last_error()->status;
    strata_status_t status = report ? strata_check_result(report, what, "report") : STRATA_OK;
    return status == STRATA_OK ? strata_inside_refuse(handle, what) : status;
}

strata_status_t strata_pause(strata_t handle, strata_place_t place, const strata_pause_options_t *options,
                             strata_paused_t *report) {
    STRATA_REFUSE_NULL(options);
    STRATA_REFUSE_OPTIONS(options, sizeof *options);
    strata_facade_t *facade;
    strata_pause_parts_t parts;
    strata_paused_t done = {0};
    strata_status_t status = begin(handle, "strata_pause", report, &facade);
    if (status == STRATA_OK) status = check_options(options);
    if (status != STRATA_OK) return status;
    (void)strata_pauses_begin(facade, true);
    atomic_store(&facade->ever_paused, true);
    status = strata_pause_parts_find(&parts, facade, place, options->pool, options->tag, true);
    if (status == STRATA_OK) status = pause_parts(&parts, options, &done);
    strata_pause_parts_end(&parts);
    strata_pauses_end(facade);
    strata_log_flush();
    if (status == STRATA_OK && report) strata_fill_result(report, &done, sizeof done);
    return status;
}

/* ---- resume ---- */

static bool tells_owners(const strata_group_t *group) {
    for (uint32_t n = 1; n <= group->plan->count; n++)
        if (group->plan->nodes[n].type->gives & STRATA_TRAIT_TELLS_OWNERS) return true;
    return false;
}

/* New memory from the device may contain data of any earlier owner. */
static strata_status_t fill_part(strata_copy_t *copy, const strata_pause_part_t *part, strata_paused_t *done) {
    strata_held_t handle;
    uint64_t from = 0;
    strata_status_t status = STRATA_OK;
    bool zero = tells_owners(part->group);
    while (status == STRATA_OK && part->pausing->next(part->source, &from, &handle)) {
        const strata_kept_t *kept = strata_kept_of(copy->facade, &handle);
        if (kept) status = strata_copy_restore(copy, kept);
        else if (zero) status = strata_copy_zero(copy, handle.address, handle.size);
        done->kept_bytes += kept ? handle.size : 0;
        done->bytes += handle.size;
    }
    return status;
}

static strata_status_t fill(const strata_pause_parts_t *parts, strata_paused_t *done) {
    strata_copy_t copy;
    strata_status_t status = strata_copy_begin(&copy, parts->facade, parts->domain, 0);
    strata_copy_start(&copy);
    for (uint32_t i = 0; i < parts->count && status == STRATA_OK; i++) status = fill_part(&copy, &parts->all[i], done);
    if (status == STRATA_OK) status = strata_copy_finish(&copy, NULL);
    done->copy_ns = strata_copy_end(&copy);
    return status;
}

static void undo(const strata_pause_parts_t *parts, uint32_t count) {
    const strata_error_t reason = *strata_last_error();
    for (uint32_t i = 0; i < count; i++) parts->all[i].pausing->undo(parts->all[i].source);
    (void)strata_fail_again(&reason);
}

/* If the device is out of memory, idle chunks in caches of the place are released once to make room. */
static strata_status_t restore_part(const strata_pause_parts_t *parts, const strata_pause_part_t *part) {
    strata_status_t status = part->pausing->restore(part->source);
    if (status != STRATA_E_NO_MEMORY) return status;
    (void)strata_domain_release(parts->domain, NULL);
    return part->pausing->restore(part->source);
}

static strata_status_t restore(const strata_pause_parts_t *parts, strata_paused_t *done) {
    strata_status_t status = STRATA_OK;
    uint32_t brought = 0;
    while (status == STRATA_OK && brought < parts->count) {
        status = restore_part(parts, &parts->all[brought]);
        brought += status == STRATA_OK;
    }
    if (status == STRATA_OK) status = fill(parts, done);
    if (status != STRATA_OK) undo(parts, brought);
    return status;
}

static strata_status_t resume_parts(const strata_pause_parts_t *parts, strata_paused_t *done) {
    strata_status_t status = choose(parts, true, &done->handles);
    if (status == STRATA_OK && done->handles > 0) status = restore(parts, done);
    const strata_error_t reason = *strata_last_error();
    finish(parts, status == STRATA_OK);
    done->rest_bytes = figures_of(parts).paused_bytes;
    return status == STRATA_OK ? status : strata_fail_again(&reason);
}

strata_status_t strata_resume(strata_t handle, strata_place_t place, uint64_t pool, const char *tag, strata_paused_t *report) {
    strata_facade_t *facade;
    strata_pause_parts_t parts;
    strata_paused_t done = {0};
    strata_status_t status = begin(handle, "strata_resume", report, &facade);
    if (status != STRATA_OK) return status;
    (void)strata_pauses_begin(facade, true);
    status = strata_pause_parts_find(&parts, facade, place, pool, tag, false);
    if (status == STRATA_OK) release_idle(&parts);
    if (status == STRATA_OK) status = resume_parts(&parts, &done);
    strata_pause_parts_end(&parts);
    strata_pauses_end(facade);
    strata_log_flush();
    if (status == STRATA_OK && report) strata_fill_result(report, &done, sizeof done);
    return status;
}

/* ---- memory freed during a pause ---- */

static void sweep_place(strata_facade_t *facade, strata_place_t place) {
    strata_pause_parts_t parts;
    if (strata_pause_parts_find(&parts, facade, place, STRATA_POOL_EVERY, NULL, false) == STRATA_OK) {
        release_idle(&parts);
        finish(&parts, false);
    }
    strata_pause_parts_end(&parts);
}

void strata_facade_sweep_pauses(strata_facade_t *facade) {
    uint32_t index = 0;
    strata_domain_t *domain;
    if (!atomic_load(&facade->ever_paused) || !strata_pauses_begin(facade, false)) return;
    const strata_error_t reason = *strata_last_error();
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) sweep_place(facade, domain->place);
    strata_pauses_end(facade);
    (void)strata_fail_again(&reason);
}
