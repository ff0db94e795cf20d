/* A world of one device with a checker, and a program's steps told to both. Three blocking-free streams; memory that the test
 * serves itself from one chunk, as an allocator would. */
#ifndef STRATA_TESTS_CHECKER_WATCHED_H
#define STRATA_TESTS_CHECKER_WATCHED_H

#include "platform/sim/checker/checker.h"
#include "tests/sim/sim_fixture.h"

enum { WATCHED_STREAMS = 3 };

typedef struct watched {
    fixture_t sim;
    strata_device_t *device;
    strata_checker_t *checker;
    strata_handle_t streams[WATCHED_STREAMS]; /* non-blocking */
    strata_address_t chunk; /* 16 MiB */
} watched_t;

void watched_open(watched_t *w, uint32_t rules);
void watched_open_on(watched_t *w, uint32_t rules, const strata_sim_options_t *options);
void watched_close(watched_t *w);

/* A test of `w`, where every rule is checked. */
#define TEST_WATCHED(suite, name) TEST_WITH(suite, name, watched_t, w, watched_close, watched_open(w, STRATA_CHECKER_ALL))

/* Works like the macro above, once for each `way` from 0 to below `ways`. */
#define TEST_WATCHED_WAYS(suite, name, way, ways)                                                                                  \
    TEST_WAYS(suite, name, way, ways, watched_t, w, watched_close, watched_open(w, STRATA_CHECKER_ALL))

/* A block of 1 MiB at the chunk's `mib`-th. */
void serve(watched_t *w, uint64_t name, uint64_t mib, strata_handle_t stream);
void work_at(watched_t *w, uint64_t mib, strata_handle_t stream, bool write);
/* `stream` waits for all that `other` has been given. */
void order(watched_t *w, strata_handle_t stream, strata_handle_t other);

#define EXPECT_HAZARDS(w, kind, wanted)                                                                                            \
    do {                                                                                                                           \
        EXPECT_EQ(strata_checker_hazards_of((w)->checker, STRATA_HAZARD_##kind), (wanted));                                        \
        EXPECT_EQ(strata_checker_hazards((w)->checker), (wanted));                                                                 \
    } while (0)

#endif
