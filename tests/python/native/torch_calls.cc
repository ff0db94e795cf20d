/* Calls the pluggable door as PyTorch does: its functions come as addresses, are held as std::function, and what they throw is caught. */
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

struct CUstream_st;
using Stream = CUstream_st *;
using PoolId = std::pair<unsigned long long, unsigned long long>;

namespace {
std::function<void *(size_t, int, Stream)> allocate;
std::function<void(void *, size_t, int, Stream)> release;
std::function<void(void *, Stream)> record_stream;
std::function<void *(void *, size_t *)> base;
std::function<void()> reset;
std::function<void(double, int)> memory_fraction;
std::function<void(int, PoolId, std::function<bool(Stream)>)> begin_pool;
std::function<void(int, PoolId)> end_pool, release_pool;

template <typename F> int caught(char *text, size_t room, F call) {
    try {
        call();
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(text, room, "%s", error.what());
        return 1;
    }
}
template <typename F> void hold(std::function<F> &function, uintptr_t address) { function = reinterpret_cast<F *>(address); }
} // namespace

#define CALL extern "C" __attribute__((visibility("default")))

/* The addresses in the order of the functions above. */
CALL void calls_hold(const uintptr_t addresses[9]) {
    hold(allocate, addresses[0]);
    hold(release, addresses[1]);
    hold(record_stream, addresses[2]);
    hold(base, addresses[3]);
    hold(reset, addresses[4]);
    hold(memory_fraction, addresses[5]);
    hold(begin_pool, addresses[6]);
    hold(end_pool, addresses[7]);
    hold(release_pool, addresses[8]);
}
CALL int calls_allocate(size_t size, int device, Stream stream, void **pointer, char *text, size_t room) {
    return caught(text, room, [&] { *pointer = allocate(size, device, stream); });
}
CALL void calls_free(void *pointer, size_t size, int device, Stream stream) { release(pointer, size, device, stream); }
CALL int calls_record(void *pointer, Stream stream, char *text, size_t room) {
    return caught(text, room, [&] { record_stream(pointer, stream); });
}
CALL int calls_base(void *pointer, void **start, size_t *size, char *text, size_t room) {
    return caught(text, room, [&] { *start = base(pointer, size); });
}
CALL int calls_reset(char *text, size_t room) {
    return caught(text, room, [&] { reset(); });
}
CALL int calls_fraction(double fraction, int device, char *text, size_t room) {
    return caught(text, room, [&] { memory_fraction(fraction, device); });
}
/* The filter chooses `chosen` alone, and counts how often it is asked. */
CALL int calls_begin_pool(int device, unsigned long long a, unsigned long long b, Stream chosen, int *asked, char *text,
                          size_t room) {
    auto filter = [chosen, asked](Stream stream) {
        ++*asked;
        return stream == chosen;
    };
    return caught(text, room, [&] { begin_pool(device, {a, b}, filter); });
}
CALL int calls_end_pool(int device, unsigned long long a, unsigned long long b, char *text, size_t room) {
    return caught(text, room, [&] { end_pool(device, {a, b}); });
}
CALL int calls_release_pool(int device, unsigned long long a, unsigned long long b, char *text, size_t room) {
    return caught(text, room, [&] { release_pool(device, {a, b}); });
}
