/* The conformance rows of another library of composable resources (RMM), written from scratch;
 * docs/peers.md lists them. */
#ifndef STRATA_CONFORM_ROWS_H
#define STRATA_CONFORM_ROWS_H

#include "lab/conform/rig/subject.h"

void sizes_from_4_bytes_to_1_petabyte(const subject_t *subject);
void a_hundred_are_live_at_once(const subject_t *subject);
void five_of_ten_are_counted_and_told(const subject_t *subject);
void a_copy_of_the_handle_is_the_handle(const subject_t *subject);
void four_threads_at_once(const subject_t *subject);
void another_thread_frees_on_its_stream(const subject_t *subject);
void a_destroyed_stream_leaves_its_memory(const subject_t *subject);
void what_threads_freed_is_one_piece_again(const subject_t *subject);

#endif
