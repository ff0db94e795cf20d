#include "programs/play.h"

#include "allocation/stack/magazines.h"

typedef struct run {
    const torture_program_t *program;
    strata_torture_mode_t mode;
    torture_world_t world;
    pthread_mutex_t lock;
    pthread_cond_t progressed;
    bool cancelled; /* a thread could not be created, so the others make no calls */
    uint32_t turn; /* TURNS: the next operation */
    uint32_t done[TORTURE_THREADS]; /* AT_ONCE: number of complete operations of each thread */
} run_t;

typedef struct worker {
    run_t *run;
    uint8_t thread;
} worker_t;

/* ---- an operation ---- */

#define EACH_STREAM(stream, streams)                                                                                               \
    for (uint32_t stream = 0; stream < TORTURE_STREAMS; stream++)                                                                  \
        if ((streams) >> stream & 1u)

static void prepare(torture_world_t *w, const torture_op_t *op, const torture_needs_t *needs) {
    EACH_STREAM(s, needs->waits) if (op->kind != STRATA_TORTURE_ORDER) torture_order(w, op->stream, s);
    EACH_STREAM(s, needs->owner_waits) torture_order(w, needs->owner, s);
    EACH_STREAM(s, needs->syncs) torture_synchronise(w, s);
    EACH_STREAM(s, needs->borrows) torture_borrow(w, op->blocks[0], s);
}

static void perform_on_graphs(torture_world_t *w, const torture_op_t *op, const torture_needs_t *needs, const uint32_t *touched) {
    if (needs->ended_pool) torture_report_pool_freed(w, needs->ended_pool - 1u, touched, needs->touch_count);
    switch ((torture_kind_t)op->kind) {
    case STRATA_TORTURE_POOL_BEGIN: torture_pool_begin(w, op->pool, op->place, op->stream); return;
    case STRATA_TORTURE_CAPTURE: torture_capture(w, op->graph, op->stream, needs->pool); return;
    case STRATA_TORTURE_END_CAPTURE: torture_end_capture(w, op->graph, op->stream); return;
    case STRATA_TORTURE_POOL_END: torture_pool_end(w, op->pool); return;
    case STRATA_TORTURE_POOL_REMOVE: torture_pool_remove(w, op->pool); return;
    case STRATA_TORTURE_LAUNCH: torture_launch(w, op->graph, op->stream, needs->pool, touched, needs->touch_count); return;
    case STRATA_TORTURE_DESTROY: torture_destroy(w, op->graph); return;
    default: return;
    }
}

static void perform(torture_world_t *w, const torture_program_t *program, uint32_t number) {
    const torture_op_t *op = &program->ops[number];
    const torture_needs_t *needs = &program->all_needs[number];
    uint32_t block = op->blocks[0];
    prepare(w, op, needs);
    switch ((torture_kind_t)op->kind) {
    case STRATA_TORTURE_ALLOCATE:
        torture_allocate(
            w, block, op->place, op->stream,
            &(torture_request_t){
                .size = op->size, .alignment = op->alignment, .flags = op->flags, .tag = op->tag, .pool = needs->pool});
        return;
    case STRATA_TORTURE_WORK: torture_work(w, op->stream, op->us, op->blocks, op->count, op->writes); return;
    case STRATA_TORTURE_FILL: torture_fill(w, op->stream, block); return;
    case STRATA_TORTURE_HOST_ACCESS: torture_host(w, block, op->writes & 1u); return;
    case STRATA_TORTURE_CHECK: torture_check(w, block); return;
    case STRATA_TORTURE_BORROW: torture_borrow(w, block, op->stream); return;
    case STRATA_TORTURE_ERASE: torture_erase(w, block, op->stream); return;
    case STRATA_TORTURE_RETAIN: torture_retain(w, block); return;
    case STRATA_TORTURE_FREE:
        if (op->refused) torture_refuse_events(w, true);
        torture_set_owners(w, block, needs->owned);
        torture_free(w, block, op->how == STRATA_TORTURE_COVER_FREE_ON ? op->stream : STRATA_TORTURE_NO_STREAM, needs->last,
                     op->by_pointer);
        if (op->refused) torture_refuse_events(w, false);
        return;
    case STRATA_TORTURE_RENEW: torture_renew(w, op->stream); return;
    case STRATA_TORTURE_RELEASE: torture_release(w, op->place); return;
    case STRATA_TORTURE_TRIM: torture_trim(w, op->place, op->size); return;
    case STRATA_TORTURE_LOOK:
        if (op->count) torture_query_block(w, block);
        else torture_query_place(w, op->place);
        return;
    case STRATA_TORTURE_PASS: torture_advance(w, op->us); return;
    case STRATA_TORTURE_ORDER: torture_stream_wait(w, op->stream, op->other); return;
    default: perform_on_graphs(w, op, needs, program->touched + needs->touch_begin); return;
    }
}

/* ---- reports the program's order between threads to the checker ---- */

enum { KEY_START = 1, KEY_END, KEY_USED = 100, KEY_CHANGED = 200, KEY_BLOCK = 300 };

static void observe(run_t *run, uint32_t number) {
    const torture_needs_t *needs = &run->program->all_needs[number];
    strata_checker_t *checker = run->world.checker;
    for (uint32_t i = 0; i < needs->touch_count; i++)
        strata_checker_observe(checker, KEY_BLOCK + run->program->touched[needs->touch_begin + i]);
    EACH_STREAM(s, needs->uses) strata_checker_observe(checker, KEY_CHANGED + s);
    EACH_STREAM(s, needs->stream_changes) strata_checker_observe(checker, KEY_USED + s);
}

