/* Memory of every kind on a real GPU. */
#include "platform/arithmetic.h"
#include "tests/gpu/gpu.h"

TEST(gpu, opens_and_says_what_it_is) {
    GPU_OR_SKIP(device);
    uint64_t left = 0, total = 0;
    EXPECT_NE(device->name[0], '\0');
    EXPECT_GE(device->capabilities.alignment, 256);
    EXPECT_FALSE(device->capabilities.simulated);
    EXPECT_OK(strata_device_mem_info(device, &left, &total));
    EXPECT_TRUE(left > 0 && left <= total);
    strata_device_close(device);
}

TEST(gpu, opens_again_after_close) {
    GPU_OR_SKIP(device);
    strata_device_t *second = NULL;
    uint64_t left, total;
    ASSERT_OK(strata_cuda_open(0, &second)); /* the primary context is shared */
    strata_device_close(device);
    EXPECT_OK(strata_device_mem_info(second, &left, &total));
    strata_device_close(second);
    ASSERT_OK(strata_cuda_open(0, &second));
    EXPECT_OK(strata_device_mem_info(second, &left, &total));
    strata_device_close(second);
}

TEST(gpu, malloc_and_free_of_many_sizes) {
    GPU_OR_SKIP(device);
    static const uint64_t sizes[] = {1, 255, 4096, 1 << 20, (2 << 20) + 1, 64 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    strata_address_t addresses[SIZES] = {0};
    for (size_t i = 0; i < SIZES; i++) {
        ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, sizes[i], &addresses[i]));
        EXPECT_EQ(addresses[i] % device->capabilities.alignment, 0);
        EXPECT_EQ(strata_device_host_view(device, addresses[i], sizes[i]), NULL);
        for (size_t k = 0; k < i; k++)
            EXPECT_TRUE(addresses[i] + sizes[i] <= addresses[k] || addresses[k] + sizes[k] <= addresses[i]);
        EXPECT_OK(strata_device_fill(device, addresses[i], 0x5a, sizes[i], NULL));
    }
    for (size_t i = 0; i < SIZES; i++) EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, addresses[i]));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(device, STRATA_MEMORY_DEVICE, addresses[0]));
    EXPECT_OK(strata_device_synchronise(device));
    strata_device_close(device);
}

TEST(gpu, too_much_is_out_of_memory_and_no_more) {
    GPU_OR_SKIP(device);
    uint64_t left, total;
    strata_address_t address = 7;
    ASSERT_OK(strata_device_mem_info(device, &left, &total));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(device, STRATA_MEMORY_DEVICE, 2 * total, &address));
    EXPECT_EQ(strata_last_error()->device_code, 2);
    EXPECT_CONTAINS(strata_last_error()->text, "CUDA_ERROR_OUT_OF_MEMORY (2)");
    EXPECT_EQ(address, 7);
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 4096, &address));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    strata_device_close(device);
}

TEST(gpu, mem_info_follows) {
    GPU_OR_SKIP(device);
    uint64_t before, during, after, total;
    strata_address_t address;
    const uint64_t size = UINT64_C(256) << 20;
    ASSERT_OK(strata_device_mem_info(device, &before, &total));
    if (before < 2 * size) {
        strata_device_close(device);
        TEST_SKIP("less than 512 MiB free");
    }
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, size, &address));
    EXPECT_OK(strata_device_mem_info(device, &during, &total));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
    EXPECT_OK(strata_device_mem_info(device, &after, &total));
    EXPECT_LE(during + size / 2, before);
    EXPECT_GE(after, during + size / 2);
    strata_device_close(device);
}

