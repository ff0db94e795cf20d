/* Printed programs, compiled as they are: the main() of each is a function here. */
#ifndef STRATA_TESTS_MUTATED_PAGES_H
#define STRATA_TESTS_MUTATED_PAGES_H

int page_one(void);
int page_turns(void);

#endif
