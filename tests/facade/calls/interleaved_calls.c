/* Calls that meet in the middle: what one does while the other has its locks open. */
#include <stdio.h>
#include <unistd.h>

#include "tests/facade/support/interleaving.h"

enum { SIZE = 300 * 1024, LONG = 1000 * 1000 };

/* What the other thread does it to, and what was answered. */
typedef struct other {
    rig_t *rig;
    strata_ref_t ref;
    strata_stream_t stream;
    strata_status_t status;
    int refuses; /* 0: the device does as asked; 1: it makes no event; 2: and waits for nothing */
    strata_block_t blocks[64];
} other_t;

static void free_it(void *context) {
    other_t *other = context;
    other->status = strata_free(other->rig->s, other->ref);
}

static strata_block_t served_at_once(rig_t *rig, strata_stream_t stream) {
    strata_block_t block = rig_allocate(rig, stream, SIZE);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return block;
}

/* Of a stream that was forgotten: with its last block its stack ends. */
static void end_it(void *context) {
    other_t *other = context;
    free_it(context);
    EXPECT_OK(strata_release(other->rig->s, other->rig->gpu, NULL));
}

/* ---- a borrow that is being noted ---- */

static const char of_use[] = "strategy: use\nstack:\n  - stream_safe: {event: use}\n  - auto_growth\n  - system\n";

TEST_RIG(facade_between, a_block_freed_while_an_event_is_made_for_its_borrow_is_stale, 0, of_use) {
    between_t between;
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    other_t other = {.rig = rig, .ref = block.ref};
    between_begin(&between, rig, STRATA_CALL_event_create, free_it, &other);
    EXPECT_SAYS(STRATA_E_STALE, strata_record_stream(rig->s, block.ref, borrower), "freed while its borrow was being recorded");
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(other.status);
    /* Nobody borrows what comes to lie there. */
    EXPECT_EQ(served_at_once(rig, owner).ptr, block.ptr);
    EXPECT_EQ(served_at_once(rig, owner).ptr, block.ptr);
    EXPECT_EQ(rig_figures(rig).borrows, 0);
    EXPECT_EQ(rig_figures(rig).deferred_frees, 0);
}

/* Where no layer knows borrows the core notes them, in a table that the first of a stack makes with the lock open. */
TEST_RIG(facade_between, a_block_freed_while_the_table_of_waits_is_made_is_stale, 0, "system") {
    before_lock_t before;
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    other_t other = {.rig = rig, .ref = block.ref};
    /* The ref is found under the lock first. */
    before_lock_begin(&before, &rig_stack(rig, owner)->lock, 2, free_it, &other);
    EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(rig->s, block.ref, borrower));
    EXPECT_TRUE(before_lock_end(&before));
    EXPECT_OK(other.status);
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    rig_work(rig, borrower, LONG, 0);
    uint64_t waits = rig_figures(rig).host_waits;
    (void)served_at_once(rig, owner);
    EXPECT_EQ(rig_figures(rig).host_waits, waits);
}

/* ---- the stack of a block that is freed meanwhile ---- */

static strata_status_t note(rig_t *rig, strata_ref_t ref, strata_stream_t borrower) {
    return strata_record_stream(rig->s, ref, borrower);
}

static strata_status_t retain(rig_t *rig, strata_ref_t ref, strata_stream_t borrower) {
    (void)borrower;
    return strata_retain(rig->s, ref);
}

