/* A stack is made and ended with no lock held: whoever looks for a foreign pointer meanwhile, from any facade, passes it by. */
#include "allocation/domain/layer.h"
#include "tests/facade/support/fixture.h"

/* What a layer from outside does as another thread would beside it: a look-up that no facade can answer. */
static strata_t asked; /* 0: none looks */
static const strata_stack_t *incomplete; /* that is made or ended: its layers may not be asked */
static uint32_t looks, finds;

static void look_elsewhere(const strata_stack_t *beside) {
    strata_block_t block = {.ref = 7};
    if (!asked) return;
    incomplete = beside;
    looks++;
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(asked, &block, &block));
}

static strata_status_t create(strata_layer_t *self) {
    look_elsewhere(self->stack);
    return STRATA_OK;
}

static void destroy(strata_layer_t *self) { look_elsewhere(self->stack); }

static const strata_record_t *find(strata_layer_t *self, uint64_t address) {
    (void)address;
    finds++;
    EXPECT_NE(self->stack, incomplete);
    return NULL;
}

static const strata_layer_type_t looking_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_looking",
    .doc = "looks elsewhere",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = create,
    .destroy = destroy,
    .allocate = strata_below_allocate,
    .free = strata_layer_free_below,
    .find = find,
};

static void end_by_close(rig_t *rig, strata_stream_t stream) {
    (void)stream;
    rig_close(rig);
}

static void end_by_forgetting(rig_t *rig, strata_stream_t stream) {
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    asked = 0;
    rig_close(rig);
}

/* The lower of the two layers is there before the upper one is made, and after it has ended. */
static void look_beside(void (*end)(rig_t *rig, strata_stream_t stream)) {
    rig_t rig, other;
    rig_open(&other, "strata", NULL, 0, 0, 1);
    rig_open(&rig, "strategy: seen\nstack: [test_looking, test_looking, auto_growth, system]\n", NULL, 0, 0, 1);
    strata_stream_t stream = rig_stream(&rig);
    looks = finds = 0;
    asked = other.s;
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, stream, MIB).ref));
    EXPECT_EQ(looks, 2);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    finds = 0;
    look_elsewhere(NULL);
    EXPECT_EQ(finds, 4);
    end(&rig, stream);
    EXPECT_GE(looks, 5);
    asked = 0;
    rig_close(&other);
}

TEST(facade_stacks_seen, a_look_up_passes_by_stacks_that_are_made_or_ended) {
    register_layer(&looking_type);
    look_beside(end_by_close);
    look_beside(end_by_forgetting);
}
