/* The report of a place's guards when the place ends. They share one account, which the last guard reports. */
#ifndef STRATA_ALLOCATION_LAYER_GUARD_ACCOUNT_H
#define STRATA_ALLOCATION_LAYER_GUARD_ACCOUNT_H

#include "allocation/domain/layer.h"

typedef struct guard_account guard_account_t;

/* A block that was never freed. */
typedef struct guard_leak {
    uint64_t bytes, address, number;
    const char *tag; /* "" if the request had none */
} guard_leak_t;

/* Adds a guard of a place. Returns NULL if there is no host memory. Any thread, no lock is held. */
guard_account_t *strata_guard_account_acquire(const strata_domain_t *domain);
/* May be called from any thread, but not concurrently for one account, because a place ends in one thread. */
void strata_guard_account_add_leak(guard_account_t *account, const guard_leak_t *leak);
void strata_guard_account_add_unseen(guard_account_t *account, uint64_t blocks);
/* Removes a guard. The last one reports all additions on standard error, if there were any. */
void strata_guard_account_release(guard_account_t *account);

#endif
