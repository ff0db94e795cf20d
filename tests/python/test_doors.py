"""The doors into CuPy, RMM, Numba and ONNX Runtime. Where one of them is installed it calls the door itself; elsewhere a stand-in with its interface."""

import ctypes
import gc
import sys
import threading
import types
from importlib import util

import pytest

import strata
import strata.cupy
import strata.numba
import strata.onnxruntime
import strata.rmm

MIB = 1 << 20


class Context:
    """What Numba's manager asks of its context."""

    device = types.SimpleNamespace(id=0)


# ---- stand-ins


def cupy_like():
    """cupy.cuda: PythonFunctionAllocator as of CuPy 14."""

    class PythonFunctionAllocator:
        def __init__(self, malloc, free):
            self._malloc, self._free = malloc, free

        def malloc(self, size):
            return types.SimpleNamespace(ptr=self._malloc(size, 0), free=lambda p: self._free(p, 0))

    cuda = types.SimpleNamespace(set=None)
    cuda.stream = types.SimpleNamespace(ptr=0)
    cuda.get_current_stream = lambda: cuda.stream
    out_of_memory = type("OutOfMemoryError", (MemoryError,), {"__init__": lambda self, size, total, limit: None})
    cuda.memory = types.SimpleNamespace(PythonFunctionAllocator=PythonFunctionAllocator, OutOfMemoryError=out_of_memory)
    cuda.runtime = types.SimpleNamespace(CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {"status": None}))
    cuda.set_allocator = lambda malloc: setattr(cuda, "set", malloc)
    module = types.ModuleType("cupy")
    module.get_default_memory_pool = lambda: types.SimpleNamespace(malloc="CuPy's own")
    module.cuda = cuda
    return module


def rmm_like():
    """rmm.mr: CallbackMemoryResource as of RMM 26.10."""

    class CallbackMemoryResource:
        def __init__(self, allocate, deallocate):
            self.allocate, self.deallocate = allocate, deallocate

    module = types.ModuleType("rmm")
    module.mr = types.SimpleNamespace(CallbackMemoryResource=CallbackMemoryResource, CudaMemoryResource=lambda: "RMM's own", current={})
    module.mr.set_per_device_resource = module.mr.current.__setitem__
    return module


def numba_like():
    """numba.cuda: HostOnlyCUDAMemoryManager and MemoryPointer as of numba-cuda 0.30."""

    class HostOnlyCUDAMemoryManager:
        def __init__(self, *, context):
            self.context, self.allocations = context, {}

        def initialize(self):
            self.initialized = self.get_memory_info()

        def reset(self):
            self.allocations.clear()

    class MemoryPointer:
        def __init__(self, context, pointer, size, owner=None, finalizer=None):
            assert not isinstance(pointer, ctypes._SimpleCData), "its address is int(pointer)"
            self.device_pointer, self.size, self._finalizer = pointer, size, finalizer

        def free(self):
            self._finalizer()

    module, cuda = types.ModuleType("numba"), types.ModuleType("numba.cuda")
    cuda.HostOnlyCUDAMemoryManager, cuda.MemoryPointer = HostOnlyCUDAMemoryManager, MemoryPointer
    cuda.MemoryInfo = lambda free, total: types.SimpleNamespace(free=free, total=total)
    binding, config = types.SimpleNamespace(CUdeviceptr=int), types.SimpleNamespace(CUDA_PER_THREAD_DEFAULT_STREAM=0)
    driver = types.SimpleNamespace(binding=binding, config=config, NumbaCUDAMemoryManager="Numba's own")
    cuda.cudadrv = types.SimpleNamespace(driver=driver)
    cuda.set_memory_manager = lambda manager: setattr(cuda, "manager", manager)
    module.cuda = cuda
    return module


@pytest.fixture
def cupy(monkeypatch):
    """Always the stand-in: CuPy's own asks the runtime for the device before it calls anybody."""
    module = cupy_like()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.fixture
def rmm(monkeypatch):
    if util.find_spec("rmm"):
        import rmm as real

        return real
    module = rmm_like()
    monkeypatch.setitem(sys.modules, "rmm", module)
    return module


@pytest.fixture
def numba(monkeypatch):
    if util.find_spec("numba"):
        import numba.cuda

        return numba
    module = numba_like()
    monkeypatch.setitem(sys.modules, "numba", module)
    monkeypatch.setitem(sys.modules, "numba.cuda", module.cuda)
    return module