/* As the call takes the lock of the stack again, which it had opened, for a table. */
static void expect_stale_of_an_ended_stack(const char *strategy, strata_status_t (*call)(rig_t *, strata_ref_t, strata_stream_t)) {
    before_lock_t before;
    RIG(rig, strategy, 0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, owner, SIZE);
    strata_stack_t *stack = rig_stack(&rig, owner);
    other_t other = {.rig = &rig, .ref = block.ref};
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, owner));
    before_lock_begin(&before, &stack->lock, 2, end_it, &other);
    EXPECT_STATUS(STRATA_E_STALE, call(&rig, block.ref, borrower));
    EXPECT_TRUE(before_lock_end(&before));
    EXPECT_OK(other.status);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_FALSE(stack->open);
    EXPECT_EQ(rig_domain(&rig)->orphans, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

TEST(facade_between, a_stack_does_not_end_in_the_middle_of_a_call_that_names_its_last_block) {
    expect_stale_of_an_ended_stack("system", note);
    expect_stale_of_an_ended_stack("system", retain);
    expect_stale_of_an_ended_stack("strata", retain);
}

/* ---- a free beside a stream that ends ---- */

static void forget_it(void *context) {
    other_t *other = context;
    strata_device_t *device = other->rig->devices[0];
    if (other->refuses > 0) EXPECT_OK(strata_sim_fail(device, STRATA_CALL_event_create, 1, true, STRATA_E_DEVICE));
    if (other->refuses > 1) {
        EXPECT_OK(strata_sim_fail(device, STRATA_CALL_stream_synchronise, 1, true, STRATA_E_DEVICE));
        EXPECT_OK(strata_sim_fail(device, STRATA_CALL_synchronise, 1, true, STRATA_E_DEVICE));
    }
    EXPECT_OK(strata_stream_forget(other->rig->s, other->rig->gpu, other->stream));
    strata_sim_clear_faults(device);
    EXPECT_OK(strata_stream_destroy(other->rig->s, other->rig->gpu, other->stream));
}

/* The free makes an event for the borrow while the borrower is forgotten, which ends the borrow's name: by an event of its own,
 * by a wait, or by neither. */
TEST(facade_between, a_free_and_the_end_of_its_borrower_lose_no_work) {
    for (int refuses = 0; refuses < 3; refuses++) {
        between_t between;
        RIG_STACK(rig, "retry, stream_safe, auto_growth: {chunk_size: 20MiB, order: any}, system", 0);
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        strata_block_t block = rig_allocate(&rig, owner, SIZE);
        rig_borrow(&rig, block.ref, borrower, LONG);
        uint64_t end = strata_sim_stream_end(rig.devices[0], borrower);
        other_t other = {.rig = &rig, .stream = borrower, .refuses = refuses};
        between_begin(&between, &rig, STRATA_CALL_event_create, forget_it, &other);
        EXPECT_OK(strata_free(rig.s, block.ref));
        EXPECT_TRUE(between_end(&between));
        bool waited = strata_sim_now(rig.world) >= end;
        EXPECT_EQ(waited, refuses > 0);
        EXPECT_EQ(served_at_once(&rig, owner).ptr == block.ptr, waited);
        rig_advance(&rig, 2 * LONG);
        EXPECT_EQ(served_at_once(&rig, owner).ptr, block.ptr);
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    }
}

/* ---- two who forget one stream ---- */

/* No event is to be had, and no wait. */
static void refuse_all(strata_device_t *device) {
    static const strata_device_call_t calls[] = {STRATA_CALL_event_record, STRATA_CALL_stream_synchronise, STRATA_CALL_synchronise};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_sim_fail(device, calls[i], 1, true, STRATA_E_DEVICE));
}

typedef enum refused { NEITHER, THE_FIRST, THE_OTHER } refused_t;

static void forget_too(void *context) {
    other_t *other = context;
    strata_device_t *device = other->rig->devices[0];
    strata_sim_clear_faults(device);
    if (other->refuses == THE_OTHER) refuse_all(device);
    other->status = strata_stream_forget(other->rig->s, other->rig->gpu, other->stream);
    strata_sim_clear_faults(device);
    if (other->refuses == THE_FIRST) refuse_all(device);
}

/* The other one comes when the first has found the stack, before it asks the device or (`told`) with the answer noted. What one of
 * them learns of the stream's end holds for both. */
static void forget_twice(refused_t refused, bool told) {
    before_lock_t before;
    OPENED(rig_t, rig, rig_end, rig_open(&rig, "strata", NULL, 0, 0, 1));
    strata_stream_t stream = rig_stream(&rig), next = rig_stream(&rig);
    strata_block_t block = served_at_once(&rig, stream);
    other_t other = {.rig = &rig, .stream = stream, .status = STRATA_E_INVALID, .refuses = (int)refused};
    strata_domain_t *domain = rig_domain(&rig);
    rig_work(&rig, stream, LONG, 0);
    if (refused == THE_FIRST) refuse_all(rig.devices[0]);
    /* Device calls happen while it walks the stacks of the stream and the stacks whose blocks the stream used, looks up its own stack again,
     * and orphans it. */
    if (told) before_lock_begin(&before, &domain->lock, 2 + 2 + 1 + 1, forget_too, &other);
    else before_lock_begin(&before, &domain->events.lock, 1, forget_too, &other);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_TRUE(before_lock_end(&before));
    EXPECT_OK(other.status);
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(domain->orphans, 1);
    rig_advance(&rig, 2 * LONG);
    EXPECT_EQ(served_at_once(&rig, next).ptr, block.ptr);
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_destroy), rig_calls(&rig, STRATA_CALL_event_create));
}

TEST(facade_between, two_who_forget_a_stream_at_once_lose_neither_its_event_nor_its_memory) {
    for (refused_t refused = NEITHER; refused <= THE_OTHER; refused++) {
        forget_twice(refused, false);
        forget_twice(refused, true);
    }
}

