/* The happens-before checker of a simulated world (docs/contracts.md §9). It turns "stream-safe" from a
 * hope into a test.
 *
 *     stream 1   use A --> record e                    the event is an edge: all before the record
 *                                  \                   precedes all after the wait
 *     stream 2                      wait for e --> use B
 *
 *     addresses  |==A, freed==|==B==|....              each range has an owner, the owner's uses,
 *                                                      and the uses of earlier owners
 *
 * Each stream, host thread and branch of a graph has a vector clock. Stream order, events, host waits
 * and lock hand-overs join clocks. A use is a hazard unless its clock includes every use that the rules
 * place before it.
 *
 * The checker observes every call on the world's devices by itself. The program or the replay reports
 * the owners of memory, around its calls of the allocator, which does not depend on the checker. Memory
 * that was not reported belongs to the caller that got it from the device. Without a checker a world
 * pays one test of a pointer per call. Any thread may call, and any number at once. */
#ifndef STRATA_PLATFORM_SIM_CHECKER_H
#define STRATA_PLATFORM_SIM_CHECKER_H

#include "platform/sim/sim.h"

/* The rules of docs/contracts.md §9, one bit each. An omitted rule counts in the most lenient sense. */
#define STRATA_CHECKER_RULE(number) (1u << (number))
#define STRATA_CHECKER_ALL          0x7feu
/* Limits rule 6 to pool memory with a last free that the allocating thread has not seen. Memory without
 * an earlier owner is valid at once, since there is no earlier use to conflict with. */
#define STRATA_CHECKER_FRESH_IS_VALID 1u
/* Checks only the lifetimes of blocks. For programs with unknown reads, writes and ordering of their
 * own data. */
#define STRATA_CHECKER_LIFETIMES ((STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1)) | STRATA_CHECKER_FRESH_IS_VALID)

/* X(name, text) */
#define STRATA_HAZARD_MAP(X)                                                                                                       \
    X(USE_AFTER_FREE, "work uses memory after its free")                                                                           \
    X(NEW_OWNER, "a new owner uses memory without an order after the old owner's last use")                                        \
    X(FREE, "a free while work on another stream is neither covered by a borrow nor ordered before the free")                      \
    X(UNDER_WORK, "memory goes back to the device, or is unmapped, under running work")                                            \
    X(TAKEN_AWAY, "memory of a live block goes back to the device, or is unmapped")                                                \
    X(FOREIGN, "work accesses a block of another owner")                                                                           \
    X(OUTSIDE, "memory of a pool is used without an order after its allocation")                                                   \
    X(RACE, "two accesses, one of them a write, have no order")                                                                    \
    X(OVERLAP, "a block is served in memory of another live block")                                                                \
    X(GIVEN_BACK, "a graph is launched after its memory went back to the device")                                                  \
    X(SERVED_SINCE, "a graph is launched over a live block that was served after its capture")                                     \
    X(PAUSED, "work uses memory that is paused")

typedef enum strata_hazard {
#define STRATA_HAZARD_ENUM(name, text) STRATA_HAZARD_##name,
    STRATA_HAZARD_MAP(STRATA_HAZARD_ENUM)
#undef STRATA_HAZARD_ENUM
        STRATA_HAZARDS
} strata_hazard_t;

typedef struct strata_checker strata_checker_t;

/* Checks a world from now on, once in the world's life (otherwise E_INVALID). Earlier calls are
 * unknown. Memory that the program got before is checked as far as blocks are reported, but work
 * submitted before is not. */
strata_status_t strata_checker_begin(strata_sim_t *world, uint32_t rules, strata_checker_t **checker);
/* Ends the checking of the world, which must still exist. NULL is ignored. */
void strata_checker_end(strata_checker_t *checker);

/* ---- the verdict ---- */

/* Return the number of hazards so far. Each fault is counted once, without its consequences. */
uint64_t strata_checker_hazards(strata_checker_t *checker);
uint64_t strata_checker_hazards_of(strata_checker_t *checker, strata_hazard_t kind);
const char *strata_hazard_text(strata_hazard_t kind);
/* Returns the text of hazard `index`, with the history of both sides, or NULL after the last that was
 * kept. The first 16 are kept. The text is valid until the checker ends. */
const char *strata_checker_report(strata_checker_t *checker, size_t index);
/* Returns false if the host had no memory for everything that had to be recorded, so that there is no
 * verdict. */
bool strata_checker_complete(strata_checker_t *checker);

/* ---- the owners of memory, reported by the program or the replay ---- */

typedef struct strata_checker_block {
    uint64_t name; /* nonzero, unique to this lifetime: a ref, for example */
    strata_device_t *device; /* of the streams */
    strata_handle_t stream; /* the owner's */
    strata_address_t address;
    uint64_t size; /* as granted; a block of 0 bytes is not checked */
    bool ownerless; /* a place without an owner stream; `stream` is then the first borrower, unless it is NULL */
    bool planned; /* rule 8: the free itself must be ordered before the next use */
    uint64_t graph_pool; /* rule 10: the graph pool that served it; 0 if none */
} strata_checker_block_t;

/* Reports that the allocator has served the block. */
void strata_checker_allocated(strata_checker_t *checker, const strata_checker_block_t *block);
void strata_checker_borrowed(strata_checker_t *checker, uint64_t name, strata_handle_t stream);
void strata_checker_erased(strata_checker_t *checker, uint64_t name, strata_handle_t stream);
/* Report that the program is about to free the block. The last use was on its owner's stream (only on
 * its borrowers' if it has no owner), or with freed_on on `stream`. */
void strata_checker_freed(strata_checker_t *checker, uint64_t name);
void strata_checker_freed_on(strata_checker_t *checker, uint64_t name, strata_handle_t stream);

/* Reports that the requests of a capture are served by this graph pool, a nonzero number that the
 * caller chooses. `capture` is the id from strata_device_capture_status(). Must be called before the
 * first launch. */
void strata_checker_capture_pool(strata_checker_t *checker, uint64_t capture, uint64_t graph_pool);

/* Reports work for which there is no device call. With `begins` it is the owner's first, which must be
 * ordered after the old owner's. Otherwise only its end matters. */
void strata_checker_used(strata_checker_t *checker, uint64_t name, strata_handle_t stream, bool begins);
/* Sets the expected owners of the calling thread's next work: access i must belong to allocation
 * names[i], or to any if that is 0. */
void strata_checker_expect(strata_checker_t *checker, const uint64_t *names, size_t count);
/* Reports that the calling thread reads or writes pinned or managed memory. */
void strata_checker_host_access(strata_checker_t *checker, strata_address_t address, uint64_t size, bool write);

/* Between true and false the calling thread pauses or resumes memory (strata_pause(), strata_resume()).
 * Memory that it unmaps still belongs to its owners, and memory that it maps there again is the same
 * memory. Work that uses it between the two is a hazard. */
void strata_checker_pausing(strata_checker_t *checker, bool pausing);

/* Report edges between host threads besides the locks of the stacks: thread start and join, and the
 * program's own locks. Everything that a thread did before it published a key precedes everything that
 * another does after it observed the key. */
void strata_checker_publish(strata_checker_t *checker, uint64_t key);
void strata_checker_observe(strata_checker_t *checker, uint64_t key);

/* For the reports: set the name of a stream, and the program's position in its text (a line, a step). */
void strata_checker_name(strata_checker_t *checker, strata_device_t *device, strata_handle_t stream, const char *label);
void strata_checker_line(strata_checker_t *checker, uint64_t line);

#endif
