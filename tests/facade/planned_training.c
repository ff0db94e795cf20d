/* A language model's training of fixed shapes under the preset `planned`: weights and what an optimizer keeps live all the time, and
 * the steps are all alike. From the third step on no device call is made, and little more is reserved than must be. */
#include "tests/facade/planned.h"

enum { LAYERS = 12, WIDTH = 768, WORDS = 32000, TOKENS = 8 * 512, STEPS = 6, SETTLED = 2, HELD = 512 };

typedef struct training {
    rig_t *rig;
    strata_ref_t held[HELD];
    uint64_t sizes[HELD];
    uint32_t count;
    uint64_t live, most;
} training_t;

static void push(training_t *t, uint64_t size) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(t->rig->s, t->rig->gpu, NULL, size, &block));
    t->held[t->count] = block.ref;
    t->sizes[t->count++] = planned_rounded(size);
    t->live += planned_rounded(size);
    t->most = t->live > t->most ? t->live : t->most;
}

static void drop(training_t *t, uint32_t i) {
    if (t->held[i]) EXPECT_OK(strata_free(t->rig->s, t->held[i]));
    t->live -= t->held[i] ? t->sizes[i] : 0;
    t->held[i] = 0;
}

static void drop_from(training_t *t, uint32_t first) {
    while (t->count > first) drop(t, --t->count);
}

/* Of single precision. */
static void push_weights(training_t *t) {
    push(t, 4ull * WORDS * WIDTH);
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        for (uint64_t part = 1; part <= 4; part++) push(t, 4ull * WIDTH * (part * WIDTH + 1));
}

/* What is there for a moment between two that stay. */
static void push_after(training_t *t, uint64_t size, uint64_t stays) {
    uint32_t moment = t->count;
    push(t, size);
    push(t, stays);
    drop(t, moment);
}

/* Forward, of half precision; backward, the layers in reverse, each leaving the gradients of its weights; the optimizer. */
static void step(training_t *t) {
    uint32_t first = t->count, layers[LAYERS + 1];
    push(t, 8ull * (TOKENS + 8));
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        layers[layer] = t->count;
        push_after(t, 2ull * 3 * WIDTH * WIDTH, 2ull * TOKENS * 3 * WIDTH);
        push_after(t, 2ull * TOKENS * 512, 2ull * TOKENS * WIDTH);
        push_after(t, 2ull * TOKENS * 4 * WIDTH, (uint64_t)TOKENS * WIDTH);
    }
    layers[LAYERS] = t->count;
    push_after(t, 2ull * TOKENS * WORDS, 4ull * TOKENS * WORDS);
    for (uint32_t layer = LAYERS; layer-- > 0;) {
        for (uint32_t i = layers[layer]; i < layers[layer + 1]; i++) drop(t, i);
        push_after(t, 2ull * TOKENS * 3 * WIDTH, 4ull * WIDTH * (3 * WIDTH + 1));
        push_after(t, 2ull * TOKENS * 4 * WIDTH, 4ull * WIDTH * (4 * WIDTH + 1));
    }
    push_after(t, 4ull * WIDTH * 1111, 4ull * WORDS * WIDTH);
    drop_from(t, first);
}

/* What lives in the room is part of the bound; handles that weights pin count as a whole. */
static void expect_planned(bool told, uint32_t kept) {
    uint64_t calls = 0;
    uint32_t settled = told ? SETTLED : SETTLED + 1;
    RIG(rig, "planned", 0);
    training_t t = {.rig = &rig};
    for (uint32_t i = 0; i < kept; i++) push_weights(&t);
    uint64_t weights = t.live;
    for (uint32_t i = 0; i < STEPS && !strata_test_has_failed(); i++) {
        if (i == settled) calls = planned_device_calls(&rig);
        if (i == settled) EXPECT_OK(strata_reset_peaks(rig.s, rig.gpu));
        step(&t);
        if (told) EXPECT_OK(strata_step(rig.s));
    }
    uint64_t reserved = rig_figures(&rig).peak_reserved_bytes, pinned = planned_figure(&rig, "pinned_bytes");
    EXPECT_EQ(planned_device_calls(&rig), calls);
    EXPECT_EQ(planned_figure(&rig, "beside"), 0);
    printf("reserved %.4f of the bound; of weights pinned %.4f\n", (double)reserved / (double)t.most,
           weights ? (double)pinned / (double)weights : 1.0);
    EXPECT_GE(pinned, weights);
    EXPECT_LE((double)reserved, 1.02 * (double)(t.most - weights) + (double)pinned);
    drop_from(&t, 0);
}

TEST(facade_planned_training, weights_and_steps_that_are_told) {
    expect_planned(true, 1);
    expect_planned(true, 3);
}

TEST(facade_planned_training, weights_and_steps_that_nobody_tells) { expect_planned(false, 1); }