# ---- CuPy


def test_cupy_is_served_on_the_current_stream(s, cupy):
    assert strata.cupy.install(facade=s) is s
    side = s.stream()
    cupy.cuda.stream = types.SimpleNamespace(ptr=side.handle)
    memory = cupy.cuda.set(MIB)
    assert s.block_of(memory.ptr).size >= MIB
    assert s.statistics(stream=side).live_allocations == 1
    memory.free(memory.ptr)
    assert s.statistics().live_allocations == 0
    memory.free(0)
    for kind in (strata.OutOfMemoryError, cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError):
        with pytest.raises(kind, match="try:") as raised:
            cupy.cuda.set(1 << 40)
        assert raised.value.status == 2  # where CuPy's pool asks whether to give memory back
    side.destroy()


def test_cupy_s_allocator_takes_two_python_functions():
    if not util.find_spec("cupy"):
        pytest.skip("CuPy is not installed")
    from cupy.cuda.memory import PythonFunctionAllocator

    assert PythonFunctionAllocator(lambda size, device: 0, lambda pointer, device: None).malloc


# ---- RMM


def test_rmm_is_served(s, rmm):
    mine = strata.rmm.resource(s)
    pointer = mine.allocate(MIB)
    pointer = int(pointer)
    assert s.block_of(pointer).size >= MIB
    mine.deallocate(pointer, MIB)
    assert s.statistics().live_allocations == 0
    with pytest.raises(MemoryError):
        mine.allocate(1 << 40)


def test_rmm_s_streams_own_and_end_the_use(s):
    functions = strata.rmm.Functions(s, 0)
    side, other = s.stream(), s.stream()
    pointer = functions.allocate(MIB, side)
    assert s.statistics(stream=side).live_allocations == 1
    other.work(500, s.block_of(pointer))
    functions.deallocate(pointer, MIB, other)
    assert s.statistics().deferred_bytes >= MIB
    assert functions.allocate(0, side) == 0
    functions.deallocate(0, 0, side)
    for one in (side, other):
        one.destroy()


def test_rmm_s_current_resource(s, monkeypatch):
    module = rmm_like()
    monkeypatch.setitem(sys.modules, "rmm", module)
    assert strata.rmm.install(facade=s, device=0) is s
    pointer = module.mr.current[0].allocate(MIB, None)
    module.mr.current[0].deallocate(pointer, MIB, None)


# ---- Numba


def test_numba_is_served(s, numba):
    manager = strata.numba.manager(s)(context=Context())
    manager.initialize()
    memory = manager.memalloc(MIB)
    pointer = memory.device_pointer
    assert s.block_of(int(getattr(pointer, "value", pointer))).size >= MIB and memory.size == MIB
    manager.reset()
    assert s.statistics().live_allocations == 1
    memory.free()
    gc.collect()
    assert s.statistics().live_allocations == 0
    told = manager.get_memory_info()
    assert told.total == s.mem_info()["total"] and 0 < told.free <= told.total
    assert manager.interface_version == 1
    with pytest.raises(MemoryError, match="try:"):
        manager.memalloc(1 << 40)
    with pytest.raises(NotImplementedError):
        manager.get_ipc_handle(memory)


def test_numba_opens_a_facade_with_its_first_context(monkeypatch, numba):
    asked = []

    class Opened:
        def mem_info(self, place):
            return {"free": 1 << 30, "cached": 0, "total": 1 << 31}

    monkeypatch.setattr(strata.numba, "door_facade", lambda: asked.append(1) or Opened())
    kind = strata.numba._numba_memory_manager
    with pytest.raises(RuntimeError, match="has not created a context"):
        kind(context=Context()).memalloc(MIB)
    for _ in range(2):
        kind(context=Context()).initialize()
    assert asked == [1]


def test_numba_s_manager_is_set(s, monkeypatch):
    module = numba_like()
    monkeypatch.setitem(sys.modules, "numba", module)
    monkeypatch.setitem(sys.modules, "numba.cuda", module.cuda)
    assert strata.numba.install(facade=s) is s
    assert issubclass(module.cuda.manager, module.cuda.HostOnlyCUDAMemoryManager)
    assert strata.numba._pointer(module.cuda, 5) == 5
    module.cuda.cudadrv.driver.USE_NV_BINDING = False  # as numba 0.68 without numba-cuda
    assert strata.numba._pointer(module.cuda, 5).value == 5


