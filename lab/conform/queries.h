/* Checks of the queries about the blocks of every layer. */
#ifndef STRATA_CONFORM_QUERIES_H
#define STRATA_CONFORM_QUERIES_H

#include "lab/conform/rig/subject.h"

void shared_blocks_live_until_the_last_free(const subject_t *subject);
void a_snapshot_shows_what_is_live(const subject_t *subject);
void addresses_inside_find_their_block(const subject_t *subject);
void neighbours_and_victims_hold(const subject_t *subject);
void trim_keeps_what_is_asked(const subject_t *subject);

#endif
