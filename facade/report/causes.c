#include "facade/report/causes.h"

#include "platform/arithmetic.h"
#include "platform/place.h"

enum { NOTHING_THERE = STRATA_IDLE_WHYS };

/* ---- conditions ---- */

static bool fits(const strata_facts_t *f, uint64_t bytes) {
    uint64_t sum;
    return !strata_add(f->room, bytes, &sum) || sum >= f->asked;
}

/* Returns true if these bytes suffice together with the remaining room, and are at least an eighth of the request. */
static bool would_suffice(const strata_facts_t *f, uint64_t bytes) { return bytes > 0 && bytes >= f->asked / 8 && fits(f, bytes); }

/* Returns true if deferred memory will form one run, or free whole chunks. Blocks that the survey cannot
 * see are assumed to. */
static bool will_serve(const strata_facts_t *f) {
    const strata_survey_t *survey = &f->survey;
    return survey->deferred_here < f->deferred || survey->later_run >= f->asked || fits(f, survey->later_whole);
}

static bool is_gpu(const strata_facts_t *f) { return strata_place_kind(f->domain->place) == STRATA_PLACE_GPU; }
static bool forbids(const strata_facts_t *f, uint32_t flag) { return (f->refused->flags & flag) != 0; }
static bool refused_by(const strata_facts_t *f, strata_refused_by_t by) { return f->outcome->refusal.by == by; }

static bool is_too_large(const strata_facts_t *f) { return is_gpu(f) && f->total > 0 && !f->spills && f->asked > f->most; }
static bool is_kept_whole(const strata_facts_t *f) {
    return forbids(f, STRATA_NO_GROW | STRATA_NO_RETRY) && f->there_largest >= f->asked;
}
static bool may_not_grow(const strata_facts_t *f) { return forbids(f, STRATA_NO_GROW); }
static bool may_not_retry(const strata_facts_t *f) {
    return forbids(f, STRATA_NO_RETRY) && would_suffice(f, f->whole + (will_serve(f) ? f->deferred : 0));
}
static bool is_at_place_limit(const strata_facts_t *f) { return refused_by(f, STRATA_REFUSED_BY_PLACE); }
static bool is_at_bound(const strata_facts_t *f) { return refused_by(f, STRATA_REFUSED_BY_BOUND); }
static bool is_refused_by_layer(const strata_facts_t *f) {
    return refused_by(f, STRATA_REFUSED_BY_OTHERS) && f->refused->device_code == 0;
}
static bool is_host(const strata_facts_t *f) { return strata_place_is_ownerless(strata_place_kind(f->domain->place)); }
static bool is_refused_by_host(const strata_facts_t *f) { return refused_by(f, STRATA_REFUSED_BY_DEVICE) && is_host(f); }
static bool is_chunk(const strata_facts_t *f) {
    return refused_by(f, STRATA_REFUSED_BY_DEVICE) && f->growth > f->asked && f->growth > f->free && f->free >= f->asked;
}
static bool has_room(const strata_facts_t *f) {
    return refused_by(f, STRATA_REFUSED_BY_DEVICE) && f->total > 0 && f->free >= f->growth;
}

/* Returns true if the waiting memory will form one run, or frees whole chunks. */
static bool becomes_free(const strata_facts_t *f) { return f->later_run >= f->asked || fits(f, f->there_whole); }
static bool stays_in_pieces(const strata_facts_t *f) { return !becomes_free(f); }

static bool is_held(const strata_facts_t *f) { return would_suffice(f, f->there); }
static bool is_counted(const strata_facts_t *f) { return is_held(f) && becomes_free(f); }
static bool is_counted_in_pieces(const strata_facts_t *f) { return is_held(f) && !becomes_free(f); }
static bool waits(const strata_facts_t *f) { return would_suffice(f, f->deferred) && will_serve(f); }
static bool is_in_limbo(const strata_facts_t *f) { return would_suffice(f, f->limbo); }
static bool waits_in_pieces(const strata_facts_t *f) { return would_suffice(f, f->deferred) && !will_serve(f); }

