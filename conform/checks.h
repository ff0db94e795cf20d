/* The conformance suite: what is checked of every layer. */
#ifndef STRATA_CONFORM_CHECKS_H
#define STRATA_CONFORM_CHECKS_H

#include "conform/subject.h"

typedef void (*check_fn)(const subject_t *subject);

typedef struct check {
    const char *name;
    check_fn run;
} check_t;

#define CHECKS(X)                                                                                                                  \
    X(zero_size)                                                                                                                   \
    X(two_live_blocks_differ)                                                                                                      \
    X(random_sizes_are_aligned_and_large_enough)                                                                                   \
    X(larger_alignments_are_served_or_refused)                                                                                     \
    X(random_program)                                                                                                              \
    X(statistics_are_sums)                                                                                                         \
    X(release_returns_everything)                                                                                                  \
    X(close_by_force_gives_everything_back)                                                                                        \
    X(stale_refs_are_told)                                                                                                         \
    X(borrows_are_honoured_or_waited_for)                                                                                          \
    X(out_of_memory_leaves_everything_as_it_was)                                                                                   \
    X(no_grow_asks_for_nothing)                                                                                                    \
    X(no_retry_climbs_no_ladder)                                                                                                   \
    X(the_bottom_is_out_of_memory_at_every_call)                                                                                   \
    X(shared_blocks_live_until_the_last_free)                                                                                      \
    X(a_snapshot_shows_what_is_live)                                                                                               \
    X(addresses_inside_find_their_block)                                                                                           \
    X(neighbours_and_victims_hold)                                                                                                 \
    X(trim_keeps_what_is_asked)                                                                                                    \
    X(sizes_from_4_bytes_to_1_petabyte)                                                                                            \
    X(a_hundred_are_live_at_once)                                                                                                  \
    X(five_of_ten_are_counted_and_told)                                                                                            \
    X(a_copy_of_the_handle_is_the_handle)                                                                                          \
    X(four_threads_at_once)                                                                                                        \
    X(another_thread_frees_on_its_stream)                                                                                          \
    X(a_destroyed_stream_leaves_its_memory)                                                                                        \
    X(what_threads_freed_is_one_piece_again)                                                                                       \
    X(the_bottom_refuses_every_call)

enum {
#define CHECK_NUMBER(check) CHECK_##check,
    CHECKS(CHECK_NUMBER)
#undef CHECK_NUMBER
};

/* By number, closed by a NULL name. */
extern const check_t checks[];

#endif