/* ---- a free that waits on the host beside a stream that ends ---- */

/* A thread that ends a stream, whose handle the next one gets. */
typedef struct ending {
    rig_t *rig;
    strata_stream_t stream, next;
    pthread_t thread;
    _Atomic bool over;
} ending_t;

static void *end_stream(void *context) {
    ending_t *ending = context;
    EXPECT_OK(strata_stream_forget(ending->rig->s, ending->rig->gpu, ending->stream));
    EXPECT_OK(strata_stream_destroy(ending->rig->s, ending->rig->gpu, ending->stream));
    ending->next = rig_stream(ending->rig);
    atomic_store(&ending->over, true);
    return NULL;
}

/* It is given the time to end the stream; while the free uses the handle it must not. */
static void begin_to_end(void *context) {
    ending_t *ending = context;
    ASSERT_EQ(pthread_create(&ending->thread, NULL, end_stream, ending), 0);
    for (int i = 0; i < 200 && !atomic_load(&ending->over); i++) usleep(1000);
    EXPECT_FALSE(atomic_load(&ending->over));
}

/* Whom the free waits for: a borrower that the core noted, or one that a layer did and has no event of, or the owner, of whom guard
 * wants to know that it is done. */
typedef enum waited_for { NOTED, OF_LAYER, OWNER } waited_for_t;

static void a_free_waits_for_a_stream_that_ends(const char *strategy, waited_for_t whom) {
    between_t between;
    RIG(rig, strategy, 0);
    strata_stream_t owner = rig_stream(&rig), stream = whom == OWNER ? owner : rig_stream(&rig);
    strata_block_t block = rig_allocate(&rig, owner, SIZE);
    ending_t ending = {.rig = &rig, .stream = stream};
    if (whom == NOTED) EXPECT_OK(strata_record_stream(rig.s, block.ref, stream));
    if (whom == OF_LAYER) {
        EXPECT_OK(strata_record_stream(rig.s, block.ref, stream));
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_record, 1, false, STRATA_E_DEVICE));
    }
    rig_work(&rig, stream, LONG, block.ref);
    uint64_t end = strata_sim_stream_end(rig.devices[0], stream);
    between_begin(&between, &rig, STRATA_CALL_stream_synchronise, begin_to_end, &ending);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_GE(strata_sim_now(rig.world), end);
    pthread_join(ending.thread, NULL);
    EXPECT_TRUE(between_end(&between));
    EXPECT_EQ(ending.next, stream);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
}

TEST(facade_between, a_stream_keeps_its_handle_while_a_free_waits_for_it) {
    static const char guarded[] = "strategy: guarded\nstack: [guard: {report: false, poison: false}, auto_growth, system]\n";
    static const char *const unaware[] = {"system", "tensorflow", "tinytorch"};
    for (int i = 0; i < 3; i++) a_free_waits_for_a_stream_that_ends(unaware[i], NOTED);
    a_free_waits_for_a_stream_that_ends("stack: [stream_safe, auto_growth, system]", OF_LAYER);
    a_free_waits_for_a_stream_that_ends(guarded, OWNER);
}

/* ---- a block from the stack of a stream that was forgotten ---- */

static const char of_all[] = "strategy: all\nstack: [retry, stream_safe, bfc: {initial_region: 2MiB}, system]\n";

static void sweep(void *context) { strata_domain_sweep_orphans(rig_domain(((other_t *)context)->rig)); }

/* The record lies in the shared stack, so that nothing tells that the stack is needed but the count of what it serves. */
TEST(facade_between, a_forgotten_streams_stack_does_not_end_while_it_serves) {
    uint32_t swept = 0;
    for (uint32_t n = 1; n <= 12; n++) {
        before_lock_t before;
        RIG(rig, of_all, 0);
        strata_stream_t gone = rig_stream(&rig), borrower = rig_stream(&rig), asking = rig_stream(&rig);
        strata_block_t block = rig_allocate(&rig, gone, 2 * MIB);
        strata_stack_t *stack = rig_stack(&rig, gone);
        other_t other = {.rig = &rig};
        rig_borrow(&rig, block.ref, borrower, LONG);
        EXPECT_OK(strata_free(rig.s, block.ref));
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
        rig_advance(&rig, 2 * LONG);
        before_lock_begin(&before, &stack->lock, n, sweep, &other);
        strata_block_t next = rig_allocate(&rig, asking, 2 * MIB);
        swept += before_lock_end(&before);
        EXPECT_EQ(next.ptr, block.ptr);
        ASSERT_TRUE(stack->open);
    }
    EXPECT_GE(swept, 5);
    EXPECT_LT(swept, 12);
}