static void publish(run_t *run, uint32_t number) {
    const torture_needs_t *needs = &run->program->all_needs[number];
    strata_checker_t *checker = run->world.checker;
    for (uint32_t i = 0; i < needs->touch_count; i++)
        strata_checker_publish(checker, KEY_BLOCK + run->program->touched[needs->touch_begin + i]);
    EACH_STREAM(s, needs->uses) strata_checker_publish(checker, KEY_USED + s);
    EACH_STREAM(s, needs->stream_changes) strata_checker_publish(checker, KEY_CHANGED + s);
}

/* ---- threads ---- */

static bool is_due(const run_t *run, uint32_t number) {
    const torture_op_t *op = &run->program->ops[number];
    if (run->mode == STRATA_TORTURE_TURNS) return run->turn == number;
    for (uint32_t t = 0; t < TORTURE_THREADS; t++)
        if (t != op->thread && run->done[t] < run->program->all_needs[number].required[t]) return false;
    return true;
}

/* Waits until the operation is due. Returns false if the run is cancelled. */
static bool wait_until_due(run_t *run, uint32_t number) {
    pthread_mutex_lock(&run->lock);
    while (!run->cancelled && !is_due(run, number)) pthread_cond_wait(&run->progressed, &run->lock);
    bool comes = !run->cancelled;
    pthread_mutex_unlock(&run->lock);
    return comes;
}

static void mark_done(run_t *run, uint32_t number) {
    pthread_mutex_lock(&run->lock);
    run->turn = number + 1;
    run->done[run->program->ops[number].thread]++;
    pthread_cond_broadcast(&run->progressed);
    pthread_mutex_unlock(&run->lock);
}

static void *run_thread(void *context) {
    const worker_t *worker = context;
    run_t *run = worker->run;
    strata_checker_t *checker = run->world.checker;
    strata_checker_observe(checker, KEY_START);
    for (uint32_t i = 0; i < run->program->count; i++) {
        const torture_op_t *op = &run->program->ops[i];
        if (op->thread != worker->thread) continue;
        if (!wait_until_due(run, i)) break;
        observe(run, i);
        perform(&run->world, run->program, i);
        publish(run, i);
        mark_done(run, i);
    }
    strata_checker_publish(checker, KEY_END);
    return NULL;
}

/* Runs all threads. If one cannot be created, none makes a call, because the others would wait for its operations forever. */
static void run_threads(run_t *run) {
    pthread_t threads[TORTURE_THREADS];
    worker_t actors[TORTURE_THREADS];
    strata_checker_publish(run->world.checker, KEY_START);
    pthread_mutex_lock(&run->lock);
    uint32_t count = 0;
    for (; count < run->program->threads; count++) {
        actors[count] = (worker_t){run, (uint8_t)count};
        if (pthread_create(&threads[count], NULL, run_thread, &actors[count]) != 0) break;
    }
    run->cancelled = count < run->program->threads;
    if (run->cancelled) torture_fail(&run->world, TORTURE_FAULT_HOST, 0, "the host cannot create a thread");
    pthread_mutex_unlock(&run->lock);
    for (uint32_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    strata_checker_observe(run->world.checker, KEY_END);
}

static void open_world(run_t *run, const strata_strategy_t *strategy, bool may_refuse, bool host_in_order) {
    const torture_program_t *program = run->program;
    torture_setting_t setting = {.devices = program->devices,
                                 .capacity = program->capacity,
                                 .may_refuse = may_refuse,
                                 .blocks = program->blocks,
                                 .check_stream_ids = program->check_stream_ids,
                                 .host_in_order = host_in_order};
    torture_world_open(&run->world, strategy, &setting);
}

void torture_play_watched(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                          torture_after_fn after, void *context, torture_verdict_t *verdict) {
    run_t run = {.program = program, .mode = STRATA_TORTURE_INTERLEAVED};
    open_world(&run, strategy, may_refuse, after != NULL);
    for (uint32_t i = 0; i < program->count; i++) {
        perform(&run.world, program, i);
        if (after) after(context, &run.world, i);
    }
    if (after) after(context, &run.world, program->count);
    torture_world_end(&run.world);
    *verdict = run.world.verdict;
}

static void play_threads(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                         strata_torture_mode_t mode, torture_verdict_t *verdict) {
    run_t run = {.program = program, .mode = mode};
    uint32_t contentions = atomic_load(&strata_magazines_threshold);
    /* With two or four threads, magazines cache freed blocks from the start, without contention first. */
    if (program->threads % 2 == 0) atomic_store(&strata_magazines_threshold, 0);
    open_world(&run, strategy, may_refuse, false);
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.progressed, NULL);
    if (run.world.checker) run_threads(&run);
    torture_world_end(&run.world);
    atomic_store(&strata_magazines_threshold, contentions);
    pthread_cond_destroy(&run.progressed);
    pthread_mutex_destroy(&run.lock);
    *verdict = run.world.verdict;
}

void torture_play(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse, strata_torture_mode_t mode,
                  torture_verdict_t *verdict) {
    if (mode == STRATA_TORTURE_INTERLEAVED) torture_play_watched(program, strategy, may_refuse, NULL, NULL, verdict);
    else play_threads(program, strategy, may_refuse, mode, verdict);
}

const char *torture_mode_text(strata_torture_mode_t mode) {
    static const char *const texts[] = {
#define TORTURE_MODE_TEXT(name, text) text,
        STRATA_TORTURE_MODE_MAP(TORTURE_MODE_TEXT)
#undef TORTURE_MODE_TEXT
    };
    return texts[mode];
}