# ---- all of them


@pytest.mark.parametrize("name", ["cupy", "rmm", "numba"])
def test_a_door_refuses_a_simulated_device(name, monkeypatch):
    module = {"cupy": cupy_like, "rmm": rmm_like, "numba": numba_like}[name]()
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("STRATA_DOORS_ALLOW_SIMULATED", raising=False)
    with pytest.raises(ValueError, match="made-up addresses"):
        getattr(strata, name).install("strata", devices="sim")


# ---- STRATA_BYPASS


def torch_like():
    """The parts of PyTorch that are used before a door is installed."""
    module = types.ModuleType("torch")
    module.cuda = types.SimpleNamespace(is_initialized=lambda: pytest.fail("a door was installed"))
    return module


def untouched(name, module):
    """Checks that the library's own allocator serves: no allocator was set, and the door returned the library's."""
    cuda = getattr(module, "cuda", None)
    return {
        "cupy": lambda: cuda.set is None and strata.cupy.allocator(None) == "CuPy's own",
        "rmm": lambda: module.mr.current == {} and strata.rmm.resource(None) == "RMM's own",
        "numba": lambda: not hasattr(cuda, "manager") and strata.numba._numba_memory_manager == strata.numba.manager() == "Numba's own",
        "torch": lambda: strata.torch.facade().statistics().allocations == 0,
    }[name]()


@pytest.fixture
def library(request, monkeypatch):
    """A stand-in replaces the real library."""
    import strata.torch

    module = {"cupy": cupy_like, "rmm": rmm_like, "numba": numba_like, "torch": torch_like}[request.param]()
    monkeypatch.setitem(sys.modules, request.param, module)
    if request.param == "numba":
        monkeypatch.setitem(sys.modules, "numba.cuda", module.cuda)
    monkeypatch.setattr(strata.torch, "_facade", None)
    monkeypatch.setattr(strata._doors, "_said", set())
    monkeypatch.delenv("STRATA_DOORS_ALLOW_SIMULATED", raising=False)
    return request.param, module


@pytest.mark.parametrize("library", ["cupy", "rmm", "numba", "torch"], indirect=True)
def test_a_door_steps_aside(library, monkeypatch, capfd):
    """The program runs unchanged with a facade that serves no requests, for any strategy and devices."""
    name, module = library
    monkeypatch.setenv("STRATA_BYPASS", "1")
    monkeypatch.setenv("STRATA_STRATEGY", "no such strategy")
    with getattr(strata, name).install("wrong.yaml", set=["no.such=1"]) as facade:
        assert untouched(name, module)
        assert facade.statistics().allocations == 0 and facade.report() == ""
    said = capfd.readouterr().err
    assert said.count("STRATA_BYPASS is set") == 1 and "own allocator serves, not Strata" in said


@pytest.mark.parametrize("library", ["cupy", "rmm", "numba"], indirect=True)
def test_a_door_steps_aside_from_an_open_facade(library, monkeypatch, s):
    name, module = library
    monkeypatch.setenv("STRATA_BYPASS", "true")
    assert getattr(strata, name).install(facade=s) is s
    assert untouched(name, module)


def test_onnxruntime_keeps_its_arena(monkeypatch, s, capfd):
    monkeypatch.setattr(strata._doors, "_said", set())
    monkeypatch.setenv("STRATA_BYPASS", "1")
    assert strata.onnxruntime.provider(s, 1, use_tf32=0) == ("CUDAExecutionProvider", {"device_id": "1", "use_tf32": "0"})
    with pytest.raises(ValueError):
        strata.onnxruntime.options(s, enable_cuda_graph=1)
    assert "ONNX Runtime's own allocator serves" in capfd.readouterr().err


@pytest.mark.parametrize("value", ["", "0", "false", "No", "OFF", None])
def test_falsy_values_bypass_nothing(value, monkeypatch, capfd):
    monkeypatch.delenv("STRATA_BYPASS", raising=False)
    if value is not None:
        monkeypatch.setenv("STRATA_BYPASS", value)
    assert not strata._doors.bypassed("CuPy")
    assert capfd.readouterr().err == ""


