/* What the files of the checker share. Everything is guarded by the world's lock; functions named check_* are called with it
 * held. Its bookkeeping is plain calloc(), as the simulator's. */
#ifndef STRATA_PLATFORM_SIM_CHECKER_INTERNAL_H
#define STRATA_PLATFORM_SIM_CHECKER_INTERNAL_H

#include "platform/sim/checker/checker.h"
#include "platform/sim/graphs/sim_graph.h"
#include "platform/sim/world/checker_hooks.h"

enum {
    CHECK_REPORTS = 16,
    CHECK_LABEL = 40,
    CHECK_NOTES_MOST = 1 << 18,
    CHECK_REMEMBERED = 256 /* accesses of one block under rule 1; then the oldest goes */
};

/* ---- a table from keys to numbers (checker_map.c) ---- */

typedef struct check_map {
    struct check_pair {
        uint64_t key, value;
    } * pairs; /* key 0: free */
    size_t count, room; /* room: 0 or a power of two, at most half full */
} check_map_t;

/* The place of the value of a key; with `make` it is added as 0. NULL: not there, or no host memory. */
uint64_t *check_map_at(check_map_t *map, uint64_t key, bool make);
void check_map_remove(check_map_t *map, uint64_t key);

/* ---- vector clocks (checker_clock.c): one count for each actor, that is a stream, a host thread, a branch of a graph ---- */

typedef struct check_clock {
    uint64_t *at;
    uint32_t count;
} check_clock_t;

static inline uint64_t check_clock_get(const check_clock_t *clock, uint32_t actor) {
    return actor < clock->count ? clock->at[actor] : 0;
}
/* Everything before `from` comes before `to` as well. Returns whether `to` learned anything. */
bool check_clock_join(strata_checker_t *checker, check_clock_t *to, const check_clock_t *from);
/* The same for one actor's first `count`. */
bool check_clock_raise(strata_checker_t *checker, check_clock_t *to, uint32_t actor, uint64_t count);
void check_clock_copy(strata_checker_t *checker, check_clock_t *to, const check_clock_t *from);
void check_clock_end(check_clock_t *clock);

typedef struct check_actor {
    check_clock_t clock;
    uint64_t version; /* moves when the clock does */
    int32_t device; /* ordinal; -1: a host thread, or a branch of a graph */
    bool blocking, legacy, gone;
    bool pausing; /* of a host thread: strata_checker_pausing() */
    char label[CHECK_LABEL];
    /* What it has joined already: the host thread that submitted last, the legacy stream. */
    uint32_t host;
    uint64_t host_version, legacy_version;
    uint64_t *expected; /* of a host thread: strata_checker_expect() */
    size_t expected_count, expected_room;
} check_actor_t;

/* 0: no host memory (the checker is incomplete then). Indices stay; pointers do not. */
uint32_t check_actor_new(strata_checker_t *checker, int32_t device, const char *label);
uint32_t check_host(strata_checker_t *checker);
uint32_t check_stream(strata_checker_t *checker, sim_stream_t *stream);
check_actor_t *check_actor(strata_checker_t *checker, uint32_t actor);

/* ---- order (checker_order.c) ---- */

/* The stream's next operation: after what the calling thread knows, and after what rule 4 says. Returns the stream's actor. */
uint32_t check_arrive(strata_checker_t *checker, sim_stream_t *stream);
/* A new operation of an actor; returns its count. */
uint64_t check_tick(strata_checker_t *checker, uint32_t actor);
void check_learn(strata_checker_t *checker, uint32_t actor, const check_clock_t *clock);
/* What an actor knows; for a stream that is gone, what all such streams of its device knew. */
const check_clock_t *check_clock_of(const strata_checker_t *checker, uint32_t actor);

/* ---- who used what (checker_memory.c) ---- */

typedef enum check_how { CHECK_WORK, CHECK_FILL, CHECK_HOST, CHECK_GRAPH, CHECK_IMPLIED, CHECK_FREE_POINT } check_how_t;

/* The latest use of a block by one actor. */
typedef struct check_use {
    uint32_t actor;
    check_how_t how;
    uint64_t epoch; /* the actor's count */
    uint64_t life, note;
} check_use_t;

typedef struct check_uses {
    uint32_t count, room;
    check_use_t few[1], *more; /* `more` once one is not enough */
} check_uses_t;

