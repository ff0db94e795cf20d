/* The structures and functions that the files of the checker share. The world's lock guards everything,
 * and functions named check_* are called with it held. The checker's bookkeeping uses plain calloc(),
 * as the simulator's does. */
#ifndef STRATA_PLATFORM_SIM_CHECKER_INTERNAL_H
#define STRATA_PLATFORM_SIM_CHECKER_INTERNAL_H

#include "platform/sim/checker/checker.h"
#include "platform/sim/graphs/sim_graph.h"
#include "platform/sim/world/checker_hooks.h"

enum {
    CHECK_REPORTS = 16,
    CHECK_LABEL = 40,
    CHECK_NOTES_MAX = 1 << 18,
    CHECK_REMEMBERED = 256 /* max accesses of one block under rule 1; a further one replaces the oldest */
};

/* ---- a table from keys to numbers (checker_map.c) ---- */

typedef struct check_map {
    struct check_pair {
        uint64_t key, value;
    } * pairs; /* key 0 if it is free */
    size_t count, room; /* room is 0 or a power of two, and at most half of it is used */
} check_map_t;

/* Returns a pointer to the value of a key, valid until the next insertion. With `make` a missing key is
 * added with value 0. Returns NULL if the key is missing or there is no host memory. */
uint64_t *check_map_at(check_map_t *map, uint64_t key, bool make);
void check_map_remove(check_map_t *map, uint64_t key);

/* ---- vector clocks (checker_clock.c): one count per stream, host thread and branch of a graph ---- */

typedef struct check_clock {
    uint64_t *at;
    uint32_t count;
} check_clock_t;

static inline uint64_t check_clock_get(const check_clock_t *clock, uint32_t actor) {
    return actor < clock->count ? clock->at[actor] : 0;
}
/* Makes everything before `from` precede `to` as well. Returns true if that changed `to`. */
bool check_clock_join(strata_checker_t *checker, check_clock_t *to, const check_clock_t *from);
/* Makes the first `count` operations of one actor precede `to`. Returns true if that changed `to`. */
bool check_clock_raise(strata_checker_t *checker, check_clock_t *to, uint32_t actor, uint64_t count);
void check_clock_copy(strata_checker_t *checker, check_clock_t *to, const check_clock_t *from);
void check_clock_end(check_clock_t *clock);

typedef struct check_actor {
    check_clock_t clock;
    uint64_t version; /* changes with the clock */
    int32_t device; /* ordinal; -1 for a host thread or a branch of a graph */
    bool blocking, legacy, destroyed;
    bool pausing; /* for a host thread: set by strata_checker_pausing() */
    char label[CHECK_LABEL];
    /* The clocks that it has already joined: of the host thread that submitted last, and of the legacy
     * stream. */
    uint32_t host;
    uint64_t host_version, legacy_version;
    uint64_t *expected; /* for a host thread: set by strata_checker_expect() */
    size_t expected_count, expected_room;
} check_actor_t;

/* Returns the index of a new actor, or 0 if there is no host memory (the checker is then incomplete).
 * Indices are stable; pointers are not. */
uint32_t check_actor_new(strata_checker_t *checker, int32_t device, const char *label);
uint32_t check_host(strata_checker_t *checker);
uint32_t check_stream(strata_checker_t *checker, sim_stream_t *stream);
check_actor_t *check_actor(strata_checker_t *checker, uint32_t actor);

/* ---- order (checker_order.c) ---- */

/* Begins the stream's next operation, which comes after everything that the calling thread has seen and
 * everything that rule 4 requires. Returns the stream's actor. */
uint32_t check_begin_operation(strata_checker_t *checker, sim_stream_t *stream);
/* Counts a new operation of an actor and returns its number. */
uint64_t check_tick(strata_checker_t *checker, uint32_t actor);
void check_actor_join(strata_checker_t *checker, uint32_t actor, const check_clock_t *clock);
/* Returns the clock of an actor. All destroyed streams of a device share one clock. */
const check_clock_t *check_clock_of(const strata_checker_t *checker, uint32_t actor);