/* Returns true if all idle memory together would suffice, and the largest part of it is there. */
static bool is_idle_there(const strata_facts_t *f) {
    if (!would_suffice(f, f->idle) || f->there == 0) return false;
    for (uint32_t why = STRATA_IDLE_POOL; why < STRATA_IDLE_WHYS; why++)
        if (f->survey.idle_by[why].bytes > f->there) return false;
    return true;
}
static bool is_used_by_others(const strata_facts_t *f) {
    return !f->spills && would_suffice(f, f->others) && f->others >= f->total / 10;
}
static bool is_leak(const strata_facts_t *f) {
    const strata_note_t *note = &f->survey.owners[0].note;
    bool named = note->tag != 0 || note->operator_name != 0;
    return named && f->owner_bytes >= f->allocated / 2 && f->owner_blocks >= 3 && f->last_step >= f->first_step + 2;
}
static bool has_timed_out(const strata_facts_t *f) {
    return f->outcome->recovery.slept && f->outcome->recovery.timed_out && f->deferred == 0;
}
static bool always(const strata_facts_t *f) {
    (void)f;
    return true;
}

/* ---- the table: the first row with a true condition ---- */

typedef struct cause_row {
    strata_cause_t cause;
    bool (*holds)(const strata_facts_t *facts);
    uint32_t there; /* a strata_idle_why_t that the facts describe */
    const char *sentence;
} cause_row_t;

static const cause_row_t causes[] = {
    {STRATA_CAUSE_UNSPLIT, is_kept_whole, STRATA_IDLE_UNSPLIT,
     "requested {asked}, with further steps forbidden; {there} are idle in blocks of up to {there_largest}, which "
     "{max_split_size} keeps unsplit"},
    {STRATA_CAUSE_NO_GROWTH, may_not_grow, STRATA_IDLE_OWN,
     "requested {asked}, with growth forbidden; the largest free block that may serve it has {there_largest}"},
    {STRATA_CAUSE_TOO_LARGE, is_too_large, NOTHING_THERE,
     "requested {asked}; the device has {total}, of which a program gets at most {most}"},
    {STRATA_CAUSE_NO_RETRY, may_not_retry, NOTHING_THERE,
     "requested {asked}, with retries forbidden; {whole} are idle in whole chunks, {deferred} are freed but still in use by "
     "other streams"},
    {STRATA_CAUSE_CAPTURED, is_held, STRATA_IDLE_CAPTURED, "requested {asked}; {there} are idle but kept for captured graphs"},
    {STRATA_CAUSE_COUNTED, is_counted, STRATA_IDLE_COUNTED,
     "requested {asked}; {there} were freed with counts that no frontier has passed"},
    {STRATA_CAUSE_FRAGMENTATION, is_counted_in_pieces, STRATA_IDLE_COUNTED,
     "requested {asked}; {there} were freed with counts, in pieces between live blocks. Once a frontier passes them, the "
     "largest run has {later_run}"},
    {STRATA_CAUSE_WAITING, waits, NOTHING_THERE, "requested {asked}; {deferred} are freed but still in use by other streams"},
    {STRATA_CAUSE_LIMBO, is_in_limbo, NOTHING_THERE,
     "requested {asked}; {limbo} in {limbo_blocks} blocks are freed but still in use by other processes"},
    {STRATA_CAUSE_LAYER, is_refused_by_layer, NOTHING_THERE, "requested {asked}; a layer refused: {reason}"},
    {STRATA_CAUSE_HOST, is_refused_by_host, NOTHING_THERE, "requested {asked}, which needs {growth}; the host is out of memory"},
    {STRATA_CAUSE_CHUNK, is_chunk, NOTHING_THERE,
     "requested {asked}; the device has {free} free, but the cache needs a chunk of {growth}"},
    {STRATA_CAUSE_DEVICE, has_room, NOTHING_THERE,
     "requested {growth} from the device, which refused although it reports {free} free: {reason}"},
    {STRATA_CAUSE_KEPT, is_held, STRATA_IDLE_KEPT, "requested {asked}; {there} are idle in pools that keep their chunks"},
    {STRATA_CAUSE_IDLE_IN_POOL, is_idle_there, STRATA_IDLE_POOL,
     "requested {asked}; {there} are idle in other pools' caches, where {there_held} of live blocks keep {there_chunks} chunks "
     "in use"},
    {STRATA_CAUSE_IDLE_IN_THREAD, is_idle_there, STRATA_IDLE_THREAD,
     "requested {asked}; {there} are idle in other threads' caches, where {there_held} of live blocks keep {there_chunks} "
     "chunks in use"},
    {STRATA_CAUSE_FORGOTTEN, is_idle_there, STRATA_IDLE_ORPHAN,
     "requested {asked}; {there} are idle in the caches of a forgotten stream that has unfinished work"},
    {STRATA_CAUSE_IDLE_IN_STREAM, is_idle_there, STRATA_IDLE_STREAM,
     "requested {asked}; {there} are idle in other streams' caches, where {there_held} of live blocks keep {there_chunks} "
     "chunks in use"},
    {STRATA_CAUSE_SIZES, is_idle_there, STRATA_IDLE_SIZES,
     "requested {asked}; {there} are idle where the cache serves other sizes, and {there_held} of live blocks keep "
     "{there_chunks} chunks in use"},
    {STRATA_CAUSE_FRAGMENTATION, is_idle_there, STRATA_IDLE_OWN,
     "requested {asked}; {there} are idle in pieces of at most {there_largest}: {there_held} of live blocks keep "
     "{there_chunks} chunks in use"},
    {STRATA_CAUSE_FRAGMENTATION, waits_in_pieces, NOTHING_THERE,
     "requested {asked}; {deferred} are freed but still in use by other streams, in pieces between live blocks. Once those "
     "streams finish, the largest run has {later_run}"},
    {STRATA_CAUSE_PLACE_LIMIT, is_at_place_limit, NOTHING_THERE,
     "requested {asked}, which needs {growth}; {bound} allows {limit}, of which {used} are used"},
    {STRATA_CAUSE_BOUND, is_at_bound, NOTHING_THERE,
     "requested {asked}, which needs {growth}; {bound} allows {limit}, of which {used} are used"},
    {STRATA_CAUSE_OTHERS, is_used_by_others, NOTHING_THERE,
     "requested {asked}; the device has {free} free. Others use {outside} of its {total}, driver contexts included"},
    {STRATA_CAUSE_LEAK, is_leak, NOTHING_THERE,
     "requested {asked}; of {allocated} in live blocks, {owner_bytes} are {owner_blocks} blocks by {owner}, requested in steps "
     "{first_step} to {last_step}"},
    {STRATA_CAUSE_TIMED_OUT, has_timed_out, NOTHING_THERE,
     "requested {asked}; live blocks hold {allocated}, and other threads did not free enough within {timeout_now} ({timeout})"},
    {STRATA_CAUSE_FULL, always, NOTHING_THERE, "requested {asked}, {room} left; live blocks hold {allocated}"},
};

