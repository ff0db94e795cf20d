/* C++: objects own blocks, streams and the facade, and failed calls throw. Build it by hand:
 *
 *     c++ -std=c++17 raii.cpp $(pkg-config --cflags --libs strata)
 */
#include <iostream>
#include <strata/strata.hpp>
#include <vector>

static const std::size_t GiB = std::size_t(1) << 30;

int main() {
    strata::options options;
    options.preset = "strata";
    options.devices = "sim";
    strata::facade memory(options);
    {
        strata::stream copy = memory.create_stream(strata_gpu(0));
        strata::block batch = memory.allocate(strata_gpu(0), copy, 2 * GiB);
        /* ... filled on `copy`, read on the default stream ... */
        batch.record_stream(nullptr);
    } /* frees the block, then forgets and destroys the stream */

    std::vector<strata::block> weights;
    try {
        for (;;) weights.push_back(memory.allocate(strata_gpu(0), nullptr, 8 * GiB));
    } catch (const strata::out_of_memory &full) {
        std::cout << weights.size() << " blocks of 8 GiB, then: " << full.what() << "\n";
    }
    weights.clear();
    std::cout << memory.statistics(strata_gpu(0)).live_allocations << " blocks are live\n";
    memory.close();
}
