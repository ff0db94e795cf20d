/* The happens-before checker of a simulated world (docs/contracts.md §9): it turns "stream-safe" from a hope into a test.
 *
 * It sees every call on the world's devices by itself. The program or the replay reports who owns which memory, around its calls of
 * the allocator; the allocator does not know of it. Without a checker a world pays one look at a pointer per call. Any thread, any
 * number at once. Memory that was not reported belongs to whoever got it from the device.
 */
#ifndef STRATA_PLATFORM_SIM_CHECKER_H
#define STRATA_PLATFORM_SIM_CHECKER_H

#include "platform/sim/sim.h"

/* What the rules of docs/contracts.md §9 distinguish. A rule that is left out counts in its most lenient sense. */
#define STRATA_CHECKER_RULE(number) (1u << (number))
#define STRATA_CHECKER_ALL          0x7feu
/* Rule 6 is asked only of pool memory whose last free the allocating thread has not seen. Memory that nobody had before is valid at
 * once, since there is no earlier use to conflict with. */
#define STRATA_CHECKER_FRESH_IS_VALID 1u
/* For programs of which nobody knows what reads, what writes, and what orders their own data: only the lifetimes of blocks. */
#define STRATA_CHECKER_LIFETIMES ((STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1)) | STRATA_CHECKER_FRESH_IS_VALID)

/* X(name, text) */
#define STRATA_HAZARD_MAP(X)                                                                                                       \
    X(USE_AFTER_FREE, "work uses memory after its free")                                                                           \
    X(NEW_OWNER, "a new owner uses memory without an order after the old owner's last use")                                        \
    X(FREE, "a free while work on another stream is neither borrowed for nor ordered before it")                                   \
    X(UNDER_WORK, "memory goes back to the device, or is unmapped, under running work")                                            \
    X(TAKEN_AWAY, "memory goes back to the device, or is unmapped, while it is a live block's")                                    \
    X(FOREIGN, "work touches a block that is in another owner's hands")                                                            \
    X(OUTSIDE, "memory of a pool is used without an order after its allocation")                                                   \
    X(RACE, "two accesses, one of them a write, have no order")                                                                    \
    X(OVERLAP, "a block is served whose memory is another live block's")                                                           \
    X(GIVEN_BACK, "a graph is launched whose memory went back to the device after its capture")                                    \
    X(SERVED_SINCE, "a graph is launched over a live block that was served after its capture")                                     \
    X(PAUSED, "work uses memory that is paused")

typedef enum strata_hazard {
#define STRATA_HAZARD_ENUM(name, text) STRATA_HAZARD_##name,
    STRATA_HAZARD_MAP(STRATA_HAZARD_ENUM)
#undef STRATA_HAZARD_ENUM
        STRATA_HAZARDS
} strata_hazard_t;

typedef struct strata_checker strata_checker_t;

/* Watches a world from now on, once in the world's life (else E_INVALID). Earlier calls are not known: memory got before is watched
 * as far as blocks are reported, work submitted before is not. */
strata_status_t strata_checker_begin(strata_sim_t *world, uint32_t rules, strata_checker_t **checker);
/* Stops watching the world, which must still exist. NULL is ignored. */
void strata_checker_end(strata_checker_t *checker);

/* ---- the verdict ---- */

/* Hazards so far. Each fault is counted once, without its consequences. */
uint64_t strata_checker_hazards(strata_checker_t *checker);
uint64_t strata_checker_hazards_of(strata_checker_t *checker, strata_hazard_t kind);
const char *strata_hazard_text(strata_hazard_t kind);
/* Hazard `index` in words, with the history of both sides; NULL after the last that was kept (the first 16 are). Valid until the
 * checker ends. */
const char *strata_checker_report(strata_checker_t *checker, size_t index);
/* False: the host had no memory for everything that had to be remembered, so there is no verdict. */
bool strata_checker_complete(strata_checker_t *checker);

/* ---- who owns what: reported by the program or the replay ---- */

typedef struct strata_checker_block {
    uint64_t name; /* nonzero, unique to this lifetime: a ref, for example */
    strata_device_t *device; /* of the streams */
    strata_handle_t stream; /* the owner's */
    strata_address_t address;
    uint64_t size; /* granted; 0: nothing to watch */
    bool ownerless; /* a place without an owner stream: `stream`, unless NULL, is the first borrower */
    bool planned; /* rule 8: the free itself must be ordered before the next use */
    uint64_t graph_pool; /* rule 10: the graph pool that served it; 0: none */
} strata_checker_block_t;

/* The allocator has served it. */
void strata_checker_allocated(strata_checker_t *checker, const strata_checker_block_t *block);
void strata_checker_borrowed(strata_checker_t *checker, uint64_t name, strata_handle_t stream);
void strata_checker_erased(strata_checker_t *checker, uint64_t name, strata_handle_t stream);
/* The program is about to give it back; the last use was on its owner's stream (its borrowers' alone where it has no owner), or on
 * `stream` (free_on). */
void strata_checker_freed(strata_checker_t *checker, uint64_t name);
void strata_checker_freed_on(strata_checker_t *checker, uint64_t name, strata_handle_t stream);

/* The requests of a capture (its id, as strata_device_capture_status() says it) go to this graph pool, a number of the caller's, not
 * 0. Said before the first launch. */
void strata_checker_capture_pool(strata_checker_t *checker, uint64_t capture, uint64_t graph_pool);

/* Work for which there is no device call. `begins`: it is the owner's first, which must be ordered after the old owner's; otherwise
 * only its end matters. */
void strata_checker_used(strata_checker_t *checker, uint64_t name, strata_handle_t stream, bool begins);
/* The calling thread's next work: access i belongs to the allocation names[i] (0: whatever is there). */
void strata_checker_expect(strata_checker_t *checker, const uint64_t *names, size_t count);
/* The calling thread reads or writes pinned or managed memory. */
void strata_checker_host_access(strata_checker_t *checker, strata_address_t address, uint64_t size, bool write);

/* Between true and false the calling thread pauses or resumes memory (strata_pause(), strata_resume()): what it unmaps stays its
 * owners', and what it maps there again is the same memory. Work that uses it between the two is a hazard. */
void strata_checker_pausing(strata_checker_t *checker, bool pausing);

/* Edges between host threads besides the locks of the stacks: thread start and join, and the program's own locks. What a thread did
 * before it published under a key comes before what another does after it observed the key. */
void strata_checker_publish(strata_checker_t *checker, uint64_t key);
void strata_checker_observe(strata_checker_t *checker, uint64_t key);

/* For the reports: the name of a stream; where in its text the program is (a line, a step). */
void strata_checker_name(strata_checker_t *checker, strata_device_t *device, strata_handle_t stream, const char *label);
void strata_checker_line(strata_checker_t *checker, uint64_t line);

#endif
