#include "programs/play.h"

#include "allocation/stack/magazines.h"

typedef struct stage {
    const torture_program_t *program;
    strata_torture_mode_t mode;
    torture_world_t world;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool cancelled; /* a thread could not be created, so the others make no calls */
    uint32_t turn; /* TURNS: the next operation */
    uint32_t done[TORTURE_THREADS]; /* AT_ONCE: number of complete operations of each thread */
} stage_t;

typedef struct actor {
    stage_t *stage;
    uint8_t thread;
} actor_t;

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

static void act_on_graphs(torture_world_t *w, const torture_op_t *op, const torture_needs_t *needs, const uint32_t *touched) {
    if (needs->ends) torture_release_graph(w, needs->ends - 1u, touched, needs->touched);
    switch ((torture_kind_t)op->kind) {
    case STRATA_TORTURE_POOL_BEGIN: torture_pool_begin(w, op->pool, op->place, op->stream); return;
    case STRATA_TORTURE_CAPTURE: torture_capture(w, op->graph, op->stream, needs->pool); return;
    case STRATA_TORTURE_END_CAPTURE: torture_end_capture(w, op->graph, op->stream); return;
    case STRATA_TORTURE_POOL_END: torture_pool_end(w, op->pool); return;
    case STRATA_TORTURE_POOL_REMOVE: torture_pool_remove(w, op->pool); return;
    case STRATA_TORTURE_LAUNCH: torture_launch(w, op->graph, op->stream, needs->pool, touched, needs->touched); return;
    case STRATA_TORTURE_DESTROY: torture_destroy(w, op->graph); return;
    default: return;
    }
}

static void act(torture_world_t *w, const torture_program_t *program, uint32_t number) {
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
        torture_keep(w, block, needs->owned);
        torture_free(w, block, op->how == STRATA_TORTURE_COVER_FREE_ON ? op->stream : STRATA_TORTURE_NO_STREAM, needs->last,
                     op->by_pointer);
        if (op->refused) torture_refuse_events(w, false);
        return;
    case STRATA_TORTURE_RENEW: torture_renew(w, op->stream); return;
    case STRATA_TORTURE_RELEASE: torture_release(w, op->place); return;
    case STRATA_TORTURE_TRIM: torture_trim(w, op->place, op->size); return;
    case STRATA_TORTURE_LOOK:
        if (op->count) torture_look_at(w, block);
        else torture_look(w, op->place);
        return;
    case STRATA_TORTURE_PASS: torture_pass(w, op->us); return;
    case STRATA_TORTURE_ORDER: torture_join(w, op->stream, op->other); return;
    default: act_on_graphs(w, op, needs, program->touched + needs->touches); return;
    }
}

/* ---- reports the program's order between threads to the checker ---- */

enum { KEY_START = 1, KEY_END, KEY_USED = 100, KEY_TURNED = 200, KEY_BLOCK = 300 };

static void observe(stage_t *stage, uint32_t number) {
    const torture_needs_t *needs = &stage->program->all_needs[number];
    strata_checker_t *checker = stage->world.checker;
    for (uint32_t i = 0; i < needs->touched; i++)
        strata_checker_observe(checker, KEY_BLOCK + stage->program->touched[needs->touches + i]);
    EACH_STREAM(s, needs->uses) strata_checker_observe(checker, KEY_TURNED + s);
    EACH_STREAM(s, needs->turns) strata_checker_observe(checker, KEY_USED + s);
}

static void publish(stage_t *stage, uint32_t number) {
    const torture_needs_t *needs = &stage->program->all_needs[number];
    strata_checker_t *checker = stage->world.checker;
    for (uint32_t i = 0; i < needs->touched; i++)
        strata_checker_publish(checker, KEY_BLOCK + stage->program->touched[needs->touches + i]);
    EACH_STREAM(s, needs->uses) strata_checker_publish(checker, KEY_USED + s);
    EACH_STREAM(s, needs->turns) strata_checker_publish(checker, KEY_TURNED + s);
}

/* ---- threads ---- */

static bool is_due(const stage_t *stage, uint32_t number) {
    const torture_op_t *op = &stage->program->ops[number];
    if (stage->mode == STRATA_TORTURE_TURNS) return stage->turn == number;
    for (uint32_t t = 0; t < TORTURE_THREADS; t++)
        if (t != op->thread && stage->done[t] < stage->program->all_needs[number].need[t]) return false;
    return true;
}