/* ---- uses and owners of memory (checker_memory.c) ---- */

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
/* Adds a use. Only the latest of each actor is kept. */
void check_uses_add(strata_checker_t *checker, check_uses_t *uses, const check_use_t *use);
void check_uses_join(strata_checker_t *checker, check_uses_t *to, check_uses_t *from);
void check_uses_remove(check_uses_t *uses, uint32_t index);
void check_uses_end(check_uses_t *uses);

typedef struct check_access {
    uint64_t begin, end;
    bool write;
    check_use_t use;
} check_access_t;

/* The time during which one owner has a range of memory: a reported block, or memory as the device
 * provided it (`raw`). */
typedef struct check_life {
    uint32_t refs; /* from segments, the table of names, and nodes of graphs */
    bool alive, raw, ownerless, planned;
    bool follows_before; /* it was used after all of `before` */
    uint32_t reported_kinds; /* bit per hazard that was already reported */
    uint64_t name, number;
    uint64_t graph_pool; /* the pool that served it; 0 if none */
    uint64_t address, size;
    sim_device_t *device; /* of a reported block */
    uint32_t owner;
    uint32_t birth_actor; /* memory of a pool is valid after this point; 0 if it is not from a pool */
    uint64_t birth_epoch;
    check_uses_t freed; /* frees in stream order of earlier memory here that the allocating thread has not seen */
    check_uses_t uses, before; /* its own uses; those of earlier owners */
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
/* Splits off a part of a life as a separate life with the same past. Returns NULL if there is no host
 * memory. */
check_life_t *check_life_part(strata_checker_t *checker, check_life_t *life, uint64_t address, uint64_t size);
void check_life_drop(check_life_t *life);
/* Return the first segment that touches [address, address + size), and the next one, or NULL. */
check_segment_t *check_segment_first(strata_checker_t *checker, uint64_t address, uint64_t size);
check_segment_t *check_segment_next(strata_checker_t *checker, check_segment_t *segment, uint64_t end);
/* Removes a range from its owners. Calls `each` for every segment before it is cut. */
typedef void (*check_segment_fn)(strata_checker_t *checker, check_life_t *life, void *context);
void check_remove_range(strata_checker_t *checker, uint64_t address, uint64_t size, check_segment_fn each, void *context);
void check_segment_new(strata_checker_t *checker, uint64_t address, uint64_t size, check_life_t *life);
/* Returns the first use that `clock` does not include, or NULL if it includes all. */
check_use_t *check_unordered(check_uses_t *uses, const check_clock_t *clock);

/* ---- one memory at several addresses (checker_alias.c) ---- */

/* Gets a life at another address of the same bytes as [begin, begin + size). `shift` is added to an
 * address there to get the address here. */
typedef void (*check_alias_fn)(strata_checker_t *checker, check_life_t *life, uint64_t shift, void *context);
void check_each_alias(strata_checker_t *checker, uint64_t begin, uint64_t size, check_alias_fn each, void *context);

/* ---- memory that the device has lent (checker_lease.c) ---- */

/* A range of memory from the call that got it to the call that gives it back. Nodes of graphs keep
 * references to theirs. */
typedef struct check_lease {
    sim_node_t node; /* key: address; first */
    uint64_t size;
    uint32_t refs; /* from the tree, until it is over, and from nodes of graphs */
    uint64_t graph; /* id of the graph that allocates this memory; 0 if none */
    bool over;
    uint32_t actor; /* the actor that gave it back */
    uint64_t note; /* the note of that; 0 if none */
} check_lease_t;

void check_lease_begin(strata_checker_t *checker, uint64_t address, uint64_t size);
/* Ends all leases that touch the range. */
void check_lease_end(strata_checker_t *checker, uint64_t address, uint64_t size, uint32_t actor, uint64_t note);
/* Returns the first lease that touches [address, address + size), or NULL. */
check_lease_t *check_lease_first(const strata_checker_t *checker, uint64_t address, uint64_t size);
void check_lease_drop(check_lease_t *lease);

/* ---- memory that a pause has unmapped (checker_paused.c) ---- */

/* Returns true while the calling thread pauses or resumes. */
bool check_is_pausing(strata_checker_t *checker);
/* Mark a range as unmapped by a pause, and as mapped again. The second returns false if no part of it
 * was unmapped. */
void check_paused_begin(strata_checker_t *checker, uint64_t address, uint64_t size);
bool check_paused_end(strata_checker_t *checker, uint64_t address, uint64_t size);
/* Returns true if a part of the range is unmapped by a pause. */
bool check_is_paused(const strata_checker_t *checker, uint64_t address, uint64_t size);

/* ---- accesses (checker_work.c, checker_race.c) ---- */

/* The part of a graph that a launch repeats, with the state at its capture. */
typedef struct check_captured {
    uint64_t graph; /* id */
    uint64_t pool; /* the pool that serves the graph's requests; 0 if none */
    uint64_t lives; /* number of lives at that time */
    uint64_t life, note; /* the owner, and the note of the capture; 0 if unknown */
    uint32_t actor; /* the stream */
    bool own; /* memory that the graph allocates */
} check_captured_t;

typedef struct check_touch {
    uint32_t actor;
    uint32_t reported; /* the stream to name in reports; for work of a graph, the launch stream */
    uint64_t epoch;
    const check_clock_t *clock; /* everything that precedes it */
    check_how_t how;
    uint64_t address, size, expected;
    bool write;
    const check_captured_t *captured; /* NULL if the access is not a graph's */
} check_touch_t;

void check_touch(strata_checker_t *checker, const check_touch_t *touch);
/* Checks a use by an owner against the operations that precede it: rules 6, 7 and 8. */
void check_owner(strata_checker_t *checker, check_life_t *life, const check_clock_t *clock, const check_use_t *use);
void check_race(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch, const check_use_t *use);

/* ---- history and reports (checker_history.c, checker_report.c) ---- */

/* The kinds of recorded events. The text of each kind is in checker_report.c. */
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
    uint64_t time, line, life, event; /* for CAPTURED and GRAPH, `event` is the graph */
    uint32_t actor;
    uint32_t host; /* the thread that called */
    check_note_kind_t kind;
} check_note_t;

