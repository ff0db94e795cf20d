/* Checks the path of each request through a stack. */
#ifndef STRATA_CONFORM_REQUESTS_H
#define STRATA_CONFORM_REQUESTS_H

#include "lab/conform/rig/subject.h"

void the_bottom_sees_the_request(const subject_t *subject);
void bytes_of_a_block_are_its_own(const subject_t *subject);
void other_streams_begin_after_its_work(const subject_t *subject);

#endif