strata_cause_t strata_cause_find(strata_facts_t *f) {
    const cause_row_t *row = causes;
    for (;; row++) {
        if (row->there != NOTHING_THERE) strata_facts_select_idle(f, (strata_idle_why_t)row->there);
        if (row->holds(f)) break;
    }
    f->cause_row = (uint32_t)(row - causes);
    bool by_pieces = row->there == STRATA_IDLE_OWN || row->there == STRATA_IDLE_SIZES || row->cause == STRATA_CAUSE_FULL;
    if (by_pieces || row->cause == STRATA_CAUSE_LEAK) strata_facts_find_victims(f);
    return row->cause;
}

void strata_cause_write(const strata_facts_t *f, strata_cause_t cause, strata_text_t *text) {
    strata_text_append(text, "%s: ", strata_cause_name(cause));
    strata_facts_write(f, text, causes[f->cause_row].sentence);
}

/* ---- advice: every row of the cause with a true condition ---- */

static bool device_has_growth(const strata_facts_t *f) { return is_host(f) || f->spills || f->free >= f->growth; }
static bool is_bounded(const strata_facts_t *f) { return is_at_bound(f) || is_at_place_limit(f); }
/* A fallback may serve the request from other memory. */
static bool is_never_allowed(const strata_facts_t *f) { return is_bounded(f) && !f->spills && f->asked > f->allowed; }
static bool only_device_bounds(const strata_facts_t *f) { return !is_never_allowed(f) || f->allowed == f->most; }
static bool bound_is_less(const strata_facts_t *f) { return !only_device_bounds(f); }
/* The bound has room for the request once enough is freed. */
static bool freeing_does(const strata_facts_t *f) { return device_has_growth(f) && f->growth <= f->limit; }
static bool freeing_does_not(const strata_facts_t *f) { return device_has_growth(f) && f->growth > f->limit; }
static bool device_lacks_growth(const strata_facts_t *f) { return !device_has_growth(f) && !is_never_allowed(f); }
static bool grows_smaller(const strata_facts_t *f) { return f->smaller_growth_is_off; }
static bool has_large_chunks(const strata_facts_t *f) { return f->chunk_size_bytes > f->asked; }
static bool has_victims(const strata_facts_t *f) { return f->victims > 0; }
static bool gave_up_early(const strata_facts_t *f) { return f->outcome->recovery.timed_out && f->has_retry; }
static bool gave_up_on_enough(const strata_facts_t *f) { return gave_up_early(f) && becomes_free(f); }
static bool never_waited(const strata_facts_t *f) { return !f->has_retry && !forbids(f, STRATA_NO_RETRY); }
static bool is_bounded_below_device(const strata_facts_t *f) { return is_bounded(f) && device_has_growth(f); }
static bool has_run(const strata_facts_t *f) { return f->there_largest >= f->asked; }
static bool is_whole_enough(const strata_facts_t *f) { return fits(f, f->there_whole); }