check_use_t *check_uses_all(check_uses_t *uses);
/* One entry per actor: the latest. */
void check_uses_add(strata_checker_t *checker, check_uses_t *uses, const check_use_t *use);
void check_uses_join(strata_checker_t *checker, check_uses_t *to, check_uses_t *from);
void check_uses_remove(check_uses_t *uses, uint32_t index);
void check_uses_end(check_uses_t *uses);

typedef struct check_access {
    uint64_t begin, end;
    bool write;
    check_use_t use;
} check_access_t;

/* The time during which one owner has a range of memory: a reported block, or memory as it came from the device (`raw`). */
typedef struct check_life {
    uint32_t refs; /* segments, the table of names, nodes of graphs */
    bool alive, raw, ownerless, planned;
    bool met; /* somebody used it after all of `before` */
    uint32_t told; /* bit per hazard: reported already */
    uint64_t name, number;
    uint64_t graph_pool; /* that served it; 0: none */
    uint64_t address, size;
    sim_device_t *device; /* of a reported block */
    uint32_t owner;
    uint32_t birth_actor; /* memory of a pool is valid after this point; 0: not a pool's */
    uint64_t birth_epoch;
    check_uses_t freed; /* frees in stream order of what was here before, as far as the allocating thread has not seen them */
    check_uses_t uses, before; /* own; those of earlier owners */
    check_uses_t borrowers; /* only `actor` is used */
    check_access_t *accesses; /* rule 1 */
    size_t access_count;
} check_life_t;

typedef struct check_segment {
    sim_node_t node; /* key: address; first */
    uint64_t size;
    check_life_t *life;
} check_segment_t;

check_life_t *check_life_new(strata_checker_t *checker, uint64_t address, uint64_t size);
/* A part of a life as a life of its own, with the same past; NULL: no host memory. */
check_life_t *check_life_part(strata_checker_t *checker, check_life_t *life, uint64_t address, uint64_t size);
void check_life_drop(check_life_t *life);
/* The first segment that touches [address, address + size), the next one; NULL: none. */
check_segment_t *check_segment_first(strata_checker_t *checker, uint64_t address, uint64_t size);
check_segment_t *check_segment_next(strata_checker_t *checker, check_segment_t *segment, uint64_t end);
/* Takes a range away from its owners. `each` is called for every segment before it is cut. */
typedef void (*check_cut_fn)(strata_checker_t *checker, check_life_t *life, void *context);
void check_cut(strata_checker_t *checker, uint64_t address, uint64_t size, check_cut_fn each, void *context);
void check_segment_new(strata_checker_t *checker, uint64_t address, uint64_t size, check_life_t *life);
/* The first use that `clock` does not know; NULL: it knows all. */
check_use_t *check_unordered(check_uses_t *uses, const check_clock_t *clock);

/* ---- one memory at several addresses (checker_alias.c) ---- */

/* A life at another address of the same bytes as [begin, begin + size); `shift`: what is to be added to an address there to be its
 * address here. */
typedef void (*check_alias_fn)(strata_checker_t *checker, check_life_t *life, uint64_t shift, void *context);
void check_each_alias(strata_checker_t *checker, uint64_t begin, uint64_t size, check_alias_fn each, void *context);

/* ---- what the device has lent (checker_lease.c) ---- */

/* A range of memory from the call that got it to the one that gives it back. Nodes of graphs remember theirs. */
typedef struct check_lease {
    sim_node_t node; /* key: address; first */
    uint64_t size;
    uint32_t refs; /* the tree, while it is not over; nodes of graphs */
    uint64_t graph; /* whose own memory it is; 0: of none */
    bool over;
    uint32_t actor; /* who gave it back */
    uint64_t note; /* of that; 0: none */
} check_lease_t;

void check_lease_begin(strata_checker_t *checker, uint64_t address, uint64_t size);
/* What touches the range is over. */
void check_lease_end(strata_checker_t *checker, uint64_t address, uint64_t size, uint32_t actor, uint64_t note);
/* The first that touches [address, address + size); NULL: none. */
check_lease_t *check_lease_first(const strata_checker_t *checker, uint64_t address, uint64_t size);
void check_lease_drop(check_lease_t *lease);

/* ---- what a pause has taken away (checker_away.c) ---- */

/* Whether the calling thread pauses or resumes. */
bool check_is_pausing(strata_checker_t *checker);
/* The range is unmapped, and mapped again (false: it was not away). */
void check_away_begin(strata_checker_t *checker, uint64_t address, uint64_t size);
bool check_away_end(strata_checker_t *checker, uint64_t address, uint64_t size);
/* Whether some of it is away. */
bool check_is_away(const strata_checker_t *checker, uint64_t address, uint64_t size);