/* Records a note and returns its number. */
uint64_t check_note(strata_checker_t *checker, check_note_kind_t kind, uint32_t actor, uint64_t life, uint64_t event);
/* Returns a note, or NULL if it is no longer kept. */
const check_note_t *check_note_at(const strata_checker_t *checker, uint64_t number);
uint64_t check_note_oldest(const strata_checker_t *checker);

/* The two sides of a fault; either life may be NULL, and `old` too. */
typedef struct check_fault {
    strata_hazard_t kind;
    int rule; /* 0 if it is not a single one */
    check_life_t *life;
    uint32_t actor; /* the actor at fault, or that met the fault */
    uint64_t note; /* the note of its action; 0 if none */
    const check_use_t *old;
    const check_touch_t *launch; /* the access of a graph that met the fault; NULL if none */
} check_fault_t;

/* Counts the fault and keeps its report. Only the first of each kind counts for one life. */
void check_report_history(strata_checker_t *checker, const check_fault_t *fault);
char *check_report_text(strata_checker_t *checker, const check_fault_t *fault, uint64_t number);

/* ---- the checker ---- */

struct strata_checker {
    strata_sim_t *world;
    uint32_t rules;
    bool incomplete; /* there was no host memory for something */
    bool aliases; /* some memory was mapped at two addresses at once */
    check_actor_t *actors; /* [0] is no actor */
    uint32_t actor_count;
    uint32_t only_host; /* the one actor for all threads if rule 3 is omitted */
    check_clock_t done[SIM_DEVICES_MAX], done_blocking[SIM_DEVICES_MAX]; /* clocks of destroyed streams */
    check_map_t names; /* reported block -> life */
    check_map_t pools; /* capture -> graph pool */
    check_map_t locks, keys; /* -> clocks[] */
    check_clock_t *clocks;
    size_t clock_count;
    sim_tree_t segments, leases, paused;
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
