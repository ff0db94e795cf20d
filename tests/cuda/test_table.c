/* The device's small map, against a plain array. */
#include "platform/cuda/driver/cuda_table.h"

#include "platform/host/host_memory.h"
#include "tests/harness/test.h"

#define KEYS 300

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

TEST(cuda_table, agrees_with_a_plain_array) {
    strata_lock_t lock;
    strata_cuda_table_t table = {0};
    uint64_t model[KEYS] = {0}, random = 1, live = 0; /* 0: not there */
    strata_lock_init(&lock, STRATA_RANK_DEVICE, NULL);
    for (int step = 0; step < 20000; step++) {
        uint64_t index = next_random(&random) % KEYS, key = (index + 1) * 512, value = 0;
        if (next_random(&random) % 2) {
            ASSERT_OK(strata_cuda_table_claim(&table, &lock));
            live += model[index] == 0;
            model[index] = next_random(&random) + 1;
            strata_lock(&lock);
            strata_cuda_table_insert(&table, key, model[index]);
        } else {
            strata_lock(&lock);
            EXPECT_EQ(strata_cuda_table_remove(&table, key, &value), model[index] != 0);
            EXPECT_EQ(value, model[index]);
            live -= model[index] != 0;
            model[index] = 0;
        }
        EXPECT_EQ(table.count, live);
        EXPECT_EQ(table.claimed, 0);
        strata_unlock(&lock);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t *found = strata_cuda_table_find(&table, (i + 1) * 512);
        EXPECT_EQ(found ? *found : 0, model[i]);
    }
    strata_cuda_table_destroy(&table);
    strata_lock_destroy(&lock);
}

TEST(cuda_table, claimed_room_holds) {
    strata_lock_t lock;
    strata_cuda_table_t table = {0};
    strata_lock_init(&lock, STRATA_RANK_DEVICE, NULL);
    for (int i = 0; i < 40; i++) ASSERT_OK(strata_cuda_table_claim(&table, &lock));
    uint64_t capacity = table.capacity, allocations = strata_host_allocations();
    strata_lock(&lock);
    for (uint64_t i = 1; i <= 40; i++) strata_cuda_table_insert(&table, i, i);
    uint64_t lifted = 0;
    EXPECT_TRUE(strata_cuda_table_remove_claimed(&table, 7, &lifted));
    EXPECT_EQ(lifted, 7);
    EXPECT_EQ(table.claimed, 1);
    strata_cuda_table_insert(&table, 7, 8);
    strata_unlock(&lock);
    EXPECT_EQ(strata_host_allocations(), allocations);
    EXPECT_EQ(table.capacity, capacity);
    EXPECT_EQ(*strata_cuda_table_find(&table, 7), 8);
    /* A claim that finds no memory changes nothing. */
    strata_host_fail_at(1, 1);
    strata_status_t status = STRATA_OK;
    for (int i = 0; i < 200 && status == STRATA_OK; i++) status = strata_cuda_table_claim(&table, &lock);
    strata_host_fail_at(0, 0);
    EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    EXPECT_EQ(table.count, 40);
    EXPECT_LE(2 * (table.count + table.claimed), table.capacity);
    strata_cuda_table_destroy(&table);
    strata_lock_destroy(&lock);
}