/* Waits until the operation is due. Returns false if the run is cancelled. */
static bool wait_for_it(stage_t *stage, uint32_t number) {
    pthread_mutex_lock(&stage->lock);
    while (!stage->cancelled && !is_due(stage, number)) pthread_cond_wait(&stage->moved, &stage->lock);
    bool comes = !stage->cancelled;
    pthread_mutex_unlock(&stage->lock);
    return comes;
}

static void is_over(stage_t *stage, uint32_t number) {
    pthread_mutex_lock(&stage->lock);
    stage->turn = number + 1;
    stage->done[stage->program->ops[number].thread]++;
    pthread_cond_broadcast(&stage->moved);
    pthread_mutex_unlock(&stage->lock);
}

static void *run_thread(void *context) {
    const actor_t *actor = context;
    stage_t *stage = actor->stage;
    strata_checker_t *checker = stage->world.checker;
    strata_checker_observe(checker, KEY_START);
    for (uint32_t i = 0; i < stage->program->count; i++) {
        const torture_op_t *op = &stage->program->ops[i];
        if (op->thread != actor->thread) continue;
        if (!wait_for_it(stage, i)) break;
        observe(stage, i);
        act(&stage->world, stage->program, i);
        publish(stage, i);
        is_over(stage, i);
    }
    strata_checker_publish(checker, KEY_END);
    return NULL;
}

/* Runs all threads. If one cannot be created, none makes a call, because the others would wait for its operations forever. */
static void run_threads(stage_t *stage) {
    pthread_t threads[TORTURE_THREADS];
    actor_t actors[TORTURE_THREADS];
    strata_checker_publish(stage->world.checker, KEY_START);
    pthread_mutex_lock(&stage->lock);
    uint32_t count = 0;
    for (; count < stage->program->threads; count++) {
        actors[count] = (actor_t){stage, (uint8_t)count};
        if (pthread_create(&threads[count], NULL, run_thread, &actors[count]) != 0) break;
    }
    stage->cancelled = count < stage->program->threads;
    if (stage->cancelled) torture_fail(&stage->world, TORTURE_FAULT_HOST, 0, "the host cannot create a thread");
    pthread_mutex_unlock(&stage->lock);
    for (uint32_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    strata_checker_observe(stage->world.checker, KEY_END);
}

static void open_world(stage_t *stage, const strata_strategy_t *strategy, bool may_refuse, bool host_in_order) {
    const torture_program_t *program = stage->program;
    torture_setting_t setting = {.devices = program->devices,
                                 .capacity = program->capacity,
                                 .may_refuse = may_refuse,
                                 .blocks = program->blocks,
                                 .check_stream_ids = program->check_stream_ids,
                                 .host_in_order = host_in_order};
    torture_world_open(&stage->world, strategy, &setting);
}

void torture_play_watched(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                          torture_after_fn after, void *context, torture_verdict_t *verdict) {
    stage_t stage = {.program = program, .mode = STRATA_TORTURE_INTERLEAVED};
    open_world(&stage, strategy, may_refuse, after != NULL);
    for (uint32_t i = 0; i < program->count; i++) {
        act(&stage.world, program, i);
        if (after) after(context, &stage.world, i);
    }
    if (after) after(context, &stage.world, program->count);
    torture_world_end(&stage.world);
    *verdict = stage.world.verdict;
}

static void play_threads(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                         strata_torture_mode_t mode, torture_verdict_t *verdict) {
    stage_t stage = {.program = program, .mode = mode};
    uint32_t contentions = atomic_load(&strata_magazines_threshold);
    /* With two or four threads, magazines cache freed blocks from the start, without contention first. */
    if (program->threads % 2 == 0) atomic_store(&strata_magazines_threshold, 0);
    open_world(&stage, strategy, may_refuse, false);
    pthread_mutex_init(&stage.lock, NULL);
    pthread_cond_init(&stage.moved, NULL);
    if (stage.world.checker) run_threads(&stage);
    torture_world_end(&stage.world);
    atomic_store(&strata_magazines_threshold, contentions);
    pthread_cond_destroy(&stage.moved);
    pthread_mutex_destroy(&stage.lock);
    *verdict = stage.world.verdict;
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
