/* Memory for other processes as PyTorch passes it on: a string that names it. Strata's handles go by descriptors, which the receiver takes
 * from the sender's process (pidfd_getfd: it must be the same user's); what cudaMalloc gave goes by the driver's own handle. */
#ifndef STRATA_INTEGRATION_TORCH_IPC_H
#define STRATA_INTEGRATION_TORCH_IPC_H

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "integration/torch/door.h"

namespace strata_door {

class Ipc {
  public:
    /* A handle, and where the block begins in what it names. */
    using Shared = std::pair<std::string, ptrdiff_t>;

    /* The handle of a block. It holds until the block is freed. */
    Shared share(strata_t facade, const strata_block_t &block) {
        auto shared = std::make_unique<strata_shared_t>();
        strata_status_t status = strata_export(facade, block.ref, shared.get());
        if (status == STRATA_E_UNSUPPORTED) return share_base(facade, block);
        if (status != STRATA_OK) throw std::runtime_error(reason(status));
        std::string text(1, descriptors);
        pid_t process = getpid();
        text.append((const char *)&process, sizeof process);
        text.append((const char *)shared.get(), sizeof *shared);
        std::lock_guard<std::mutex> guard(lock_);
        auto &kept = exported_[block.ptr];
        if (kept) strata_shared_close(kept.get());
        kept = std::move(shared);
        return {text, 0};
    }

    /* The block is freed: its descriptors go. */
    void forget(void *pointer) {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = exported_.find(pointer);
        if (found == exported_.end()) return;
        strata_shared_close(found->second.get());
        exported_.erase(found);
    }

    /* The memory that a handle of another process names, mapped as long as anybody holds it. */
    std::shared_ptr<void> open(strata_t facade, int device, const std::string &handle) {
        std::lock_guard<std::mutex> guard(lock_);
        if (auto held = opened_[handle].lock()) return held;
        std::shared_ptr<void> memory;
        if (handle.size() == 1 + sizeof(pid_t) + sizeof(strata_shared_t) && handle[0] == descriptors) {
            memory = import(facade, device, handle);
        } else if (handle.size() == 1 + sizeof(cudaIpcMemHandle_t) && handle[0] == drivers) {
            memory = open_base(handle);
        } else {
            throw std::runtime_error("Strata: this names no memory of another process");
        }
        opened_[handle] = memory;
        return memory;
    }

  private:
    static constexpr char descriptors = 's', drivers = 'c';

    static Shared share_base(strata_t facade, const strata_block_t &block) {
        void *base;
        size_t size;
        strata_status_t status = strata_base_of(facade, block.ref, &base, &size);
        if (status != STRATA_OK) throw std::runtime_error(reason(status));
        cudaIpcMemHandle_t told;
        C10_CUDA_CHECK(cudaIpcGetMemHandle(&told, base));
        std::string text(1, drivers);
        text.append((const char *)&told, sizeof told);
        return {text, (char *)block.ptr - (char *)base};
    }

    static std::shared_ptr<void> open_base(const std::string &handle) {
        cudaIpcMemHandle_t told;
        std::memcpy(&told, handle.data() + 1, sizeof told);
        void *base;
        C10_CUDA_CHECK(cudaIpcOpenMemHandle(&base, told, cudaIpcMemLazyEnablePeerAccess));
        return std::shared_ptr<void>(base, [](void *pointer) { C10_CUDA_IGNORE_ERROR(cudaIpcCloseMemHandle(pointer)); });
    }

    /* Takes the sender's descriptors, each a new one here. Strata checks all else that the handle says. */
    static void take_descriptors(pid_t process, strata_shared_t &shared) {
        if (shared.count > STRATA_SHARE_SEGMENTS) throw std::runtime_error("Strata: this names no memory of another process");
        int other = (int)syscall(SYS_pidfd_open, process, 0);
        uint32_t taken = 0;
        for (; other >= 0 && taken < shared.count; taken++) {
            int mine = (int)syscall(SYS_pidfd_getfd, other, shared.descriptors[taken], 0);
            if (mine < 0) break;
            shared.descriptors[taken] = mine;
        }
        if (other >= 0) close(other);
        bool whole = other >= 0 && taken == shared.count;
        if (whole) return;
        for (uint32_t i = 0; i < taken; i++) close(shared.descriptors[i]);
        throw std::runtime_error(
            "Strata: process " + std::to_string(process) +
            ", which has the memory, gives no descriptor of it: " + "it has ended, or this one may not look into it");
    }

    static std::shared_ptr<void> import(strata_t facade, int device, const std::string &handle) {
        auto shared = std::make_unique<strata_shared_t>();
        pid_t process;
        std::memcpy(&process, handle.data() + 1, sizeof process);
        std::memcpy(shared.get(), handle.data() + 1 + sizeof process, sizeof *shared);
        take_descriptors(process, *shared);
        shared->sender = (uint64_t)process;
        strata_imported_t there;
        strata_status_t status = strata_import(facade, strata_gpu((uint32_t)device), shared.get(), &there);
        std::string why = status == STRATA_OK ? "" : reason(status);
        strata_shared_close(shared.get());
        if (status != STRATA_OK) throw std::runtime_error(why);
        return std::shared_ptr<void>(there.ptr, [facade, id = there.id](void *) { strata_import_end(facade, id); });
    }

    std::mutex lock_;
    std::unordered_map<void *, std::unique_ptr<strata_shared_t>> exported_;
    std::unordered_map<std::string, std::weak_ptr<void>> opened_;
};

} // namespace strata_door
#endif