/* ---- one block, two who free it ---- */

/* A cache that all streams share makes its records in the shared stack: the lock of the stack that served the block comes first, so
 * that of the shared stack is opened once the block was found. */
TEST_RIG(facade_between, of_two_threads_that_free_a_block_at_once_one_is_told_that_it_is_stale, 0, "pytorch") {
    before_lock_t before;
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, SIZE);
    other_t other = {.rig = rig, .ref = block.ref};
    EXPECT_OK(strata_record_stream(rig->s, block.ref, rig_stream(rig))); /* both go the long way */
    before_lock_begin(&before, &rig_stack(rig, stream)->lock, 1, free_it, &other);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, block.ref));
    EXPECT_TRUE(before_lock_end(&before));
    EXPECT_OK(other.status);
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    EXPECT_EQ(rig_figures(rig).frees, 1);
}

/* The table of a stack's owners is made with the locks open. */
TEST_RIG(facade_between, a_block_freed_while_it_is_retained_is_stale, 0, "strata") {
    before_lock_t before;
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, SIZE);
    other_t other = {.rig = rig, .ref = block.ref};
    before_lock_begin(&before, &rig_stack(rig, stream)->lock, 2, free_it, &other);
    EXPECT_SAYS(STRATA_E_STALE, strata_retain(rig->s, block.ref), "freed while it was being retained");
    EXPECT_TRUE(before_lock_end(&before));
    EXPECT_OK(other.status);
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    strata_block_t next = rig_allocate(rig, stream, SIZE);
    EXPECT_OK(strata_free(rig->s, next.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, next.ref));
}

/* ---- a snapshot beside a thread that allocates ---- */

static void allocate_many(void *context) {
    other_t *other = context;
    for (int i = 0; i < 64; i++) other->blocks[i] = rig_allocate(other->rig, other->stream, SIZE);
}

static void count_live(const strata_snapshot_row_t *row, void *context) { *(uint32_t *)context += row->state == 1; }

/* The room is made before the stacks are locked together. */
TEST_RIG(facade_between, a_snapshot_finds_room_for_what_came_while_it_made_room, 0, "strata") {
    before_lock_t before;
    uint32_t live = 0;
    strata_stream_t stream = rig_stream(rig);
    (void)rig_allocate(rig, stream, SIZE);
    other_t other = {.rig = rig, .stream = stream};
    /* It goes through the list of stacks, asking for the next after each, and then locks it with them all. */
    before_lock_begin(&before, &rig_domain(rig)->lock, rig_domain(rig)->stack_count + 2, allocate_many, &other);
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, count_live, &live));
    EXPECT_TRUE(before_lock_end(&before));
    EXPECT_EQ(live, 65);
}

/* ---- a wait for what borrowers use ---- */

static void validate_all(void *context) {
    other_t *other = context;
    other->status = strata_validate(other->rig->s);
}

/* The use that is waited for is in no stream's list meanwhile. */
TEST_RIG(facade_between, caching_is_valid_while_the_host_waits_for_a_use, 60 * MIB, "pytorch-1.13") {
    between_t between;
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, 40 * MIB);
    other_t other = {.rig = rig, .status = STRATA_E_INVALID};
    rig_borrow(rig, block.ref, borrower, LONG);
    EXPECT_OK(strata_free(rig->s, block.ref));
    between_begin(&between, rig, STRATA_CALL_event_synchronise, validate_all, &other);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 50 * MIB).ref));
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(other.status);
}

/* ---- the events of a place ---- */

typedef struct events_taken {
    strata_events_t *events;
    strata_handle_t list[16];
    uint32_t count;
} events_taken_t;

static void take_all(void *context) {
    events_taken_t *taken = context;
    for (strata_handle_t event; (event = strata_events_acquire(taken->events)) != NULL;) taken->list[taken->count++] = event;
}

/* Whoever is quicker takes what is there: more are made, and the pool is not said to be at its end. */
TEST_RIG(facade_between, events_that_others_take_meanwhile_are_made_again, 0, "strata") {
    events_taken_t taken = {.events = &rig_domain(rig)->events};
    uint32_t quicker = 0;
    for (uint32_t n = 1; n <= 4; n++) {
        before_lock_t before;
        take_all(&taken);
        before_lock_begin(&before, &taken.events->lock, n, take_all, &taken);
        EXPECT_OK(strata_events_ensure(taken.events, 1));
        quicker += before_lock_end(&before);
    }
    EXPECT_GE(quicker, 3);
    while (taken.count > 0) strata_events_release(taken.events, taken.list[--taken.count]);
}
