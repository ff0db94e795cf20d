"""Every function of the library that the package binds, through the method that calls it, on a simulated device.

The first tests show the behavior of each group. The last runs them all over a library that counts, and no bound function may be left out.
"""

import contextlib
import ctypes
import importlib
import inspect
import os
import pkgutil
import socket
import subprocess
import sys

import pytest

import strata
from strata import _abi, _library
from strata.errors import check
from strata.planning import Buffer

MIB = 1 << 20
POOLED = """
version: 1
strategy: pooled
devices: sim
stack: [stream_safe, {auto_growth: {chunk_size: 2MiB}}, vmm]
pools: {weights: {stack: [stream_safe, {auto_growth: {chunk_size: 2MiB}}, vmm: {registrable: true}], keep: true}}
"""
COUNTED = "strategy: counted\ndevices: sim\nstack: [{bfc: {timestamps: true, memory_limit: 16MiB, allow_growth: false}}, system]\n"


@contextlib.contextmanager
def opened(*arguments, **options):
    with strata.open(*arguments, ignore_environment=True, **{"devices": "sim:h100", **options}) as facade:
        yield facade


# ---- requests


def show_requests():
    with opened() as s:
        with s.allocate(MIB, tag="kv") as block:
            assert (s.block_of(block.ptr).ref, s.block_around(block.ptr + 1).ref) == (block.ref, block.ref)
            assert block.place() == strata.gpu(0) and block.stream() == 0 and block.pool() == strata.POOL_ORDINARY
            base, size = block.base()
            assert base <= block.ptr and block.ptr + block.size <= base + size
            assert block.route().startswith("retry > stream_safe")
            block.retain()
            block.free()
        s.free(s.allocate(MIB).ptr)
        s.free(0)
        side = s.stream()
        block = s.allocate(MIB)
        block.record_stream(side)
        block.erase_stream(side)
        block.free_on(side)
        side.destroy()
        with s.allocate(0) as nothing:
            assert nothing.base() == (0, 0)


def show_counted_frees():
    with opened(text=COUNTED, devices=None) as s:
        s.allocate(MIB).free()
        first = s.next_count()
        s.allocate(MIB).free()
        assert s.next_count() > first
        s.set_safe_frontier(first)
        s.allocate(MIB, freed_before=first).free()
        blocks = [s.allocate(MIB) for _ in range(16)]
        blocks[0].free()
        count = s.next_count()
        blocks[1].free()
        with pytest.raises(strata.OutOfMemoryError):
            s.allocate(2 * MIB, freed_before=count)
        s.allocate(2 * MIB, freed_before=0).free()
        s.close("force")


def show_allocators():
    with opened(text=POOLED, devices=None) as s:
        weights = s.pool("weights")
        allocator = s.allocator(pool=weights)
        assert allocator.describe() == (strata.gpu(0), 0, weights)
        block = allocator.allocate(MIB, tag="w")
        assert block.pool() == weights
        assert allocator.statistics().live_allocations == 1
        allocator.free(block)
        assert allocator.release() == 2 * MIB
        functions = allocator.functions()
        assert functions == allocator.functions()
        address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(functions.allocate)(MIB)
        assert s.block_of(address).pool() == weights
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions.free)(address)
        assert allocator.statistics().live_allocations == 0


# ---- streams and pools


def show_streams():
    with opened() as s:
        one, two = s.stream(), s.stream(name="copy", priority=-1)
        assert s.same_stream(one, one) and not s.same_stream(one, two)
        block = s.allocate(MIB, stream=one)
        assert block.stream() == one.handle
        one.work(50, block)
        two.wait(one)
        one.synchronize()
        block.free()
        for note in (lambda: s.note_work(one, 1), lambda: s.note_wait(one, two), lambda: s.note_sync(one), s.note_sync):
            note()
        s.set_default_stream(two)
        with s.allocate(MIB) as mine:
            assert mine.stream() == two.handle
        with pytest.raises(strata.BusyError):
            s.set_default_stream(one)
        s.forget_stream(one)
        s.name_stream(one, "again")
        one.destroy()