/* A hundredth of what is free, 64 MiB at most: more managed memory than the device has free can hang it. */
TEST(gpu, managed_memory_is_seen_by_both) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, managed);
    uint64_t left, total;
    strata_address_t address;
    ASSERT_OK(strata_device_mem_info(device, &left, &total));
    uint64_t size = strata_min(left / 100, UINT64_C(64) << 20);
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_MANAGED, size, &address));
    unsigned char *view = strata_device_host_view(device, address, size);
    EXPECT_EQ(view != NULL, device->capabilities.concurrent_managed);
    EXPECT_OK(strata_device_fill(device, address, 0x3c, size, NULL));
    EXPECT_OK(strata_device_synchronise(device));
    if (view) {
        EXPECT_EQ(view[0], 0x3c);
        EXPECT_EQ(view[size - 1], 0x3c);
        EXPECT_OK(strata_device_advise(device, address, size, STRATA_ADVISE_SET_PREFERRED, false));
        EXPECT_OK(strata_device_prefetch(device, address, size, false, NULL));
        EXPECT_OK(strata_device_prefetch(device, address, size, true, NULL));
        EXPECT_OK(strata_device_synchronise(device));
        EXPECT_EQ(view[size / 2], 0x3c);
    }
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_MANAGED, address));
    strata_device_close(device);
}

TEST(gpu, pinned_memory_is_filled_by_the_device) {
    GPU_OR_SKIP(device);
    static const uint64_t alignments[] = {64, 4096, 65536};
    for (size_t i = 0; i < 3; i++) {
        strata_address_t address;
        const uint64_t size = 100000;
        ASSERT_OK(strata_device_host_alloc(device, STRATA_MEMORY_PINNED, size, alignments[i], STRATA_HOST_PORTABLE, &address));
        EXPECT_EQ(address % alignments[i], 0);
        unsigned char *view = strata_device_host_view(device, address, size);
        ASSERT_NE(view, NULL);
        memset(view, 1, size);
        EXPECT_OK(strata_device_fill(device, address, 0x77, size, NULL));
        EXPECT_OK(strata_device_synchronise(device));
        EXPECT_EQ(view[0] + view[size - 1], 2 * 0x77);
        EXPECT_OK(strata_device_host_free(device, STRATA_MEMORY_PINNED, address));
    }
    strata_device_close(device);
}

TEST(gpu, pools_serve_in_stream_order) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, pools);
    strata_handle_t stream, pool, standard;
    strata_address_t address, again;
    uint64_t value = 0;
    ASSERT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_device_pool_default(device, &standard));
    ASSERT_OK(strata_device_pool_create(device, 0, false, &pool));
    ASSERT_OK(strata_device_pool_set(device, pool, STRATA_POOL_RELEASE_THRESHOLD, UINT64_MAX));
    ASSERT_OK(strata_device_malloc_async(device, pool, 1 << 20, stream, &address));
    EXPECT_OK(strata_device_fill(device, address, 1, 1 << 20, stream));
    EXPECT_OK(strata_device_pool_get(device, pool, STRATA_POOL_USED_CURRENT, &value));
    EXPECT_GE(value, 1 << 20);
    EXPECT_OK(strata_device_free_async(device, address, stream));
    ASSERT_OK(strata_device_malloc_async(device, pool, 1 << 20, stream, &again));
    EXPECT_EQ(again, address); /* the same stream gets it back at once */
    EXPECT_OK(strata_device_free_async(device, again, stream));
    EXPECT_OK(strata_device_stream_synchronise(device, stream));
    EXPECT_OK(strata_device_pool_get(device, pool, STRATA_POOL_RESERVED_CURRENT, &value));
    EXPECT_GE(value, 1 << 20); /* the threshold keeps it */
    EXPECT_OK(strata_device_pool_trim(device, pool, 0));
    EXPECT_OK(strata_device_pool_get(device, pool, STRATA_POOL_RESERVED_CURRENT, &value));
    EXPECT_EQ(value, 0);
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_pool_destroy(device, standard));
    EXPECT_OK(strata_device_pool_destroy(device, pool));
    EXPECT_OK(strata_device_stream_destroy(device, stream));
    strata_device_close(device);
}
