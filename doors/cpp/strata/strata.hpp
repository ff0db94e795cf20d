/* Strata for C++17: the objects of strata.h with owners that give them back. Header only, with no functions beyond strata.h.
 *
 *     strata::facade memory({.preset = "strata"});                  // or: strata::options o; o.preset = "strata"; ...
 *     strata::stream copy = memory.create_stream(strata_gpu(0));
 *     strata::block batch = memory.allocate(strata_gpu(0), copy, 64 << 20);
 *     ... launch work on batch.ptr() ...
 *     batch.record_stream(nullptr);                                  // another stream uses it too
 *                                                                    // freed at the end of the scope
 *
 * Errors      A call that fails throws strata::out_of_memory, a std::bad_alloc, for STRATA_E_NO_MEMORY and STRATA_E_HOST_MEMORY.
 *             Otherwise it throws strata::error, a std::runtime_error. Both carry the status and the whole text.
 * Ownership   Objects are moved, not copied. An empty one (moved from, released, detached) owns nothing. Destructors never throw.
 * Order       Blocks and streams hold the value of their facade, not a pointer to it. One that outlives its facade gives nothing
 *             back, because the close has done so.
 * Threads     As in strata.h for the functions. Two threads must not change one object at the same time. */
#ifndef STRATA_STRATA_HPP
#define STRATA_STRATA_HPP

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/strata.h"

namespace strata {

/* ---- errors ---- */

class error : public std::runtime_error {
  public:
    error(strata_status_t status, std::int64_t device_code, const std::string &text)
        : std::runtime_error(text), status_(status), device_code_(device_code) {}
    strata_status_t status() const noexcept { return status_; }
    std::int64_t device_code() const noexcept { return device_code_; } /* the driver's number, or 0 if no driver call failed */

  private:
    strata_status_t status_;
    std::int64_t device_code_;
};

class out_of_memory : public std::bad_alloc {
  public:
    out_of_memory(strata_status_t status, const std::string &text) : status_(status), text_(text) {}
    strata_status_t status() const noexcept { return status_; } /* STRATA_E_NO_MEMORY or STRATA_E_HOST_MEMORY */
    const char *what() const noexcept override { return text_.what(); } /* the report: cause, advice, metrics */

  private:
    strata_status_t status_;
    std::runtime_error text_; /* its copy cannot fail */
};

[[noreturn]] inline void raise(strata_status_t status) {
    const strata_error_t *last = strata_last_error();
    std::string text = last->status == status ? last->text : strata_status_text(status);
    if (status == STRATA_E_NO_MEMORY || status == STRATA_E_HOST_MEMORY) throw out_of_memory(status, text);
    throw error(status, last->status == status ? last->device_code : 0, text);
}

/* Throws unless a call of strata.h succeeds: check(strata_step(memory.get())). */
inline void check(strata_status_t status) {
    if (status != STRATA_OK) raise(status);
}

/* ---- blocks ---- */

/* A live allocation, which the destructor frees. */
class block {
  public:
    block() noexcept = default;
    /* Takes over a block from strata_allocate(). */
    block(strata_t facade, const strata_block_t &served) noexcept : facade_(facade), block_(served) {}
    block(block &&other) noexcept : facade_(other.facade_), block_(other.release()) {}
    block &operator=(block &&other) noexcept {
        if (this != &other) {
            reset();
            facade_ = other.facade_;
            block_ = other.release();
        }
        return *this;
    }
    block(const block &) = delete;
    block &operator=(const block &) = delete;
    ~block() { reset(); }

    explicit operator bool() const noexcept { return block_.ref != 0; }
    void *ptr() const noexcept { return block_.ptr; }
    template <class T> T *as() const noexcept { return static_cast<T *>(block_.ptr); }
    std::size_t size() const noexcept { return block_.size; } /* granted: at least the bytes requested */
    strata_ref_t ref() const noexcept { return block_.ref; }
    strata_t facade() const noexcept { return facade_; }

