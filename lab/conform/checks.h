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
      "A request of 0 bytes returns a block without an address. The block has its own ref and is freed like any other. "           \
      "No layer receives the request.")                                                                                            \
    X(two_live_blocks_differ, "Blocks that are live at the same time do not overlap, and no two have the same ref.")               \
    X(random_sizes_are_aligned_and_large_enough,                                                                                   \
      "Requests are up to 9 MiB. Each block has at least the requested bytes and begins at a multiple of 256. Blocks "             \
      "are freed by ref and by pointer.")                                                                                          \
    X(larger_alignments_are_served_or_refused,                                                                                     \
      "Alignments up to 4 MiB are served if the layers of the stack declare that they support them. Others fail with "             \
      "E_UNSUPPORTED. A layer that moves addresses or serves more than 256 declares its `alignment`. A decorator "                 \
      "without one passes on the alignment of the request.")                                                                       \
    X(random_program,                                                                                                              \
      "2,000 random operations run on two streams: allocate, free, free on another stream, borrow, kernels, release. "             \
      "Blocks do not overlap, and every request is served, because the memory is large enough. `validate` finds no "               \
      "fault, and the figures are sums over the live blocks.")                                                                     \
    X(thousands_of_blocks_come_and_go,                                                                                             \
      "4,000 blocks of up to 64 KiB are allocated and freed on one stream, with up to 1,000 live at once. After the "              \
      "last free and a release, no memory is reserved. A cache that occasionally loses a block would keep the chunk of "           \
      "that block.")                                                                                                               \
    X(statistics_are_sums, "Requested, allocated and reserved bytes of the streams add up to those of the place.")                 \
    X(release_returns_everything, "After the last free, strata_release() gives every byte back to the device.")                    \
    X(close_by_force_gives_everything_back,                                                                                        \
      "A facade is closed by force while blocks are live. The device gets all its memory back, because a layer's "                 \
      "destroy returns its chunks even if they contain live blocks.")                                                              \
    X(stale_refs_are_told,                                                                                                         \
      "Every call returns E_STALE for a freed ref and for a ref of another facade, even after the memory is reused.")              \
    X(borrows_are_honoured_or_waited_for,                                                                                          \
      "A block that another stream has borrowed is not reused before the work of that stream is done. If no layer "                \
      "supports borrows, the free waits on the host.")                                                                             \
    X(out_of_memory_leaves_everything_as_it_was,                                                                                   \
      "On a nearly full device of 64 MiB, a request of 60 MiB fails with E_NO_MEMORY. It changes neither the passed "              \
      "block nor the figures of live blocks, and it reserves no more memory. After all blocks are freed and released, "            \
      "the request is served.")                                                                                                    \
    X(no_grow_asks_for_nothing,                                                                                                    \
      "A request with STRATA_NO_GROW is served from cached memory or refused. It never reaches the bottom of the stack.")          \
    X(no_retry_climbs_no_ladder, "A request with STRATA_NO_RETRY that cannot be served fails at once.")                            \
    X(the_bottom_is_out_of_memory_at_every_call,                                                                                   \
      "Each allocation from the bottom of the stack fails in turn with E_NO_MEMORY: once alone, and once together with "           \
      "all later ones. A failing request changes nothing, and afterwards the stack serves requests again.")                        \
    X(shared_blocks_live_until_the_last_free, "A retained block lives until its last owner frees it.")                             \
    X(a_snapshot_shows_what_is_live,                                                                                               \
      "strata_snapshot() shows every live block once, in the order of addresses. A cache shows its blocks through "                \
      "`walk`.")                                                                                                                   \
    X(addresses_inside_find_their_block,                                                                                           \
      "For each address within a live block, strata_base_pointer() finds the block. A cache finds it through `find` or "           \
      "`walk`.")                                                                                                                   \
    X(neighbours_and_victims_hold,                                                                                                 \
      "strata_neighbours() returns the free memory around a block. If the blocks that strata_best_victims() names are "            \
      "freed, the requested run becomes free. Both functions read the links `prev` and `next` of the blocks of a cache.")          \
    X(trim_keeps_what_is_asked,                                                                                                    \
      "strata_trim() releases nothing if all idle bytes may stay, and as much as it can if none may. The figures drop "            \
      "by the bytes that it reports.")                                                                                             \
    X(sizes_from_4_bytes_to_1_petabyte,                                                                                            \
      "Requests of 4 bytes, 1 KiB, 1 MiB and 1 GiB are served, and the memory can be used. A request of 2^48 bytes "               \
      "fails with E_NO_MEMORY, and larger ones fail with E_INVALID. The reason has the requested size.")                           \
    X(a_hundred_are_live_at_once,                                                                                                  \
      "100 blocks of random sizes up to 5 MiB are live at once and do not overlap. Then 200 random operations allocate "           \
      "and free blocks.")                                                                                                          \
    X(five_of_ten_are_counted_and_told,                                                                                            \
      "Five of ten blocks of 10 MiB are freed. The figures count both groups, and the free of an unknown address "                 \
      "changes nothing. A close reports the five live blocks with their tags.")                                                    \
    X(a_copy_of_the_handle_is_the_handle,                                                                                          \
      "A block that is allocated through one copy of a facade's handle can be freed through another copy, but not "                \
      "through another facade.")                                                                                                   \
    X(four_threads_at_once,                                                                                                        \
      "Four threads, two on each of two streams, allocate and free at once. Blocks do not overlap, none is lost, and no "          \
      "request is refused while most of the device is free. A layer with state that several threads use is `guarded` or "          \
      "has locks of its own.")                                                                                                     \
    X(another_thread_frees_on_its_stream,                                                                                          \
      "One thread allocates blocks and launches work. Another thread launches work on its own stream and frees the "               \
      "blocks there. The next owner of the memory begins after that work.")                                                        \
    X(a_destroyed_stream_leaves_its_memory,                                                                                        \
      "Memory that was freed before the end of a stream serves other streams after its work is done. Blocks that are "             \
      "live at the end can be freed later.")                                                                                       \
    X(what_threads_freed_is_one_piece_again,                                                                                       \
      "On a device of 64 MiB, four threads hold blocks and free them. Then one request of 50 MiB is served, because "              \
      "free neighbors merge or idle chunks are released.")                                                                         \
    X(the_bottom_sees_the_request,                                                                                                 \
      "A request that reaches the bottom of the stack has the stream, the tag and STRATA_NO_RETRY of the program's "               \
      "request. Its size and alignment are at least those of that request.")                                                       \
    X(bytes_of_a_block_are_its_own,                                                                                                \
      "On the second of two devices, each block is memory of that device from its first byte to its last. Its bytes "              \
      "stay as the program wrote them until it is freed. No other block shares them, and no layer writes to them.")                \
    X(other_streams_begin_after_its_work,                                                                                          \
      "Freed memory is served to another stream only if that stream's work begins after the work of the previous owner.")          \
    X(the_bottom_refuses_every_call,                                                                                               \
      "This check is the_bottom_is_out_of_memory_at_every_call with a device fault (E_DEVICE) in place of the missing "            \
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
const char *check_unsupported(int check, const strata_layer_type_t *const *layers);
/* Prints all checks as a Markdown page. */
void checks_print(FILE *out);

#endif