/* ---- accesses (checker_work.c, checker_race.c) ---- */

/* What a launch repeats, and how things were at its capture. */
typedef struct check_captured {
    uint64_t graph; /* id */
    uint64_t pool; /* that the graph's requests go to; 0: none */
    uint64_t lives; /* so many there had been */
    uint64_t life, note; /* the owner, the capture itself; 0: not known */
    uint32_t actor; /* the stream */
    bool own; /* memory that the graph allocates */
} check_captured_t;

typedef struct check_touch {
    uint32_t actor;
    uint32_t reported; /* the stream to name in reports: another one for what a graph does */
    uint64_t epoch;
    const check_clock_t *clock; /* what comes before it */
    check_how_t how;
    uint64_t address, size, expected;
    bool write;
    const check_captured_t *captured; /* NULL: no graph's */
} check_touch_t;

void check_touch(strata_checker_t *checker, const check_touch_t *touch);
/* A use by an owner, with what comes before it: rules 6, 7 and 8. */
void check_owner(strata_checker_t *checker, check_life_t *life, const check_clock_t *clock, const check_use_t *use);
void check_race(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch, const check_use_t *use);

/* ---- history and reports (checker_history.c, checker_report.c) ---- */

/* What happened; the words of each kind are in checker_report.c. */
typedef enum check_note_kind {
    CHECK_NOTE_GOT,
    CHECK_NOTE_SERVED,
    CHECK_NOTE_BORROWED,
    CHECK_NOTE_ERASED,
    CHECK_NOTE_FREED,
    CHECK_NOTE_USED,
    CHECK_NOTE_FILLED,
    CHECK_NOTE_HOST,
    CHECK_NOTE_GRAPH,
    CHECK_NOTE_IMPLIED,
    CHECK_NOTE_GIVEN_BACK,
    CHECK_NOTE_RECORDED,
    CHECK_NOTE_WAITED,
    CHECK_NOTE_PASSED,
    CHECK_NOTE_SYNCHRONISED,
    CHECK_NOTE_DEVICE,
    CHECK_NOTE_CAPTURED
} check_note_kind_t;

typedef struct check_note {
    uint64_t time, line, life, event; /* event: for CAPTURED and GRAPH the graph */
    uint32_t actor;
    uint32_t host; /* the thread that called */
    check_note_kind_t kind;
} check_note_t;

/* Its number. */
uint64_t check_note(strata_checker_t *checker, check_note_kind_t kind, uint32_t actor, uint64_t life, uint64_t event);
/* NULL: no longer kept. */
const check_note_t *check_note_at(const strata_checker_t *checker, uint64_t number);
uint64_t check_note_oldest(const strata_checker_t *checker);

/* The two sides of a fault; either life may be NULL, and `old` too. */
typedef struct check_fault {
    strata_hazard_t kind;
    int rule; /* 0: no single one */
    check_life_t *life;
    uint32_t actor; /* who is at fault, or met it */
    uint64_t note; /* what it did; 0: none */
    const check_use_t *old;
    const check_touch_t *launch; /* of a graph that met it; NULL: none */
} check_fault_t;

/* Counts it and keeps its report. For one life only the first of a kind counts. */
void check_tell(strata_checker_t *checker, const check_fault_t *fault);
char *check_report_text(strata_checker_t *checker, const check_fault_t *fault, uint64_t number);

/* ---- the checker ---- */

struct strata_checker {
    strata_sim_t *world;
    uint32_t rules;
    bool lost; /* no host memory */
    bool aliases; /* some memory was mapped at two addresses at once */
    check_actor_t *actors; /* [0] stands for nobody */
    uint32_t actor_count;
    uint32_t only_host; /* with rule 3 left out all threads are one */
    check_clock_t done[SIM_DEVICES_MAX], done_blocking[SIM_DEVICES_MAX]; /* of streams that were destroyed */
    check_map_t names; /* reported block -> life */
    check_map_t pools; /* capture -> graph pool */
    check_map_t locks, keys; /* -> clocks[] */
    check_clock_t *clocks;
    size_t clock_count;
    sim_tree_t segments, leases, away;
    uint64_t lives, events, line;
    check_note_t *notes; /* a ring */
    uint64_t note_count, note_room;
    uint64_t hazards[STRATA_HAZARDS];
    char *reports[CHECK_REPORTS];
    size_t report_count;
};

static inline bool check_rule(const strata_checker_t *checker, int rule) {
    return (checker->rules & STRATA_CHECKER_RULE(rule)) != 0;
}

#endif
