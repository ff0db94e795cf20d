/* PyTorch's pools by name, over Strata's graph pools. A begin counts until its release, as in Strata. */
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "doors/torch/state.h"

using namespace strata_door;

namespace {

/* The function that selects the streams of a pool between its begin and its end. Strata may still call it shortly after the
 * end, when the objects that it captured may be destroyed. So `lock_` guards the function, and end() removes it. */
class Filter {
  public:
    void begin(Chosen chosen) {
        std::unique_lock<std::shared_mutex> guard(lock_);
        chosen_ = std::move(chosen);
    }
    /* Returns when no thread is inside the function. No later call enters it. */
    void end() {
        std::unique_lock<std::shared_mutex> guard(lock_);
        chosen_ = nullptr;
    }
    static bool call(strata_stream_t stream, void *context) {
        auto *self = static_cast<Filter *>(context);
        std::shared_lock<std::shared_mutex> guard(self->lock_);
        return self->chosen_ && self->chosen_(static_cast<CUstream_st *>(stream));
    }

  private:
    std::shared_mutex lock_;
    Chosen chosen_;
};

struct Pool {
    uint64_t number = 0; /* Strata's number, or 0 before the first begin */
    int uses = 0; /* begins and keeps that were not released */
    int unknown = 0; /* the part of `uses` that has no begin in Strata */
    bool lends = false, unsplit = false;
    std::unique_ptr<Filter> filter; /* set between begin and end */
};
using Name = std::pair<int, PoolId>; /* device, PyTorch's name */

constexpr size_t max_retired = 64;

/* Never destroyed, because tensors outlive every static. */
/* Guards all below. It is recursive, because a begin may allocate memory and so call back. */
std::recursive_mutex &lock = *new std::recursive_mutex;
std::map<Name, Pool> &pools = *new std::map<Name, Pool>;
std::deque<std::unique_ptr<Filter>> &retired = *new std::deque<std::unique_ptr<Filter>>;

std::atomic<int> lenders{0}, unsplit_pools{0};

using Guard = std::lock_guard<std::recursive_mutex>;

Pool &find(int device, PoolId id) {
    auto found = pools.find({device, id});
    if (found == pools.end()) throw std::runtime_error("Strata: no such graph pool has begun");
    return found->second;
}

/* Strata may still call a filter shortly after its end, so a filter is reused only after max_retired later ones. */
void retire(std::unique_ptr<Filter> filter) {
    if (!filter) return;
    filter->end();
    retired.push_back(std::move(filter));
}
std::unique_ptr<Filter> reuse_filter() {
    if (retired.size() <= max_retired) return std::make_unique<Filter>();
    std::unique_ptr<Filter> oldest = std::move(retired.front());
    retired.pop_front();
    return oldest;
}

} // namespace

void strata_door::forget_pools() {
    Guard guard(lock);
    pools.clear();
    lenders = unsplit_pools = 0;
}

void strata_torch_begin_pool(int device, PoolId id, Chosen chosen) {
    Guard guard(lock);
    Pool &pool = pools[{device, id}];
    std::unique_ptr<Filter> filter = reuse_filter();
    filter->begin(std::move(chosen));
    strata_status_t status = strata_graph_pool_begin_filtered(facade, place_of(device), Filter::call, filter.get(), &pool.number);
    if (status != STRATA_OK) {
        retire(std::move(filter));
        if (pool.uses == 0) pools.erase({device, id});
        check(status);
    }
    pool.filter = std::move(filter);
    pool.uses++;
}

void strata_torch_retain_pool(int device, PoolId id) {
    {
        Guard guard(lock);
        Pool &pool = pools[{device, id}];
        if (pool.filter) { /* a pool cannot be begun twice at a time; its current begin keeps it alive */
            pool.uses++;
            pool.unknown++;
            return;
        }
    }
    strata_torch_begin_pool(device, id, [](CUstream_st *) { return false; });
    strata_torch_end_pool(device, id);
}

void strata_torch_end_pool(int device, PoolId id) {
    Guard guard(lock);
    Pool &pool = find(device, id);
    check(strata_graph_pool_end(facade, place_of(device), pool.number));
    retire(std::move(pool.filter));
}

/* The last release frees the name. Live blocks, and memory that graphs hold, stay in the pool. */
void strata_torch_release_pool(int device, PoolId id) {
    Guard guard(lock);
    Pool &pool = find(device, id);
    if (pool.unknown > 0) pool.unknown--;
    else check_unless_over(strata_graph_pool_remove(facade, place_of(device), pool.number));
    if (--pool.uses > 0 || pool.filter) return;
    lenders -= pool.lends;
    unsplit_pools -= pool.unsplit;
    pools.erase({device, id});
}

