/* The conformance suite: the checks of every layer. A check runs on a subject (rig/subject.h), which is a
 * layer in a stack over a source that can fail, or a preset. */
#ifndef STRATA_CONFORM_CHECKS_H
#define STRATA_CONFORM_CHECKS_H

#include <stdio.h>

#include "lab/conform/rig/subject.h"

typedef void (*check_fn)(const subject_t *subject);

typedef struct check {
    const char *name;
    check_fn run;
    const char *text; /* the actions and requirements of the check */
} check_t;

/* X(name, text). `strata conform --explain` and docs/conform.md show the text, which has the actions and
 * requirements of the check. */
#define CHECKS(X)                                                                                                                  \
    X(zero_size,                                                                                                                   \
      "A request of 0 bytes is a block without an address: its ref is its own, is freed like any other, and no layer is "          \
      "asked for memory.")                                                                                                         \
    X(two_live_blocks_differ, "Blocks that are live at the same time do not overlap, and no two have the same ref.")               \
    X(random_sizes_are_aligned_and_large_enough,                                                                                   \
      "Requests of up to 9 MiB: each block has at least the bytes that were asked for and begins at a multiple of 256. "           \
      "They are freed by ref and by pointer.")                                                                                     \
    X(larger_alignments_are_served_or_refused,                                                                                     \
      "Alignments up to 4 MiB are served if the layers of the stack declare that they serve them, and are E_UNSUPPORTED "          \
      "beyond that. A layer that moves addresses or serves more than 256 declares its `alignment`; a decorator without one "       \
      "passes the request's alignment on.")                                                                                        \
    X(random_program,                                                                                                              \
      "2,000 random operations on two streams: allocate, free, free on another stream, borrow, kernels, release. Blocks "          \
      "do not overlap, nothing is refused (there is memory for all of it), `validate` finds nothing, and the figures "             \
      "are the sums of what is live.")                                                                                             \
    X(thousands_of_blocks_come_and_go,                                                                                             \
      "4,000 blocks of up to 64 KiB on one stream, up to 1,000 live at once. After the last free and a release nothing "           \
      "is reserved: a cache that loses a block now and then keeps its chunk.")                                                     \
    X(statistics_are_sums, "Requested, allocated and reserved bytes of the streams add up to those of the place.")                 \
    X(release_returns_everything, "After the last free, strata_release() gives every byte back to the device.")                    \
    X(close_by_force_gives_everything_back,                                                                                        \
      "A facade that is closed by force with live blocks gives the device everything back: a layer's destroy returns "             \
      "its chunks whatever is live in them.")                                                                                      \
    X(stale_refs_are_told,                                                                                                         \
      "A ref that was freed, and one of another facade, is E_STALE for every call, also when its memory is served "                \
      "again.")                                                                                                                    \
    X(borrows_are_honoured_or_waited_for,                                                                                          \
      "A block that another stream has borrowed is not served again before that stream's work is done. Where no layer "            \
      "knows borrows the free waits on the host.")                                                                                 \
    X(out_of_memory_leaves_everything_as_it_was,                                                                                   \
      "On a device of 64 MiB that is nearly full a request of 60 MiB fails with E_NO_MEMORY and changes nothing: not "             \
      "the block that was passed, not the figures of live blocks, and no more is reserved. Once all is freed and "                 \
      "released, it is served.")                                                                                                   \
    X(no_grow_asks_for_nothing,                                                                                                    \
      "A request with STRATA_NO_GROW is served from what is cached or refused: the bottom of the stack is not asked.")             \
    X(no_retry_climbs_no_ladder, "A request with STRATA_NO_RETRY that cannot be served fails at once.")                            \
    X(the_bottom_is_out_of_memory_at_every_call,                                                                                   \
      "Every allocation from the bottom of the stack fails in turn with E_NO_MEMORY, alone and from then on. Each "                \
      "failing request changes nothing, and afterwards the stack serves again.")                                                   \
    X(shared_blocks_live_until_the_last_free, "A block that was retained lives until its last owner frees it.")                    \
    X(a_snapshot_shows_what_is_live,                                                                                               \
      "strata_snapshot() shows every live block once, in the order of addresses. A cache shows its blocks by `walk`.")             \
    X(addresses_inside_find_their_block,                                                                                           \
      "strata_base_pointer() finds the live block of each address within it. A cache finds it by `find` or `walk`.")               \
    X(neighbours_and_victims_hold,                                                                                                 \
      "strata_neighbours() tells what is free around a block, and freeing what strata_best_victims() names makes the "             \
      "run that was asked for. Both read the links `prev` and `next` of a cache's blocks.")                                        \
    X(trim_keeps_what_is_asked,                                                                                                    \
      "strata_trim() gives nothing back while as much may stay, and all that it can when nothing may; what it answers "            \
      "has left the figures.")                                                                                                     \
    X(sizes_from_4_bytes_to_1_petabyte,                                                                                            \
      "4 bytes, 1 KiB, 1 MiB and 1 GiB are served and can be used; 2^48 bytes are E_NO_MEMORY and more are E_INVALID; "            \
      "the reason names the size that was asked for.")                                                                             \
    X(a_hundred_are_live_at_once,                                                                                                  \
      "100 blocks of random sizes up to 5 MiB are live at once and do not overlap; then 200 turns allocate and free at "           \
      "random.")                                                                                                                   \
    X(five_of_ten_are_counted_and_told,                                                                                            \
      "Ten blocks of 10 MiB, five freed: the figures count them, an address that is none changes nothing, and a close "            \
      "tells the five with their tags.")                                                                                           \
    X(a_copy_of_the_handle_is_the_handle,                                                                                          \
      "What one copy of a facade's handle serves another takes back; another facade does not.")                                    \
    X(four_threads_at_once,                                                                                                        \
      "Four threads, two on each of two streams, allocate and free at once. Nothing overlaps, nothing is lost, and "               \
      "nobody is refused while most of the device is free. A layer whose state several threads use is `guarded`, or "              \
      "takes locks of its own.")                                                                                                   \
    X(another_thread_frees_on_its_stream,                                                                                          \
      "One thread allocates and works, another works on its own stream and frees there. Whoever gets the memory next "             \
      "begins after that work.")                                                                                                   \
    X(a_destroyed_stream_leaves_its_memory,                                                                                        \
      "What was freed before a stream's end serves other streams once its work is done; what is live then can be freed "           \
      "later.")                                                                                                                    \
    X(what_threads_freed_is_one_piece_again,                                                                                       \
      "On a device of 64 MiB four threads hold blocks and free them; then 50 MiB are served in one piece: free "                   \
      "neighbours merge, or idle chunks go back.")                                                                                 \
    X(the_bottom_sees_the_request,                                                                                                 \
      "A request that reaches the bottom of the stack has the stream, the tag and STRATA_NO_RETRY of the program's request, "      \
      "and at least its size and alignment.")                                                                                      \
    X(bytes_of_a_block_are_its_own,                                                                                                \
      "On the second of two devices each block is memory of that device from its first byte to its last. Its bytes stay as "       \
      "the program wrote them until its free: no other block shares them, and no layer writes there.")                             \
    X(other_streams_begin_after_its_work,                                                                                          \
      "Freed memory is served to another stream only if that stream's work begins after the work of the previous owner.")          \
    X(the_bottom_refuses_every_call,                                                                                               \
      "As the_bottom_is_out_of_memory_at_every_call, with a fault of the device (E_DEVICE) in place of the missing "               \
      "memory.")

enum {
#define CHECK_NUMBER(check, text) CHECK_##check,
    CHECKS(CHECK_NUMBER)
#undef CHECK_NUMBER
};

/* Indexed by number. Ends with a NULL name. */
extern const check_t checks[];

/* Returns the reason if a stack of these layers does not offer what a check needs. Returns NULL if the check
 * applies. `layers` ends with NULL. */
const char *check_unfit(int check, const strata_layer_type_t *const *layers);
/* Prints all checks as a Markdown page. */
void checks_print(FILE *out);

#endif
