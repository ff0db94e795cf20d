"""The pluggable door, called as PyTorch calls it, over a simulated device. No PyTorch is needed."""

import ctypes as c
import os
import threading
from pathlib import Path

import pytest

import strata
from strata import _abi
from strata.torch import _figures
from strata.torch._pluggable import HOOKS, Pluggable

MIB = 1 << 20
ORDER = ["strata_torch_allocate", "strata_torch_free", "strata_torch_record_stream", "strata_torch_base", "strata_torch_reset"]
ORDER += ["strata_torch_memory_fraction", "strata_torch_begin_pool", "strata_torch_end_pool", "strata_torch_release_pool"]

pytestmark = pytest.mark.skipif(
    not (Path(os.environ["STRATA_DOORS"]) / "libstrata_torch.so").exists(), reason="the doors into PyTorch were not built"
)


class Calls:
    """PyTorch's side: addresses held as std::function, exceptions caught."""

    def __init__(self, door):
        self.library = c.CDLL(os.environ["STRATA_TORCH_CALLS"])
        self.library.calls_hold((c.c_size_t * len(ORDER))(*(door.address(name) for name in ORDER)))

    def __call__(self, name, *arguments):
        text = c.create_string_buffer(8192)
        if getattr(self.library, "calls_" + name)(*arguments, text, c.c_size_t(len(text))):
            raise RuntimeError(text.value.decode())

    def allocate(self, size, stream=0, device=0):
        pointer = c.c_void_p()
        self("allocate", c.c_size_t(size), device, c.c_void_p(stream), c.byref(pointer))
        return pointer.value

    def free(self, pointer, size=0, stream=0, device=0):
        self.library.calls_free(c.c_void_p(pointer), c.c_size_t(size), device, c.c_void_p(stream))


@pytest.fixture
def door(s):
    return Pluggable(s)


@pytest.fixture
def calls(door):
    return Calls(door)


def test_every_hook_has_its_function(door):
    assert all(door.address(function) for function in HOOKS.values())


