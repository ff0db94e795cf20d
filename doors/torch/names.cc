/* Names of blocks for other processes of the user. A name has the bytes for strata_share_fetch(), and the process that has the
 * block. */
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "doors/torch/state.h"

using namespace strata_door;

namespace {

constexpr char strata_s = 's'; /* the first byte of a name; names of other allocators begin differently */

struct Named {
    pid_t process;
    strata_shared_t shared;
};
constexpr size_t name_size = 1 + sizeof(Named);
static_assert(name_size <= strata_torch_name_max);

/* Never destroyed, because tensors outlive every static. */
std::mutex &lock = *new std::mutex;
/* The exports by block. Other processes fetch their descriptors. */
std::unordered_map<void *, strata_shared_t> &named = *new std::unordered_map<void *, strata_shared_t>;
std::atomic<bool> has_names{false};

/* Returns the earlier export of the block, else exports it. All names of a block share one export, so each is valid until the
 * free. */
strata_status_t export_once(const strata_block_t &block, strata_shared_t *shared) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = named.find(block.ptr);
    if (found != named.end()) {
        *shared = found->second;
        return STRATA_OK;
    }
    strata_status_t status = strata_export(facade, block.ref, shared);
    if (status != STRATA_OK) return status;
    named.emplace(block.ptr, *shared);
    has_names = true;
    return STRATA_OK;
}

} // namespace

void strata_door::forget_names() {
    std::lock_guard<std::mutex> guard(lock);
    for (auto &[block, shared] : named) strata_shared_close(&shared);
    named.clear();
}

void strata_door::end_name(void *block) {
    if (!has_names.load(std::memory_order_relaxed)) return;
    std::lock_guard<std::mutex> guard(lock);
    auto found = named.find(block);
    if (found == named.end()) return;
    strata_shared_close(&found->second);
    named.erase(found);
}

size_t strata_torch_share(void *pointer, char name[strata_torch_name_max], ptrdiff_t *offset) {
    strata_block_t block;
    check(strata_base_pointer(facade, pointer, &block));
    auto record = std::make_unique<Named>();
    strata_status_t status = export_once(block, &record->shared);
    if (status == STRATA_E_UNSUPPORTED) return 0;
    check(status);
    record->process = getpid();
    name[0] = strata_s;
    std::memcpy(name + 1, record.get(), sizeof *record);
    *offset = (char *)pointer - (char *)block.ptr;
    return name_size;
}

void *strata_torch_open(int device, const char *name, size_t size, uint64_t *id) {
    if (size != name_size || name[0] != strata_s)
        throw std::runtime_error("Strata: this is not a name of memory of another process");
    auto record = std::make_unique<Named>();
    std::memcpy(record.get(), name + 1, sizeof *record);
    check(strata_share_fetch((uint64_t)record->process, &record->shared));
    strata_imported_t there;
    strata_status_t status = strata_import(facade, place_of(device), &record->shared, &there);
    std::string why = status == STRATA_OK ? "" : reason(status);
    strata_shared_close(&record->shared);
    if (status != STRATA_OK) throw std::runtime_error(why);
    *id = there.id;
    return there.ptr;
}

void strata_torch_open_end(uint64_t id) { (void)strata_import_end(facade, id); }