def show_pools():
    with opened(text=POOLED, devices=None) as s:
        weights = s.pool("weights")
        assert s.current_pool() == strata.POOL_ORDINARY
        with s.in_pool(weights):
            assert s.current_pool() == weights
            s.allocate(MIB).free()
        assert s.statistics(pool=weights).reserved_bytes == 2 * MIB
        assert s.release() == 0 and s.release_pool(weights) == 2 * MIB
        assert s.release_pool(strata.POOL_ORDINARY) == 0
        assert s.trim_pool(pool=strata.POOL_ORDINARY) == strata.PoolTrim(idle=0, released=0, left=0, pending=0)


# ---- caches and figures


def show_caches():
    with opened() as s:
        blocks = [s.allocate(MIB) for _ in range(3)]
        cache = s.cache_below()
        assert (cache.name, cache.layer, cache.used_bytes) == ("auto_growth_vmm", "auto_growth_vmm", sum(b.size for b in blocks))
        with pytest.raises(strata.InvalidError):
            s.cache_below(index=1)
        blocks[1].free()
        assert s.cache_below().idle_bytes >= MIB
        around = blocks[0].neighbours()
        assert (around.free_before, around.free_after) == (0, blocks[1].size)
        assert around.run == blocks[0].size + around.free_after
        figures = {(figure.layer, figure.name): figure.value for figure in s.layer_figures()}
        assert figures["auto_growth_vmm", "idle_bytes"] == s.cache_below().idle_bytes
        assert s.best_victims(MIB) == []
        whole = s.best_victims(s.statistics().reserved_bytes)
        assert [victim.ptr for victim in whole] == [blocks[0].ptr, blocks[2].ptr]
        with pytest.raises(strata.OutOfMemoryError):
            s.best_victims(1 << 40)
        for block in (blocks[0], blocks[2]):
            block.free()
        held = s.statistics().reserved_bytes
        assert s.mem_info()["cached"] == held
        s.set_limit(held)
        s.set_limit(None)
        assert s.trim(0) == held and s.release() == 0
        s.reset_peaks()


def show_figures():
    with opened() as s:
        with s.allocate(MIB):
            assert s.statistics(stream=0).live_allocations == s.statistics().live_allocations == 1
            assert s.all_statistics()["places"] and "strata_live_allocations" in s.prometheus()
            assert "strategy strata" in s.explain() and " live" in s.chunks()
            assert [row.state for row in s.snapshot()].count("live") == 1
            s.validate()


def show_pauses():
    with opened() as s:
        kept = s.allocate(3 * MIB, tag="weights")
        paused = s.pause(pool=strata.POOL_ORDINARY, contents="pinned")
        assert paused.kept_bytes == paused.bytes == s.statistics().paused_bytes > 0
        with pytest.raises(strata.BusyError):
            s.allocate(MIB)
        resumed = s.resume(pool=strata.POOL_ORDINARY)
        assert (resumed.bytes, resumed.rest_bytes) == (paused.bytes, 0)
        assert s.pause(pool=strata.POOL_EVERY, tag="nobody").bytes == 0
        with pytest.raises(FileNotFoundError):
            s.pause(pool=strata.POOL_EVERY, contents="file", directory="/nowhere/at/all")
        s.resume(pool=strata.POOL_EVERY, tag="weights")
        kept.free()


# ---- graphs


def show_graphs():
    with opened() as s:
        stream = s.stream()
        with s.begin_graph_pool(stream) as pool:
            with s.capture(stream) as graph:
                block = s.allocate(MIB, stream=stream)
                stream.work(10, block)
            assert pool.describe().begun
        told = pool.describe()
        assert (told.pool, told.begins, told.graphs, told.live_allocations, told.begun) == (pool.number, 1, 1, 1, False)
        assert [one.number for one in s.graph_pools()] == [pool.number]
        checkpoint = pool.checkpoint()
        block.free()
        restored = checkpoint.restore()
        assert ([b.ptr for b in restored.live], restored.freed) == ([block.ptr], [])
        assert checkpoint.restore() == ([], [])
        checkpoint.drop()
        checkpoint.drop()
        graph.launch(stream)
        stream.synchronize()
        pool.remove()
        graph.destroy()
        restored.live[0].free()
        assert s.graph_pools() == []
        stream.destroy()