    /* These free the block now and leave the object empty. */
    void free() { check(strata_free(facade_, release().ref)); }
    void free_on(strata_stream_t stream) { check(strata_free_on(facade_, release().ref, stream)); }
    /* Frees without throwing: a block of a closed facade is already gone. */
    void reset() noexcept {
        if (block_.ref) (void)strata_free(facade_, release().ref);
    }
    /* Gives ownership up. The caller must free the ref. */
    strata_block_t release() noexcept { return std::exchange(block_, strata_block_t{nullptr, 0, 0}); }
    /* Makes another owner of the same memory. */
    block share() const {
        check(strata_retain(facade_, block_.ref));
        return block(facade_, block_);
    }

    void record_stream(strata_stream_t stream) const { check(strata_record_stream(facade_, block_.ref, stream)); }
    void erase_stream(strata_stream_t stream) const { check(strata_erase_stream(facade_, block_.ref, stream)); }

  private:
    strata_t facade_ = 0;
    strata_block_t block_ = {nullptr, 0, 0};
};

/* A request with all its options. strata_allocate_options_t explains them. */
struct request {
    std::size_t size = 0;
    std::size_t alignment = 0;
    std::uint32_t flags = 0;
    std::uint64_t pool = 0;
    const char *tag = nullptr;
    std::uint64_t freed_before = 0;

