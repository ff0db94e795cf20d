/* Places of a facade as memory resources of CCCL (libcu++). They satisfy cuda::mr::resource, with the accessibility of the place.
 *
 *     strata::device_memory_resource memory(facade, strata_gpu(0));
 *     auto buffer = cuda::make_buffer<float>(stream, memory, 1024, cuda::no_init);
 *
 * CCCL before 3.2 has async_resource and resource instead, and requires LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE. The
 * functions that it calls are here too. A resource is a value and does not keep a facade open. */
#ifndef STRATA_MEMORY_RESOURCE_HPP
#define STRATA_MEMORY_RESOURCE_HPP

#include <cuda/memory_resource>
#include <cuda/stream_ref>

#include "strata/strata.hpp"

namespace strata {

struct device_access {
    friend constexpr void get_property(const device_access &, cuda::mr::device_accessible) noexcept {}
};
struct host_access {
    friend constexpr void get_property(const host_access &, cuda::mr::host_accessible) noexcept {}
};

/* `Access` lists the processors that can reach the memory. `Alignment` is the default alignment of the place. */
template <std::size_t Alignment, class... Access> class basic_memory_resource : public Access... {
  public:
    basic_memory_resource(strata_t facade, strata_place_t place) noexcept : resource_(facade, place) {}
    basic_memory_resource(const facade &facade, strata_place_t place) noexcept : resource_(facade, place) {}

    void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = Alignment) const {
        return resource_.allocate(stream.get(), bytes, alignment);
    }
    void deallocate(cuda::stream_ref stream, void *address, std::size_t, std::size_t = Alignment) const noexcept {
        resource_.deallocate(stream.get(), address);
    }
    void *allocate_sync(std::size_t bytes, std::size_t alignment = Alignment) const {
        return resource_.allocate_sync(bytes, alignment);
    }
    void deallocate_sync(void *address, std::size_t, std::size_t = Alignment) const noexcept { resource_.deallocate_sync(address); }

    /* These are the names of CCCL before 3.2. */
    void *allocate(std::size_t bytes, std::size_t alignment = Alignment) const { return allocate_sync(bytes, alignment); }
    void deallocate(void *address, std::size_t bytes, std::size_t alignment = Alignment) const noexcept {
        deallocate_sync(address, bytes, alignment);
    }
    void *allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) const {
        return allocate(stream, bytes, alignment);
    }
    void deallocate_async(void *address, std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) const noexcept {
        deallocate(stream, address, bytes, alignment);
    }

    strata_t facade() const noexcept { return resource_.facade(); }
    strata_place_t place() const noexcept { return resource_.place(); }
    bool operator==(const basic_memory_resource &other) const noexcept { return resource_ == other.resource_; }
    bool operator!=(const basic_memory_resource &other) const noexcept { return resource_ != other.resource_; }

  private:
    resource resource_;
};

using device_memory_resource = basic_memory_resource<256, device_access>; /* strata_gpu() */
using managed_memory_resource = basic_memory_resource<256, device_access, host_access>; /* strata_managed() */
using pinned_memory_resource = basic_memory_resource<256, device_access, host_access>; /* strata_pinned() */
using host_memory_resource = basic_memory_resource<64, host_access>; /* strata_host() */

} // namespace strata
#endif