# ---- ONNX Runtime


class Provider:
    """What ONNX Runtime's provider makes of its options: decimal addresses that it calls without a stream, from threads of its own. Beside
    them it takes no stream."""

    def __init__(self, told):
        name, options = told
        assert name == "CUDAExecutionProvider" and all(isinstance(value, str) for value in options.values())
        assert "user_compute_stream" not in options
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(int(options["gpu_external_alloc"]))
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(options["gpu_external_free"]))


def test_onnxruntime_is_served_on_the_default_stream(s):
    told = strata.onnxruntime.provider(s, arena_extend_strategy="kSameAsRequested", use_tf32=0)
    assert told[1]["device_id"] == "0" and told[1]["use_tf32"] == "0" and told[1]["arena_extend_strategy"] == "kSameAsRequested"
    provider = Provider(told)
    served = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: served.append(provider.alloc(MIB)))
        thread.start()
        thread.join()
    assert s.block_of(served[0]).size >= MIB and served[0] != served[1]
    assert s.statistics(stream=0).live_allocations == 2
    for address in served:
        provider.free(address)
    again = provider.alloc(MIB)
    assert again in served
    provider.free(again)
    provider.free(None)
    assert s.statistics().live_allocations == 0


def test_onnxruntime_s_memory_may_be_lent_to_another_stream(s):
    side = s.stream()
    provider = Provider(strata.onnxruntime.provider(s))
    address = provider.alloc(MIB)
    block = s.block_of(address)
    block.record_stream(side)
    side.work(500, block)
    provider.free(address)
    other = provider.alloc(MIB)
    assert s.statistics().deferred_bytes == MIB and other != address
    side.synchronize()
    provider.free(other)
    assert s.statistics().live_allocations == 0


def test_onnxruntime_hears_of_failures(s, capfd):
    provider = Provider(strata.onnxruntime.provider(s))
    assert provider.alloc(1 << 40) is None
    assert "out of memory in gpu:0" in capfd.readouterr().err
    provider.free(0x1000)
    assert "0x1000" in capfd.readouterr().err
    for name in ("user_compute_stream", "has_user_compute_stream"):
        with pytest.raises(ValueError, match="default stream"):
            strata.onnxruntime.options(s, **{name: "1"})
    with pytest.raises(TypeError, match="sets device_id, gpu_external_free itself"):
        strata.onnxruntime.options(s, **{"gpu_external_free": "1", "device_id": 1})
    for wanted in (1, "1", True, "True"):
        with pytest.raises(ValueError, match="enable_cuda_graph"):
            strata.onnxruntime.options(s, enable_cuda_graph=wanted)
    assert strata.onnxruntime.options(s, enable_cuda_graph="0")["enable_cuda_graph"] == "0"


def test_onnxruntime_s_facade_may_be_closed(capfd):
    closed = strata.open("strata", devices="sim:h100", ignore_environment=True)
    provider = Provider(strata.onnxruntime.provider(closed))
    address = provider.alloc(MIB)
    closed.close("force")
    assert provider.alloc(MIB) is None
    provider.free(address)
    assert capfd.readouterr().err.count("closed") == 2


def test_onnxruntime_s_facade_is_kept_as_long_as_it_is_open():
    provider = Provider(strata.onnxruntime.provider(strata.open("strata", devices="sim:h100", ignore_environment=True)))
    gc.collect()
    address = provider.alloc(MIB)
    assert address
    provider.free(address)
    strata.onnxruntime._kept[-1].close()
    with strata.open("strata", devices="sim:h100", ignore_environment=True) as other:
        strata.onnxruntime.options(other)
        strata.onnxruntime.options(other)
        assert strata.onnxruntime._kept == [other]


@pytest.mark.parametrize("name", ["cupy", "rmm", "numba"])
def test_a_door_keeps_its_facade(name, monkeypatch):
    """The other library keeps only the functions of the door."""
    module = {"cupy": cupy_like, "rmm": rmm_like, "numba": numba_like}[name]()
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("STRATA_DOORS_ALLOW_SIMULATED", "1")
    handle = getattr(strata, name).install("strata", devices="sim:h100").handle
    gc.collect()
    strata.Facade(handle).close()
