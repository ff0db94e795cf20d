/* The report of the guards of one place when it ends: one account for all of them, reported once, by the guard that ends last. */
#ifndef STRATA_ALLOCATION_LAYER_GUARD_ACCOUNT_H
#define STRATA_ALLOCATION_LAYER_GUARD_ACCOUNT_H

#include "allocation/domain/layer.h"

typedef struct guard_account guard_account_t;

/* A block that nobody freed. */
typedef struct guard_leak {
    uint64_t bytes, address, number;
    const char *tag; /* "": nobody said */
} guard_leak_t;

/* Adds a guard of a place; NULL: no host memory. Any thread, no lock is held. */
guard_account_t *strata_guard_account_join(const strata_domain_t *domain);
/* Any thread; not two for the same account at a time, because a place ends in one thread. */
void strata_guard_account_add_leak(guard_account_t *account, const guard_leak_t *leak);
void strata_guard_account_add_unseen(guard_account_t *account, uint64_t blocks);
/* Removes a guard; the last one reports on standard error what was added, if anything was. */
void strata_guard_account_leave(guard_account_t *account);

#endif