typedef struct advice_row {
    strata_cause_t cause;
    bool (*holds)(const strata_facts_t *facts);
    const char *sentence;
} advice_row_t;

#define FREEING_VICTIMS "free {victims_bytes} in {victims} blocks to make a run of {asked}: {victims_of}"

static const advice_row_t advice[] = {
    {STRATA_CAUSE_NO_GROWTH, always, "allow growth (no STRATA_NO_GROW), so the cache may ask the device"},
    {STRATA_CAUSE_TOO_LARGE, only_device_bounds, "request at most {most}: use a smaller batch, or split the work"},
    {STRATA_CAUSE_TOO_LARGE, bound_is_less,
     "request at most {allowed}, as {bound} allows: use a smaller batch, or split the "
     "work"},
    {STRATA_CAUSE_NO_RETRY, always, "allow retries (no STRATA_NO_RETRY), which release idle memory and wait for other streams"},
    {STRATA_CAUSE_CAPTURED, always, "destroy graphs that are no longer launched, or capture into an existing pool"},
    {STRATA_CAUSE_COUNTED, always,
     "call strata_set_safe_frontier() once the earlier work is done, or pass a larger "
     "freed_before"},
    {STRATA_CAUSE_WAITING, gave_up_early, "raise {timeout} (now {timeout_now}), or wait for those streams first"},
    {STRATA_CAUSE_WAITING, never_waited, "add `out_of_memory:` with a timeout beside the stack, to wait for them"},
    {STRATA_CAUSE_WAITING, always, "repeat the request once those streams have finished"},
    {STRATA_CAUSE_LIMBO, always,
     "end the imports of those blocks in the other processes (strata_import_end()), or end those processes"},
    {STRATA_CAUSE_PLACE_LIMIT, freeing_does, "raise the limit to {enough} or more (strata_set_limit()), or free as much"},
    {STRATA_CAUSE_PLACE_LIMIT, freeing_does_not, "raise the limit to {enough} or more (strata_set_limit())"},
    {STRATA_CAUSE_PLACE_LIMIT, is_never_allowed, "request at most {allowed}: this limit serves no more, however much is freed"},
    {STRATA_CAUSE_PLACE_LIMIT, device_lacks_growth,
     "free memory here: a higher limit alone does not help, because the device has {free} free"},
    {STRATA_CAUSE_BOUND, freeing_does, "raise {bound} to {enough} or more (now {limit}), or free as much"},
    {STRATA_CAUSE_BOUND, freeing_does_not, "raise {bound} to {enough} or more (now {limit})"},
    {STRATA_CAUSE_BOUND, is_never_allowed, "request at most {allowed}: {bound} serves no more, however much is freed"},
    {STRATA_CAUSE_BOUND, device_lacks_growth,
     "free memory here: a higher {bound} alone does not help, because the device has {free} free"},
    {STRATA_CAUSE_LAYER, always, "see the layer's reason; the device was not asked"},
    {STRATA_CAUSE_HOST, always,
     "end other users of host memory, or raise the system's limits (ulimit -v, -l, a container's limit)"},
    {STRATA_CAUSE_CHUNK, grows_smaller, "set {smaller_growth}: true, to grow by the request alone"},
    {STRATA_CAUSE_CHUNK, has_large_chunks, "lower {chunk_size} (now {chunk_size_now})"},
    {STRATA_CAUSE_CHUNK, always, "free whole chunks, until the device has room for {growth}"},
    {STRATA_CAUSE_DEVICE, always, "see the driver's error; strata_release() reduces the fragmentation of device memory"},
    {STRATA_CAUSE_KEPT, is_whole_enough,
     "call strata_release_pool() for those pools, or remove `keep: true` where others need the memory"},
    {STRATA_CAUSE_KEPT, always, "request from the pool that has it, or free its live blocks"},
    {STRATA_CAUSE_IDLE_IN_POOL, has_run, "request from the pool that has it, where a free block has {there_largest}"},
    {STRATA_CAUSE_IDLE_IN_POOL, always,
     "free the blocks that keep those chunks in use, so that the chunks go back to the "
     "device"},
    {STRATA_CAUSE_IDLE_IN_THREAD, has_run, "request in the thread that has it, where a free block has {there_largest}"},
    {STRATA_CAUSE_IDLE_IN_THREAD, always,
     "free the blocks that keep those chunks in use, so that the chunks go back to the device"},
    {STRATA_CAUSE_FORGOTTEN, gave_up_on_enough,
     "raise {timeout} (now {timeout_now}), or wait for the stream's work before forgetting it"},
    {STRATA_CAUSE_FORGOTTEN, becomes_free, "repeat the request once the stream's work is done"},
    {STRATA_CAUSE_FORGOTTEN, stays_in_pieces,
     "free the blocks that keep those chunks in use: once the work is done, the largest run has {later_run}"},
    {STRATA_CAUSE_IDLE_IN_STREAM, has_run, "request on the stream that has it, where a free block has {there_largest}"},
    {STRATA_CAUSE_IDLE_IN_STREAM, always,
     "free the blocks that keep those chunks in use, so that the chunks go back to the device"},
    {STRATA_CAUSE_SIZES, always, "free the blocks that keep those chunks in use"},
    {STRATA_CAUSE_UNSPLIT, always,
     "omit STRATA_NO_GROW and STRATA_NO_RETRY, or call strata_release(), to give such blocks back; or raise {max_split_size} "
     "to split them"},
    {STRATA_CAUSE_FRAGMENTATION, has_victims, FREEING_VICTIMS},
    {STRATA_CAUSE_FRAGMENTATION, has_large_chunks, "lower {chunk_size} (now {chunk_size_now}), so that whole chunks become idle"},
    {STRATA_CAUSE_FRAGMENTATION, is_bounded_below_device, "raise {bound} to {enough} or more (now {limit})"},
    {STRATA_CAUSE_FRAGMENTATION, always,
     "free the blocks that keep those chunks in use, or request large blocks before small ones"},
    {STRATA_CAUSE_OTHERS, always, "end other users of the device (nvidia-smi lists them), or request less"},
    {STRATA_CAUSE_LEAK, always, "find out why {owner} keeps its blocks from step to step"},
    {STRATA_CAUSE_LEAK, has_victims, FREEING_VICTIMS},
    {STRATA_CAUSE_TIMED_OUT, always, "raise {timeout} (now {timeout_now}) if other threads will free memory, or request less"},
    {STRATA_CAUSE_FULL, has_victims, FREEING_VICTIMS},
    {STRATA_CAUSE_FULL, always, "request less, or free some memory"},
};

enum { SHOWN_ADVICE = 3 };

void strata_advice_write(const strata_facts_t *f, strata_cause_t cause, strata_text_t *text, const char *first, const char *more) {
    uint32_t said = 0;
    for (size_t i = 0; i < sizeof advice / sizeof *advice && said < SHOWN_ADVICE; i++) {
        if (advice[i].cause != cause || !advice[i].holds(f)) continue;
        strata_text_append(text, "%s", said++ ? more : first);
        strata_facts_write(f, text, advice[i].sentence);
    }
}

const char *strata_cause_name(strata_cause_t cause) {
    switch (cause) {
#define CAUSE_NAME(name, number, text, meaning)                                                                                    \
    case STRATA_CAUSE_##name: return text;
        STRATA_CAUSE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
    }
    return "unknown";
}