def show_filtered_pools():
    with opened() as s:
        one, two = s.stream(), s.stream()
        with s.begin_graph_pool(filter=lambda handle: handle == two.handle) as pool:
            inside, outside = s.allocate(MIB, stream=two), s.allocate(MIB, stream=one)
            assert (inside.pool(), outside.pool()) == (pool.number, strata.POOL_ORDINARY)
        with s.begin_graph_pool(one, pool=pool.number) as again:
            assert again.number == pool.number
        for _ in range(2):
            pool.remove()
        inside.free()
        outside.free()


# ---- sharing


IMPORTER = """
import socket, sys, strata
end = socket.socket(fileno=int(sys.argv[1]))
with strata.open("strata", devices="sim:h100", ignore_environment=True) as s:
    with strata.Shared.receive(end) as shared, s.import_shared(shared) as imported:
        print(imported.size, bool(imported.ptr), shared.count, shared.device)
        try: strata.Shared.fetch(bytes(shared), 1 << 40)
        except strata.StrataError as error: print(error.status)
"""


def show_sharing():
    with opened() as s:
        block = s.allocate(3 * MIB)
        mine, theirs = socket.socketpair()
        with mine, theirs:
            child = subprocess.Popen(
                [sys.executable, "-c", IMPORTER, str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": f"{os.environ['STRATA_SOURCE']}/doors/python"},
                pass_fds=[theirs.fileno()],
                stdout=subprocess.PIPE,
                text=True,
            )
            with block.export() as shared:
                count = shared.count
                with strata.Shared.fetch(bytes(shared), os.getpid()) as again:
                    assert (again.size, again.count, again.offset) == (shared.size, count, shared.offset)
                shared.send(mine)  # it still owns its descriptors
            assert count >= 1 and shared.count == 0
            told = child.communicate(timeout=30)[0].splitlines()
        assert told == [f"{block.size} True {count} 0", "E_IO"]
        one, other = socket.socketpair()
        with one, other, block.export() as shared:
            shared.send(one)
            with strata.Shared.receive(other) as received:
                assert (received.size, received.count) == (block.size, count)
                with opened() as second, pytest.raises(strata.StrataError):
                    second.import_shared(received)  # the memory of another simulated world
        before = len(os.listdir("/proc/self/fd"))
        left = [block.export() for _ in range(3)]
        assert len(os.listdir("/proc/self/fd")) == before + 3 * (count + 1)  # a lease beside the handles
        del left
        assert len(os.listdir("/proc/self/fd")) == before
        with block.register() as registration:
            assert registration.ptr == block.ptr and registration.base <= block.ptr and registration.place == strata.gpu(0)
        block.free()


def show_peers():
    with opened(devices="sim:a100x2") as s:
        s.enable_peer(1, 0)
        with pytest.raises(strata.InvalidError):
            s.enable_peer(0, 0)


# ---- callbacks, steps, plans


def show_callbacks():
    with opened() as s:
        events, asked = [], []
        numbers = [s.on_out_of_memory(lambda *event: events.append(event)), s.on_free_memory(lambda place, size: asked.append(size))]
        with pytest.raises(strata.OutOfMemoryError):
            s.allocate(1 << 40)
        assert [(str(place), size, cause) for place, size, cause, _ in events] == [("gpu:0", 1 << 40, "too_large")]
        s.step()
        s.annotate("attention")
        s.annotate(None)
        for number in numbers:
            s.remove_callback(number)
        with pytest.raises(strata.StrataError) as unknown:
            s.block_of(0x1000)
        assert unknown.value.summary == "no live allocation begins at this address"


def show_module():
    strata.set_log(None)
    with pytest.raises(strata.StrataError) as unknown:
        check(99)  # a status of a newer library
    assert (unknown.value.status, type(unknown.value)) == ("?", strata.StrataError)
    assert strata.presets() and strata.layers() and strata.__version__ == strata.version()
    with opened() as s:
        s.change_strategy("system", devices=None)
        assert "strategy system" in s.explain()


def show_planning():
    buffers = [Buffer(0, 3, 4096), (1, 2, 8192), Buffer(2, 4, 8192, alignment=4096)]
    plan = strata.planning.make(buffers, planner="exact", seconds=0.5)
    assert (plan.peak, plan.lower_bound, plan.proved) == (12288, 12288, True)
    assert strata.planning.check(buffers, plan.offsets) == plan.peak
    assert strata.planning.lower_bound(buffers) == 12288
    with pytest.raises(strata.StrataError, match="buffers 0 and 1 share bytes"):
        strata.planning.check(buffers, [0, 0, 4096])
    lines = strata.planning.reuse_lines([(0, 1, 4096), (1, 2, 4096)])
    assert [(line.effect, line.buffer, line.other) for line in lines if line.effect != "null"] == [("allocate", 0, 0), ("reuse", 1, 0)]
    branches = [Buffer(0, 1, 4096, fork=1, branch=0), Buffer(1, 2, 4096, fork=1, branch=1)]
    assert strata.planning.dependencies(branches, [0, 0]) == (1, 4096, 1, 4096, [(0, 1, 4096)])
    fixed = strata.planning.make([Buffer(0, 1, 4096, offset=8192), Buffer(0, 1, 4096, output=True), Buffer(0, 9, 64, removed=True)])
    assert fixed.offsets[0] == 8192 and fixed.offsets[2] == 0
    for nothing in ([], ()):
        assert strata.planning.make(nothing).offsets == [] and strata.planning.make(nothing).peak == 0
        assert strata.planning.check(nothing, []) == strata.planning.lower_bound(nothing) == 0
        assert strata.planning.reuse_lines(nothing) == [] and strata.planning.dependencies(nothing, []) == (0, 0, 0, 0, [])


def show_what_a_request_says():
    with opened() as s:
        causes = []
        s.on_out_of_memory(lambda place, size, cause, report: causes.append(cause))
        with pytest.raises(strata.OutOfMemoryError):
            s.allocate(MIB, grow=False)
        side = s.stream()
        s.allocate(30 * MIB, stream=side).free()
        s.set_limit(s.statistics().reserved_bytes)
        with pytest.raises(strata.OutOfMemoryError):
            s.allocate(30 * MIB, retry=False)
        assert causes == ["no_growth", "no_retry"]
        s.allocate(30 * MIB).free()
        side.destroy()
        block = s.allocate(4096, place="host")
        ctypes.memset(block.ptr, 255, 4096)
        block.free()
        with s.allocate(4096, place="host", zero=True) as again:
            assert again.ptr == block.ptr and ctypes.string_at(again.ptr, 4096) == bytes(4096)
    with opened(text="strategy: a\nstack: [aligned, stream_safe, auto_growth, system]\n", devices="sim") as s:
        blocks = [s.allocate(300, alignment=1 << 16) for _ in range(3)]
        blocks += [s.allocator().allocate(300, alignment=1 << 16)]
        assert [block.ptr % (1 << 16) for block in blocks] == [0] * 4
        s.close("force")


def show_broken_captures():
    with opened() as s:
        one, two = s.stream(), s.stream()
        with pytest.raises(strata.StrataError) as broken, s.capture(one):
            two.wait(one)  # joins the capture, and nothing waits for it
        assert broken.value.status == "E_CAPTURE"
        with pytest.raises(KeyError), s.capture(one):
            two.wait(one)
            raise KeyError("the program's own error says more")
        with pytest.raises(KeyError), s.begin_graph_pool(one) as pool, s.capture(one) as graph:
            s.allocate(MIB, stream=one).free()
            raise KeyError
        assert graph.handle and pool.describe().graphs == 0  # it was destroyed
        pool.remove()
        with pytest.raises(strata.StrataError), s.capture(None):
            pass


def show_pauses_of_tags(tmp_path):
    with opened() as s:
        blocks = [s.allocate(16 * MIB, tag=tag) for tag in ("a", "b")]
        paused = s.pause(pool=strata.POOL_ORDINARY, contents="file", directory=tmp_path, staging=8 * MIB)
        assert s.statistics("pinned").peak_allocated_bytes == 8 * MIB
        resumed = s.resume(pool=strata.POOL_ORDINARY, tag="b")
        assert resumed.bytes == paused.bytes // 2 and resumed.rest_bytes == paused.bytes - resumed.bytes
        s.resume(pool=strata.POOL_ORDINARY)
        for block in blocks:
            block.free()


def show_planners():
    make, taken = strata.planning.make, [(0, 2, 128), (2, 4, 64), (3, 5, 1)]
    assert [make(taken, planner="reuse", close_gaps=close_gaps).peak for close_gaps in (False, True)] == [128, 129]
    assert len(strata.planning.reuse_lines(taken)) == 6
    effects = [[line.effect for line in strata.planning.reuse_lines(taken, close_gaps=close_gaps)].count("reuse") for close_gaps in (False, True)]
    assert effects == [0, 1]
    ordinary = Buffer(2, 4, 64)
    for first, second, passed_on in (
        (Buffer(0, 2, 64), ordinary, 1),
        (Buffer(0, 2, 64, output=True), ordinary, 0),
        (Buffer(0, 2, 64, removed=True), ordinary, 0),
        (Buffer(0, 2, 64), ordinary._replace(kind=1), 0),
        (Buffer(0, 2, 64), ordinary._replace(alignment=256), 0),
        (Buffer(0, 2, 64, fork=1, branch=1), ordinary._replace(fork=1, branch=2), 0),
        (Buffer(0, 2, 64, fork=1, branch=1), ordinary._replace(fork=1, branch=1), 1),
    ):
        assert [line.effect for line in strata.planning.reuse_lines([first, second])].count("reuse") == passed_on, (first, second)
    tree = [Buffer(0, 2, 64, output=True), Buffer(1, 3, 128), Buffer(2, 4, 64)]
    assert [make(tree, planner="tree", pools=pools).pools for pools in ("intermediates", "combined")] == [2, 1]
    assert [offset % 4096 for offset in make([(0, 1, 64, 4096), (0, 1, 64, 4096)]).offsets] == [0, 0]


SHOWN = {name[5:]: function for name, function in list(globals().items()) if name.startswith("show_")}


def show(group, folder):
    SHOWN[group](*([folder] if "tmp_path" in inspect.signature(SHOWN[group]).parameters else []))


@pytest.mark.parametrize("group", SHOWN)
def test_shown(group, tmp_path):
    show(group, tmp_path)


class Counting:
    """The library, which notes the functions that are asked for."""

    def __init__(self, library):
        self._library, self.asked = library, set()

    def __getattr__(self, name):
        self.asked.add(name)
        return getattr(self._library, name)


def test_no_bound_function_is_left_out(monkeypatch, tmp_path):
    counting = Counting(_library.library())
    others = {"__main__", "_library", "torch", "cupy", "rmm", "numba"}
    modules = [strata, *(importlib.import_module(f"strata.{m.name}") for m in pkgutil.iter_modules(strata.__path__) if m.name not in others)]
    for module in modules:
        if hasattr(module, "library"):
            monkeypatch.setattr(module, "library", lambda: counting)
    for group in SHOWN:
        show(group, tmp_path)
    # The first is called once, when the library is loaded; the second by the other process.
    elsewhere = {"strata_abi_version", "strata_import_end"}
    assert {"strata_" + name for name in _abi.PROTOTYPES} - counting.asked == elsewhere
