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
static bool would_do(const strata_facts_t *f, uint64_t bytes) { return bytes > 0 && bytes >= f->asked / 8 && fits(f, bytes); }

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
    return forbids(f, STRATA_NO_RETRY) && would_do(f, f->whole + (will_serve(f) ? f->deferred : 0));
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
static bool comes_free(const strata_facts_t *f) { return f->later_run >= f->asked || fits(f, f->there_whole); }
static bool stays_in_pieces(const strata_facts_t *f) { return !comes_free(f); }

static bool is_held(const strata_facts_t *f) { return would_do(f, f->there); }
static bool is_counted(const strata_facts_t *f) { return is_held(f) && comes_free(f); }
static bool is_counted_in_pieces(const strata_facts_t *f) { return is_held(f) && !comes_free(f); }
static bool waits(const strata_facts_t *f) { return would_do(f, f->deferred) && will_serve(f); }
static bool is_in_limbo(const strata_facts_t *f) { return would_do(f, f->limbo); }
static bool waits_in_pieces(const strata_facts_t *f) { return would_do(f, f->deferred) && !will_serve(f); }

/* Returns true if all idle memory together would suffice, and the largest part of it is there. */
static bool is_idle_there(const strata_facts_t *f) {
    if (!would_do(f, f->idle) || f->there == 0) return false;
    for (uint32_t why = STRATA_IDLE_POOL; why < STRATA_IDLE_WHYS; why++)
        if (f->survey.idle_by[why].bytes > f->there) return false;
    return true;
}
static bool is_taken(const strata_facts_t *f) { return !f->spills && would_do(f, f->others) && f->others >= f->total / 10; }
static bool is_leak(const strata_facts_t *f) {
    const strata_note_t *note = &f->survey.owners[0].note;
    bool named = note->tag != 0 || note->operator_name != 0;
    return named && f->owner_bytes >= f->allocated / 2 && f->owner_blocks >= 3 && f->last_step >= f->first_step + 2;
}
static bool has_timed_out(const strata_facts_t *f) {
    return f->outcome->climbed.slept && f->outcome->climbed.timed_out && f->deferred == 0;
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
     "{asked} asked by a request that forbids more; {there} lie idle in blocks of up to {there_largest} that {max_split_size} "
     "keeps whole"},
    {STRATA_CAUSE_NO_GROWTH, may_not_grow, STRATA_IDLE_OWN,
     "{asked} asked by a request that forbids growth; the largest free block that may serve it has {there_largest}"},
    {STRATA_CAUSE_TOO_LARGE, is_too_large, NOTHING_THERE,
     "{asked} asked of a device of {total}, of which a program gets {most} at most"},
    {STRATA_CAUSE_NO_RETRY, may_not_retry, NOTHING_THERE,
     "{asked} asked by a request that forbids to make room; {whole} lie idle in whole chunks, {deferred} are freed and in use on "
     "other "
     "streams"},
    {STRATA_CAUSE_CAPTURED, is_held, STRATA_IDLE_CAPTURED, "{asked} asked; {there} lie idle, and are kept for captured graphs"},
    {STRATA_CAUSE_COUNTED, is_counted, STRATA_IDLE_COUNTED,
     "{asked} asked; {there} were freed under counts that no frontier has passed"},
    {STRATA_CAUSE_FRAGMENTATION, is_counted_in_pieces, STRATA_IDLE_COUNTED,
     "{asked} asked; {there} were freed under counts, in pieces between live blocks: once a frontier has passed them the largest "
     "run has "
     "{later_run}"},
    {STRATA_CAUSE_WAITING, waits, NOTHING_THERE, "{asked} asked; {deferred} are freed and still in use on other streams"},
    {STRATA_CAUSE_LIMBO, is_in_limbo, NOTHING_THERE,
     "{asked} asked; {limbo} in {limbo_blocks} blocks are freed and still in use by other processes"},
    {STRATA_CAUSE_LAYER, is_refused_by_layer, NOTHING_THERE, "{asked} asked; a layer refused: {reason}"},
    {STRATA_CAUSE_HOST, is_refused_by_host, NOTHING_THERE,
     "{asked} asked, for which {growth} are needed; the host has no more to give"},
    {STRATA_CAUSE_CHUNK, is_chunk, NOTHING_THERE,
     "{asked} asked and {free} free on the device, but the cache asks for a chunk of {growth}"},
    {STRATA_CAUSE_DEVICE, has_room, NOTHING_THERE,
     "{growth} asked of the device, which refused although it says that {free} are free: {reason}"},
    {STRATA_CAUSE_KEPT, is_held, STRATA_IDLE_KEPT, "{asked} asked; {there} lie idle in pools that keep their chunks"},
    {STRATA_CAUSE_IDLE_IN_POOL, is_idle_there, STRATA_IDLE_POOL,
     "{asked} asked; {there} lie idle in caches of other pools, where {there_held} of live blocks keep {there_chunks} chunks"},
    {STRATA_CAUSE_IDLE_IN_THREAD, is_idle_there, STRATA_IDLE_THREAD,
     "{asked} asked; {there} lie idle in other threads' caches, where {there_held} of live blocks keep {there_chunks} chunks"},
    {STRATA_CAUSE_FORGOTTEN, is_idle_there, STRATA_IDLE_ORPHAN,
     "{asked} asked; {there} lie idle in what a forgotten stream left, whose work is not over"},
    {STRATA_CAUSE_IDLE_IN_STREAM, is_idle_there, STRATA_IDLE_STREAM,
     "{asked} asked; {there} lie idle in other streams' caches, where {there_held} of live blocks keep {there_chunks} chunks"},
    {STRATA_CAUSE_SIZES, is_idle_there, STRATA_IDLE_SIZES,
     "{asked} asked; {there} lie idle where the cache serves other sizes, and {there_held} of live blocks keep {there_chunks} "
     "chunks"},
    {STRATA_CAUSE_FRAGMENTATION, is_idle_there, STRATA_IDLE_OWN,
     "{asked} asked; {there} lie idle in pieces of which the largest has {there_largest}: {there_held} of live blocks keep "
     "{there_chunks} chunks"},
    {STRATA_CAUSE_FRAGMENTATION, waits_in_pieces, NOTHING_THERE,
     "{asked} asked; {deferred} are freed and still in use on other streams, in pieces between live blocks: once that is over the "
     "largest "
     "run has {later_run}"},
    {STRATA_CAUSE_PLACE_LIMIT, is_at_place_limit, NOTHING_THERE,
     "{asked} asked, for which {growth} are needed; {bound} allows {limit}, of which {used} are used"},
    {STRATA_CAUSE_BOUND, is_at_bound, NOTHING_THERE,
     "{asked} asked, for which {growth} are needed; {bound} allows {limit}, of which {used} are used"},
    {STRATA_CAUSE_OTHERS, is_taken, NOTHING_THERE,
     "{asked} asked, {free} free on the device; {outside} of its {total} are taken by others, a driver's context among them"},
    {STRATA_CAUSE_LEAK, is_leak, NOTHING_THERE,
     "{asked} asked; of the {allocated} that live blocks hold {owner_bytes} are {owner_blocks} blocks by {owner}, asked for in "
     "steps "
     "{first_step} to {last_step}"},
    {STRATA_CAUSE_TIMED_OUT, has_timed_out, NOTHING_THERE,
     "{asked} asked; live blocks hold {allocated}, and no other thread freed enough in the {timeout_now} of {timeout}"},
    {STRATA_CAUSE_FULL, always, NOTHING_THERE, "{asked} asked, {room} left; live blocks hold {allocated}"},
};

