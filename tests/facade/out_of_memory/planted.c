#include "tests/facade/out_of_memory/planted.h"
#include "allocation/domain/layer.h"

#include <stdio.h>

enum { MOST_LETTERS = 4000 };

typedef struct heard {
    uint32_t times;
    strata_cause_t cause;
    char text[MOST_LETTERS];
} heard_t;

static void hear(const strata_out_of_memory_t *event, void *context) {
    heard_t *heard = context;
    heard->times++;
    heard->cause = event->cause;
    snprintf(heard->text, sizeof heard->text, "%s", event->text);
}

static void open_scene(scene_t *scene, const planted_t *planted, const char *set, uint64_t foreign) {
    *scene = (scene_t){.foreign = foreign};
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.foreign_bytes += foreign;
    strata_sim_options_t options = {.devices = 1, .capacity = planted->capacity - foreign, .profile = &profile};
    rig_open_on(&scene->rig, rig_strategy(planted->strategy, &set, set ? 1 : 0), &options, 0);
    scene->rig.borrowed_strategy = false;
    scene->place = scene->rig.gpu;
    scene->request = (strata_allocate_options_t){.struct_size = sizeof scene->request, .size = planted->asked};
    scene->streams[0] = rig_stream(&scene->rig);
    scene->streams[1] = rig_stream(&scene->rig);
    planted->plant(scene);
}

static void *hold_to_the_end(void *context) {
    scene_t *scene = context;
    scene->held(scene);
    for (int turn = 0; turn < 2; turn++) pthread_barrier_wait(&scene->turn);
    return NULL;
}

void scene_hold_in_thread(scene_t *scene, void (*hold)(scene_t *scene)) {
    scene->held = hold;
    pthread_barrier_init(&scene->turn, NULL, 2);
    ASSERT_EQ(pthread_create(&scene->thread, NULL, hold_to_the_end, scene), 0);
    pthread_barrier_wait(&scene->turn);
}

void scene_capture(scene_t *scene, bool begins) {
    strata_layer_t *layer = rig_stack(&scene->rig, NULL)->layers[1];
    strata_call_t call = {.stack = layer->stack};
    strata_lock(&layer->stack->lock);
    call.held[0] = layer->stack;
    strata_notice_t notice = {
        .struct_size = sizeof notice, .kind = begins ? STRATA_NOTICE_CAPTURE_BEGIN : STRATA_NOTICE_CAPTURE_END, .pool = 7};
    strata_layer_notify(layer, &notice, &call);
    (void)strata_call_unlock(&call);
}

static void close_scene(scene_t *scene) {
    if (scene->held) {
        pthread_barrier_wait(&scene->turn);
        pthread_join(scene->thread, NULL);
        pthread_barrier_destroy(&scene->turn);
    }
    strata_sim_clear_faults(scene->rig.devices[0]);
    rig_close_by_force(&scene->rig);
}

static strata_status_t ask(scene_t *scene) {
    strata_block_t block;
    return strata_allocate_with(scene->rig.s, scene->place, scene->stream, &scene->request, &block);
}

/* The name of its cause alone, of all that there are. */
static void expect_named(const planted_t *planted, const heard_t *heard) {
    static const char *const names[] = {
#define NAME(name, number, text, meaning) ": " text ": ",
        STRATA_CAUSE_MAP(NAME)
#undef NAME
    };
    char own[64];
    snprintf(own, sizeof own, ": %s: ", strata_cause_name(planted->cause));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], own) == 0) EXPECT_CONTAINS(heard->text, own);
        else EXPECT_LACKS(heard->text, names[i]);
    }
    EXPECT_EQ(heard->cause, planted->cause);
    EXPECT_CONTAINS(heard->text, "\n  try: ");
    EXPECT_CONTAINS(heard->text, planted->says);
    if (planted->never) EXPECT_LACKS(heard->text, planted->never);
}

void planted_run(const planted_t *planted) {
    scene_t scene;
    heard_t heard = {.times = 0};
    open_scene(&scene, planted, NULL, planted->foreign);
    EXPECT_OK(strata_add_out_of_memory_observer(scene.rig.s, hear, &heard, NULL));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, ask(&scene));
    EXPECT_STREQ(strata_last_error()->text, heard.text);
    EXPECT_EQ(heard.times, 1);
    expect_named(planted, &heard);
    if (planted->follow) {
        planted->follow(&scene);
        EXPECT_OK(ask(&scene));
    }
    close_scene(&scene);
    if (planted->set || planted->foreign) {
        open_scene(&scene, planted, planted->set, 0);
        EXPECT_OK(ask(&scene));
        close_scene(&scene);
    }
    if (strata_test_has_failed()) FAIL_TEST("%s: %s", planted->name, heard.text);
}

/* ---- all of them ---- */

static bool noted[64] = {[STRATA_CAUSE_UNKNOWN] = true};

void planted_note(const planted_t *planted) { noted[planted->cause] = true; }

TEST(facade_causes, every_cause_is_planted) {
#define IS_NOTED(name, number, text, meaning)                                                                                      \
    if (!noted[number]) FAIL_TEST("no situation has the cause %s", text);                                                          \
    EXPECT_STREQ(strata_cause_name(STRATA_CAUSE_##name), text);
    STRATA_CAUSE_MAP(IS_NOTED)
#undef IS_NOTED
    EXPECT_STREQ(strata_cause_name((strata_cause_t)999), "unknown");
}
