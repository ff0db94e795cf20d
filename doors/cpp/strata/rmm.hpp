/* A place of a facade as a memory resource of RMM.
 *
 *     strata::rmm_resource memory(facade, strata_gpu(0));
 *     rmm::mr::set_current_device_resource(memory);      // RMM 26.06 and newer: a resource by value
 *     rmm::mr::set_current_device_resource(&memory);     // before: an rmm::mr::device_memory_resource
 *
 * A failed call throws as RMM's own resources do: rmm::out_of_memory with the report of the facade, otherwise rmm::bad_alloc. The
 * facade must stay open while the resource is in use. */
#ifndef STRATA_RMM_HPP
#define STRATA_RMM_HPP

#include <rmm/error.hpp>
#include <rmm/version_config.hpp>

#include "strata/strata.hpp"

namespace strata {

/* Calls `get`, and turns its errors into RMM's. */
template <class Get> void *as_rmm_fails(Get get) {
    try {
        return get();
    } catch (const out_of_memory &full) { throw rmm::out_of_memory(full.what()); } catch (const error &failed) {
        throw rmm::bad_alloc(failed.what());
    }
}

} // namespace strata

#if RMM_VERSION_MAJOR > 26 || (RMM_VERSION_MAJOR == 26 && RMM_VERSION_MINOR >= 6)
#include "strata/memory_resource.hpp"

namespace strata {

class rmm_resource : public device_memory_resource {
  public:
    using device_memory_resource::device_memory_resource;

    void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = 256) const {
        return as_rmm_fails([&] { return device_memory_resource::allocate(stream, bytes, alignment); });
    }
    void *allocate_sync(std::size_t bytes, std::size_t alignment = 256) const {
        return as_rmm_fails([&] { return device_memory_resource::allocate_sync(bytes, alignment); });
    }
};

} // namespace strata
#else
#include <rmm/mr/device_memory_resource.hpp>

namespace strata {

class rmm_resource final : public rmm::mr::device_memory_resource {
  public:
    rmm_resource(strata_t facade, strata_place_t place) noexcept : resource_(facade, place) {}
    rmm_resource(const facade &facade, strata_place_t place) noexcept : resource_(facade, place) {}

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override {
        return as_rmm_fails([&] { return resource_.allocate(stream.value(), bytes, 0); });
    }
    void do_deallocate(void *address, std::size_t, rmm::cuda_stream_view stream) noexcept override {
        resource_.deallocate(stream.value(), address);
    }
    bool do_is_equal(const rmm::mr::device_memory_resource &other) const noexcept override {
        const rmm_resource *same = dynamic_cast<const rmm_resource *>(&other);
        return same && same->resource_ == resource_;
    }

    resource resource_;
};

} // namespace strata
#endif
#endif