/* ---- pools whose blocks are not split ---- */

void strata_torch_unsplit_pool(int device, PoolId id) {
    Guard guard(lock);
    Pool &pool = find(device, id);
    unsplit_pools += !pool.unsplit;
    pool.unsplit = true;
}

static size_t segment_size(size_t size) {
    constexpr size_t mib = (size_t)1 << 20;
    if (size <= mib) return 2 * mib;
    if (size < 10 * mib) return 20 * mib;
    return size > SIZE_MAX - 2 * mib ? size : (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
}

/* Returns true if an unsplit pool serves the requests of the stream now. */
static bool is_unsplit(int device, CUstream_st *stream) {
    Guard guard(lock);
    for (auto &[name, pool] : pools)
        if (name.first == device && pool.unsplit && pool.filter && Filter::call(stream, pool.filter.get())) return true;
    return false;
}

/* ---- pools that lend ---- */

void strata_torch_lend_pool(int device, PoolId id, bool lends) {
    Guard guard(lock);
    Pool &pool = find(device, id);
    lenders += lends - pool.lends;
    pool.lends = lends;
}

static strata_status_t request_with(int device, CUstream_st *stream, size_t size, uint32_t flags, strata_block_t *block) {
    strata_allocate_options_t options = {};
    options.struct_size = sizeof options;
    options.size = size;
    options.flags = flags;
    return strata_allocate_with(facade, place_of(device), stream, &options, block);
}

/* Redirects this thread's requests to the pool for one request, as PyTorch does. Only free memory of the pool may serve it,
 * because the pool must not grow. */
static bool borrow(int device, PoolId id, CUstream_st *stream, size_t size, strata_block_t *block) {
    try {
        auto self = std::this_thread::get_id();
        strata_torch_begin_pool(device, id, [self](CUstream_st *) { return std::this_thread::get_id() == self; });
    } catch (const std::exception &) { return false; }
    bool served = request_with(device, stream, size, STRATA_NO_GROW | STRATA_NO_RETRY | STRATA_NO_REPORT, block) == STRATA_OK;
    strata_torch_end_pool(device, id);
    strata_torch_release_pool(device, id);
    return served;
}

static bool borrow_from_any(int device, CUstream_st *stream, size_t size, strata_block_t *block) {
    Guard guard(lock);
    std::vector<PoolId> lending;
    for (auto &[name, pool] : pools) {
        if (name.first != device) continue;
        if (pool.filter && Filter::call(stream, pool.filter.get())) return false; /* a pool already serves this stream */
        if (pool.lends && !pool.filter) lending.push_back(name.second);
    }
    for (PoolId id : lending)
        if (borrow(device, id, stream, size, block)) return true;
    return false;
}

strata_status_t strata_torch_request(int device, CUstream_st *stream, size_t size, strata_block_t *block) {
    if (unsplit_pools.load(std::memory_order_relaxed) > 0 && is_unsplit(device, stream)) size = segment_size(size);
    if (lenders.load(std::memory_order_relaxed) > 0) {
        strata_status_t status = request_with(device, stream, size, STRATA_NO_REPORT, block);
        if (status != STRATA_E_NO_MEMORY) return status;
        if (borrow_from_any(device, stream, size, block)) return STRATA_OK;
    }
    return strata_allocate(facade, place_of(device), stream, size, block); /* adds the report if it fails */
}

int strata_torch_pool_uses(int device, PoolId id) {
    Guard guard(lock);
    auto found = pools.find({device, id});
    return found == pools.end() ? 0 : found->second.uses;
}

uint64_t strata_torch_pool_number(int device, PoolId id) {
    Guard guard(lock);
    auto found = pools.find({device, id});
    return found == pools.end() ? 0 : found->second.number;
}

void strata_torch_pool_name(int device, uint64_t number, unsigned long long id[2]) {
    Guard guard(lock);
    id[0] = id[1] = 0;
    for (auto &[name, pool] : pools) {
        if (name.first != device || pool.number != number) continue;
        id[0] = name.second.first;
        id[1] = name.second.second;
    }
}

PoolId strata_door::pool_of(int device, strata_ref_t ref) {
    uint64_t number = 0;
    unsigned long long name[2] = {0, 0};
    bool named = strata_pool_of(facade, ref, &number) == STRATA_OK && number > STRATA_POOL_ORDINARY;
    if (named) strata_torch_pool_name(device, number, name);
    return {name[0], name[1]};
}