    strata_allocate_options_t options() const noexcept {
        strata_allocate_options_t given = {};
        given.struct_size = sizeof given;
        given.size = size;
        given.alignment = alignment;
        given.flags = flags;
        given.pool = pool;
        given.tag = tag;
        given.freed_before = freed_before;
        return given;
    }
};

/* ---- streams ---- */

/* A stream that the facade created. Its end forgets it in every kind of place, and destroys it. A stream of another runtime needs
 * no object: pass its handle, and call facade::forget() before it is destroyed. */
class stream {
  public:
    stream() noexcept = default;
    stream(strata_t facade, strata_place_t place, int priority = 0) : facade_(facade), place_(place) {
        check(strata_stream_create(facade, place, priority, &handle_));
    }
    stream(stream &&other) noexcept
        : facade_(other.facade_), place_(other.place_), handle_(std::exchange(other.handle_, nullptr)) {}
    stream &operator=(stream &&other) noexcept {
        if (this != &other) {
            reset();
            facade_ = other.facade_;
            place_ = other.place_;
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
    ~stream() { reset(); }

    operator strata_stream_t() const noexcept { return handle_; }
    strata_stream_t get() const noexcept { return handle_; }
    void synchronize() const { check(strata_stream_synchronize(facade_, place_, handle_)); }

    void reset() noexcept {
        if (!handle_) return;
        std::uint32_t device = strata_place_device(place_);
        const strata_place_t places[] = {strata_gpu(device), strata_managed(device), strata_pinned(), strata_host()};
        for (strata_place_t place : places) (void)strata_stream_forget(facade_, place, handle_);
        (void)strata_stream_destroy(facade_, place_, std::exchange(handle_, nullptr));
    }

  private:
    strata_t facade_ = 0;
    strata_place_t place_ = 0;
    strata_stream_t handle_ = nullptr;
};

/* ---- allocator objects ---- */

/* strata/allocator.h: a value for a facade, a place, a stream and a pool, copied freely. It owns nothing. */
class allocator {
  public:
    allocator() noexcept = default;
    allocator(strata_t facade, strata_place_t place, strata_stream_t stream, std::uint64_t pool = 0) : facade_(facade) {
        check(strata_allocator_get(facade, place, stream, pool, &allocator_));
    }

    block allocate(std::size_t size) const {
        strata_block_t served;
        check(strata_allocator_allocate(allocator_, size, &served));
        return block(facade_, served);
    }
    /* The request must name no pool, because the allocator has one. */
    block allocate(const request &request) const {
        strata_block_t served;
        strata_allocate_options_t options = request.options();
        check(strata_allocator_allocate_with(allocator_, &options, &served));
        return block(facade_, served);
    }
    std::uint64_t release() const {
        std::uint64_t released = 0;
        check(strata_allocator_release(allocator_, &released));
        return released;
    }
    strata_statistics_t statistics() const {
        strata_statistics_t figures = {};
        figures.struct_size = sizeof figures;
        check(strata_allocator_statistics(allocator_, &figures));
        return figures;
    }
    strata_allocator_t get() const noexcept { return allocator_; }

  private:
    strata_t facade_ = 0;
    strata_allocator_t allocator_ = {0, nullptr};
};

/* ---- the facade ---- */

/* strata_open_options_t, with strings of its own. */
struct options {
    std::string preset; /* at most one of preset, file and text; if all are empty, STRATA_STRATEGY, else "strata" */
    std::string file;
    std::string text;
    std::vector<std::string> set;
    std::string devices;
    std::uint32_t flags = 0;
};

class facade {
  public:
    facade() noexcept = default;
    explicit facade(const options &given) {
        std::vector<const char *> set;
        for (const std::string &one : given.set) set.push_back(one.c_str());
        strata_open_options_t wanted = {};
        wanted.struct_size = sizeof wanted;
        wanted.preset = given.preset.empty() ? nullptr : given.preset.c_str();
        wanted.file = given.file.empty() ? nullptr : given.file.c_str();
        wanted.text = given.text.empty() ? nullptr : given.text.c_str();
        wanted.set = set.data();
        wanted.set_count = set.size();
        wanted.devices = given.devices.empty() ? nullptr : given.devices.c_str();
        wanted.flags = given.flags;
        check(strata_open(&wanted, &facade_));
    }
    facade(facade &&other) noexcept : facade_(std::exchange(other.facade_, 0)) {}
    facade &operator=(facade &&other) noexcept {
        if (this != &other) {
            reset();
            facade_ = std::exchange(other.facade_, 0);
        }
        return *this;
    }
    facade(const facade &) = delete;
    facade &operator=(const facade &) = delete;
    ~facade() { reset(); }

    explicit operator bool() const noexcept { return facade_ != 0; }
    strata_t get() const noexcept { return facade_; }
    /* Gives ownership up. The caller must call strata_close(). */
    strata_t detach() noexcept { return std::exchange(facade_, 0); }
    /* Waits for the device and closes. Throws STRATA_E_BUSY, and stays open, while blocks are live. */
    void close(strata_close_mode_t mode = STRATA_CLOSE_WAIT) {
        check(strata_close(facade_, mode, nullptr, nullptr));
        facade_ = 0;
    }
    /* Waits for the device and closes. Blocks that are still live also go back. */
    void reset() noexcept {
        if (facade_) (void)strata_close(detach(), STRATA_CLOSE_FORCE, nullptr, nullptr);
    }

    block allocate(strata_place_t place, strata_stream_t stream, std::size_t size) const {
        strata_block_t served;
        check(strata_allocate(facade_, place, stream, size, &served));
        return block(facade_, served);
    }
    block allocate(strata_place_t place, strata_stream_t stream, const request &request) const {
        strata_block_t served;
        strata_allocate_options_t wanted = request.options();
        check(strata_allocate_with(facade_, place, stream, &wanted, &served));
        return block(facade_, served);
    }
    /* Returns an empty optional on STRATA_E_NO_MEMORY, and throws on other errors. For programs that then request less. With
     * STRATA_NO_REPORT in the flags no report is made. */
    std::optional<block> try_allocate(strata_place_t place, strata_stream_t stream, const request &request) const {
        strata_block_t served;
        strata_allocate_options_t wanted = request.options();
        strata_status_t status = strata_allocate_with(facade_, place, stream, &wanted, &served);
        if (status == STRATA_E_NO_MEMORY) return std::nullopt;
        check(status);
        return block(facade_, served);
    }
    strata::allocator allocator(strata_place_t place, strata_stream_t stream, std::uint64_t pool = 0) const {
        return strata::allocator(facade_, place, stream, pool);
    }
    strata::stream create_stream(strata_place_t place, int priority = 0) const { return strata::stream(facade_, place, priority); }
    /* Must be called before a stream of another runtime is destroyed, for each place in which it was used. */
    void forget(strata_place_t place, strata_stream_t stream) const { check(strata_stream_forget(facade_, place, stream)); }

    std::uint64_t release(strata_place_t place) const {
        std::uint64_t released = 0;
        check(strata_release(facade_, place, &released));
        return released;
    }
    std::uint64_t trim(strata_place_t place, std::uint64_t keep) const {
        std::uint64_t released = 0;
        check(strata_trim(facade_, place, keep, &released));
        return released;
    }
    void set_limit(strata_place_t place, std::uint64_t limit) const { check(strata_set_limit(facade_, place, limit)); }
    strata_mem_info_t mem_info(strata_place_t place) const {
        strata_mem_info_t info = {};
        info.struct_size = sizeof info;
        check(strata_mem_info(facade_, place, &info));
        return info;
    }
    strata_statistics_t statistics(strata_place_t place) const {
        strata_statistics_t figures = {};
        figures.struct_size = sizeof figures;
        check(strata_statistics_all(facade_, place, &figures));
        return figures;
    }
    std::string statistics_json() const { return text_of(strata_statistics_json); }
    std::string explain() const { return text_of(strata_explain); }
    std::uint64_t pool(const char *name) const {
        std::uint64_t pool = 0;
        check(strata_pool(facade_, name, &pool));
        return pool;
    }

  private:
    /* Repeats, because the text may grow between the call for the length and the call for the text. */
    std::string text_of(strata_status_t (*write)(strata_t, char *, std::size_t, std::size_t *)) const {
        std::string text(4096, '\0');
        for (std::size_t needed = 0;; text.resize(needed + 1024)) {
            check(write(facade_, &text[0], text.size(), &needed));
            if (needed > text.size()) continue;
            text.resize(std::strlen(text.c_str()));
            return text;
        }
    }

    strata_t facade_ = 0;
};

/* Sends requests of this thread in the place to a pool until its destructor runs (strata_pool_begin()). */
class pool_scope {
  public:
    pool_scope(const facade &facade, strata_place_t place, std::uint64_t pool) : facade_(facade.get()), place_(place) {
        check(strata_pool_begin(facade_, place, pool));
    }
    pool_scope(const pool_scope &) = delete;
    pool_scope &operator=(const pool_scope &) = delete;
    ~pool_scope() { (void)strata_pool_end(facade_, place_); }

  private:
    strata_t facade_;
    strata_place_t place_;
};

/* ---- memory by address ---- */

/* A place as a memory resource of other libraries: it returns addresses and takes addresses back, without further data. It is a
 * value. Copies are equal, and free each other's memory. It does not keep a facade open. strata/memory_resource.hpp and
 * strata/rmm.hpp adapt it to CCCL and RMM. */
class resource {
  public:
    resource(strata_t facade, strata_place_t place) noexcept : facade_(facade), place_(place) {}
    resource(const facade &facade, strata_place_t place) noexcept : resource(facade.get(), place) {}

    /* Returns NULL for 0 bytes. */
    void *allocate(strata_stream_t stream, std::size_t bytes, std::size_t alignment) const {
        if (bytes == 0) return nullptr;
        strata_block_t served;
        request wanted;
        wanted.size = bytes;
        wanted.alignment = alignment;
        strata_allocate_options_t given = wanted.options();
        check(strata_allocate_with(facade_, place_, stream, &given, &served));
        return served.ptr;
    }
    /* Frees after a last use on `stream`. An unknown address is a fault of the program, and asserts. */
    void deallocate(strata_stream_t stream, void *address) const noexcept {
        if (!address) return;
        strata_block_t served;
        strata_status_t status = strata_block_of(facade_, address, &served);
        if (status == STRATA_OK) status = strata_free_on(facade_, served.ref, stream);
        assert(status != STRATA_E_UNKNOWN_POINTER);
        (void)status;
    }
    /* Returns memory that any stream may use at once. It waits for the default stream, which may still use that memory. */
    void *allocate_sync(std::size_t bytes, std::size_t alignment) const {
        void *address = allocate(nullptr, bytes, alignment);
        strata_status_t status = address ? strata_stream_synchronize(facade_, place_, nullptr) : STRATA_OK;
        if (status == STRATA_OK) return address;
        (void)strata_free_pointer(facade_, address);
        raise(status);
    }
    /* All uses must be over. */
    void deallocate_sync(void *address) const noexcept { deallocate(nullptr, address); }

    strata_t facade() const noexcept { return facade_; }
    strata_place_t place() const noexcept { return place_; }
    bool operator==(const resource &other) const noexcept { return facade_ == other.facade_ && place_ == other.place_; }
    bool operator!=(const resource &other) const noexcept { return !(*this == other); }

  private:
    strata_t facade_;
    strata_place_t place_;
};

} // namespace strata
#endif