def test_a_wheel_without_the_door_says_so(s, monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_DOORS", str(tmp_path))
    with pytest.raises(RuntimeError, match="without a C.. compiler"):
        Pluggable(s)


def test_a_tensor_is_served_and_freed(s, calls):
    pointer = calls.allocate(3 * MIB)
    assert s.block_of(pointer).size >= 3 * MIB
    calls.free(pointer, 3 * MIB)
    assert s.statistics().live_allocations == 0


def test_an_empty_tensor_is_no_request(s, calls):
    assert calls.allocate(0) is None
    calls.free(None)
    assert s.statistics().allocations == 0


def test_out_of_memory_is_an_exception_with_the_report(calls):
    with pytest.raises(RuntimeError) as raised:
        calls.allocate(1 << 40)
    assert str(raised.value).startswith("CUDA out of memory. In gpu:0 on stream NULL: ")
    assert str(raised.value).count("out of memory") == 1
    assert "try:" in str(raised.value)
    with pytest.raises(RuntimeError):
        calls.allocate(MIB, device=77)
    with pytest.raises(RuntimeError):
        calls.allocate(2**64 - 1)


def test_a_wrong_free_is_told_and_kills_nobody(calls, capfd):
    calls.free(0x1234)
    assert "strata: a tensor's memory was not freed: 0x1234: " in capfd.readouterr().err


def test_a_closed_facade_is_reported_once_and_kills_nobody(capfd):
    """Destructors call free, record_stream, reset and release_pool: none of them may throw once the facade is closed."""
    s = strata.open("strata", devices="sim:h100")
    calls, pool, asked = Calls(Pluggable(s)), (c.c_ulonglong(7), c.c_ulonglong(0)), c.c_int()
    first, second, stream = calls.allocate(MIB), calls.allocate(MIB), s.stream().handle
    calls("begin_pool", 0, *pool, c.c_void_p(stream), c.byref(asked))
    calls("end_pool", 0, *pool)
    s.close("force")
    for pointer in (first, second):
        calls("record", c.c_void_p(pointer), c.c_void_p(stream))
        calls.free(pointer)
    calls("reset")
    calls("release_pool", 0, *pool)
    assert capfd.readouterr().err.count("was closed while tensors were live") == 1
    with pytest.raises(RuntimeError, match="^Strata: facade 0x.* is not open: it was closed$"):
        calls.allocate(MIB)


def test_a_forked_child_lets_go_in_silence(s, calls, capfd):
    pointer = calls.allocate(MIB)
    child = os.fork()
    if child == 0:
        calls.free(pointer)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert capfd.readouterr().err == ""
    assert s.statistics().live_allocations == 1
    calls.free(pointer)


def test_record_stream_defers_the_free(s, calls):
    copy = s.stream()
    pointer = calls.allocate(MIB)
    copy.work(500, s.block_of(pointer))
    calls("record", c.c_void_p(pointer), c.c_void_p(copy.handle))
    calls.free(pointer)
    assert s.statistics().deferred_bytes >= MIB
    with pytest.raises(RuntimeError, match="begins at this address|no live"):
        calls("record", c.c_void_p(pointer), c.c_void_p(copy.handle))
    copy.destroy()


def test_the_base_of_a_view(calls):
    pointer = calls.allocate(MIB)
    start, size = c.c_void_p(), c.c_size_t()
    calls("base", c.c_void_p(pointer + 4096), c.byref(start), c.byref(size))
    assert (start.value, size.value) == (pointer, MIB)
    calls.free(pointer)
    with pytest.raises(RuntimeError):
        calls("base", c.c_void_p(pointer + 4096), c.byref(start), c.byref(size))


def test_empty_cache(s, calls):
    calls.free(calls.allocate(40 * MIB))
    assert s.statistics().reserved_bytes >= 40 * MIB
    calls("reset")
    assert s.statistics().reserved_bytes == 0


def test_memory_fraction(s, door, calls):
    calls("fraction", c.c_double(0.001), 0)
    assert door.memory_fraction(0) == pytest.approx(0.001)
    with pytest.raises(RuntimeError, match="out of memory"):
        calls.allocate(200 * MIB)
    calls("fraction", c.c_double(1.0), 0)
    assert door.memory_fraction(0) == 1.0
    calls.free(calls.allocate(200 * MIB))


def test_a_graph_s_memory_is_kept_apart(s, door, calls):
    """As CUDAGraph does: begin, capture, end; replays; release. What was freed inside is nobody else's until the release."""
    stream, other, asked = s.stream(), s.stream(), c.c_int()
    pool = (c.c_ulonglong(3), c.c_ulonglong(0))
    calls("begin_pool", 0, *pool, c.c_void_p(stream.handle), c.byref(asked))
    inside = calls.allocate(MIB, stream.handle)
    outside = calls.allocate(MIB, other.handle)
    calls.free(inside)
    assert asked.value >= 2
    calls("end_pool", 0, *pool)
    before = asked.value
    again = [calls.allocate(MIB, stream.handle) for _ in range(4)]
    assert inside not in again and asked.value == before
    assert {segment["segment_pool_id"] for segment in door.snapshot()["segments"]} == {(0, 0), (3, 0)}
    assert [segment["address"] for segment in door.snapshot((3, 0, True))["segments"]] == [
        row.chunk for row in s.snapshot() if row.pool and row.address == row.chunk
    ]
    calls("release_pool", 0, *pool)
    s.release()
    assert {row.pool for row in s.snapshot()} <= {0}
    with pytest.raises(RuntimeError, match="no such graph pool"):
        calls("release_pool", 0, *pool)
    for pointer in again + [outside]:
        calls.free(pointer)
    for one in (stream, other):
        one.destroy()


def test_two_graphs_share_a_pool(s, calls):
    stream, asked = s.stream(), c.c_int()
    pool = (c.c_ulonglong(0), c.c_ulonglong(9))
    addresses = []
    for _ in range(2):
        calls("begin_pool", 0, *pool, c.c_void_p(stream.handle), c.byref(asked))
        addresses.append(calls.allocate(MIB, stream.handle))
        calls.free(addresses[-1])
        calls("end_pool", 0, *pool)
    assert addresses[0] == addresses[1]
    with pytest.raises(RuntimeError):
        calls("end_pool", 0, *pool)
    calls("release_pool", 0, *pool)
    calls("release_pool", 0, *pool)
    stream.destroy()


def test_many_pools_one_after_the_other(s, calls):
    stream, asked = s.stream(), c.c_int()
    for number in range(200):
        pool = (c.c_ulonglong(number + 1), c.c_ulonglong(0))
        calls("begin_pool", 0, *pool, c.c_void_p(stream.handle), c.byref(asked))
        calls.free(calls.allocate(MIB, stream.handle))
        calls("end_pool", 0, *pool)
        calls("release_pool", 0, *pool)
    s.release()
    assert s.statistics().reserved_bytes == 0
    stream.destroy()


class MemPools:
    """The calls of the whole door for torch.cuda.MemPool, through the functions that both doors share."""

    def __init__(self, library):
        self.library = library
        pool = [c.c_int, c.c_ulonglong, c.c_ulonglong]  # a pair is passed like its two numbers
        for name in ("retain", "release", "unsplit", "lend"):
            getattr(library, f"strata_torch_{name}_pool").argtypes = pool + [c.c_bool] * (name == "lend")
        library.strata_torch_request.argtypes = [c.c_int, c.c_void_p, c.c_size_t, c.c_void_p]

    def __call__(self, name, number, *more):
        getattr(self.library, f"strata_torch_{name}_pool")(0, number, 0, *more)

    def request(self, size, stream=0):
        block = _abi.Block()
        return block if self.library.strata_torch_request(0, stream, size, c.byref(block)) == 0 else None


@pytest.fixture
def mem_pools(door):
    return MemPools(door.library)


def within(calls, number, stream, call):
    """Makes the call while requests of the stream go to the pool."""
    asked = c.c_int()
    calls("begin_pool", 0, c.c_ulonglong(number), c.c_ulonglong(0), c.c_void_p(stream), c.byref(asked))
    try:
        return call()
    finally:
        calls("end_pool", 0, c.c_ulonglong(number), c.c_ulonglong(0))
        calls("release_pool", 0, c.c_ulonglong(number), c.c_ulonglong(0))


@pytest.mark.parametrize("lends", [True, False])
def test_a_pool_lends_its_free_memory_at_last(s, calls, mem_pools, lends):
    stream, other, gib = s.stream().handle, s.stream().handle, 1 << 30
    mem_pools("retain", 5)
    mem_pools("lend", 5, True)
    mem_pools("lend", 5, lends)
    pooled = within(calls, 5, stream, lambda: mem_pools.request(50 * gib, stream))
    calls.free(pooled.ptr)
    lent = mem_pools.request(50 * gib, stream)
    assert (lent.ptr if lent else None) == (pooled.ptr if lends else None)
    assert mem_pools.request(50 * gib, stream) is None, "a pool that lends does not grow"
    assert mem_pools.request(60 * gib, other) is None
    assert within(calls, 6, stream, lambda: mem_pools.request(60 * gib, stream)) is None
    if lent:
        calls.free(lent.ptr)
    mem_pools("release", 5)
    calls.free(mem_pools.request(60 * gib, other).ptr)  # an ended pool keeps no memory


def test_a_request_of_another_pool_borrows_nothing(s, calls, mem_pools):
    stream, gib = s.stream().handle, 1 << 30
    mem_pools("retain", 5)
    mem_pools("lend", 5, True)
    calls.free(within(calls, 5, stream, lambda: mem_pools.request(50 * gib, stream)).ptr)
    assert within(calls, 6, stream, lambda: mem_pools.request(50 * gib, stream)) is None
    calls.free(mem_pools.request(50 * gib, stream).ptr)
    mem_pools("release", 5)


def test_an_unsplit_pool_has_blocks_of_pytorch_s_segments(s, calls, mem_pools):
    stream = s.stream().handle
    mem_pools("retain", 5)
    mem_pools("unsplit", 5)
    sizes = [1, MIB, MIB + 1, 10 * MIB - 1, 10 * MIB, 10 * MIB + 1]
    blocks = within(calls, 5, stream, lambda: [mem_pools.request(size, stream) for size in sizes])
    assert [block.size // MIB for block in blocks] == [2, 2, 20, 20, 10, 12]
    outside = mem_pools.request(3 * MIB, stream)
    assert outside.size == 3 * MIB, "outside of the pool nothing is rounded"
    calls.free(blocks[2].ptr)
    assert within(calls, 5, stream, lambda: mem_pools.request(5 * MIB, stream)).ptr == blocks[2].ptr
    mem_pools("release", 5)
    for block in (*blocks, outside):
        calls.free(block.ptr)


def test_statistics_have_pytorch_s_keys(s, door, calls):
    first, second = calls.allocate(MIB), calls.allocate(2 * MIB)
    calls.free(first)
    stats = door.memory_stats(0)
    assert stats["allocation"]["all"] == {"current": 1, "peak": 2, "allocated": 2, "freed": 1}
    assert stats["allocated_bytes"]["all"] == {"current": 2 * MIB, "peak": 3 * MIB, "allocated": 3 * MIB, "freed": MIB}
    assert stats["reserved_bytes"]["all"]["current"] == s.statistics().reserved_bytes
    assert set(stats) >= set(_figures.KINDS) | set(_figures.SUMS) | {"num_ooms", "num_alloc_retries", "num_device_alloc"}
    door.reset_peaks(0)
    door.reset_totals(0)
    stats = door.memory_stats(0)
    assert stats["allocation"]["all"] == {"current": 1, "peak": 1, "allocated": 0, "freed": 0}
    assert stats["segment"]["all"]["allocated"] == 0
    calls.free(second)
    with pytest.raises(ValueError):
        door.memory_stats(99)


def test_the_peak_of_allocated_is_exact_and_never_above_reserved(s, door, calls):
    """Two streams whose peaks come one after the other: the sum of their peaks would be twice what ever was allocated."""
    streams = [s.stream(), s.stream()]
    for stream in streams:
        calls.free(calls.allocate(64 * MIB, stream.handle), stream=stream.handle)
        stream.synchronize()
        s.release()
    stats = door.memory_stats(0)
    assert s.statistics().peak_allocated_bytes == 64 * MIB
    assert stats["allocated_bytes"]["all"]["peak"] == 64 * MIB
    assert stats["allocated_bytes"]["all"]["peak"] <= stats["reserved_bytes"]["all"]["peak"]
    for stream in streams:
        stream.destroy()


def test_a_snapshot_has_pytorch_s_form(s, door, calls):
    first, second = calls.allocate(MIB), calls.allocate(2 * MIB)
    calls.free(first)
    snapshot = door.snapshot()
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    assert [b["address"] for b in blocks if b["state"] == "active_allocated"] == [second]
    assert sum(segment["total_size"] for segment in snapshot["segments"]) == s.statistics().reserved_bytes
    assert sum(segment["allocated_size"] for segment in snapshot["segments"]) == 2 * MIB
    assert [segment["address"] for segment in snapshot["segments"]] == sorted(segment["address"] for segment in snapshot["segments"])
    assert snapshot["device_traces"] == [[]]
    calls.free(second)


def test_guard_serves_through_the_door():
    """A strategy with `guard`: what is freed stays in quarantine, and at the end it is told what was never freed."""
    text = "version: 1\nstrategy: guarded\nstack: [stream_safe, {guard: {}}, {auto_growth: {chunk_size: 2MiB}}, system]\n"
    said = []
    strata.set_log(lambda level, line: said.append((level, line)), "error")
    try:
        s = strata.open(text=text, devices="sim")
        calls = Calls(Pluggable(s))
        pointer = calls.allocate(1000)
        assert "guard" in s.block_of(pointer).route()
        calls.free(pointer)
        again = [calls.allocate(1000) for _ in range(8)]
        assert pointer not in again
        s.close("force")
    finally:
        strata.set_log(None)
    assert [level for level, _ in said] == ["error"] and "8 " in said[0][1]


def test_threads_share_the_door(s, door, calls):
    errors = []

    def work(stream):
        try:
            for size in range(1, 200):
                calls.free(calls.allocate(size * 1024, stream), stream=stream)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            errors.append(error)

    streams = [s.stream() for _ in range(4)]
    threads = [threading.Thread(target=work, args=(stream.handle,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    stats = door.memory_stats(0)
    assert stats["allocation"]["all"]["current"] == stats["allocated_bytes"]["all"]["current"] == 0
    assert stats["allocation"]["all"]["allocated"] == 4 * 199
    s.validate()
    for stream in streams:
        stream.destroy()


def test_a_simulated_device_is_refused(monkeypatch):
    from strata._doors import ALLOW_SIMULATED, door_facade, of_or_open

    monkeypatch.delenv(ALLOW_SIMULATED, raising=False)
    for devices in ("sim", "sim:a100"):
        with pytest.raises(ValueError, match="made-up addresses"):
            door_facade("strata", devices=devices)
    monkeypatch.setenv(ALLOW_SIMULATED, "1")
    with door_facade("strata", devices="sim") as s:
        assert of_or_open(s, None) is s
        with pytest.raises(TypeError):
            of_or_open(s, "strata")