strata_cause_t strata_cause_find(strata_facts_t *f) {
    const cause_row_t *row = causes;
    for (;; row++) {
        if (row->there != NOTHING_THERE) strata_facts_aim(f, (strata_idle_why_t)row->there);
        if (row->holds(f)) break;
    }
    f->cause_row = (uint32_t)(row - causes);
    bool by_pieces = row->there == STRATA_IDLE_OWN || row->there == STRATA_IDLE_SIZES || row->cause == STRATA_CAUSE_FULL;
    if (by_pieces || row->cause == STRATA_CAUSE_LEAK) strata_facts_find_victims(f);
    return row->cause;
}

void strata_cause_say(const strata_facts_t *f, strata_cause_t cause, strata_text_t *text) {
    strata_text_say(text, "%s: ", strata_cause_name(cause));
    strata_facts_say(f, text, causes[f->cause_row].sentence);
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
static bool gave_up_early(const strata_facts_t *f) { return f->outcome->climbed.timed_out && f->has_retry; }
static bool gave_up_on_enough(const strata_facts_t *f) { return gave_up_early(f) && comes_free(f); }
static bool never_waited(const strata_facts_t *f) { return !f->has_retry && !forbids(f, STRATA_NO_RETRY); }
static bool is_bounded_below_device(const strata_facts_t *f) { return is_bounded(f) && device_has_growth(f); }
static bool has_run(const strata_facts_t *f) { return f->there_largest >= f->asked; }
static bool is_whole_enough(const strata_facts_t *f) { return fits(f, f->there_whole); }

typedef struct advice_row {
    strata_cause_t cause;
    bool (*holds)(const strata_facts_t *facts);
    const char *sentence;
} advice_row_t;

#define FREEING_VICTIMS "freeing {victims_bytes} in {victims} blocks makes a run of {asked}: {victims_of}"

static const advice_row_t advice[] = {
    {STRATA_CAUSE_NO_GROWTH, always, "the request without STRATA_NO_GROW may ask the device"},
    {STRATA_CAUSE_TOO_LARGE, only_device_bounds, "ask for {most} at most: a smaller batch, or the work in parts"},
    {STRATA_CAUSE_TOO_LARGE, bound_is_less,
     "ask for {allowed} at most, which {bound} allows: a smaller batch, or the work in parts"},
    {STRATA_CAUSE_NO_RETRY, always, "the request without STRATA_NO_RETRY gives back what lies idle and waits for other streams"},
    {STRATA_CAUSE_CAPTURED, always, "destroy graphs that are not launched any more, or capture into a pool that is there already"},
    {STRATA_CAUSE_COUNTED, always, "strata_set_safe_frontier() once the work before is over, or a larger freed_before"},
    {STRATA_CAUSE_WAITING, gave_up_early, "a longer {timeout} (now {timeout_now}), or wait for those streams before asking"},
    {STRATA_CAUSE_WAITING, never_waited, "`out_of_memory:` with a timeout, beside the stack, waits for them"},
    {STRATA_CAUSE_WAITING, always, "once those streams have done their work the same request can be served"},
    {STRATA_CAUSE_LIMBO, always,
     "end the imports of those blocks where they are used (strata_import_end()), or end those processes"},
    {STRATA_CAUSE_PLACE_LIMIT, freeing_does, "a limit of {enough} or more by strata_set_limit(), or free as much"},
    {STRATA_CAUSE_PLACE_LIMIT, freeing_does_not, "a limit of {enough} or more by strata_set_limit()"},
    {STRATA_CAUSE_PLACE_LIMIT, is_never_allowed, "ask for {allowed} at most: however much is freed, this limit serves no more"},
    {STRATA_CAUSE_PLACE_LIMIT, device_lacks_growth,
     "free something here: a higher limit alone does not, as the device has {free} free"},
    {STRATA_CAUSE_BOUND, freeing_does, "a larger {bound}: {enough} or more, now {limit}; or free as much"},
    {STRATA_CAUSE_BOUND, freeing_does_not, "a larger {bound}: {enough} or more, now {limit}"},
    {STRATA_CAUSE_BOUND, is_never_allowed, "ask for {allowed} at most: however much is freed, {bound} serves no more"},
    {STRATA_CAUSE_BOUND, device_lacks_growth,
     "free something here: a higher {bound} alone does not, as the device has {free} free"},
    {STRATA_CAUSE_LAYER, always, "what its reason says; the device was not asked"},
    {STRATA_CAUSE_HOST, always,
     "end what else uses the host's memory, or raise what the system allows (ulimit -v, -l, a container's limit)"},
    {STRATA_CAUSE_CHUNK, grows_smaller, "{smaller_growth}: true, and the request alone is asked for"},
    {STRATA_CAUSE_CHUNK, has_large_chunks, "a smaller {chunk_size} (now {chunk_size_now})"},
    {STRATA_CAUSE_CHUNK, always, "free whole chunks, until the device has room for one of {growth}"},
    {STRATA_CAUSE_DEVICE, always, "what the driver's error says; strata_release() makes the device's free memory less scattered"},
    {STRATA_CAUSE_KEPT, is_whole_enough, "strata_release_pool() of those pools, or no `keep: true` where others need the memory"},
    {STRATA_CAUSE_KEPT, always, "ask in the pool that has it, or free there what is in use"},
    {STRATA_CAUSE_IDLE_IN_POOL, has_run, "ask in the pool that has it, where a free block has {there_largest}"},
    {STRATA_CAUSE_IDLE_IN_POOL, always, "free there what keeps the chunks: then they go back to the device"},
    {STRATA_CAUSE_IDLE_IN_THREAD, has_run, "ask in the thread that has it, where a free block has {there_largest}"},
    {STRATA_CAUSE_IDLE_IN_THREAD, always, "free there what keeps the chunks: then they go back to the device"},
    {STRATA_CAUSE_FORGOTTEN, gave_up_on_enough,
     "a longer {timeout} (now {timeout_now}), or wait for the stream's work before it is forgotten"},
    {STRATA_CAUSE_FORGOTTEN, comes_free, "once the stream's work is over the same request can be served"},
    {STRATA_CAUSE_FORGOTTEN, stays_in_pieces,
     "free what keeps those chunks: once the work is over the largest run has {later_run}"},
    {STRATA_CAUSE_IDLE_IN_STREAM, has_run, "ask on the stream that has it, where a free block has {there_largest}"},
    {STRATA_CAUSE_IDLE_IN_STREAM, always, "free there what keeps the chunks: then they go back to the device"},
    {STRATA_CAUSE_SIZES, always, "free what keeps those chunks"},
    {STRATA_CAUSE_UNSPLIT, always,
     "the request without STRATA_NO_GROW and STRATA_NO_RETRY, or strata_release(), gives such blocks back; a larger "
     "{max_split_size} cuts them"},
    {STRATA_CAUSE_FRAGMENTATION, has_victims, FREEING_VICTIMS},
    {STRATA_CAUSE_FRAGMENTATION, has_large_chunks,
     "a smaller {chunk_size} (now {chunk_size_now}), so that chunks become idle as a whole"},
    {STRATA_CAUSE_FRAGMENTATION, is_bounded_below_device, "a larger {bound}: {enough} or more, now {limit}"},
    {STRATA_CAUSE_FRAGMENTATION, always, "free what keeps those chunks, or ask for large blocks before small ones"},
    {STRATA_CAUSE_OTHERS, always, "end what else uses the device (nvidia-smi names it), or ask for less"},
    {STRATA_CAUSE_LEAK, always, "look at why {owner} keeps its blocks from step to step"},
    {STRATA_CAUSE_LEAK, has_victims, FREEING_VICTIMS},
    {STRATA_CAUSE_TIMED_OUT, always, "a longer {timeout} (now {timeout_now}) if other threads will free, or ask for less"},
    {STRATA_CAUSE_FULL, has_victims, FREEING_VICTIMS},
    {STRATA_CAUSE_FULL, always, "ask for less, or free something"},
};

enum { SHOWN_ADVICE = 3 };

void strata_advice_say(const strata_facts_t *f, strata_cause_t cause, strata_text_t *text, const char *first, const char *more) {
    uint32_t said = 0;
    for (size_t i = 0; i < sizeof advice / sizeof *advice && said < SHOWN_ADVICE; i++) {
        if (advice[i].cause != cause || !advice[i].holds(f)) continue;
        strata_text_say(text, "%s", said++ ? more : first);
        strata_facts_say(f, text, advice[i].sentence);
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
